"""Conversations as files: what is written is read again, and what makes no sense is told by line."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from engine.types import Exchange, Message, Sampling, Status
from storage.records import Conversation
from tests.ui.test_turns import CUT, NOON, exchange
from ui.i18n import language
from ui.transfer import NotRead, exchanges_of, read, to_json, to_markdown

SAY = language("en")
PLAN = Conversation(
    id="c",
    user_id="ada",
    title="计划 <b>",
    system_prompt="Be kind.",
    sampling=Sampling(temperature=0, stop=("。",), seed=7),
    head_id="e",
    created_at=NOON,
    updated_at=NOON,
    folder="工作",
    pinned=True,
)


def a_file(**changes: Any) -> bytes:
    """A small good conversation, but for these changes."""
    exchanges = [{"id": "a", "question": "one?"}, {"id": "b", "parent": "a", "question": "two?", "answer": "Two."}]
    whole = {"format": "qdesk.conversation", "version": 1, "title": "t", "exchanges": exchanges, **changes}
    return json.dumps(whole).encode()


def troubles(data: bytes) -> list[str]:
    with pytest.raises(NotRead) as refused:
        read(data, SAY)
    return refused.value.sentences


def tree_of(made: list[Exchange]) -> list[tuple[int | None, str, str, str, Status]]:
    """What a tree holds, whatever its ids are: parents by their place in the list."""
    places = {one.id: at for at, one in enumerate(made)}
    return [(places.get(one.parent_id or ""), one.prompt, one.opening, one.answer, one.status) for one in made]


def test_what_is_written_is_read_again_with_ids_of_its_own() -> None:
    kept = list(CUT.values())
    (part,) = read(to_json(PLAN, kept, indent=2).encode(), SAY)
    assert (part.title, part.system_prompt, part.folder, part.pinned) == ("计划 <b>", "Be kind.", "工作", True)
    assert part.sampling is not None
    assert part.sampling.sampling() == PLAN.sampling
    now = datetime(2026, 11, 29, tzinfo=UTC)
    made, head = exchanges_of(part, now)
    assert tree_of(made) == tree_of(kept)
    assert head == made[list(CUT).index("e")].id
    assert not {one.id for one in made} & set(CUT)
    assert [one.queued_at for one in made] == sorted({one.queued_at for one in made}), "the order is kept"
    assert all(now <= one.queued_at < now + timedelta(seconds=1) for one in made), "nothing comes into the past"
    assert {(one.source, one.completion_tokens, one.person) for one in made} == {("import", 0, None)}


def test_several_are_json_lines_or_a_list() -> None:
    assert len(read(a_file() + b"\n\n" + a_file() + b"\n", SAY)) == 2
    assert len(read(b"\xef\xbb\xbf[" + a_file() + b"," + a_file() + b"]", SAY)) == 2
    assert len(read(a_file(), SAY)) == 1


def test_what_ends_a_line_elsewhere_ends_none_in_a_text() -> None:
    """JSON lines end at line feeds alone; what people write may hold all else that Unicode calls the end of a line."""
    exotic = "a\u2028b\u2029c\x85d"
    line = json.dumps(json.loads(a_file(title=exotic)), ensure_ascii=False).encode()
    assert [part.title for part in read(line + b"\r\n" + line, SAY)] == [exotic, exotic]


def test_texts_may_hold_any_number_of_brackets_and_commas() -> None:
    """Only what parts values is counted; quotes and backslashes in texts are told from those around them."""
    code = '[{"a": 1, "\\\\": [,,\n' * 40_000
    exchanges = [{"id": str(n), "question": "q" * n + "\\", "answer": code} for n in range(1, 6)]
    file = a_file(exchanges=exchanges)
    assert file.count(b"[") + file.count(b",") > 1_000_000
    (part,) = read(file, SAY)
    assert {one.answer for one in part.exchanges} == {code}


def test_an_answer_still_being_written_is_exported_as_interrupted() -> None:
    running = exchange("a", status=Status.RUNNING, answer="half")
    (part,) = read(to_json(PLAN, [running]).encode(), SAY)
    assert (part.exchanges[0].status, part.head) == (Status.INTERRUPTED, None)


def test_an_export_without_its_beginning_is_whole_all_the_same() -> None:
    """Retention has taken the parents."""
    (part,) = read(to_json(PLAN, [CUT["b2"], CUT["e"]]).encode(), SAY)
    assert [one.parent for one in part.exchanges] == [None, "b2"]
    assert part.exchanges[0].begins_with == "one two"


def test_trouble_is_told_by_line_and_nothing_is_read() -> None:
    good, bad = a_file(), a_file(version=2)
    assert troubles(good + b"\n" + bad) == ["Line 2: version: Input should be 1"]
    assert troubles(good + b"\n{broken") == ["Line 2: this is not JSON."]
    assert troubles(b'{\n"format": \n}') == ["Line 3: this is not JSON."]
    assert troubles(b"\xff\xfe") == ["The file is not UTF-8 text."]
    assert troubles(b" \n") == troubles(b"[]") == ["There is no conversation in this file."]
    assert troubles(b"[" * 200_000) == ["The file is nested too deeply."]
    assert len(troubles(b"\n".join([bad] * 50))) == 5


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"format": "else"}, "format: Input should be 'qdesk.conversation'"),
        ({"exchanges": []}, "exchanges: List should have at least 1 item"),
        ({"exchanges": [{"id": "a"}]}, "exchanges.0.question: Field required"),
        ({"exchanges": [{"id": "a", "question": "q", "status": "running"}]}, "an exchange in a file has ended"),
        ({"exchanges": [{"id": "a", "question": "q"}] * 2}, "two exchanges have the id a"),
        ({"exchanges": [{"id": "a", "parent": "a", "question": "q"}]}, "the parent of exchange a does not stand above"),
        ({"sampling": {"temperature": 9}}, "temperature is 9.0; it must be from 0 to 2."),
        ({"title": "x" * 201}, "title: String should have at most 200 characters"),
        ({"updated_at": "2026-01-01T00:00:00"}, "updated_at: Input should have timezone info"),
    ],
)
def test_every_part_is_checked(changes: dict[str, Any], what: str) -> None:
    (sentence,) = troubles(a_file(**changes))
    assert what in sentence


def test_a_file_is_told_in_chinese() -> None:
    with pytest.raises(NotRead, match="第 1 行：不是有效的 JSON。"):
        read(b"no", language("zh"))


def test_markdown_has_the_branch_that_is_shown_with_whole_answers() -> None:
    text = to_markdown(PLAN, list(CUT.values()), SAY)
    assert text.startswith(
        "# 计划 <b>\n\n## System prompt\n\nBe kind.\n\n## You\n\nquestion a\n\n## Qwen2\n\nanswer a\n"
    )
    assert "## Qwen2\n\none two three\n\n## You\n\nquestion e\n" in text
    assert "question q" not in text


def test_an_imported_turn_has_no_mark_of_what_is_no_longer_read() -> None:
    (part,) = read(to_json(PLAN, list(CUT.values())).encode(), SAY)
    made, _ = exchanges_of(part, NOON)
    assert made[2].messages == (Message("user", "question q"),)
