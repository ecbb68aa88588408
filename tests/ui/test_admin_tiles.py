"""What the tiles of the overview say, from samples and figures made up here."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from engine.backends import CacheUse, Guesses
from engine.backends.scripted import ScriptedBackend
from engine.hardware import Gpu, Hardware
from engine.monitor import Figures, Sample, Spread
from engine.types import Status
from tests.engine.kit import service_on
from ui.components.figures import Part, Tile
from ui.i18n import language
from ui.pages.admin.tiles import GIB, duration, last_minutes, machine, now
from ui.pages.admin.tiles_model import loaded_in, model

ENGLISH, CHINESE = language("en"), language("zh")
GPU = Gpu("H200", 100 * GIB, 40 * GIB, 30 * GIB, utilization=0.5, temperature_c=61, power_w=412.4)
CPU = Hardware((), "A processor", 25.0, 10 * GIB, 4 * GIB, 1 * GIB, "There is no NVIDIA driver on this machine.")


def by_label(tiles: list[Tile]) -> dict[str, Tile]:
    found = {tile.label: tile for tile in tiles}
    assert len(found) == len(tiles)
    return found


@pytest.mark.parametrize(
    ("seconds", "english", "chinese"),
    [(0, "0 s", "0 秒"), (0.421, "0.42 s", "0.42 秒"), (12.0, "12 s", "12 秒"), (200.4, "3 min 20 s", "3 分 20 秒")],
)
def test_durations_are_short(seconds: float, english: str, chinese: str) -> None:
    assert duration(ENGLISH, seconds) == english
    assert duration(CHINESE, seconds) == chinese


async def test_a_full_queue_stands_out() -> None:
    service = await service_on(max_concurrent_requests=2, max_waiting_requests=4)
    sample = Sample(datetime.now(UTC), 2, 4, tokens=0, tokens_per_s=123.4, refused={}, lag_s=0.012, hardware=None)
    tiles = by_label(now(ENGLISH, sample, service))
    assert (tiles["Waiting now"].value, tiles["Waiting now"].unit, tiles["Waiting now"].tone) == ("4", "of 4", "bad")
    assert tiles["Running now"].parts == (Part(1.0),)
    assert (tiles["Tokens per second"].value, tiles["Lag"].value) == ("123", "12")


def test_the_last_minutes_tell_errors_and_refusals_by_kind() -> None:
    figures = Figures(
        requests=9,
        tokens_per_s=31.26,
        ttft=Spread(0.5, 2.25),
        queue=None,
        ended=Counter({Status.DONE: 5, Status.STOPPED: 1, Status.FAILED: 2, Status.TIMED_OUT: 1}),
        refused=Counter({"queue_full": 3, "something_new": 1}),
        gaps=Spread(0.021, 0.045),
    )
    tiles = by_label(last_minutes(ENGLISH, figures))
    assert (tiles["Answered"].value, tiles["Answered"].note) == ("5", "1 stopped")
    assert (tiles["Errors"].value, tiles["Errors"].note, tiles["Errors"].tone) == ("3", "2 failed, 1 timed out", "bad")
    assert (tiles["Refused"].value, tiles["Refused"].note) == ("4", "3 queue full, 1 something_new")
    between = tiles["Time between tokens"]
    assert (between.value, between.unit, between.note) == ("21", "ms", "median; 95% within 45 ms")
    first_token = tiles["Time to first token"]
    assert (first_token.value, first_token.note) == ("0.5 s", "median; 95% within 2.25 s")
    assert tiles["Queue time"].value == "–"


def test_without_a_gpu_the_processor_is_shown_and_why() -> None:
    tiles = by_label(machine(ENGLISH, CPU, ScriptedBackend()))
    assert tiles["Processor"].note == (
        "No GPU: answers are computed on the CPU. There is no NVIDIA driver on this machine."
    )
    assert tiles["CPU"].value == "25"
    memory = tiles["Memory (RAM)"]
    assert (memory.value, memory.unit) == ("4", "of 10 GiB")
    assert [(part.label, part.share) for part in memory.parts] == [("Qdesk 1", 0.1), ("others 3", pytest.approx(0.3))]
    assert tiles["This process"].value == "1"


def test_a_gpu_shows_whose_its_memory_is() -> None:
    hardware = Hardware((GPU,), "A processor", 25.0, 10 * GIB, 4 * GIB, 1 * GIB)
    tiles = by_label(machine(ENGLISH, hardware, ScriptedBackend()))
    assert [(part.label, part.kind) for part in tiles["H200"].parts] == [("Qdesk 30", "second"), ("others 10", "third")]
    assert (tiles["GPU in use"].value, tiles["Temperature"].value, tiles["Power"].value) == ("50", "61", "412")
    assert "Processor" not in tiles

    class Telling(ScriptedBackend):
        weights_bytes, cache_bytes = 5 * GIB, 20 * GIB

    tiles = by_label(machine(ENGLISH, hardware, Telling()))
    assert [part.label for part in tiles["H200"].parts] == ["weights 5", "cache 20", "others 15"]

    other = replace(GPU, name="Spare", memory_own=None)
    shown = machine(ENGLISH, replace(hardware, gpus=(GPU, other)), Telling())
    assert {tile.label: [part.label for part in tile.parts] for tile in shown if tile.label in ("H200", "Spare")} == {
        "H200": ["weights 5", "cache 20", "others 15"],
        "Spare": ["Qdesk 0", "others 40"],
    }


def test_what_a_gpu_does_not_tell_is_a_dash_and_a_lost_one_is_told() -> None:
    silent = Gpu("Old", 8 * GIB, GIB, None, utilization=None, temperature_c=None, power_w=None)
    lost = Hardware((silent,), "A processor", 0, GIB, 0, 0, "GPU 1 cannot be read any more.")
    tiles = by_label(machine(ENGLISH, lost, ScriptedBackend()))
    assert {tiles[name].value for name in ("GPU in use", "Temperature", "Power")} == {"–"}
    assert (tiles["GPU"].value, tiles["GPU"].tone) == ("GPU 1 cannot be read any more.", "bad")


def test_before_the_first_reading_it_says_so() -> None:
    [tile] = machine(ENGLISH, None, ScriptedBackend())
    assert tile.value == "No reading yet"


def test_the_model_says_which_and_why() -> None:
    backend = ScriptedBackend(context_tokens=4096)
    backend.quantization = "nf4"
    tiles = by_label(model(ENGLISH, backend))
    assert (tiles["Model"].value, tiles["Model"].note) == ("scripted", "A script plays the model.")
    assert (tiles["Quantisation"].value, tiles["Quantisation"].unit) == ("4", "bits, NF4")
    assert (tiles["Context"].value, tiles["Slots"].value) == ("4,096", "0")
    loaded = loaded_in(ENGLISH, 12.0, 1.5)
    assert (loaded.value, loaded.note) == ("12 s", "of it 1.5 s to warm up")
    assert loaded_in(ENGLISH, None, None).value == "–"


def test_a_backend_that_tells_shows_its_weights_and_how_full_its_cache_is() -> None:
    class Loaded(ScriptedBackend):
        weights_bytes, cache_bytes = 3 * GIB // 2, 8 * GIB

        def cache_use(self) -> CacheUse:
            return CacheUse(used=3000, kept=1000, room=16_000, slots_used=2, slots=8)

    backend = Loaded()
    backend.quantization = "nf4"
    tiles = by_label(model(ENGLISH, backend))
    assert (tiles["Weights"].value, tiles["Weights"].unit, tiles["Weights"].note) == ("1.5", "GiB", "4 bits, NF4")
    assert (tiles["Slots"].value, tiles["Slots"].unit, tiles["Slots"].parts) == ("2", "of 8", (Part(0.25),))
    cache = tiles["KV cache"]
    assert (cache.value, cache.unit, cache.note) == ("25", "%", "of 16,000 tokens")
    assert [(part.label, part.share) for part in cache.parts] == [("running 3,000", 0.1875), ("kept 1,000", 0.0625)]


def test_guesses_are_shown_once_there_are_some() -> None:
    class Guessing(ScriptedBackend):
        made = Guesses()

        def guesses(self) -> Guesses:
            return self.made

    backend = Guessing()
    assert "Guesses that were right" not in by_label(model(ENGLISH, backend))
    backend.made.learn(1000, 630)
    tile = by_label(model(ENGLISH, backend))["Guesses that were right"]
    assert (tile.value, tile.unit, tile.note) == ("63", "%", "of 1,000 guessed tokens")
    assert by_label(model(CHINESE, backend))["猜对的 token"].note == "共猜测 1,000 个 token"
