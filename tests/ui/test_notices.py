import pytest

from engine.job import Job
from engine.types import ChatRequest, Message, Status
from ui.components.notices import LONG_S, told


@pytest.mark.parametrize(("took_s", "long"), [(LONG_S - 0.1, False), (LONG_S, True)])
def test_the_browser_is_told_whether_an_answer_took_long_and_what_was_asked(took_s: float, long: bool) -> None:
    request = ChatRequest(messages=(Message("user", "how\n  long? " + "x" * 200),), person="ada", source="page")
    job = Job(request, model="scripted", quantization="", queue_depth=0)
    job.finish(Status.DONE, None)
    job.finished_s = took_s
    job.close(Status.DONE)
    assert told(job) == {"id": job.id, "question": ("how long? " + "x" * 200)[:100], "done": True, "long": long}
