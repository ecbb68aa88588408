"""A tiny random Qwen2 with a tokenizer of its own, as a Hugging Face folder: everything is there but the knowledge.

`python -m tests.engine.backends.qwen2.tiny FOLDER` makes one; settings with `model=FOLDER` run it in a second.
"""

import atexit
import functools
import json
import shutil
import sys
import tempfile
from pathlib import Path

import torch
import transformers  # whose classes are imported when they are asked for; that takes seconds
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers.utils import logging

from engine.backends.qwen2.source import ModelSource
from engine.backends.qwen2.tokens import _BYTES as BYTES
from engine.settings import Settings

VOCABULARY = 320  # 256 bytes, 12 merges, 5 control tokens, and padding
CONTEXT = 512
MERGES = ["h e", "l l", "he ll", "hell o", "Ġ w", "o r", "Ġw or", "l d", "Ġwor ld", "Ċ Ċ", "i n", "t h"]
TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def make_tiny(folder: Path, *, tied: bool = False, context: int = CONTEXT, seed: int = 0) -> Path:
    """Save the model into `folder` and return it. The weights are large enough that answers differ by prompt."""
    torch.manual_seed(seed)
    logging.disable_progress_bar()
    config = transformers.Qwen2Config(
        vocab_size=VOCABULARY,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=context,
        rope_parameters={"rope_type": "default", "rope_theta": 10_000.0},
        tie_word_embeddings=tied,
        initializer_range=0.4,
        eos_token_id=270,
        bos_token_id=None,
        pad_token_id=268,
    )
    model = transformers.Qwen2ForCausalLM(config).bfloat16()
    if not tied:
        model.lm_head.weight.data[268:271] = 0  # greedy answers never end by themselves
    model.save_pretrained(folder)
    _tokenizer().save_pretrained(folder)
    return folder


def tiny_source(folder: Path) -> ModelSource:
    return ModelSource("tiny", folder, None, "A test made it.", "tiny")


def tiny_settings(folder: Path, models_dir: Path, **changes: object) -> Settings:
    return Settings.model_validate(
        {"model": str(folder), "models_dir": models_dir, "device": "cpu", "threads": 1, "max_context_tokens": 256}
        | changes
    )


@functools.cache
def shared_tiny_settings() -> Settings:
    """Settings of a model with room for long answers, made once a test run."""
    folder = Path(tempfile.mkdtemp(prefix="qdesk-tiny-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    make_tiny(folder / "tiny-qwen2", context=4096)
    return tiny_settings(folder / "tiny-qwen2", folder, max_context_tokens=4096)


def _tokenizer() -> "transformers.PreTrainedTokenizerFast":
    vocabulary = dict(sorted(BYTES.items(), key=lambda item: item[1]))
    extra = ["".join(merge.split()) for merge in MERGES]
    vocabulary |= {token: 256 + i for i, token in enumerate(extra)}
    tokenizer = Tokenizer(
        models.BPE(vocab=vocabulary, merges=[(left, right) for left, right in map(str.split, MERGES)])
    )
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLIT), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    return _with_control_tokens(tokenizer)


def _with_control_tokens(tokenizer: Tokenizer) -> "transformers.PreTrainedTokenizerFast":
    """Give the control tokens the numbers after the vocabulary: 268 to 272."""
    for text, special in {
        "<|endoftext|>": True,
        "<|im_start|>": True,
        "<|im_end|>": True,
        "<|fim_prefix|>": False,
        "<tool_call>": False,
    }.items():
        tokenizer.add_tokens([AddedToken(text, special=special, normalized=False)])
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>"
    )
    fast.chat_template = TEMPLATE
    return fast


if __name__ == "__main__":
    print(json.dumps(str(make_tiny(Path(sys.argv[1])))))
