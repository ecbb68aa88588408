"""llama.cpp in this process on a GGUF, one stream: the rounds of each number of tokens as a line of JSON.

    python -m bench.peers.llama FILE.gguf --tokens 64 256 --rounds 3
    python -m bench.peers.llama FILE.gguf --tokens 160 --question "Say all of this again: ..."

It gets as many threads as Qdesk takes; by itself it would take half as many as there are processors. Without a question
of their own all answers have different ones.
"""

import argparse
import json
import statistics
import time
from dataclasses import asdict
from itertools import pairwise
from typing import Any

from llama_cpp import Llama

from bench.load import Figures, next_question
from engine.hardware import physical_cores
from engine.settings import Settings


def measure(model: Any, question: str, tokens: int) -> Figures:
    """One answer of that many tokens at most; `model` is a Llama, whose types differ from release to release."""
    began, times, text, reason = time.perf_counter(), list[float](), "", None
    messages = [{"role": "user", "content": question}]
    for chunk in model.create_chat_completion(messages, max_tokens=tokens, temperature=0, stream=True):
        choice = chunk["choices"][0]
        reason = choice["finish_reason"] or reason
        if piece := choice["delta"].get("content"):
            times.append(time.perf_counter())
            text += piece
    seconds = time.perf_counter() - began
    # a chunk may hold several tokens; an answer that was cut off has as many as were asked for
    produced = tokens if reason == "length" else len(model.tokenize(text.encode(), add_bos=False))
    first, gaps = times[0] - began, [later - earlier for earlier, later in pairwise(times)] or [0.0]
    return Figures(1, produced, produced / seconds, first, first, statistics.median(gaps), max(gaps))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--tokens", type=int, nargs="+", default=[64])
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--question")
    chosen = parser.parse_args()
    threads = Settings().threads or physical_cores()
    model: Any = Llama(chosen.file, n_ctx=2048, n_threads=threads, n_threads_batch=threads, verbose=False)
    measure(model, chosen.question or next_question(), 8)
    for tokens in chosen.tokens:
        rounds = [measure(model, chosen.question or next_question(), tokens) for _ in range(chosen.rounds)]
        print(json.dumps([asdict(figures) for figures in rounds]), flush=True)


if __name__ == "__main__":
    main()
