"""Logged exchanges for the review page's tests: one that is complete, and whatever a test makes different of it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from engine.types import Exchange, Message, Sampling, Status

START = datetime(2026, 5, 4, 9, tzinfo=UTC)


def exchange(id: str, parent: str | None = None, *, after_s: float = 0, **other: object) -> Exchange:
    queued = START + timedelta(seconds=after_s)
    made = Exchange(
        id=id,
        person="p",
        source="page",
        conversation_id="c",
        parent_id=parent,
        messages=(Message("system", "Be kind."), Message("user", f"question {id}")),
        answer=f"answer {id}",
        status=Status.DONE,
        finish_reason="stop",
        error=None,
        model="Qwen2-0.5B-Instruct",
        quantization="nf4",
        sampling=Sampling(seed=7, max_tokens=1024, stop=("\n\n",)),
        prompt_tokens=1234,
        cached_tokens=1000,
        completion_tokens=41,
        queue_depth=3,
        queued_at=queued,
        started_at=queued + timedelta(seconds=2),
        first_token_at=queued + timedelta(seconds=3),
        finished_at=queued + timedelta(seconds=7),
    )
    return replace(made, **other)  # type: ignore[arg-type]  # the fields' names are given by the tests above
