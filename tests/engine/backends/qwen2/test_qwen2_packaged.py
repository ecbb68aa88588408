"""The packaged model in 4 bits: transformers' own logits and greedy tokens, and a tokenizer that none can forge."""

from dataclasses import dataclass

import pytest
import torch
from transformers import Qwen2ForCausalLM

from engine.backends.qwen2 import weights
from engine.backends.qwen2.kvcache import KVCache
from engine.backends.qwen2.model import Piece, Qwen2
from engine.backends.qwen2.quantize import ready_folder
from engine.backends.qwen2.tokens import Tokens
from engine.settings import Settings
from engine.types import Message
from tests.engine.backends.qwen2.reference import in_transformers

pytestmark = [pytest.mark.model, pytest.mark.timeout(1800)]

CPU = torch.device("cpu")
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
class Both:
    ours: Qwen2
    theirs: Qwen2ForCausalLM
    tokens: Tokens


@pytest.fixture(scope="module")
def both() -> Both:
    """Our model, and transformers' with the very same 4-bit weights, unpacked, in float32 arithmetic."""
    settings = Settings(model="packaged", device="cpu")
    source = weights.resolve(settings, lambda _: None)
    folder = ready_folder(source, "nf4", settings.models_dir, CPU, lambda _: None)
    ours = Qwen2(folder, CPU, unpack=True)
    return Both(ours, in_transformers(ours), Tokens(folder))


def prompts(both: Both) -> list[list[int]]:
    return [
        both.tokens.prompt([Message("system", "You are a helpful assistant."), Message("user", p)]) for p in PROMPTS
    ]


@torch.inference_mode()
def test_greedy_tokens_equal_transformers(both: Both) -> None:
    """All prompts in one batch of ours; transformers reads each answer at once and must agree with every choice.

    Where it would choose another token, the two must lie within the noise of bfloat16 for it, so that neither choice
    is the wrong one; this may happen at one token in fifty at the most.
    """
    asked = prompts(both)
    cache = KVCache(both.ours.shape, len(asked), 160, CPU)
    logits = both.ours.step([Piece(slot, 0, prompt, logits=True) for slot, prompt in enumerate(asked)], cache)
    answers: list[list[int]] = [[token] for token in logits.argmax(-1).tolist()]
    for step in range(STEPS - 1):
        pieces = [Piece(i, len(asked[i]) + step, answers[i][-1:], logits=True) for i in range(len(asked))]
        for answer, token in zip(answers, both.ours.step(pieces, cache).argmax(-1).tolist(), strict=True):
            answer.append(token)
    close_calls = 0
    for prompt, answer in zip(asked, answers, strict=True):
        theirs = both.theirs(torch.tensor([prompt + answer[:-1]])).logits[0, len(prompt) - 1 :].float()
        for row, token in zip(theirs, answer, strict=True):
            assert row.max() - row[token] <= NOISE
            close_calls += int(row.argmax() != token)
    assert close_calls <= len(asked) * STEPS / 50


@torch.inference_mode()
def test_logits_equal_transformers(both: Both) -> None:
    """Transformers' own bfloat16 run is up to 2.1 % of the logits' spread away from exact arithmetic."""
    for prompt in prompts(both)[:4]:
        ours = both.ours.step([Piece(0, 0, prompt, logits=True)], KVCache(both.ours.shape, 1, 160, CPU))
        theirs = both.theirs(torch.tensor([prompt])).logits[0, -1]
        assert (ours[0].float() - theirs).abs().mean() < 0.02 * theirs.std()


def test_the_packaged_tokenizer_cannot_be_forged(both: Both) -> None:
    for control in ("<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|fim_prefix|>", "<tool_call>"):
        ids = both.tokens.encode(f"a {control}system\n")
        assert max(ids) < 151_643
        assert b"".join(map(both.tokens.bytes_of, ids)).decode() == f"a {control}system\n"
