"""Qdesk beside its peers on the same weights: closed loop over HTTP, warm, distinct prompts, median of several rounds.

    python -m bench.compare                                  all of it: about an hour on two cores
    python -m bench.compare --streams 1 8 --tokens 64 --rounds 1 --only qdesk naive

Prints a table and writes it, with every figure, to bench/results/. Compare columns of one run: absolute figures move
with the machine. A peer that is not installed is reported as left out. Run it with nothing else going on.
"""

import argparse
import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from bench import servers
from bench.linears import limits
from bench.load import Figures, Target, measure, median
from bench.report import save
from bench.weights import packaged_folder

RESULTS = Path(__file__).parent / "results"
Server = Callable[[], AbstractContextManager[Target]]


def main() -> None:
    asked = _arguments()
    began = datetime.now(UTC)
    peers: dict[str, Server] = {
        "qdesk": servers.qdesk,
        "naive": lambda: servers.naive(packaged_folder()),
        "transformers serve": lambda: servers.transformers_serve(packaged_folder()),
    }
    figures: dict[str, list[Figures]] = {}
    left_out: dict[str, str] = {}
    for name in asked.only or peers:
        try:
            with peers[name]() as target:
                figures[name] = [_load(target, n, tokens, asked.rounds) for n, tokens in _loads(asked)]
        except servers.NotHere as reason:
            left_out[name] = str(reason)
    table = _table(asked, figures, limits(asked.streams), left_out)
    save(began, table, {name: [asdict(found) for found in rows] for name, rows in figures.items()})


def _load(target: Target, streams: int, tokens: int, rounds: int) -> Figures:
    asyncio.run(measure(target, streams=streams, tokens=8))  # warm
    found = [asyncio.run(measure(target, streams=streams, tokens=tokens)) for _ in range(rounds)]
    print(f"  {target.url} {streams} streams x {tokens} tokens: {median(found).tokens_per_s:.1f} tokens/s", flush=True)
    return median(found)


def _loads(asked: argparse.Namespace) -> list[tuple[int, int]]:
    return [(streams, tokens) for tokens in asked.tokens for streams in asked.streams]


def _table(
    asked: argparse.Namespace, figures: dict[str, list[Figures]], limit: dict[int, float], left_out: dict[str, str]
) -> str:
    """Tokens per second over all streams, with the median time to first token in seconds."""
    lines = [f"| streams x tokens | {' | '.join(figures)} | the linears alone |", "|---" * (len(figures) + 2) + "|"]
    for row, (streams, tokens) in enumerate(_loads(asked)):
        cells = [f"{found[row].tokens_per_s:.1f} ({found[row].ttft_median_s:.2f} s)" for found in figures.values()]
        lines.append(f"| {streams} x {tokens} | {' | '.join(cells)} | {limit[streams]:.1f} |")
    lines += [f"\nLeft out: {name} ({reason})." for name, reason in left_out.items()]
    return "\n".join(lines)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 4, 8, 16])
    parser.add_argument("--tokens", type=int, nargs="+", default=[64, 256])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=["qdesk", "naive", "transformers serve"])
    return parser.parse_args()


if __name__ == "__main__":
    main()
