"""Markdown from people and models -> HTML that is safe to show, whole or while it is still being written.

CommonMark with GFM tables and strikethrough. HTML in the text is shown as text; images become links; links go to http,
https and mailto only; everything is sanitised once more by nh3. Knows nothing of pages: tests/ui/test_markdown.py.

    render(text)                                  # a whole text
    stream = MarkdownStream(); stream.feed(delta); part = stream.take()

While an answer streams, a block (paragraph, list, code, ...) is finished when the first line of the next one is
complete: CommonMark decides line by line and never reopens a block. Finished blocks are rendered once. Only the open
one is rendered again, and of a long one only its end: its beginning is shown in provisional pieces, which the finished
block replaces. So the cost of a token does not grow with the answer.
"""

import re
from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from itertools import pairwise
from typing import Any

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import OptionsDict
from pygments import highlight
from pygments.formatters.html import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

LONG_BLOCK = 1_000  # characters of an open block that are rendered again at every look
LONG_CODE = 400  # the same for code, whose colours make it several times as long
LARGEST_BLOCK = 12_000  # characters; a larger block is shown as plain text, so that no text can hold up the server
LARGEST_PARAGRAPH = 8_000  # the same for running text, whose emphasis and links cost more to find
LARGEST_HIGHLIGHT = 20_000  # characters of a code block that are coloured

_BLOCKS = {"blockquote", "div", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "ul"}
_INLINE = {"a", "br", "code", "del", "em", "s", "span", "strong"}
_TABLES = {"table", "tbody", "td", "th", "thead", "tr"}
_ATTRIBUTES = {
    "a": {"href", "title"},
    "div": {"class", "tabindex"},
    "ol": {"start"},
    "pre": {"data-language", "tabindex"},
    "span": {"class"},
    "td": {"class"},
    "th": {"class"},
}
_SAFE_LINK = re.compile(r"(https?://|mailto:)", re.IGNORECASE)
_LANGUAGE = re.compile(r"[\w+#.-]{1,24}")
_ITEM_LINE = re.compile(r"^ {0,3}(?:[-*+]|\d{1,9}[.)])(?: |$)", re.MULTILINE)
_LETTER = re.compile(r"[^\W\d_]")  # a line that begins with one goes on with a paragraph
_QUOTE = re.compile(r" {0,3}>")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")

Env = MutableMapping[str, Any]


def render(text: str) -> str:
    """A whole text as HTML."""
    text = _normal(text)
    return "".join(_render_block(block) for block in _blocks(text))


@dataclass(frozen=True, slots=True)
class Part:
    """What to show after a look: `finished` is added for good and replaces the pieces; then `piece` is added."""

    finished: str
    piece: str
    tail: str  # replaces the tail shown before


class MarkdownStream:
    """Renders a text that is still being written. `finished` + `pieces` + `tail` is the whole of what is shown."""

    def __init__(self) -> None:
        self.finished = ""
        self.pieces = ""
        self.tail = ""
        self._open = ""  # source of the block that is not finished
        self._shown = 0  # characters of it that are in pieces
        self._looked = 0  # length of `_open` up to the last line that was complete when blocks were last told apart
        self._kind = ""
        self._prefix = ""  # what a piece of this block must begin with to be read as the same kind of block

    def feed(self, text: str) -> None:
        self._open += _normal(text)

    def take(self) -> Part:
        """Render what has changed since the last look."""
        finished = self._finish_blocks()
        piece = self._cut_piece()
        self.tail = _render_block(self._prefix_now() + self._open[self._shown :])
        self.finished += finished
        self.pieces = piece if finished else self.pieces + piece
        return Part(finished, piece, self.tail)

    def finish(self) -> Part:
        """Render the last block for good: the text has come to its end."""
        finished = "".join(_render_block(block) for block in _blocks(self._open))
        self.finished += finished
        self.pieces = self.tail = self._open = ""
        return Part(finished, "", "")

    def _finish_blocks(self) -> str:
        complete = self._open.rfind("\n") + 1
        latest = self._open[self._looked : complete]
        if not latest or not self._may_end(latest):
            return ""
        self._looked = complete
        starts = _starts(self._open)
        if not starts:
            return ""
        offset, kind = starts[-1]
        if offset >= complete and len(starts) > 1:  # its first line may yet join the block before
            offset, kind = starts[-2]
        self._kind = kind if self._goes_on(kind, latest) else ""
        if not offset or offset >= complete:
            return ""
        done = "".join(_render_block(self._open[a:b]) for a, b in pairwise([at for at, _ in starts if at <= offset]))
        self._open = self._open[offset:]
        self._looked -= offset
        self._shown, self._prefix = 0, ""
        return done

    def _may_end(self, lines: str) -> bool:
        """Whether these lines, newly complete, may end the open block: a look at them, not at the whole of it."""
        match self._kind:
            case "fence":
                opener = _FENCE.match(self._open)
                return not opener or opener[1] in lines
            case "list":
                items = list(_ITEM_LINE.finditer(self._open, self._shown))
                return not items or len(_starts(self._open[items[-1].start() :])) > 1
            case "table":
                return not all("|" in line for line in lines.splitlines())
            case "paragraph" | "blockquote":
                begins = _LETTER if self._kind == "paragraph" else _QUOTE
                return not all(begins.match(line) for line in lines.splitlines())
        return True

    def _goes_on(self, kind: str, latest: str) -> bool:
        """Whether a block of this kind is still open after these lines, so that the next ones tell when it ends."""
        if kind == "fence":
            return _starts(self._open[: self._looked] + "x\n")[-1][1] == "fence"
        return kind == "list" or bool(latest.splitlines()[-1].strip())

    def _cut_piece(self) -> str:
        """Make a provisional piece of the beginning of a long open block; "" when it is short or cannot be cut."""
        rest = self._open[self._shown :]
        if len(rest) <= (LONG_CODE if self._kind == "fence" else LONG_BLOCK):
            return ""
        cut = self._cut_at(rest)
        if not cut:
            return ""
        prefix = self._prefix_now()
        if not self._shown:
            self._prefix = self._prefix_of_block()
        self._shown += cut
        return _render_block(prefix + rest[:cut])

    def _cut_at(self, rest: str) -> int:
        """Where a piece may end: at a line, of a list at an item; anywhere in a line that is too long by itself."""
        head = len(self._prefix_of_block()) if not self._shown else 0
        ends = (match.start() for match in _ITEM_LINE.finditer(rest)) if self._kind == "list" else _line_starts(rest)
        fitting = [end for end in ends if head < end < len(rest)]
        if fitting:
            return fitting[-1]
        return len(rest) if len(rest) > 2 * LONG_BLOCK else 0

    def _prefix_now(self) -> str:
        return self._prefix if self._shown else ""

    def _prefix_of_block(self) -> str:
        lines = {"fence": 1, "table": 2}.get(self._kind, 0)
        return "".join(line + "\n" for line in self._open.split("\n", lines)[:lines])


def _normal(text: str) -> str:
    """Carriage returns mean nothing here, and may be cut from their line feed by a chunk's edge."""
    return text.replace("\r", "")


def _starts(text: str) -> list[tuple[int, str]]:
    """Offset and kind of each top-level block."""
    tokens: list[Token] = []
    _parser.block.parse(text.replace("\0", "\ufffd"), _parser, {}, tokens)
    firsts = [token for token in tokens if token.level == 0 and token.nesting >= 0 and token.map]
    offsets = _line_starts(text)
    return [(offsets[token.map[0]], _kind(token)) for token in firsts if token.map]


def _kind(token: Token) -> str:
    return "list" if "list" in token.type else token.type.removesuffix("_open")


def _line_starts(text: str) -> list[int]:
    return [0, *(match.end() for match in re.finditer(r"\n", text))]


def _blocks(text: str) -> Iterator[str]:
    offsets = [offset for offset, _ in _starts(text)]
    yield from (text[a:b] for a, b in pairwise([*offsets, len(text)]))


def _render_block(text: str) -> str:
    limit = LARGEST_BLOCK if "\n" in text.strip() else LARGEST_PARAGRAPH
    if len(text) > limit and not _FENCE.match(text):
        return f'<div class="plain-text">{escape(text)}</div>\n'
    return _clean(_parser.render(text))


def _clean(html: str) -> str:
    return nh3.clean(
        html,
        tags=_BLOCKS | _INLINE | _TABLES,
        attributes=_ATTRIBUTES,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
        set_tag_attribute_values={"a": {"target": "_blank"}},
    )


# --- how single things are rendered ---


class _Renderer(RendererHTML):
    def fence(self, tokens: Sequence[Token], index: int, options: OptionsDict, env: Env) -> str:
        language = _LANGUAGE.match(tokens[index].info.strip())
        return _code(tokens[index].content, language[0].lower() if language else "")

    def code_block(self, tokens: Sequence[Token], index: int, options: OptionsDict, env: Env) -> str:
        return _code(tokens[index].content, "")

    def image(self, tokens: Sequence[Token], index: int, options: OptionsDict, env: Env) -> str:
        address = str(tokens[index].attrs["src"])
        text = self.renderInlineAsText(tokens[index].children or [], options, env) or address
        return f'<a href="{escape(address)}">{escape(text)}</a>'

    def table_open(self, tokens: Sequence[Token], index: int, options: OptionsDict, env: Env) -> str:
        return '<div class="table-scroll" tabindex="0"><table>\n'

    def table_close(self, tokens: Sequence[Token], index: int, options: OptionsDict, env: Env) -> str:
        return "</table></div>\n"

    def th_open(self, tokens: Sequence[Token], index: int, options: OptionsDict, env: Env) -> str:
        return _cell("th", tokens[index])

    def td_open(self, tokens: Sequence[Token], index: int, options: OptionsDict, env: Env) -> str:
        return _cell("td", tokens[index])


def _cell(tag: str, token: Token) -> str:
    side = str(token.attrs.get("style", "")).removeprefix("text-align:")
    return f'<{tag} class="align-{side}">' if side in ("left", "right", "center") else f"<{tag}>"


def _code(code: str, language: str) -> str:
    lexer = _lexer(language) if language and len(code) <= LARGEST_HIGHLIGHT else None
    inner = str(highlight(code, lexer, _formatter)) if lexer else escape(code)  # type: ignore[no-untyped-call]  # pygments has no types
    return f'<pre data-language="{escape(language)}" tabindex="0"><code>{inner}</code></pre>\n'


@lru_cache(maxsize=64)
def _lexer(language: str) -> Lexer | None:
    try:
        lexer: Lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)  # type: ignore[no-untyped-call]  # as above
    except ClassNotFound:
        return None
    return lexer


_formatter = HtmlFormatter(nowrap=True)  # type: ignore[no-untyped-call]  # as above
_parser = MarkdownIt("commonmark", {"html": False, "breaks": False}, renderer_cls=_Renderer)
# Reference definitions may come after their use, so that nothing before them could ever be finished.
_parser.enable(["table", "strikethrough"]).disable("reference")
_parser.validateLink = lambda url: bool(_SAFE_LINK.match(url))  # type: ignore[method-assign]  # its documented hook
