"""The export of logged exchanges: JSON lines that can be read again, and a CSV that is no danger to a spreadsheet."""

import csv
import io
import json

import pytest

from engine.types import Message, Sampling
from tests.ui.exchanges import exchange
from ui.components.review.export import csv_head, csv_line, harmless, json_line


def test_a_json_line_has_everything() -> None:
    one = exchange("a", answer="两行\n文字", sampling=Sampling(stop=("x",)))
    line = json_line(one, "ada")
    read = json.loads(line)
    assert line.count("\n") == 1
    assert "两行" in line
    assert read["person"] == "ada"
    assert read["answer"] == "两行\n文字"
    assert read["stop"] == ["x"]
    assert read["messages"][0] == {"role": "system", "content": "Be kind."}
    assert (read["queue_s"], read["ttft_s"], read["total_s"], read["tokens_per_s"]) == (2, 3, 7, 10)


def test_a_csv_line_can_be_read_again() -> None:
    one = exchange("a", answer='He said "yes",\nthen 好', messages=(Message("user", "天气"),))
    text = csv_head(one) + csv_line(one, "ada")
    assert text.startswith("\ufeff")
    head, line = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""))
    read = dict(zip(head, line, strict=True))
    assert read["answer"] == 'He said "yes",\nthen 好'
    assert read["prompt"] == "天气"


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "＝"])
def test_no_cell_becomes_a_formula(start: str) -> None:
    assert harmless(start + "1+1") == "'" + start + "1+1"
    one = exchange("a", answer=start + 'HYPERLINK("http://x")')
    (line,) = csv.reader(io.StringIO(csv_line(one, "ada"), newline=""))
    assert line[10].startswith("'" + start)


def test_numbers_stay_numbers() -> None:
    assert harmless(-1.5) == -1.5
    assert harmless("plain") == "plain"
