"""The packaged model in 4 bits: transformers' own logits and greedy tokens, and what the 4-bit output head costs."""

import math
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import Qwen2Config, Qwen2ForCausalLM

from engine.backends.qwen2 import weights
from engine.backends.qwen2.kvcache import KVCache
from engine.backends.qwen2.linear import Dense
from engine.backends.qwen2.model import Piece, Qwen2
from engine.backends.qwen2.quantize import ready_folder
from engine.backends.qwen2.ready import Shape
from engine.backends.qwen2.tokens import Tokens
from engine.settings import Settings
from engine.types import Message
from tests.engine.backends.qwen2.texts import CHINESE, ENGLISH

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
    return Both(ours, _transformers(ours), Tokens(folder))


def _transformers(model: Qwen2) -> Qwen2ForCausalLM:
    """Transformers' model around our weights, with exact arithmetic: what both should come to."""
    shape = model.shape
    with torch.device("meta"):
        theirs = Qwen2ForCausalLM(_config(shape)).bfloat16()
    queries, keys = shape.heads * shape.head_size, shape.kv_heads * shape.head_size
    state: dict[str, Tensor] = {"model.embed_tokens.weight": model.embedding, "model.norm.weight": model.norm}
    state["lm_head.weight"] = _dense(model.head).weight
    for i, layer in enumerate(model.layers):
        qkv, bias = _dense(layer.qkv).weight, _dense(layer.qkv).bias
        assert bias is not None
        name = f"model.layers.{i}."
        for part, weight, offset in zip(
            "qkv", qkv.split([queries, keys, keys]), bias.split([queries, keys, keys]), strict=True
        ):
            state |= {f"{name}self_attn.{part}_proj.weight": weight, f"{name}self_attn.{part}_proj.bias": offset}
        gate, up = _dense(layer.gate_up).weight.chunk(2)
        state |= {f"{name}mlp.gate_proj.weight": gate, f"{name}mlp.up_proj.weight": up}
        state |= {
            f"{name}self_attn.o_proj.weight": _dense(layer.o).weight,
            f"{name}mlp.down_proj.weight": _dense(layer.down).weight,
        }
        state |= {f"{name}input_layernorm.weight": layer.norm1, f"{name}post_attention_layernorm.weight": layer.norm2}
    theirs.load_state_dict(state, assign=True)
    theirs.model.rotary_emb = type(theirs.model.rotary_emb)(_config(shape))  # its table is no parameter
    theirs.float().eval()
    return theirs


def _config(shape: Shape) -> Qwen2Config:
    return Qwen2Config(
        vocab_size=shape.vocabulary,
        hidden_size=shape.hidden,
        intermediate_size=4864,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        max_position_embeddings=shape.context_tokens,
        rms_norm_eps=shape.norm_epsilon,
        rope_parameters={"rope_type": "default", "rope_theta": shape.rope_theta},
        tie_word_embeddings=False,
    )


def _dense(linear: object) -> Dense:
    assert isinstance(linear, Dense)
    return linear


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


@torch.inference_mode()
@pytest.mark.parametrize("text", [ENGLISH, CHINESE], ids=["english", "chinese"])
def test_the_4_bit_head_costs_little(both: Both, text: str) -> None:
    """Against the same body with the head as the source has it: at most 2 % of perplexity."""
    settings = Settings(model="packaged", device="cpu")
    source = weights.resolve(settings, lambda _: None)
    plain = _bf16_head(source.folder, source.gguf_file)
    ids = torch.tensor(both.tokens.encode(text))
    hidden = both.theirs.model(ids[None]).last_hidden_state[0, :-1]

    def perplexity(head: Tensor) -> float:
        return math.exp(cross_entropy(hidden @ head.float().T, ids[1:]).item())

    assert perplexity(_dense(both.ours.head).weight) < 1.02 * perplexity(plain)


def _bf16_head(folder: Path, gguf_file: str | None) -> Tensor:
    import gguf

    assert gguf_file
    reader = gguf.GGUFReader(folder / gguf_file)
    (head,) = [tensor for tensor in reader.tensors if tensor.name == "output.weight"]
    return torch.from_numpy(gguf.dequantize(head.data, head.tensor_type)).bfloat16()
