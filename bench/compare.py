"""Qdesk beside its peers on the same weights: closed loop, warm, distinct prompts, median of several rounds.

    python -m bench.compare                                  all of it, about an hour; says how long at the start
    python -m bench.compare --rounds 1                       the same in a third of the time
    python -m bench.compare --streams 1 8 --tokens 64 --only qdesk naive
    python -m bench.compare --peer vllm=http://127.0.0.1:8000/v1        and a server that runs already

Prints a table of speeds and one of ratios, with what is wanted of them, and writes both with every figure to
bench/results/, anew after each figure. Compare columns of one run: absolute figures move with the machine. What a
server has not answered WINDOW_S after all its streams have begun is broken off. A peer that is not installed is left
out, and one that fails loses its own figures alone. Run it with nothing else going on.
"""

import argparse
import asyncio
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from functools import partial

from tokenizers import Tokenizer

from bench import servers
from bench.load import Figures, Target, measure, median
from bench.ratios import Comparison, Found, Load
from bench.report import save, write
from bench.weights import packaged_folder

ALONE = "llama-cpp-python"  # in process, and so one stream is all that it is asked for
SPEEDS = {  # tokens/s to expect of 1 and of 16 streams on two cores with AVX2, only to say how long it will take
    "qdesk": (10.0, 60.0),
    "qdesk, page's jobs": (10.0, 60.0),
    ALONE: (15.0, 15.0),
    "transformers serve": (1.7, 7.5),
    "naive": (1.2, 0.9),
    "linears alone": (1e9, 1e9),
}
START_S = 30.0  # for a server to come up
WINDOW_S, WARM_S = 30.0, 15.0  # of one measurement, and of the short one before it
Way = Callable[[], Iterator[tuple[Load, Found]]]  # how a peer comes to its figures, one by one


def main(arguments: Sequence[str] | None = None) -> None:
    asked = _arguments(arguments)
    began = datetime.now(UTC)
    peers = _peers(asked)
    print(f"about {_expected_s(asked, peers) / 60:.0f} minutes on two cores with AVX2", flush=True)
    comparison = Comparison(_loads(asked))
    for name, way in peers.items():
        for load, found in _as_far_as_it_goes(name, way, comparison):
            comparison.found.setdefault(name, {})[load] = found
            print(f"  {name}, {load}: {found if isinstance(found, str) else f'{found.tokens_per_s:.1f}'}", flush=True)
            write(began, comparison.tables(), comparison.as_json())
    save(began, comparison.tables(), comparison.as_json())


def _as_far_as_it_goes(name: str, way: Way, comparison: Comparison) -> Iterator[tuple[Load, Found]]:
    """The peer's figures; why there are no more of them is noted."""
    try:
        yield from way()
    except servers.NotHere as reason:
        comparison.left_out[name] = str(reason)
    except Exception as error:
        comparison.left_out[name] = _failed(error)
        print(f"  {name}: {error}", flush=True)


def _failed(error: Exception) -> str:
    return f"failed: {type(error).__name__}: {' '.join(str(error).split())[-300:]}"


def _peers(asked: argparse.Namespace) -> dict[str, Way]:
    ways: dict[str, Way] = {
        "qdesk": partial(_over_http, asked, servers.qdesk),
        "qdesk, page's jobs": partial(_page_jobs, asked),
        ALONE: partial(_llama, asked),
        "transformers serve": partial(_over_http, asked, lambda: servers.transformers_serve(packaged_folder())),
        "naive": partial(_over_http, asked, lambda: servers.naive(packaged_folder())),
        "linears alone": partial(_linears, asked),
    }
    chosen = {name: way for name, way in ways.items() if name in (SPEEDS if asked.only is None else asked.only)}
    for named in asked.peer:
        name, _, url = named.partition("=")
        chosen[name] = partial(_over_http, asked, partial(_of_another, url))
    return chosen


def _over_http(
    asked: argparse.Namespace, server: Callable[[], AbstractContextManager[Target]]
) -> Iterator[tuple[Load, Found]]:
    with server() as target:
        for load in _loads(asked):
            try:
                found: Found = _measured(target, load, asked.rounds)
            except Exception as error:
                found = _failed(error)
            yield load, found


def _measured(target: Target, load: Load, rounds: int) -> Figures:
    asyncio.run(measure(target, streams=load.streams, tokens=8, window_s=WARM_S))
    return median(
        [
            asyncio.run(measure(target, streams=load.streams, tokens=load.tokens, window_s=WINDOW_S, count=_tokens_of))
            for _ in range(rounds)
        ]
    )


def _tokens_of(text: str) -> int:
    """By the model's own tokenizer, which all peers share."""
    return len(_tokenizer().encode(text, add_special_tokens=False).ids)


@functools.cache
def _tokenizer() -> Tokenizer:
    return Tokenizer.from_file(str(packaged_folder() / "tokenizer.json"))


def _page_jobs(asked: argparse.Namespace) -> Iterator[tuple[Load, Found]]:
    streams = ("--streams", *map(str, asked.streams))
    rounds = servers.figures_of("bench.jobs", *streams, *_tokens_and_rounds(asked))
    yield from zip(_loads(asked), map(median, rounds), strict=True)


def _llama(asked: argparse.Namespace) -> Iterator[tuple[Load, Found]]:
    if alone := _single(asked):
        yield from zip(alone, map(median, servers.llama(*_tokens_and_rounds(asked))), strict=True)


def _tokens_and_rounds(asked: argparse.Namespace) -> list[str]:
    return ["--tokens", *map(str, asked.tokens), "--rounds", str(asked.rounds)]


def _linears(asked: argparse.Namespace) -> Iterator[tuple[Load, Found]]:
    """The limit, whatever the length of the answers."""
    found = dict(zip(asked.streams, servers.figures_of("bench.linears", *map(str, asked.streams)), strict=True))
    yield from ((load, median(found[load.streams])) for load in _loads(asked))


def _of_another(url: str) -> AbstractContextManager[Target]:
    return nullcontext(servers.of_another(url))


def _loads(asked: argparse.Namespace) -> list[Load]:
    return [Load(streams, tokens) for tokens in asked.tokens for streams in asked.streams]


def _single(asked: argparse.Namespace) -> list[Load]:
    return [load for load in _loads(asked) if load.streams == 1]


def _expected_s(asked: argparse.Namespace, peers: Iterable[str]) -> float:
    """Roughly, by SPEEDS and the starts."""
    seconds = 0.0
    for name in peers:
        one, sixteen = SPEEDS.get(name, SPEEDS["qdesk"])
        seconds += START_S
        for load in _loads(asked) if name != ALONE else _single(asked):
            speed = one + (sixteen - one) * (load.streams - 1) / 15
            seconds += asked.rounds * min(load.streams * load.tokens / speed, WINDOW_S)
            seconds += min(load.streams * 8 / speed, WARM_S)
    return seconds


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 4, 8, 16])
    parser.add_argument("--tokens", type=int, nargs="+", default=[64, 256])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", choices=SPEEDS, metavar="NAME", help=f"of {', '.join(SPEEDS)}")
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=URL", help="another server, up to its /v1")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
