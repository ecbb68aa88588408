"""Markdown to HTML: what it looks like, what never gets through, and that streaming shows the same in the end."""

import re
from html.parser import HTMLParser

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.payloads import PAYLOADS
from ui.components import markdown
from ui.components.markdown import MarkdownStream, render
from ui.components.markdown_html import clean, parser, words

# --- what it looks like ---


def test_paragraphs_emphasis_and_headings() -> None:
    assert render("# Title\n\nSome **bold**, *slanted* and ~~struck~~ text.\n") == (
        "<h1>Title</h1>\n<p>Some <strong>bold</strong>, <em>slanted</em> and <s>struck</s> text.</p>\n"
    )


def test_code_is_coloured_by_classes_and_names_its_language() -> None:
    html = render("```python\nprint('<b>')\n```\n")
    assert html.startswith('<pre data-language="python" tabindex="0"><code><span class="nb">print</span>')
    assert "&lt;b&gt;" in html


def test_code_of_an_unknown_language_stays_as_it_is() -> None:
    assert render("~~~ nonsense\na < b\n~~~\n") == (
        '<pre data-language="nonsense" tabindex="0"><code>a &lt; b\n</code></pre>\n'
    )


def test_tables_scroll_and_align_without_style_attributes() -> None:
    html = render("| a | b |\n|:--|--:|\n| 1 | 2 |\n")
    assert '<div class="table-scroll" tabindex="0"><table>' in html
    assert '<td class="align-left">1</td>\n<td class="align-right">2</td>' in html


def test_in_a_list_a_text_has_its_words_without_the_marks() -> None:
    text = "# Order\n\n先写**决定**，再写 `sort -u`:\n\n- *one*\n- [two](https://example.org)\n\n```sh\nls\n```\n\n"
    assert words(text + "| a |\n|---|\n| $x^2$ |") == "Order 先写决定，再写 sort -u: one two ls a x^2"


def test_html_is_shown_as_text() -> None:
    assert render("Use <b>bold</b> & <br>") == "<p>Use &lt;b&gt;bold&lt;/b&gt; &amp; &lt;br&gt;</p>\n"


def test_links_open_elsewhere_and_tell_nothing() -> None:
    assert render("[Qdesk](https://example.org/?a=1&b=2)") == (
        '<p><a href="https://example.org/?a=1&amp;b=2" target="_blank" '
        'rel="noopener noreferrer nofollow">Qdesk</a></p>\n'
    )


@pytest.mark.parametrize(
    ("text", "address", "shown"),
    [
        ("see https://example.org/a_b.", "https://example.org/a_b", "https://example.org/a_b"),
        ("(www.example.org/x)", "http://www.example.org/x", "www.example.org/x"),
        ("请看www.example.org。", "http://www.example.org", "www.example.org"),
        ("write to desk@example.org!", "mailto:desk@example.org", "desk@example.org"),
        ("[the desk][1]\n\n[1]: https://example.org/1", "https://example.org/1", "https://example.org/1"),
    ],
)
def test_bare_addresses_are_links(text: str, address: str, shown: str) -> None:
    html = render(text)
    assert f'<a href="{address}" target="_blank" rel="noopener noreferrer nofollow">{shown}</a>' in html
    assert html.count("<a ") == 1


@pytest.mark.parametrize("text", ["www. and www.x", "a@b", "me@", "xwww.example.org", "http://", "`www.example.org`"])
def test_what_is_no_address_is_no_link(text: str) -> None:
    assert "<a " not in render(text)


def test_task_lists_show_their_boxes() -> None:
    assert render("- [ ] open\n- [x] done\n- plain [x] text\n") == (
        '<ul>\n<li class="task">☐ open</li>\n<li class="task">☑ done</li>\n<li>plain [x] text</li>\n</ul>\n'
    )


def test_images_are_links_and_load_nothing() -> None:
    html = render("![a chart](https://example.org/x.png)")
    assert "<img" not in html
    assert ">a chart</a>" in html


# --- what never gets through ---

ATTACKS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)>",
    "<svg><script>alert(1)</script></svg>",
    "<iframe src=javascript:alert(1)></iframe>",
    "<details open ontoggle=alert(1)>",
    "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>",
    "<a href=javascript:alert(1)>x</a>",
    "<form action=/logout method=post><button>x</button></form>",
    "<style>*{display:none}</style>",
    "<div style=position:fixed;inset:0 class=chat>x</div>",
    "<base href=//evil.example>",
    "<meta http-equiv=refresh content=0;url=//evil.example>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](java\nscript:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](&Tab;javascript:alert(1))",
    "[x](vbscript:msgbox(1))",
    "[x](data:text/html,<script>alert(1)</script>)",
    "[x](data:image/svg+xml;base64,PHN2ZyBvbmxvYWQ9YWxlcnQoMSk+)",
    "[x](file:///etc/passwd)",
    "[x](//evil.example)",
    "[x](/logout)",
    '[x](https://a.example/"onmouseover="alert(1))',
    '[x](https://a.example "onmouseover=alert(1)")',
    "[x](<https://a.example/' onclick='alert(1)>)",
    "<javascript:alert(1)>",
    "<https://a.example/'onclick=alert(1)>",
    "![x](javascript:alert(1))",
    "![x](https://evil.example/?leak=1)",
    '![" onerror="alert(1)](https://a.example)',
    "[![x](https://evil.example/a.png)](javascript:alert(1))",
    "[x]: javascript:alert(1)\n\n[x]",
    '```"><script>alert(1)</script>\ncode\n```',
    '```python" onload="alert(1)\ncode\n```',
    "`<script>alert(1)</script>`",
    "    <script>alert(1)</script>",
    "| <img src=x onerror=alert(1)> |\n|--|\n| <script>alert(1)</script> |",
    "> <script>alert(1)</script>",
    "- <img src=x onerror=alert(1)>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "<!--><script>alert(1)</script>-->",
    "<![CDATA[<script>alert(1)</script>]]>",
    "<?php echo 1 ?><script>alert(1)</script>",
    "</div></template></script><script>alert(1)</script>",
    "\0<scr\0ipt>alert(1)</scr\0ipt>",
    "{{constructor.constructor('alert(1)')()}}",
    "<div v-html=\"'<img src=x onerror=alert(1)>'\">",
    "${alert(1)}`",
    "\u2028<script>alert(1)</script>",
    r"$\text{<script>alert(1)</script>}$",
    r"$\text{&lt;script&gt;alert(1)&lt;/script&gt;}$",
    r"$\href{javascript:alert(1)}{x} \style{position:fixed}{y} \class{chat}{z}$",
    r"\(\hspace{-50em}\raise{99em}{x}\rule{99em}{99em}\)",
    "$$\n</math><img src=x onerror=alert(1)>\n$$",
    r"\[\unicode{<svg onload=alert(1)>} \def\a{\a\a}\a\]",
    'https://a.example/"onmouseover=alert(1)',
    "https://a.example/<script>alert(1)</script>",
]

TAGS = {"a", "blockquote", "br", "code", "del", "div", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p"}
TAGS |= {"pre", "s", "span", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul"}
TAGS |= {"math", "mfrac", "mi", "mn", "mo", "mpadded", "mrow", "mspace", "mstyle", "msub", "msup", "mtext"}
ATTRIBUTES = {"href", "title", "target", "rel", "class", "tabindex", "start", "data-language"}
ATTRIBUTES |= {"display", "stretchy", "width", "height", "depth", "fence", "form"}


class Inspector(HTMLParser):
    """Notes whatever a browser must not be given."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.troubles: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in TAGS:
            self.troubles.append(f"<{tag}>")
        for name, value in attrs:
            if name not in ATTRIBUTES:
                self.troubles.append(f"{tag} {name}")
            if name == "href" and not re.match(r"(https?://|mailto:)", value or "", re.IGNORECASE):
                self.troubles.append(f"link to {value}")


@pytest.mark.parametrize("attack", ATTACKS)
def test_attacks_stay_text(attack: str) -> None:
    assert Inspector(render(attack)).troubles == []


@pytest.mark.parametrize("attack", ATTACKS)
def test_attacks_stay_text_while_they_are_written(attack: str) -> None:
    stream = MarkdownStream()
    for character in attack:
        stream.feed(character)
        part = stream.take()
        assert Inspector(part.finished + part.piece + part.tail).troubles == []
    assert Inspector(stream.finish().finished).troubles == []


def test_the_corpus_stays_text() -> None:
    troubles = {attack: found for attack in PAYLOADS if (found := Inspector(render(attack)).troubles)}
    assert troubles == {}
    assert Inspector(render("\n\n".join(PAYLOADS))).troubles == []


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet=st.sampled_from("<>[]()!\"'`&;:/=\\\n\t *_~|-#ajsx"), max_size=120))
@example("[]()")
def test_no_text_makes_anything_else(text: str) -> None:
    assert Inspector(render(text)).troubles == []


# --- streaming ---

BLOCKS = [
    "A paragraph\nof two lines with **bold** and [a link](https://example.org).",
    "# Heading",
    "Setext\n===",
    "- one\n- two\n\n  still two\n    - deeper\n- three",
    "1. one\n2. two\n\n3. three",
    "> quoted\nlazily continued\n>\n> - and a list",
    "```python\ndef f():\n    return '''\n\n```\n",
    "~~~\nopen ``` inside\n~~~",
    "    indented code\n\n    goes on",
    "| a | b |\n|---|---|\n| 1 | 2 |\n| `x` | **y** |",
    "***",
    "- a\n\n1",
    "* * *\n* item",
    "[x]: https://example.org\n[x]",
    "<div>\n\nhtml",
    "中文段落，带有**粗体**和`代码`。",
    "```\nnever closed",
    "a | b\n-|-\n1 | 2",
    "\\",
    "text\n    not code",
    "$$\n\\frac{a}{b}\n- c\n$$",
    "so:\n\\[ x_1\n= 2 \\].\nand on",
    "$$ never closed\n- so no formula",
    "$$a\n+b$$ in the middle",
    "$x^2$ costs $5",
    "- item\n\n  $$\n  x\n  $$\n- next",
    "> $$\n> x\nlazy",
    "- [ ] see https://example.org/a_b",
    "www.example.org and desk@example.org",
]

texts = st.lists(
    st.one_of(st.sampled_from(BLOCKS), st.text(alphabet="ab*`_-#>|1.\n ~[]()\r\t$\\", max_size=30)), max_size=8
).flatmap(lambda blocks: st.sampled_from(["\n", "\n\n"]).map(lambda gap: gap.join(blocks)))


@settings(max_examples=200, deadline=None)
@given(texts, st.data())
def test_any_chunking_ends_in_the_same_html(text: str, data: st.DataObject) -> None:
    whole = clean(parser.render(text.replace("\r", "")))
    assert render(text) == whole
    stream, shown, at = MarkdownStream(), "", 0
    while at < len(text):
        size = data.draw(st.integers(1, 12))
        stream.feed(text[at : at + size])
        at += size
        shown += stream.take().finished
    shown += stream.finish().finished
    assert shown == whole


def test_what_is_finished_is_never_sent_again() -> None:
    stream = MarkdownStream()
    stream.feed("First.\n\nSecond")
    assert stream.take().finished == ""  # the second paragraph's line is not complete
    stream.feed(" line\nand more")
    assert stream.take().finished == "<p>First.</p>\n"
    assert stream.take().finished == ""
    assert stream.tail == "<p>Second line<br>\nand more</p>\n"


@pytest.mark.parametrize("block", [block for block in BLOCKS if block != "```\nnever closed"])
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_block_is_finished_as_soon_as_the_next_has_a_line(block: str, size: int) -> None:
    stream, text = MarkdownStream(), f"{block}\n\nNext line\n"
    for at in range(0, len(text), size):
        stream.feed(text[at : at + size])
        stream.take()
    assert stream.finished == render(block)
    assert stream.tail == "<p>Next line</p>\n"


def test_an_open_fence_is_shown_as_code_at_once() -> None:
    stream = MarkdownStream()
    stream.feed("```python\nprint(1")
    assert stream.take().tail.startswith('<pre data-language="python" tabindex="0"><code><span class="nb">print</span>')


def test_a_half_written_number_does_not_end_a_list() -> None:
    stream = MarkdownStream()
    stream.feed("1. one\n\n2")
    assert stream.take().finished == ""
    stream.feed(". two\n")
    stream.take()
    assert stream.finish().finished == render("1. one\n\n2. two\n")


@pytest.mark.parametrize(
    ("first", "line"),
    [
        ("```python\n", "value = compute(value)  # and so on\n"),
        ("", "- an item with some words in it\n"),
        ("| a | b |\n|---|---|\n", "| one cell | another cell |\n"),
        ("", "> quoted words that go on and on\n"),
        ("", "a paragraph that goes on and on\n"),
    ],
)
def test_a_long_block_costs_no_more_at_its_end_than_at_its_beginning(first: str, line: str) -> None:
    """What is rendered and sent at one look is bounded, however long the block has become."""
    stream = MarkdownStream()
    stream.feed(first)
    largest = 0
    for _ in range(150):
        stream.feed(line)
        part = stream.take()
        largest = max(largest, len(stream._open) - stream._shown)
    assert largest <= markdown.LONG_BLOCK + len(line)
    assert stream.pieces
    text = re.sub(r"<[^>]+>", "", stream.pieces + part.tail)
    assert text.count("and on") + text.count("some words") + text.count("another cell") + text.count("so on") == 150
    assert stream.finish().finished == render(first + line * 150)
