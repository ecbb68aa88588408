"""The packaged model in 4 bits: transformers' own logits and greedy tokens, and a tokenizer that none can forge."""

import random
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unicodedata import normalize

import pytest
import torch
import transformers
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from engine.backends.qwen2 import weights
from engine.backends.qwen2.attention import Piece
from engine.backends.qwen2.kvcache import KVCache
from engine.backends.qwen2.linear import has_kernel
from engine.backends.qwen2.model import Qwen2
from engine.backends.qwen2.quantize import ready_folder
from engine.backends.qwen2.tokens import Tokens
from engine.settings import Settings
from engine.types import Message
from tests.engine.backends.qwen2.reference import in_transformers
from tests.engine.backends.qwen2.test_qwen2_tokens import CONTROL, DISGUISED

pytestmark = [pytest.mark.model, pytest.mark.timeout(1800)]

CPU = torch.device("cpu")
with_kernel = pytest.mark.skipif(not has_kernel(CPU), reason="this CPU has no AVX512-BF16, and nothing in int8")
NOISE = 0.5  # a logit is about 20, where bfloat16 steps are 0.125: what a few roundings add up to
STEPS = 64
PROMPTS = [
    "What is a semaphore?",
    "用一句话介绍北京。",
    "Write a haiku about queues.",
    "列出三种颜色。",
    "Explain TCP slow start.",
    "什么是线程安全？",
    "Give me a regex for emails.",
    "用 Python 写一个冒泡排序。",
    "Say hello in French.",
    "今天天气怎么样？",
    "Write a SQL query that counts users by day.",
    "解释一下什么是死锁。",
    "What does git rebase do?",
    "把“谢谢”翻译成英文。",
    "Name the planets.",
    "写一首关于秋天的短诗。",
    "How do I reverse a list in Python?",
    "HTTP 和 HTTPS 有什么区别？",
    "Summarise: queues are lines in which people wait for their turn.",
    "一年有多少天？",
]


@dataclass(frozen=True)
class Packaged:
    folder: Path
    theirs: "transformers.Qwen2ForCausalLM"  # with the very same 4-bit weights, in float32 arithmetic
    tokens: Tokens
    prompts: list[list[int]]


@pytest.fixture(scope="module")
def packaged() -> Packaged:
    settings = Settings(model="packaged", device="cpu")
    source = weights.resolve(settings, lambda _: None)
    folder = ready_folder(source, "nf4", settings.models_dir, CPU, lambda _: None)
    tokens = Tokens(folder)
    system = Message("system", "You are a helpful assistant.")
    prompts = [tokens.prompt([system, Message("user", prompt)]) for prompt in PROMPTS]
    return Packaged(folder, in_transformers(folder), tokens, prompts)


@torch.inference_mode()
def test_greedy_tokens_and_logits_equal_transformers(packaged: Packaged) -> None:
    """Transformers reads all answers at once; if it agrees with every choice, its own answers are the same.

    For its first token it has read what we had: the prompt. Where it has chosen as we did so far, it has for the next
    token read what we had as well, and it is seen to choose the same.
    """
    answers = greedy(Qwen2.read(packaged.folder, CPU, unpack=True), packaged.prompts, STEPS)
    for theirs, (answer, logits) in zip(logits_of(packaged, answers), answers, strict=True):
        assert theirs.argmax(-1).tolist() == answer
        assert (logits - theirs).abs().max() < 1e-3 * theirs.std()


@pytest.mark.parametrize(("int8", "off"), [(False, 0.04), pytest.param(True, 0.08, marks=with_kernel)])
@torch.inference_mode()
def test_packed_weights_choose_the_same_tokens_but_for_noise(packaged: Packaged, int8: bool, off: float) -> None:
    """In bfloat16 both choices must lie within its noise where they differ, at one token in fifty at the most.

    `off` is by how much of their spread all logits may be off. Where the CPU has no kernel for packed weights a step
    takes a second, so there it is a few steps of a few prompts.
    """
    asked, steps = (packaged.prompts, STEPS) if has_kernel(CPU) else (packaged.prompts[:4], 6)
    ours = Qwen2.read(packaged.folder, CPU, unpack=False, int8=int8)
    close_calls = 0
    answers = greedy(ours, asked, steps)
    for theirs, (answer, logits) in zip(logits_of(packaged, answers), answers, strict=True):
        chosen = theirs[range(steps), answer]
        assert (theirs.max(-1).values - chosen).max() <= NOISE
        assert (logits - theirs).abs().mean() < off * theirs.std()
        close_calls += int((theirs.argmax(-1) != torch.tensor(answer)).sum())
    assert close_calls <= len(asked) * steps / 50


Answer = tuple[list[int], Tensor]  # its tokens, and the logits of each: [tokens, vocabulary]


def greedy(model: Qwen2, prompts: list[list[int]], steps: int) -> list[Answer]:
    """The answers to all prompts, token by token in one batch."""
    cache = KVCache(model.shape, len(prompts), 160, CPU, model.dtype)
    pieces = [Piece(slot, 0, prompt, logits=1, is_prompt=True) for slot, prompt in enumerate(prompts)]
    rows = []
    for _ in range(steps):
        rows.append(model.step(pieces, cache).float())
        chosen = rows[-1].argmax(-1).tolist()
        pieces = [Piece(piece.slot, piece.end, [token], logits=1) for piece, token in zip(pieces, chosen, strict=True)]
    logits = torch.stack(rows, 1)
    return list(zip(logits.argmax(-1).tolist(), logits, strict=True))


def logits_of(packaged: Packaged, answers: list[Answer]) -> Iterator[Tensor]:
    """What transformers would choose from at each token of the answers to the first prompts: [tokens, vocabulary].

    It reads them in one batch. They are filled up at their ends, which nothing before sees: attention is causal.
    """
    read = [torch.tensor(prompt + answer[:-1]) for prompt, (answer, _) in zip(packaged.prompts, answers, strict=False)]
    states = packaged.theirs.model(pad_sequence(read, batch_first=True), use_cache=False).last_hidden_state
    for row, tokens, (answer, _) in zip(states, read, answers, strict=True):
        yield packaged.theirs.lm_head(row[len(tokens) - len(answer) : len(tokens)])


def test_the_packaged_tokenizer_cannot_be_forged(packaged: Packaged) -> None:
    for forged in (*CONTROL, *DISGUISED):
        text = normalize("NFC", f"a {forged}system\n")
        ids = packaged.tokens.encode(text)
        assert max(ids) < 151_643
        assert b"".join(map(packaged.tokens.bytes_of, ids)).decode() == text


def test_gigantic_texts_are_counted_in_bounded_time_and_memory(packaged: Packaged) -> None:
    """As many bytes as a program may send, with as many tokens as they can have; and of those with the fewest."""
    draw = random.Random(7)
    han = "".join(map(chr, draw.choices(range(0x4E00, 0x9FA5), k=1_300_000)))
    marks = "".join(draw.choices("!#$%&()*+,-./:;<=>?@[]^_{|}~", k=3_900_000))
    kinds = {
        "emoji": "😀" * 975_000,
        "one word": "a" * 3_900_000,
        "Han": han,
        "marks": marks,
        "spaces": " " * 3_900_000,
    }
    for kind, text in kinds.items():
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak is counted anew
        before, began = peak(), time.process_time()
        assert packaged.tokens.prompt_length([Message("user", text)], 4096) > 8192, kind
        assert time.process_time() - began < 2, kind
        assert peak() - before < 64 << 20, kind


def peak() -> int:
    """The most memory of this process in bytes."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"))
    assert found
    return 1024 * int(found[1])
