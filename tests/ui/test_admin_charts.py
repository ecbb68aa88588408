"""Charts and CSV out of spans that are made up here."""

import csv
import io
from datetime import UTC, datetime, timedelta

from engine.sketch import Sketch
from engine.spans import Span
from ui.components.timeline import Chart
from ui.i18n import language
from ui.pages.admin.charts import charts
from ui.pages.admin.downloads import history_csv
from ui.pages.admin.ranges import Steps

START = datetime(2026, 1, 1, tzinfo=UTC)
GIB = 2**30


def busy() -> Span:
    ttft = Sketch()
    for seconds in (1.0, 1.0, 1.0, 9.0):
        ttft.add(seconds)
    gaps = Sketch()
    gaps.add(0.05, times=10)
    return Span(
        at=START,
        seconds=60,
        running=2.5,
        running_peak=4,
        waiting=1.0,
        tokens=600,
        ended={"done": 4, "failed": 1},
        refused={"queue_full": 2, "brand_new": 1},
        ttft=ttft,
        gaps=gaps,
        cpu=0.5,
        memory=3 * GIB,
    )


def by_title(made: list[Chart]) -> dict[str, Chart]:
    return {chart.title: chart for chart in made}


def test_charts_say_what_was_and_leave_gaps_where_no_server_ran() -> None:
    found = by_title(charts(language("en"), [busy(), None]))
    running, waiting = found["Requests"].series
    assert (running.values, waiting.values) == ([2.5, None], [1.0, None])
    assert found["Throughput"].series[0].values == [10.0, None]
    median, p95 = found["Time to first token"].series
    assert median.values[0] is not None
    assert p95.values[0] is not None
    assert (round(median.values[0]), round(p95.values[0])) == (1, 1)
    between = found["Time between tokens"]
    assert between.unit == "ms"
    assert between.series[0].values[0] is not None
    assert 49 <= between.series[0].values[0] <= 51
    assert found["Queue time"].series[0].values == [None, None]
    assert {line.label: line.values[0] for line in found["Refused and failed"].series} == {
        "failed": 1,
        "queue full": 2,
        "brand_new": 1,
    }
    assert [line.label for line in found["Memory"].series] == ["Qdesk"]
    assert found["Utilisation"].series[0].values == [50.0, None]


def test_a_gpu_has_lines_of_its_own() -> None:
    with_gpu = Span(at=START, seconds=60, gpu=0.9, gpu_memory=20 * GIB)
    found = by_title(charts(language("en"), [with_gpu]))
    assert {line.label: line.values for line in found["Memory"].series} == {"Qdesk": [None], "GPU": [20.0]}
    assert found["Utilisation"].series[1].values == [90.0]


def test_quiet_times_have_charts_too() -> None:
    for made in (
        charts(language("zh"), []),
        charts(language("en"), [None]),
        charts(language("en"), [Span(at=START, seconds=60)]),
    ):
        assert len(made) == 8


def test_the_csv_has_a_row_a_step_and_a_column_a_kind() -> None:
    text = history_csv(Steps(START, 60, [busy(), None]))
    assert text.startswith("\ufeff")
    first, second = csv.DictReader(io.StringIO(text.removeprefix("\ufeff")))
    assert (first["at"], first["running_mean"], first["running_peak"], first["tokens_per_s"]) == (
        START.isoformat(),
        "2.5",
        "4",
        "10.0",
    )
    assert (first["done"], first["failed"], first["timed_out"]) == ("4", "1", "0")
    assert (first["refused_queue_full"], first["refused_user_limit"], first["refused_other"]) == ("2", "0", "1")
    assert 0.045 < float(first["inter_token_median_s"]) < 0.055
    assert (first["queue_median_s"], first["gpu"], first["memory_bytes"]) == ("", "", str(3 * GIB))
    assert second["at"] == (START + timedelta(seconds=60)).isoformat()
    assert second["tokens"] == ""
