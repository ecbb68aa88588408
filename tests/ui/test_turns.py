"""A conversation's tree as the turns of a page, and what the model is told of it."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from engine.errors import BUSY_ELSEWHERE, ContextOverflow, InvalidRequest, NotReady, QueueFull
from engine.types import Exchange, Message, Sampling, Status
from ui.components.preferences import read_choice
from ui.components.prompt import messages_for
from ui.components.refusals import refusal
from ui.components.turns import (
    answered,
    beginning,
    branch,
    details,
    ends,
    first_read,
    neighbour,
    newest_under,
    note,
    questions,
    turn,
    versions,
)
from ui.i18n import language

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
SAY = language("en")


def exchange(id: str, parent: str | None = None, **changes: object) -> Exchange:
    """A finished exchange: asked at noon, started after 2 s, first token after 1 s more, 21 tokens within 4 s."""
    made = Exchange(
        id=id,
        person="ada",
        source="page",
        conversation_id="c",
        parent_id=parent,
        messages=(Message("user", f"question {id}"),),
        answer=f"answer {id}",
        status=Status.DONE,
        finish_reason="stop",
        error=None,
        model="Qwen2",
        quantization="nf4",
        sampling=Sampling(),
        prompt_tokens=5,
        cached_tokens=0,
        completion_tokens=21,
        queue_depth=0,
        queued_at=NOON,
        started_at=NOON + timedelta(seconds=2),
        first_token_at=NOON + timedelta(seconds=3),
        finished_at=NOON + timedelta(seconds=7),
    )
    return replace(made, **changes)  # type: ignore[arg-type]  # fields by name


def tree(*exchanges: Exchange) -> dict[str, Exchange]:
    return {one.id: one for one in exchanges}


#   a - b - d
#    \- c (another version of b)
TREE = tree(exchange("a"), exchange("b", "a"), exchange("c", "a"), exchange("d", "b"))


def test_a_branch_goes_from_the_first_exchange_to_the_head() -> None:
    assert [one.id for one in branch(TREE, "d")] == ["a", "b", "d"]
    assert [one.id for one in branch(TREE, "c")] == ["a", "c"]
    assert [one.id for one in branch(TREE, None)] == ["a", "b", "d"]  # the newest exchange
    assert branch({}, "d") == []


def test_a_tree_that_bites_its_tail_ends() -> None:
    assert len(branch(tree(exchange("a", "b"), exchange("b", "a")), "b")) == 2


#   a (asked again: a2; asked otherwise: q) - b - b1, which goes on with b - b2, with b1 - e
CUT = tree(
    exchange("a"),
    exchange("a2", messages=(Message("user", "question a"),)),
    exchange("q"),
    exchange("b", "a", answer="one"),
    exchange("b1", "b", messages=(Message("user", "question b"), Message("assistant", "one")), answer=" two"),
    exchange("b2", "b1", messages=(Message("user", "question b"), Message("assistant", "one two")), answer=" three"),
    exchange("e", "b2"),
)


def test_versions_of_an_answer_have_its_question_and_place() -> None:
    assert versions(CUT, CUT["a"]) == versions(CUT, CUT["a2"]) == ["a", "a2"]
    assert versions(CUT, CUT["q"]) == ["q"]
    assert newest_under(TREE, TREE["b"]).id == "d"


def test_versions_of_a_question_are_told_by_their_newest_answer() -> None:
    assert questions(CUT, CUT["a2"]) == questions(CUT, CUT["q"]) == ["a2", "q"]
    assert questions(CUT, CUT["a"]) == ["a", "q"], "the answer that is shown stands for its own question"


def test_an_answer_that_was_gone_on_with_is_one_turn() -> None:
    path = branch(CUT, "e")
    assert [one.id for one in path] == ["a", "b", "b1", "b2", "e"]
    assert [one.id for one in ends(path)] == ["a", "b2", "e"]
    assert CUT["b2"].whole_answer == "one two three"
    assert beginning(CUT, CUT["b2"]) is CUT["b"]
    assert versions(CUT, CUT["b2"]) == questions(CUT, CUT["b2"]) == ["b2"]
    assert [one.whole_answer for one in answered(path)] == ["answer a", "one two three", "answer e"]
    shown = turn(CUT["b2"], CUT, SAY, None)
    assert (shown["goes_on"], shown["source"]) == ("b1", "one two three")


def test_what_goes_on_with_a_missing_answer_stands_alone() -> None:
    """Retention has taken the beginning."""
    rest = tree(CUT["b2"], CUT["e"])
    assert [one.id for one in ends(branch(rest, "e"))] == ["b2", "e"]
    assert versions(rest, CUT["b2"]) == ["b2"]


def test_what_is_shown_in_the_place_of_a_removed_turn() -> None:
    assert neighbour(CUT, CUT["a2"]) == "e", "another answer to the same question, to the end of its branch"
    assert neighbour(CUT, CUT["q"]) == "a2"
    assert neighbour(CUT, CUT["b2"]) == "a", "the turn before it"
    assert neighbour(tree(CUT["a"]), CUT["a"]) is None


def test_only_answered_questions_are_told() -> None:
    stopped = exchange("e", answer="half", status=Status.STOPPED)
    assert answered([exchange("a"), exchange("b", answer=" "), stopped]) == [exchange("a"), stopped]


@pytest.mark.parametrize(("told", "mark"), [(3, ""), (2, ""), (1, "b"), (0, "d")])
def test_the_mark_of_what_is_no_longer_read(told: int, mark: str) -> None:
    messages = tuple(Message("user", str(i)) for i in range(told + 1))
    assert first_read([TREE["a"], TREE["b"], replace(TREE["d"], messages=messages)]) == mark


def test_the_figures_of_an_answer() -> None:
    assert details(exchange("a"), SAY) == [
        ("Waited", "2 s"),
        ("First token after", "1 s"),
        ("Tokens of the prompt", "5"),
        ("Tokens", "21"),
        ("Tokens per second", "5"),
        ("Ended", "by itself"),
        ("Model", "Qwen2 · nf4"),
    ]
    cached = replace(exchange("a"), prompt_tokens=3056, cached_tokens=3023)
    assert ("Tokens of the prompt", "3,056 (3,023 cached)") in details(cached, SAY)


def test_an_answer_that_ended_otherwise_says_how() -> None:
    silent = {Status.DONE, Status.QUEUED, Status.RUNNING}
    for status in Status:
        assert (note(exchange("a", status=status), SAY) is None) == (status in silent)
    cut = note(exchange("a", finish_reason="length"), SAY)
    assert cut
    assert cut["text"] == "The answer reached its greatest length."
    assert cut["go_on"]
    full = note(exchange("a", status=Status.FAILED, error=BUSY_ELSEWHERE), SAY)
    assert full
    assert (full["text"], full["retry"]) == ("All places are taken at the moment. Please try again in a moment.", True)
    nothing = note(exchange("a", status=Status.STOPPED, answer=""), SAY)
    assert nothing
    assert not nothing["go_on"]


def test_a_running_turn_has_no_source_to_copy_yet() -> None:
    running = exchange("a", status=Status.RUNNING)
    assert turn(running, tree(running), SAY, "<p>half</p>")["source"] == ""
    assert turn(exchange("a"), TREE, SAY, None)["source"] == "answer a"


# --- what the model is told ---


def words(messages: Sequence[Message]) -> int:
    return sum(len(message.content.split()) for message in messages)


def told(past: list[Exchange], room: int, system: str = "Be kind.") -> list[str]:
    messages = asyncio.run(messages_for("the new question", past, system, count=words, room=room))
    return [message.content for message in messages]


def test_everything_is_told_while_it_fits() -> None:
    assert told([TREE["a"], TREE["b"]], 100) == [
        "Be kind.",
        "question a",
        "answer a",
        "question b",
        "answer b",
        "the new question",
    ]
    assert told([], 100, system="") == ["the new question"]


def test_the_oldest_turns_give_way_and_the_system_prompt_stays() -> None:
    past = [exchange(str(number)) for number in range(100)]
    for room in (8, 12, 40, 200, 400):
        messages = told(past, room)
        kept = (len(messages) - 2) // 2
        assert messages[0] == "Be kind."
        assert messages[1:-1:2] == [f"question {number}" for number in range(100 - kept, 100)]
        assert 5 + 4 * kept <= room * 3 // 4 or kept == 0
        assert kept == 100 or 5 + 4 * (kept + 1) > room - int(room / 4)


def test_a_question_that_does_not_fit_alone_goes_to_the_service_which_refuses_it() -> None:
    assert told([TREE["a"]], 3) == ["Be kind.", "the new question"]


def test_an_answer_is_gone_on_with_from_its_last_word() -> None:
    messages = asyncio.run(
        messages_for("the question", [CUT["b2"]], "", count=words, room=100, opening="half of the \t")
    )
    assert [message.content for message in messages] == ["question b", "one two three", "the question", "half of the"]
    assert messages[-1].role == "assistant"


# --- what people are told ---


def test_refusals_are_sentences_in_both_languages() -> None:
    full = QueueFull("...", retry_after_s=20)
    assert refusal(full, SAY) == (
        "All places are taken at the moment. Your message stays here; try again in 20 seconds."
    )
    assert "名额已满" in refusal(full, language("zh"))
    assert "5,000 tokens, and the model reads 4,096" in refusal(ContextOverflow(5000, 4096), SAY)
    assert "still loading" in refusal(NotReady("...", code="model_loading"), SAY)


def test_settings_are_read_and_bad_ones_refused() -> None:
    fields = {"system_prompt": " Be brief. ", "temperature": "0", "top_p": 0.5, "max_tokens": ""}
    chosen = read_choice(fields, SAY)
    assert chosen.system_prompt == "Be brief."
    assert chosen.sampling == Sampling(temperature=0, top_p=0.5)
    assert read_choice({"temperature": 0, "max_tokens": None}, SAY).sampling == Sampling(temperature=0)
    assert read_choice({}, SAY).sampling is None
    for name, value in [("temperature", "9"), ("top_p", "0"), ("max_tokens", "1.5"), ("temperature", "nan")]:
        with pytest.raises(InvalidRequest, match="Temperature goes from 0 to 2"):
            read_choice({name: value}, SAY)
    with pytest.raises(InvalidRequest, match="may have 20000 characters"):
        read_choice({"system_prompt": "x" * 20_001}, SAY)
