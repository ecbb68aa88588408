"""Text that is made to cost much: what is rendered at all is rendered within a bounded time, whole and while it comes.

Processor time is measured, which is the same on a busy machine. What takes seconds here holds up everybody's pages.
"""

import re
import time
from collections.abc import Callable, Mapping
from html import unescape

import pytest
from pygments.lexers import get_lexer_by_name

from tests.ui.test_markdown import Inspector
from ui.components.code_colours import LANGUAGES, LARGEST, coloured
from ui.components.markdown import MarkdownStream, render
from ui.components.markdown_html import LARGEST_BLOCK, LARGEST_PARAGRAPH

WITHIN_S = 1.5  # of a render; a look at what has come so far has a fifth
PIECE = 400  # characters that come at once

LINE = ["[", "![[", "*a ", "**a *b ", "`a``b", "_a __", "~~a", "[a](", "> ", "- ", "|", "a@", "https://a)", "$x_1^2$ "]
LINES = ["- a\n", "> - a\n", "| a |\n", "[a\n", "\n- a\n\n  b\n", "`x` *y* **z** [a](http://b)\n", "$$\na\n", "- $$\n"]


def filled(bomb: str, size: int) -> str:
    """Just below `size` characters of it."""
    return (bomb * size)[: size - 1]


def whole(text: str) -> float:
    began = time.process_time()
    render(text)
    return time.process_time() - began


def look(text: str) -> float:
    """The longest of all looks while the text comes in pieces."""
    stream, longest = MarkdownStream(), 0.0
    for at in range(0, len(text), PIECE):
        stream.feed(text[at : at + PIECE])
        began = time.process_time()
        stream.take()
        longest = max(longest, time.process_time() - began)
    return longest


def slow(texts: Mapping[str, str], cost: Callable[[str], float], within_s: float) -> dict[str, float]:
    costs = {bomb: cost(text) for bomb, text in texts.items()}
    return {bomb: took for bomb, took in costs.items() if took > within_s}


def table(columns: int, rows: int) -> str:
    """A table whose rows have one cell that is written, and all others empty."""
    return "|a" * columns + "|\n" + "|-" * columns + "|\n" + "|a|\n" * rows + "\n"


BOMBS = {
    **{bomb: filled(bomb, LARGEST_PARAGRAPH) for bomb in LINE},
    **{bomb: filled(bomb, LARGEST_BLOCK) for bomb in LINES},
    "a wide table": table(500, 2400),
    "many tables": table(200, 300) * 3,
    "many small tables": table(15, 15) * 40,
    "nested lists": "".join(f"{'  ' * depth}- a\n" for depth in range(100)),
    "nested quotes": "".join(f"{'>' * depth} a\n" for depth in range(150)),
}


@pytest.mark.parametrize("bomb", LINE)
def test_beyond_the_limit_it_is_shown_as_plain_text(bomb: str) -> None:
    html = render(filled(bomb, 50_000))
    assert html.startswith('<div class="plain-text">')
    assert Inspector(html).troubles == []


def test_below_the_limits_no_text_takes_long() -> None:
    assert slow(BOMBS, whole, WITHIN_S) == {}


def test_while_it_comes_no_look_takes_long() -> None:
    costly = ("![[", "~~a", "- a\n", "[a\n", "$$\na\n", "a wide table", "many tables")
    assert slow({bomb: BOMBS[bomb] for bomb in costly}, look, WITHIN_S / 5) == {}


def test_a_table_of_empty_cells_ends() -> None:
    assert render(table(50, 50)).count("<td>") == 4 * 50
    assert render(table(2, 150)).count("<td>") == 150 * 2


# Without a bound their time grows with the square of their length or faster; nobody means `easytrieve`.
CODE = {"c": "\n", "csharp": "a\n", "make": "0x", "python": " \n", "tsx": "a.", "easytrieve": "\t"}


@pytest.mark.parametrize(("language", "bomb"), CODE.items())
def test_code_has_its_colours_within_a_bounded_time_and_is_whole(language: str, bomb: str) -> None:
    code = filled(bomb, LARGEST - 1) + "\n"
    began = time.process_time()
    html = coloured(code, language)
    assert time.process_time() - began < WITHIN_S
    assert unescape(re.sub("<[^>]*>", "", html)) == code


@pytest.mark.parametrize("name", ["py", "js", "c++", "bash", "yml", "ts", "rs"])
def test_languages_are_known_by_their_usual_names(name: str) -> None:
    assert "<span" in coloured("x = 'text'  # why", name)
    assert coloured("x", "no such language") == "x"


def test_every_language_is_named_as_pygments_names_it_first() -> None:
    assert {get_lexer_by_name(name).aliases[0] for name in LANGUAGES} == LANGUAGES
