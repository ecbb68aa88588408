"""The export of logged exchanges: JSON lines that can be read again, and a CSV that is no danger to a spreadsheet."""

import csv
import io
import json

import pytest

from engine.types import Message, Sampling, Status
from storage.records import Mark
from tests.ui.exchanges import exchange
from ui.components.review.export import COLUMNS, chat_line, columns, csv_head, csv_line, harmless, json_line

PEOPLE = {"p": "ada", "r": "rita"}


def test_a_json_line_has_everything() -> None:
    given = {"frequency_penalty": 0.5, "presence_penalty": -1.25, "json_schema": '{"type": "object"}'}
    one = exchange("a", answer="两行\n文字", sampling=Sampling(stop=("x",), **given))  # type: ignore[arg-type]  # of three types
    line = json_line(one, Mark(labels=("tone", "语气"), done=True), PEOPLE)
    read = json.loads(line)
    assert line.count("\n") == 1
    assert "两行" in line
    assert read["person"] == "ada"
    assert read["answer"] == "两行\n文字"
    assert read["stop"] == ["x"]
    assert given.items() <= read.items()
    assert (read["labels"], read["reviewed"]) == (["tone", "语气"], True)
    assert read["messages"][0] == {"role": "system", "content": "Be kind."}
    assert (read["queue_s"], read["ttft_s"], read["total_s"], read["tokens_per_s"]) == (2, 3, 7, 10)


def test_a_json_line_has_what_a_program_brought_along() -> None:
    read = json.loads(json_line(exchange("a", end_user="kim", request_metadata=(("ticket", "1"),)), None, PEOPLE))
    assert (read["end_user"], read["metadata"]) == ("kim", {"ticket": "1"})


def test_a_csv_line_can_be_read_again() -> None:
    one = exchange("a", answer='He said "yes",\nthen 好', messages=(Message("user", "天气"),))
    text = csv_head() + csv_line(one, None, PEOPLE)
    assert text.startswith("\ufeff")
    head, line = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""))
    read = dict(zip(head, line, strict=True))
    assert read["answer"] == 'He said "yes",\nthen 好'
    assert read["prompt"] == "天气"


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "＝"])
def test_no_cell_becomes_a_formula(start: str) -> None:
    assert harmless(start + "1+1") == "'" + start + "1+1"
    one = exchange("a", answer=start + 'HYPERLINK("http://x")')
    (line,) = csv.reader(io.StringIO(csv_line(one, None, PEOPLE), newline=""))
    assert line[10].startswith("'" + start)


def test_numbers_stay_numbers() -> None:
    assert harmless(-1.5) == -1.5
    assert harmless("plain") == "plain"


def test_the_head_of_the_table_names_its_columns() -> None:
    assert list(COLUMNS) == list(columns(exchange("a"), None, PEOPLE))


def test_a_csv_holds_the_review_and_defuses_it_too() -> None:
    mark = Mark(rating=-1, labels=("=cmd", "tone"), correction="@SUM(A1)", assignee="r", done=True)
    head, line = csv.reader(io.StringIO(csv_head()[1:] + csv_line(exchange("a"), mark, PEOPLE), newline=""))
    read = dict(zip(head, line, strict=True))
    assert (read["rating"], read["labels"], read["correction"]) == ("-1", "'=cmd; tone", "'@SUM(A1)")
    assert (read["assignee"], read["reviewed"]) == ("rita", "yes")


def test_chat_lines_prefer_the_corrected_answer_and_leave_out_what_is_bad() -> None:
    one = exchange("a")
    sent = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "question a"}]
    answered = {"role": "assistant", "content": "answer a"}
    corrected = {"role": "assistant", "content": "改正后的回答"}
    assert json.loads(chat_line(one, None, PEOPLE)) == {"messages": [*sent, answered]}
    better = Mark(rating=-1, correction="改正后的回答")
    assert json.loads(chat_line(one, better, PEOPLE)) == {"messages": [*sent, corrected]}
    assert chat_line(one, Mark(rating=-1), PEOPLE) == ""
    assert chat_line(exchange("b", status=Status.FAILED), None, PEOPLE) == ""
    assert chat_line(exchange("c", finish_reason="length"), None, PEOPLE) == ""
    assert chat_line(exchange("d", messages=(Message("text", "Once"),)), better, PEOPLE) == ""
    failed = json.loads(chat_line(exchange("b", status=Status.FAILED), better, PEOPLE))
    assert failed["messages"][-1] == corrected


def test_a_chat_line_of_an_answer_that_was_gone_on_with_holds_it_in_one_turn() -> None:
    """Its beginning was sent along as the assistant's, which no trainer should read as an answer of its own."""
    asked = Message("user", "Count.")
    one = exchange("a", messages=(asked, Message("assistant", "One, two,")), answer=" three.")
    whole = {"role": "assistant", "content": "One, two, three."}
    assert json.loads(chat_line(one, None, PEOPLE))["messages"] == [{"role": "user", "content": "Count."}, whole]
    better = json.loads(chat_line(one, Mark(correction="1, 2, 3."), PEOPLE))["messages"]
    assert [message["content"] for message in better] == ["Count.", "1, 2, 3."]
