"""The load generator: what it counts, and how it breaks off what takes too long."""

from bench.load import Answer, Target, measure
from tests.engine.backends.upstream import upstream

QUESTION_WORDS = 7  # of each question, at least; the script repeats it


def words(text: str) -> int:
    return len(text.split())


async def test_what_is_finished_is_counted_as_the_server_reports_it() -> None:
    async with upstream() as server:
        figures = await measure(Target(server.url), streams=3, tokens=QUESTION_WORDS, count=lambda _: 1000)
        assert figures.tokens == 3 * QUESTION_WORDS
        assert figures.tokens_per_s > 0


async def test_a_question_may_be_given() -> None:
    async with upstream() as server:
        figures = await measure(Target(server.url), streams=2, tokens=64, question="one two")
        assert figures.tokens == 2 * len(["You ", "said: ", "one ", "two"])


async def test_what_takes_longer_than_the_window_is_broken_off() -> None:
    async with upstream() as server:
        server.script.pause_s = 0.2
        figures = await measure(Target(server.url), streams=2, tokens=64, window_s=0.01, count=words)
        assert figures.tokens < 2 * QUESTION_WORDS
        assert figures.ttft_max_s > 0
        await server.idle.wait()  # nothing goes on for nobody


def test_text_is_counted_as_a_whole_and_from_a_time_on() -> None:
    answer = Answer(0.0, [(1.0, "one t"), (2.0, "wo three"), (3.0, " four")])
    assert answer.tokens(words) == 4
    assert answer.tokens(words, since=2.0) == 1
    assert answer.tokens(words, since=1.0) == 2  # "two" had begun before
    assert answer.tokens(None) == 3
