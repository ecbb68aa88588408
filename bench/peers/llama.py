"""llama.cpp in this process on a GGUF, one stream: the same loads as the others', as JSON on the last line.

python bench/peers/llama.py FILE.gguf --tokens 64 256 --rounds 3
"""

import argparse
import json
import time
from itertools import pairwise

from llama_cpp import Llama


def measure(model: Llama, number: int, tokens: int) -> dict[str, float]:
    """One answer of that many tokens, whatever the model would end with."""
    question = [{"role": "user", "content": f"({number}) Explain how a semaphore works at great length."}]
    began, bias = time.perf_counter(), {model.token_eos(): -1e9}
    chunks = model.create_chat_completion(question, max_tokens=tokens, temperature=0, stream=True, logit_bias=bias)
    times = [time.perf_counter() for chunk in chunks if chunk["choices"][0]["delta"].get("content")]
    gaps = [later - earlier for earlier, later in pairwise(times)] or [0.0]
    return {
        "streams": 1,
        "tokens": len(times),
        "tokens_per_s": len(times) / (time.perf_counter() - began),
        "ttft_median_s": times[0] - began,
        "ttft_max_s": times[0] - began,
        "gap_median_s": sorted(gaps)[len(gaps) // 2],
        "gap_max_s": max(gaps),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("--tokens", type=int, nargs="+", default=[64])
    parser.add_argument("--rounds", type=int, default=1)
    chosen = parser.parse_args()
    llama = Llama(chosen.file, n_ctx=2048, verbose=False)
    measure(llama, 0, 8)
    print(json.dumps([[measure(llama, turn, tokens) for turn in range(chosen.rounds)] for tokens in chosen.tokens]))
