"""Qdesk beside its peers on the same weights: closed loop, warm, distinct prompts, median of several rounds.

    python -m bench.compare                                  all of it; says at the start about how long
    python -m bench.compare --rounds 1                       the same in a third of the time
    python -m bench.compare --streams 1 8 --tokens 64 --only qdesk naive
    python -m bench.compare --peer vllm=http://127.0.0.1:8000/v1

Prints a table and writes it, with every figure, to bench/results/. Compare columns of one run: absolute figures move
with the machine. What a server has not answered WINDOW_S after all its streams have begun is broken off. A peer that is
not installed is reported as left out. Run it with nothing else going on.
"""

import argparse
import asyncio
import functools
import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial

import httpx
from tokenizers import Tokenizer

from bench import servers
from bench.linears import limits
from bench.load import Figures, Target, measure, median
from bench.report import save
from bench.weights import packaged_folder, packaged_gguf

SPEEDS = {  # tokens/s to expect of 1 and of 16 streams on two cores with AVX2, only to say how long it will take
    "qdesk": (10.0, 60.0),
    "qdesk, page's jobs": (10.0, 60.0),
    "naive": (1.2, 0.9),
    "transformers serve": (1.7, 7.5),
    "llama-cpp-python": (15.0, 15.0),
}
START_S = 30.0  # for a server to come up
WINDOW_S, WARM_S = 60.0, 15.0  # of one measurement, and of the short one before it
Rows = list[Figures | None]  # by load; None where the peer does not take part


def main() -> None:
    asked = _arguments()
    began = datetime.now(UTC)
    peers = _peers(asked)
    print(f"about {_expected_s(asked, peers) / 60:.0f} minutes on two cores with AVX2", flush=True)
    figures: dict[str, Rows] = {}
    left_out: dict[str, str] = {}
    for name, work in peers.items():
        try:
            figures[name] = work()
        except servers.NotHere as reason:
            left_out[name] = str(reason)
        except Exception as error:
            left_out[name] = f"failed: {str(error)[-400:]}"
            print(f"  {name}: {error}", flush=True)
    table = _table(asked, figures, limits(asked.streams), left_out)
    every = {name: [found and asdict(found) for found in rows] for name, rows in figures.items()}
    save(began, table, {"peers": every, "left out": left_out})


def _peers(asked: argparse.Namespace) -> dict[str, Callable[[], Rows]]:
    ways: dict[str, Callable[[], Rows]] = {
        "qdesk": partial(_over_http, asked, servers.qdesk),
        "qdesk, page's jobs": partial(_page_jobs, asked),
        "naive": partial(_over_http, asked, lambda: servers.naive(packaged_folder())),
        "transformers serve": partial(_over_http, asked, lambda: servers.transformers_serve(packaged_folder())),
        "llama-cpp-python": partial(_llama, asked),
    }
    chosen = {name: way for name, way in ways.items() if name in (asked.only or SPEEDS)}
    for named in asked.peer:
        name, _, url = named.partition("=")
        chosen[name] = partial(_over_http, asked, partial(_of_another, url))
    return chosen


def _over_http(asked: argparse.Namespace, server: Callable[[], AbstractContextManager[Target]]) -> Rows:
    with server() as target:
        return [_load(target, streams, tokens, asked.rounds) for streams, tokens in _loads(asked)]


def _load(target: Target, streams: int, tokens: int, rounds: int) -> Figures:
    asyncio.run(measure(target, streams=streams, tokens=8, window_s=WARM_S))
    found = [
        asyncio.run(measure(target, streams=streams, tokens=tokens, window_s=WINDOW_S, count=_tokens_of))
        for _ in range(rounds)
    ]
    print(f"  {target.url} {streams} streams x {tokens} tokens: {median(found).tokens_per_s:.1f} tokens/s", flush=True)
    return median(found)


def _tokens_of(text: str) -> int:
    """By the model's own tokenizer, which all peers share."""
    return len(_tokenizer().encode(text, add_special_tokens=False).ids)


@functools.cache
def _tokenizer() -> Tokenizer:
    return Tokenizer.from_file(str(packaged_folder() / "tokenizer.json"))


def _page_jobs(asked: argparse.Namespace) -> Rows:
    return [
        median(rounds) for rounds in _in_a_process(asked, "-m", "bench.jobs", "--streams", *map(str, asked.streams))
    ]


def _llama(asked: argparse.Namespace) -> Rows:
    if importlib.util.find_spec("llama_cpp") is None:
        raise servers.NotHere("pip install llama-cpp-python, which needs a C++ compiler and a quarter of an hour")
    alone = dict(zip(asked.tokens, _in_a_process(asked, "bench/peers/llama.py", str(packaged_gguf())), strict=True))
    return [median(alone[tokens]) if streams == 1 else None for streams, tokens in _loads(asked)]


def _in_a_process(asked: argparse.Namespace, *program: str) -> list[list[Figures]]:
    """The figures that a program prints as JSON on its last line, by load and round."""
    command = [sys.executable, *program, "--tokens", *map(str, asked.tokens), "--rounds", str(asked.rounds)]
    done = subprocess.run(command, cwd=servers.ROOT, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr[-400:])
    found = [[Figures(**one) for one in rounds] for rounds in json.loads(done.stdout.splitlines()[-1])]
    for rounds in found:
        print(f"  {program[-1]} {rounds[0].streams} streams: {median(rounds).tokens_per_s:.1f} tokens/s", flush=True)
    return found


def _of_another(url: str) -> AbstractContextManager[Target]:
    """A server that runs already, with the first model that it says it has."""
    name: str = httpx.get(f"{url}/models").json()["data"][0]["id"]
    return nullcontext(Target(url, model=name))


def _loads(asked: argparse.Namespace) -> list[tuple[int, int]]:
    return [(streams, tokens) for tokens in asked.tokens for streams in asked.streams]


def _expected_s(asked: argparse.Namespace, peers: Iterable[str]) -> float:
    """Roughly, by SPEEDS and the starts."""
    seconds = 0.0
    for name in peers:
        one, sixteen = SPEEDS.get(name, SPEEDS["qdesk"])
        for streams, tokens in _loads(asked):
            speed = one + (sixteen - one) * (streams - 1) / 15
            seconds += asked.rounds * min(streams * tokens / speed, WINDOW_S) + min(streams * 8 / speed, WARM_S)
    return seconds + START_S * len(list(peers))


def _table(
    asked: argparse.Namespace, figures: dict[str, Rows], limit: dict[int, float], left_out: dict[str, str]
) -> str:
    """Tokens per second over all streams, with the median time to first token in seconds."""
    lines = [f"| streams x tokens | {' | '.join(figures)} | the linears alone |", "|---" * (len(figures) + 2) + "|"]
    for row, (streams, tokens) in enumerate(_loads(asked)):
        cells = [_cell(rows[row]) for rows in figures.values()]
        lines.append(f"| {streams} x {tokens} | {' | '.join(cells)} | {limit[streams]:.1f} |")
    lines += [f"\nLeft out: {name} ({reason})." for name, reason in left_out.items()]
    return "\n".join(lines)


def _cell(found: Figures | None) -> str:
    return f"{found.tokens_per_s:.1f} ({found.ttft_median_s:.2f} s)" if found else ""


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 4, 8, 16])
    parser.add_argument("--tokens", type=int, nargs="+", default=[64, 256])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=SPEEDS)
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=URL", help="another server, up to its /v1")
    return parser.parse_args()


if __name__ == "__main__":
    main()
