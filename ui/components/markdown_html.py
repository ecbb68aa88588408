"""One block of Markdown -> HTML that is safe to show: the parser, how single things are rendered, and the sanitiser.

CommonMark with GFM tables, strikethrough, task lists and bare links, and formulas as MathML. HTML in the text is shown
as text; images become links; links go to http, https and mailto only; everything is sanitised once more by nh3. Links
whose address stands elsewhere, `[text][1]`, are shown as they are written, and the address where it stands is a link.
"""

import re
from collections.abc import Iterator, MutableMapping, Sequence
from html import escape
from typing import Any

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_block import StateBlock, table
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markdown_it.utils import OptionsDict

from ui.components import formulas
from ui.components.code_colours import coloured

LARGEST_BLOCK = 12_000  # characters; a larger block is shown as plain text, so that no text can hold up the server
LARGEST_PARAGRAPH = 8_000  # the same for running text, whose emphasis and links cost more to find
MOST_EMPTY_CELLS = 200  # of one table: those that are not written, of which a short line may have hundreds

FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")

_BLOCKS = {"blockquote", "div", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "ul"}
_INLINE = {"a", "br", "code", "del", "em", "s", "span", "strong"}
_TABLES = {"table", "tbody", "td", "th", "thead", "tr"}
_MATHS = {"math", "menclose", "mfrac", "mi", "mn", "mo", "mover", "mpadded", "mphantom", "mroot", "mrow", "mspace"}
_MATHS |= {"msqrt", "mstyle", "msub", "msubsup", "msup", "mtable", "mtd", "mtext", "mtr", "munder", "munderover"}
_ATTRIBUTES = {
    "a": {"href", "title"},
    "code": {"class"},
    "div": {"class", "tabindex"},
    "li": {"class"},
    "math": {"display"},
    "menclose": {"notation"},
    "mfrac": {"linethickness"},
    "mi": {"mathvariant"},
    "mo": {"accent", "fence", "form", "maxsize", "minsize", "movablelimits", "stretchy"},
    "mover": {"accent"},
    "mpadded": {"height", "lspace", "voffset", "width"},
    "mspace": {"depth", "width"},
    "mstyle": {"displaystyle", "scriptlevel"},
    "mtable": {"displaystyle"},
    "mtd": {"class"},
    "munder": {"accentunder"},
    "ol": {"start"},
    "p": {"class"},
    "pre": {"data-language", "tabindex"},
    "span": {"class", "tabindex"},
    "td": {"class"},
    "th": {"class"},
}
_LENGTHS = {"height", "lspace", "voffset", "width", "depth", "linethickness", "maxsize", "minsize"}
_SHORT = re.compile(r"[+-]?\d?(\.\d{0,3})?(em|ex|px|mu)?")  # a formula must not reach over what is around it
_SAFE_LINK = re.compile(r"(https?://|mailto:)", re.IGNORECASE)
_REST = r"[^\s<>\"'`\u2018-\u201f\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]"  # an address ends before these
_NAME = r"[A-Za-z0-9_-]{1,63}"
_BARE_LINK = re.compile(
    rf"(?<![A-Za-z0-9/])https?://{_REST}+|(?<![A-Za-z0-9_/.@-])www\.{_NAME}\.{_REST}+"
    rf"|(?<![A-Za-z0-9_.+/@-])[A-Za-z0-9_.+-]{{1,64}}@{_NAME}(?:\.{_NAME})+",
    re.IGNORECASE,
)
_MAY_HOLD_LINK = re.compile(r"://|www\.|@", re.IGNORECASE)
_OPENED = {")": "(", "]": "["}
_LANGUAGE = re.compile(r"[\w+#.-]{1,24}")
_TASK = re.compile(r"\[([ xX])\] ")

Env = MutableMapping[str, Any]


def render_block(text: str) -> str:
    limit = LARGEST_BLOCK if "\n" in text.strip() else LARGEST_PARAGRAPH
    if len(text) > limit and not FENCE.match(text):
        return f'<div class="plain-text">{escape(text)}</div>\n'
    return clean(parser.render(text))


def words(text: str) -> str:
    """What a text says, in one line and without the marks of Markdown: for lists, where it is text and not HTML."""
    return " ".join(" ".join(map(_said, parser.parse(text))).split())


def _said(token: Token) -> str:
    if not token.children:
        return token.content
    return "".join(" " if child.type.endswith("break") else child.content for child in token.children)


def clean(html: str) -> str:
    return nh3.clean(
        html,
        tags=_BLOCKS | _INLINE | _TABLES | _MATHS,
        attributes=_ATTRIBUTES,
        attribute_filter=_bounded,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
        set_tag_attribute_values={"a": {"target": "_blank"}},
    )


def _bounded(tag: str, attribute: str, value: str) -> str | None:
    if attribute == "href":  # `[]()` is a link to nothing, which would lead to the page itself
        return value if _SAFE_LINK.match(value) else None
    return value if attribute not in _LENGTHS or _SHORT.fullmatch(value) else None


# --- how single things are rendered ---


class _Renderer(RendererHTML):
    def fence(self, tokens: Sequence[Token], index: int, options: OptionsDict, env: Env) -> str:
        language = _LANGUAGE.match(tokens[index].info.strip())
        return _code(tokens[index].content, language[0].lower() if language else "")

    def code_block(self, tokens: Sequence[Token], index: int, options: OptionsDict, env: Env) -> str:
        return _code(tokens[index].content, "")

    def formula(self, tokens: Sequence[Token], index: int, options: OptionsDict, env: Env) -> str:
        return formulas.block_html(tokens[index].content, tokens[index].markup, env)

    def formula_inline(self, tokens: Sequence[Token], index: int, options: OptionsDict, env: Env) -> str:
        return formulas.inline_html(tokens[index].content, tokens[index].markup, env)

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
    inner = coloured(code, language)
    return f'<pre data-language="{escape(language)}" tabindex="0"><code>{inner}</code></pre>\n'


# --- what GFM adds to running text, and a bound on its tables ---


def _bounded_table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """A table ends where its rows have left out MOST_EMPTY_CELLS."""
    found = table(state, start, end, True)
    if silent or not found:
        return found
    columns, left_out = _bars(state, start), 0
    for row in range(start + 2, end):
        left_out += max(0, columns - _bars(state, row))
        if state.isEmpty(row) or left_out > MOST_EMPTY_CELLS:
            return table(state, start, row, False)
    return table(state, start, end, False)


def _bars(state: StateBlock, line: int) -> int:
    return state.src.count("|", state.bMarks[line], state.eMarks[line])


def _extend(state: StateCore) -> None:
    """Link bare addresses, and show the boxes of task lists."""
    for index, token in enumerate(state.tokens):
        if token.type != "inline" or not token.children:
            continue
        if index > 1 and state.tokens[index - 2].type == "list_item_open":
            _tick(state.tokens[index - 2], token.children[0])
        if _MAY_HOLD_LINK.search(token.content):
            token.children = list(_linked(token.children))


def _tick(item: Token, first: Token) -> None:
    if first.type == "text" and (box := _TASK.match(first.content)):
        item.attrSet("class", "task")
        first.content = ("☐ " if box[1] == " " else "☑ ") + first.content[box.end() :]


def _linked(tokens: list[Token]) -> Iterator[Token]:
    depth = 0
    for token in tokens:
        depth += token.nesting if token.type in ("link_open", "link_close") else 0
        if token.type == "text" and not depth:
            yield from _with_links(token.content)
        else:
            yield token


def _with_links(text: str) -> Iterator[Token]:
    at = 0
    for found in _BARE_LINK.finditer(text):
        address = _trimmed(found[0])
        if address.endswith("://"):
            continue
        yield Token("text", "", 0, content=text[at : found.start()])
        yield Token("link_open", "a", 1, attrs={"href": _whole(address)})
        yield Token("text", "", 0, content=address)
        yield Token("link_close", "a", -1)
        at = found.start() + len(address)
    yield Token("text", "", 0, content=text[at:])


def _whole(address: str) -> str:
    """With the scheme that a reader thinks of."""
    if "://" in address:
        return address
    return f"http://{address}" if address[:4].lower() == "www." else f"mailto:{address}"


def _trimmed(address: str) -> str:
    """Without the punctuation that ends the sentence, and without a bracket that was opened before the address."""
    address = address.rstrip(".,;:!?*_~")
    while address[-1:] in _OPENED and address.count(address[-1]) > address.count(_OPENED[address[-1]]):
        address = address[:-1].rstrip(".,;:!?*_~")
    return address


parser = MarkdownIt("commonmark", {"html": False, "breaks": True}, renderer_cls=_Renderer)
# Reference definitions may come after their use, so that nothing before them could ever be finished.
parser.enable(["table", "strikethrough"]).disable("reference")
parser.block.ruler.at("table", _bounded_table, {"alt": ["paragraph", "reference"]})
parser.validateLink = lambda url: bool(_SAFE_LINK.match(url))  # type: ignore[method-assign]  # its documented hook
parser.core.ruler.after("text_join", "extend", _extend)
formulas.add_formulas(parser)
