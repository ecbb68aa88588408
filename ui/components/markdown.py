"""Markdown from people and models -> HTML that is safe to show, whole or while it is still being written.

    render(text)                                  # a whole text
    stream = MarkdownStream(); stream.feed(delta); part = stream.take()

While an answer streams, a block (paragraph, list, code, ...) is finished when the first line of the next one is
complete: CommonMark decides line by line and never reopens a block. Finished blocks are rendered once. Only the open
one is rendered again, and of a long one only its end: its beginning is shown in provisional pieces, which the finished
block replaces. So the cost of a token does not grow with the answer.

How a block is rendered is `markdown_html`'s part. Knows nothing of pages: tests/ui/test_markdown.py.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from markdown_it.token import Token

from ui.components.formulas import CLOSERS
from ui.components.markdown_html import FENCE, parser, render_block

LONG_BLOCK = 1_000  # characters of an open block that are rendered again at every look
LONG_CODE = 400  # the same for code, whose colours make it several times as long
PATIENCE = 8  # a long block that was read in vain for its end is read again when it has grown by one part in so many

_ITEM_LINE = re.compile(r"^ {0,3}(?:[-*+]|\d{1,9}[.)])(?: |$)", re.MULTILINE)
_GOES_ON = re.compile(r" {4}|\t| {0,3}(?![-#>*+_`~=|:$\\]|\d{1,9}[.)])\S")  # such a line goes on with a paragraph
_QUOTE = re.compile(r" {0,3}>")


def render(text: str) -> str:
    """A whole text as HTML."""
    text = _normal(text)
    return "".join(render_block(block) for block in _blocks(text))


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
        self._in_vain = 0  # below this length of `_open` it is not looked again whether the block has ended
        self._kind = ""
        self._prefix = ""  # what a piece of this block must begin with to be read as the same kind of block

    def feed(self, text: str) -> None:
        self._open += _normal(text)

    def take(self) -> Part:
        """Render what has changed since the last look."""
        finished = self._finish_blocks()
        piece = self._cut_piece()
        self.tail = render_block(self._prefix_now() + self._open[self._shown :])
        self.finished += finished
        self.pieces = piece if finished else self.pieces + piece
        return Part(finished, piece, self.tail)

    def finish(self) -> Part:
        """Render the last block for good: the text has come to its end."""
        finished = "".join(render_block(block) for block in _blocks(self._open))
        self.finished += finished
        self.pieces = self.tail = self._open = ""
        return Part(finished, "", "")

    def _finish_blocks(self) -> str:
        complete = self._open.rfind("\n") + 1
        latest = self._open[self._looked : complete]
        if not latest or complete < self._in_vain or not self._may_end(latest):
            return ""
        self._looked = complete
        starts = _starts(self._open)
        if not starts:
            return ""
        self._in_vain = complete + complete // PATIENCE if complete > LONG_BLOCK else 0
        offset, kind = starts[-1]
        if offset >= complete and len(starts) > 1:  # its first line may yet join the block before
            offset, kind = starts[-2]
        self._kind = kind if self._goes_on(kind, latest) else ""
        if not offset or offset >= complete:
            return ""
        done = "".join(render_block(self._open[a:b]) for a, b in pairwise([at for at, _ in starts if at <= offset]))
        self._open = self._open[offset:]
        self._looked -= offset
        self._shown, self._prefix, self._in_vain = 0, "", 0
        return done

    def _may_end(self, lines: str) -> bool:
        """Whether these lines, newly complete, may end the open block: a look at them, not at the whole of it."""
        match self._kind:
            case "fence":
                opener = FENCE.match(self._open)
                return not opener or opener[1] in lines
            case "list":
                items = list(_ITEM_LINE.finditer(self._open, self._shown))
                return not items or len(_starts(self._open[items[-1].start() :])) > 1
            case "formula":
                closer = CLOSERS.get(self._open.lstrip()[:2], "")
                return any(not line.strip() or closer in line for line in lines.splitlines())
            case "table":
                return not all("|" in line for line in lines.splitlines())
            case "paragraph" | "blockquote":
                begins = _GOES_ON if self._kind == "paragraph" else _QUOTE
                return not all(begins.match(line) for line in lines.splitlines())
        return True

    def _goes_on(self, kind: str, latest: str) -> bool:
        """Whether a block of this kind is still open after these lines, so that the next ones tell when it ends."""
        if kind in ("fence", "formula"):
            return _starts(self._open[: self._looked] + "x\n")[-1][1] == kind
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
        return render_block(prefix + rest[:cut])

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
    parser.block.parse(text.replace("\0", "\ufffd"), parser, {}, tokens)
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
