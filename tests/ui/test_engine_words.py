"""What the engine says is told in the reader's language, and what is listed for that is what the engine says."""

import re
from pathlib import Path

import pytest

from ui.engine_words import SENTENCES, in_words
from ui.i18n import language

ROOT = Path(__file__).parent.parent.parent
SOURCES = "\n".join(
    path.read_text(encoding="utf-8") for folder in ("engine", "storage") for path in (ROOT / folder).rglob("*.py")
)


@pytest.mark.parametrize("sentence", SENTENCES)
def test_the_engine_still_says_this(sentence: str) -> None:
    for part in re.split(r"\{\w+\}", sentence):
        assert part.strip() in SOURCES, "nothing says this any more"


@pytest.mark.parametrize(
    ("english", "chinese"),
    [
        ("There is no NVIDIA driver on this machine.", "本机没有 NVIDIA 驱动。"),
        ("The model is loading (downloading).", "模型正在加载（正在下载）。"),
        ("The GPU has only 3.0 GB free, so the small model runs.", "GPU 只剩 3.0 GB，因此运行小模型。"),
        (
            "There is no CUDA device, so the small model runs. This CPU cannot multiply 4-bit weights directly, "
            "so they are unpacked to float16 in memory.",
            "没有 CUDA 设备，因此运行小模型。此 CPU 不能直接计算 4 位权重，因此在内存中展开为 float16。",
        ),
        ("Something that nobody foresaw {in} braces", "Something that nobody foresaw {in} braces"),
        ("", ""),
    ],
)
def test_sentences_are_told_in_chinese_with_what_they_hold(english: str, chinese: str) -> None:
    assert in_words(language("zh"), english) == chinese
    assert in_words(language("en"), english) == english
