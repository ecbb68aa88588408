"""Chinese and English: every text that a page shows goes through a Language.

    say = language("zh")            say("New chat") -> "新对话"        say("{n} tokens", n=3) -> "3 个 token"

The English text is its own key. The Chinese ones are in ui/i18n/zh/*.po, one file an area; a test fails on a text
without a translation and on a translation that nothing uses. Babel reads the files and writes numbers, times and spans.
"""

from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from babel.core import negotiate_locale
from babel.dates import format_datetime, format_timedelta
from babel.messages.pofile import read_po
from babel.numbers import format_decimal

LANGUAGES = {"en": "English", "zh": "中文"}


class Language:
    """One language's texts, dates and numbers. Call it with an English text and the values of its `{names}`."""

    def __init__(self, code: str, texts: dict[str, str]) -> None:
        self.code = code
        self.tag = "zh-CN" if code == "zh" else code  # for <html lang>
        self._texts = texts

    def __call__(self, text: str, **values: object) -> str:
        translated = self._texts.get(text, text)
        return translated.format(**values) if values else translated

    def number(self, value: float, digits: int = 0) -> str:
        return format_decimal(round(value, digits), locale=self.code)

    def utc(self, when: datetime) -> str:
        """A moment for pages without scripts, which know nothing of the reader's time zone."""
        return f"{format_datetime(when.astimezone(UTC), 'short', locale=self.code)} UTC"

    def span(self, seconds: float) -> str:
        """A duration in words: "20 seconds", "3 minutes"."""
        return format_timedelta(round(seconds), threshold=1.5, locale=self.code) if seconds >= 1 else f"{seconds:.1f} s"


@cache
def language(code: str) -> Language:
    """The language of this code; English where there is no such language."""
    return Language("zh", _chinese()) if code == "zh" else Language("en", {})


def preferred(accept_language: str) -> str:
    """Choose among ours by an Accept-Language header."""
    wanted = [part.split(";")[0].strip().replace("-", "_") for part in accept_language.split(",")]
    found = negotiate_locale(wanted, list(LANGUAGES))
    return found or next((w.split("_")[0] for w in wanted if w.split("_")[0] in LANGUAGES), "en")


def _chinese() -> dict[str, str]:
    texts: dict[str, str] = {}
    for path in sorted((Path(__file__).parent / "zh").glob("*.po")):
        with path.open("rb") as file:
            texts |= {str(m.id): str(m.string) for m in read_po(file, locale="zh") if m.id and m.string}
    return texts
