r"""Formulas in Markdown: `$x$`, `$$x$$`, `\(x\)`, `\[x\]` -> MathML, which browsers lay out and screen readers read.

Two rules for markdown-it and what renders their tokens. A formula that cannot be read stays as its source text, and
money stays money: "$5 and $6" is no formula. Knows nothing of pages; the result is sanitised by `markdown_html`.

On a line of its own, `$$` or `\[` opens a block that ends with its closer or before a blank line, so that each line
decides by itself, as all of CommonMark's do: the beginning of an answer never changes with what comes after it.
"""

import re
from collections.abc import MutableMapping
from html import escape, unescape
from typing import Any
from xml.etree.ElementTree import Element, SubElement, tostring  # made here, none is read  # nosec B405

from latex2mathml.converter import Converter
from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline

LONGEST_FORMULA = 1_000  # characters; reading a formula costs up to 0.1 ms a character
LONGEST_TOGETHER = 4_000  # characters of all formulas of one block that are read; the others stay source text

CLOSERS = {"$$": "$$", r"\[": r"\]", r"\(": r"\)"}

_DOLLAR = re.compile(r"\$(?![\s$])((?:[^$\\`]|\\.)+)(?<!\s)\$(?![0-9_]|(?!(?:th|st|nd|rd|s)\b)[A-Za-z])", re.DOTALL)
_SIGN = re.compile(r"[\\^_{=]")  # what prose between two dollars has not
_PROSE = re.compile(r"[A-Za-z]{2,}[\s,.;:!?]+[A-Za-z]{2,}|^\d.*[A-Za-z]{2,}|[\u3400-\u9fff\uff00-\uffef]", re.DOTALL)
_MACROS = re.compile(r"\\(?:def|let|newcommand|renewcommand|providecommand|require)(?![A-Za-z])")  # they can explode
_ENVIRONMENTS = {"aligned": "split", "align": "align*", "gathered": "matrix", "gather": "matrix", "gather*": "matrix"}
_ENVIRONMENT = re.compile(r"\\(begin|end)\{(\w+\*?)\}")
_LARGE = frozenset("∑∏∐⋂⋃⋀⋁⨀⨁⨂⨄⨆")  # their limits stand below and above, where there is room for it
_LIMITS = {"msub": "munder", "msup": "mover", "msubsup": "munderover"}
_PUNCTUATION = ".,;:。，；"  # what may stand behind a formula on a line of its own

Env = MutableMapping[str, Any]


def add_formulas(parser: MarkdownIt) -> None:
    """Let the parser see formulas, as tokens `formula` (a block) and `formula_inline`."""
    parser.block.ruler.before("fence", "formula", _block, {"alt": ["paragraph", "reference", "blockquote", "list"]})
    parser.inline.ruler.before("escape", "formula_inline", _inline)


# --- finding them ---


def _inline(state: StateInline, silent: bool) -> bool:
    source, at = state.src, state.pos
    if source[at] not in "$\\":
        return False
    opener = source[at : at + 2]
    if closer := CLOSERS.get(opener):
        end = source.find(closer, at + 2, at + 2 + LONGEST_FORMULA)
        content, after = source[at + 2 : end], end + 2
        if end < 0:
            return False
    elif found := _DOLLAR.match(source, at, at + 2 + LONGEST_FORMULA):
        opener, content, after = "$", found[1], found.end()
    else:
        return False
    if after > state.posMax or not content.strip() or _is_prose(content):
        return False
    if not silent:
        token = state.push("formula_inline", "math", 0)
        token.content, token.markup = content, opener
    state.pos = after
    return True


def _is_prose(content: str) -> bool:
    return not _SIGN.search(content) and bool(_PROSE.search(content))


def _block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    if state.is_code_block(start):
        return False
    opener, first = _line(state, start)[:2], _line(state, start)[2:]
    if opener not in ("$$", r"\["):
        return False
    closer = CLOSERS[opener]
    if closer in first and not _ends(first, closer):
        return False  # it ends within the line: the inline rule's
    if silent:
        return True
    after = start + 1
    closed = broken = False
    if closer in first:
        closed = True
    else:
        while after < end and not closed and not state.isEmpty(after) and state.sCount[after] >= state.blkIndent:
            line = _line(state, after)
            closed, broken = _ends(line, closer), broken or closer in line
            after += 1
    state.line = after
    lines = [_line(state, line) for line in range(start, after)]
    _push(state, lines, (start, after), opener if closed else "", as_text=broken and not closed)
    return True


def _push(state: StateBlock, lines: list[str], where: tuple[int, int], opener: str, *, as_text: bool) -> None:
    """The token of a block; what has a closer in the middle of a line is running text with a formula in it."""
    if as_text:
        state.push("paragraph_open", "p", 1).map = list(where)
        inline = state.push("inline", "", 0)
        inline.content, inline.map, inline.children = "\n".join(lines), list(where), []
        state.push("paragraph_close", "p", -1)
        return
    token = state.push("formula", "math", 0)
    token.map, token.block, token.markup = list(where), True, opener
    token.content = "\n".join(lines)


def _line(state: StateBlock, line: int) -> str:
    return state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]].rstrip()


def _ends(line: str, closer: str) -> bool:
    """Whether the line's end closes the formula, for the first time in this line."""
    return line.rstrip(_PUNCTUATION).endswith(closer) and line.count(closer) == 1


# --- rendering them ---


def inline_html(content: str, opener: str, env: Env) -> str:
    shown = opener in ("$$", r"\[")
    math = _mathml(content, "block" if shown else "inline", env)
    if not math:
        closer = CLOSERS.get(opener, opener)
        return f'<code class="formula-source">{escape(opener + content + closer)}</code>'
    return f'<span class="formula" tabindex="0">{math}</span>' if shown else math


def block_html(content: str, opener: str, env: Env) -> str:
    """`opener` is "" while the formula is not closed."""
    if opener:
        body = content.rstrip(_PUNCTUATION)
        behind = content[len(body) :]
        if math := _mathml(body[2:-2], "block", env, behind):
            return f'<div class="formula" tabindex="0">{math}</div>\n'
    return f'<p class="formula-source">{escape(content)}</p>\n'


def _mathml(latex: str, display: str, env: Env, behind: str = "") -> str:
    """The formula with the punctuation behind it; "" for one that cannot be read, or is too long to be tried."""
    room = int(env.setdefault("formula_room", LONGEST_TOGETHER))
    if len(latex) > min(room, LONGEST_FORMULA) or _MACROS.search(latex):
        return ""
    env["formula_room"] = room - len(latex)
    try:
        math = Converter(display=display).convert_to_element(_ENVIRONMENT.sub(_known_environment, latex.strip()))
        readable = _settle(math)
    except Exception:  # the converter raises errors of many kinds, also IndexError and RecursionError
        return ""
    if behind:
        SubElement(math[0], "mtext").text = behind
    return tostring(math, encoding="unicode") if readable else ""


def _known_environment(found: re.Match[str]) -> str:
    return rf"\{found[1]}{{{_ENVIRONMENTS.get(found[2], found[2])}}}"


def _settle(math: Element) -> bool:
    """Resolve the converter's entities, so that they are escaped like all text, name alignment by classes, which
    browsers know, and let them place the limits of sums. False: something in it was not understood."""
    for element in math.iter():
        if element.tag in _LIMITS and unescape(element[0].text or "") in _LARGE:
            element.tag = _LIMITS[element.tag]
        if element.text:
            element.text = unescape(element.text)
            if element.tag != "mtext" and (element.text == "&" or re.match(r"\\[A-Za-z]", element.text)):
                return False
        side = element.attrib.pop("columnalign", "")
        if side in ("left", "right"):
            element.set("class", f"align-{side}")
    return True
