"""axe-core finds no barrier on any page in any state, light, dark or on a phone; and what a screen reader is told.

All of axe's rules, its best practices and the size of targets (WCAG 2.2) included.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import FilePayload, Page, expect

from tests.browser.conftest import Visit
from tests.server import RunningServer, running_server

pytestmark = pytest.mark.browser

LOOKS: dict[str, dict[str, Any]] = {  # contrast goes by the theme and layout by the width, so two cover both
    "light": {},
    "dark phone": {
        "color_scheme": "dark",
        "viewport": {"width": 360, "height": 740},
        "has_touch": True,
        "is_mobile": True,
    },
}
RICH = (
    "a list:\n\n1. one\n2. two\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n```python\nprint('x')  # y\n```\n\n"
    "$$\n\\frac{a}{b}\n$$\n\n> quoted [link](https://example.org) and `code`\n"
)


@pytest.fixture(scope="module")
def narrow() -> Iterator[RunningServer]:
    """One request runs at a time; people of all roles."""
    with running_server(max_concurrent_requests=1, max_requests_per_user=9) as server:
        yield server


@pytest.fixture(params=LOOKS)
def look(request: pytest.FixtureRequest) -> dict[str, Any]:
    return dict(LOOKS[request.param])


def barriers(page: Page) -> list[str]:
    """What axe finds, one line a place."""
    options = {"resultTypes": ["violations"], "rules": {"target-size": {"enabled": True}}}
    found = Axe().run(page, options=options).response["violations"]
    return [f"{one['id']}: {node['html'][:200]} {node.get('failureSummary')}" for one in found for node in one["nodes"]]


def fits(page: Page) -> bool:
    """Whether nothing but boxes with scroll bars of their own is wider than the window."""
    return bool(page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"))


def ask(page: Page, question: str) -> None:
    page.get_by_label("Write a message").fill(question)
    page.get_by_role("button", name="Send").click()


def passes(page: Page) -> None:
    assert barriers(page) == []
    assert fits(page)


def test_chat_from_the_first_look_to_a_full_answer(narrow: RunningServer, visit: Visit, look: dict[str, Any]) -> None:
    page = visit(narrow, reduced_motion="reduce", **look)
    expect(page.get_by_role("heading", name="What can I help you with?")).to_be_visible()
    passes(page)
    table = FilePayload(name="a.csv", mimeType="text/csv", buffer=b"a,b\n1,2")
    page.locator(".composer input[type=file]").set_input_files(table)
    ask(page, RICH)
    expect(page.locator(".answer-actions")).to_be_visible()
    page.get_by_role("button", name="Details").click()
    page.locator(".question summary").click()
    passes(page)
    page.get_by_label("Write a message").fill("word " * 4200)
    expect(page.locator(".token-count.over")).to_be_visible()
    passes(page)
    ask(page, "fail midway")
    expect(page.locator(".note-bad")).to_be_visible()
    passes(page)


def test_chat_while_answers_stream_and_wait(narrow: RunningServer, visit: Visit, look: dict[str, Any]) -> None:
    page, other = visit(narrow, **look), visit(narrow, **look)
    ask(page, "long story")
    expect(page.locator(".answer-text")).to_contain_text("word5")
    ask(other, "after that one")
    expect(other.locator(".ticket")).to_be_visible()
    passes(other)
    passes(page)
    page.get_by_role("button", name="Stop").click()
    expect(other.locator(".answer-actions")).to_be_visible()


def test_chat_with_its_dialogs(narrow: RunningServer, visit: Visit, look: dict[str, Any]) -> None:
    page = visit(narrow, **look)
    opened: list[Callable[[], None]] = [
        lambda: page.get_by_role("button", name="Settings of this conversation").click(),
        lambda: page.evaluate("window.dispatchEvent(new CustomEvent('qdesk:shortcuts'))"),
    ]
    for open_dialog in opened:
        open_dialog()
        expect(page.get_by_role("dialog")).to_be_visible()
        passes(page)
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).not_to_be_visible()
    if page.get_by_role("button", name="Open the list of conversations").is_visible():
        page.get_by_role("button", name="Open the list of conversations").click()
        expect(page.get_by_label("Search")).to_be_visible()
        passes(page)


def test_chat_with_nothing_to_show(narrow: RunningServer, visit: Visit) -> None:
    page = visit(narrow, "/c/0123456789abcdef0123456789abcdef")
    expect(page.get_by_role("heading", name="There is no such conversation.")).to_be_visible()
    passes(page)


PAGES = {"/account": ".q-field", "/review": ".inbox", "/admin": ".figure", "/admin/people": "td", "/admin/audit": "td"}


def test_the_other_pages(narrow: RunningServer, visit: Visit, look: dict[str, Any]) -> None:
    page = visit(narrow, "/account", **look)
    for path, part in PAGES.items():
        page.goto(narrow.url + path)
        expect(page.locator(part).first).to_be_visible()
        assert barriers(page) == [], path
        assert fits(page), path


def test_signing_in(narrow: RunningServer, visit: Visit, look: dict[str, Any]) -> None:
    page = visit(narrow, **look)
    page.context.clear_cookies()
    page.goto(narrow.url + "/login")
    passes(page)
    page.get_by_label("Name").fill("admin")
    page.get_by_label("Password").fill("not this one")
    page.keyboard.press("Enter")
    expect(page.locator(".notice")).to_be_visible()
    passes(page)


# --- what a screen reader is told ---


def test_a_screen_reader_hears_the_beginning_and_the_whole_and_not_each_word(
    narrow: RunningServer, visit: Visit
) -> None:
    page = visit(narrow)
    page.evaluate(
        """() => {
            window.said = [];
            const live = document.querySelector(".thread > [aria-live]");
            new MutationObserver(() => live.textContent && window.said.push(live.textContent))
                .observe(live, {childList: true, characterData: true, subtree: true});
        }"""
    )
    ask(page, "one two three four five six seven")
    expect(page.locator(".answer-actions")).to_be_visible()
    page.wait_for_function("window.said.length >= 2")
    assert page.evaluate("window.said") == ["The answer has started.", "You said: one two three four five six seven"]
    assert page.locator(".answer-text").locator("xpath=ancestor-or-self::*[@aria-live]").count() == 0


def test_motion_stops_for_those_who_want_none(narrow: RunningServer, visit: Visit) -> None:
    page = visit(narrow, reduced_motion="reduce")
    probe = "() => parseFloat(getComputedStyle(document.body.appendChild(Object.assign("
    probe += "document.createElement('span'), {className: 'pulse'}))).animationDuration)"
    assert page.evaluate(probe) < 0.001
