"""A comparison: speeds and ratios in one table, and what is not there or fails costs its own figures alone."""

import asyncio
import importlib.util
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from bench.compare import main
from bench.load import Figures
from bench.ratios import Comparison, Load
from engine.backends.scripted import ScriptedBackend
from engine.errors import BackendFailed
from engine.types import ChatRequest, Event
from tests.bench.conftest import Results
from tests.engine.backends.upstream import upstream


class FailsAtFive(ScriptedBackend):
    async def stream(self, request: ChatRequest) -> AsyncGenerator[Event, None]:
        if request.sampling.max_tokens == 5:
            raise BackendFailed("Five is too many.")
        async with aclosing(super().stream(request)) as events:
            async for event in events:
                yield event


async def test_servers_that_run_already_are_compared_and_a_failure_costs_its_own_figure(results: Results) -> None:
    async with upstream() as ours, upstream() as theirs:
        theirs.script = FailsAtFive(pause_s=0.01)
        peers = [f"qdesk={ours.url}", f"naive={theirs.url}", "gone=http://127.0.0.1:9/v1"]
        loads = ["--streams", "8", "--tokens", "4", "5", "--rounds", "1", "--only"]
        await asyncio.to_thread(main, [*loads, *(word for peer in peers for word in ("--peer", peer))])
    markdown, figures = results()
    fast, slow = figures["peers"]["qdesk"], figures["peers"]["naive"]
    ratio = fast["8 x 4"]["tokens_per_s"] / slow["8 x 4"]["tokens_per_s"]
    assert figures["qdesk over"]["naive"]["8 x 4"] == pytest.approx(ratio)
    assert f"| 8 x 4 | {ratio:.2f} (wanted 13) |" in markdown
    assert slow["8 x 5"].startswith("failed: ")
    assert "Five is too many." in slow["8 x 5"]
    assert fast["8 x 5"]["tokens"] == 8 * 5
    assert figures["left out"]["gone"].startswith("failed: ConnectError")


@pytest.mark.skipif(importlib.util.find_spec("llama_cpp") is not None, reason="llama-cpp-python is installed")
def test_a_peer_that_is_not_installed_is_left_out_with_what_to_install(results: Results) -> None:
    main(["--streams", "1", "--tokens", "4", "--only", "llama-cpp-python"])
    markdown, figures = results()
    assert figures["peers"] == {}
    assert "Left out: llama-cpp-python (pip install llama-cpp-python" in markdown


def test_ratios_stand_beside_what_is_wanted_of_them() -> None:
    def speed(tokens_per_s: float) -> Figures:
        return Figures(8, 512, tokens_per_s, 0.5, 0.6, 0.1, 0.2)

    one, eight = Load(1, 64), Load(8, 64)
    comparison = Comparison([one, eight])
    comparison.found["qdesk"] = {one: speed(10), eight: speed(35)}
    comparison.found["transformers serve"] = {one: "failed: it did not come up", eight: speed(14)}
    comparison.found["llama-cpp-python"] = {one: speed(16)}
    assert comparison.tables().split("\n\n") == [
        "| tokens/s (time to first token) | qdesk | transformers serve | llama-cpp-python |\n"
        "|---|---|---|---|\n"
        "| 1 x 64 | 10.0 (0.50 s) | failed | 16.0 (0.50 s) |\n"
        "| 8 x 64 | 35.0 (0.50 s) | 14.0 (0.50 s) |  |",
        "| Qdesk over | transformers serve | llama-cpp-python |\n"
        "|---|---|---|\n"
        "| 1 x 64 | (wanted 2.1) | 0.62 (wanted 0.95) |\n"
        "| 8 x 64 | 2.50 (wanted 2.1) |  |",
        "transformers serve, 1 x 64, failed: it did not come up.",
    ]
