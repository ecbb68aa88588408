r"""Formulas in answers: what is one, that it becomes MathML, and that what cannot be read stays as it was written."""

import re

import pytest

from ui.components.formulas import LONGEST_TOGETHER
from ui.components.markdown import MarkdownStream, render


@pytest.mark.parametrize("source", ["$x^2$", r"\(x^2\)"])
def test_formulas_in_running_text(source: str) -> None:
    assert render(f"So {source} it is") == (
        '<p>So <math display="inline"><mrow><msup><mi>x</mi><mn>2</mn></msup></mrow></math> it is</p>\n'
    )


@pytest.mark.parametrize("source", ["$$\na = b\n$$", "\\[\na = b\n\\]", "$$a = b$$", r"\[a = b\]", "$$ a\n= b $$"])
def test_formulas_on_lines_of_their_own_end_the_paragraph_before(source: str) -> None:
    shown = '<div class="formula" tabindex="0"><math display="block">'
    html = render(f"It follows that\n{source}\nand so on")
    assert html.startswith(f"<p>It follows that</p>\n{shown}<mrow><mi>a</mi><mo>=</mo><mi>b</mi></mrow></math></div>")
    assert html.endswith("<p>and so on</p>\n")


def test_a_full_stop_behind_a_formula_stands_beside_it() -> None:
    assert render("$$\nx\n$$.").endswith("<mi>x</mi><mtext>.</mtext></mrow></math></div>\n")


@pytest.mark.parametrize(
    "prose",
    [
        "It costs $5 and $6.",
        "One is $5, the other costs 6$.",
        "US$5 to US$6, or 7$ and 8$",
        "echo $HOME/$USER and $PATH",
        "价格是$5，那个是6$左右",
        r"\$5 and \$6$",
        "a lone $ sign, and $$ two",
    ],
)
def test_money_and_variables_are_no_formulas(prose: str) -> None:
    html = render(prose)
    assert "<math" not in html
    assert html == f"<p>{prose}</p>\n".replace(r"\$", "$")


def test_code_is_no_formula() -> None:
    assert render("`$x$` and\n\n```\n$$\nx\n$$\n```").count("<math") == 0


def test_a_dollar_before_code_opens_no_formula_that_ends_inside_it() -> None:
    assert render("Set ${A} to `${B}`") == "<p>Set ${A} to <code>${B}</code></p>\n"


@pytest.mark.parametrize(
    "latex",
    [
        r"\nonsense{x}",
        "x^",
        r"\left( x",
        r"\def\a{\a\a}\a",
        r"\newcommand{\x}{\x\x}\x",
        "{" * 900,
        "x + " * 300 + "x",
    ],
)
def test_what_cannot_be_read_stays_as_it_was_written(latex: str) -> None:
    shown = latex.replace("<", "&lt;")
    assert f'<p class="formula-source">$$\n{shown}\n$$</p>' in render(f"$$\n{latex}\n$$")


@pytest.mark.parametrize(
    "latex",
    [
        r"\sum_{i=1}^{n} x_i \le \int_0^\infty e^{-x^2}\,dx",
        r"\begin{pmatrix} a & b \\ c & d \end{pmatrix}",
        r"\begin{aligned} a &= b \\ &= c \end{aligned}",
        r"\begin{cases} 1 & x > 0 \\ 0 & \text{otherwise} \end{cases}",
        r"\mathbb{E}[X] = \left.\frac{\partial f}{\partial x}\right|_{x=0}",
        r"\sqrt[3]{\binom{n}{k}} \cdot \overline{AB} \xrightarrow{f} \hat{y}",
    ],
)
def test_what_answers_hold_is_read(latex: str) -> None:
    html = render(f"$${latex}$$")
    assert "<math" in html
    assert "\\" not in html
    assert "&amp;" not in html


def test_text_in_a_formula_is_text() -> None:
    assert "<mtext>a&nbsp;&lt;b&gt;&nbsp;c</mtext>" in render(r"$\text{a <b> c}$")


def test_while_it_is_written_a_formula_is_shown_as_it_stands() -> None:
    stream = MarkdownStream()
    stream.feed("Then\n$$\nx_1 + x_2\n")
    part = stream.take()
    assert part.finished == "<p>Then</p>\n"
    assert part.tail == '<p class="formula-source">$$\nx_1 + x_2</p>\n'
    stream.feed("$$\nand on\n")
    assert "<math" in stream.take().finished


def test_a_formula_that_never_ends_takes_no_more_than_its_paragraph() -> None:
    assert render("$$\nx\n\n**on**\n") == '<p class="formula-source">$$\nx</p>\n<p><strong>on</strong></p>\n'


def test_no_more_formulas_are_tried_in_one_block_than_can_be_paid_for() -> None:
    formula = "a^b" * 300
    html = render(f"${formula}$\n" * 8)
    assert html.count("<math") == LONGEST_TOGETHER // len(formula)
    assert html.count('<code class="formula-source">') == 8 - LONGEST_TOGETHER // len(formula)


def test_limits_of_sums_are_for_the_browser_to_place() -> None:
    """Below and above on a line of their own, beside the sign in running text; other indices stay where they are."""
    html = render("$$\n\\sum_{i=1}^{n} x_i + \\prod_k y\n$$")
    assert re.search(r"<munderover>\s*<mo>∑</mo>", html)
    assert re.search(r"<munder>\s*<mo>∏</mo>", html)
    assert "<msub>" in html
