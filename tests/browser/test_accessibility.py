"""axe-core finds no barrier on any page in any state, light, dark or on a phone; and what a screen reader is told.

The states of loading and of failing to load are in test_states.py, whose servers have them. The page /docs is Swagger
UI's own, which is not free of barriers.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import FilePayload, Page, expect

from tests.browser.barriers import passes
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
    with running_server(max_concurrent_requests=1, max_requests_per_user=2) as server:
        yield server


@pytest.fixture(params=LOOKS)
def look(request: pytest.FixtureRequest) -> dict[str, Any]:
    return dict(LOOKS[request.param])


def ask(page: Page, question: str) -> None:
    page.get_by_label("Write a message").fill(question)
    page.get_by_role("button", name="Send").click()


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
    third = visit(narrow, **look)
    ask(third, "one too many")
    expect(third.get_by_role("button", name="Send when a place is free")).to_be_visible()
    passes(third)
    page.get_by_label("Write a message").fill("and after this one")
    page.evaluate("dispatchEvent(new CustomEvent('qdesk:send'))")
    expect(page.get_by_text("Your message is sent when this answer has ended.")).to_be_visible()
    passes(page)
    page.get_by_role("button", name="Do not send").click()
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


def test_chat_with_what_opens_over_it(narrow: RunningServer, visit: Visit, look: dict[str, Any]) -> None:
    page = visit(narrow, **look)
    ask(page, f"to be opened in {len(look)} ways")
    expect(page.locator(".answer-actions")).to_be_visible()
    page.get_by_role("button", name="Bad answer").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    passes(page)
    page.keyboard.press("Escape")
    page.locator(".turn").get_by_label("More").click()
    passes(page)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Edit", exact=True).click()
    expect(page.get_by_label("Edit your message")).to_be_focused()
    passes(page)
    page.keyboard.press("Escape")
    page.get_by_label("Write a message").fill("/")
    expect(page.get_by_text("No templates yet.")).to_be_visible()
    passes(page)
    page.get_by_label("Write a message").fill("")
    if page.get_by_role("button", name="Open the list of conversations").is_visible():
        page.get_by_role("button", name="Open the list of conversations").click()
    page.locator(".own-button").click()
    passes(page)
    page.get_by_role("button", name="Archived").click()
    expect(page.get_by_text("Nothing is archived.")).to_be_visible()
    page.get_by_role("button", name="Back to the list").click()
    page.locator(".current").get_by_role("button", name="Options").focus()
    page.keyboard.press("Enter")
    passes(page)
    page.get_by_role("menuitem", name="Move to a folder").click()
    page.get_by_role("combobox", name="Folder").fill("papers")
    passes(page)
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="papers", exact=True)).to_be_visible()
    page.get_by_label("Search").fill("opened")
    expect(page.locator(".item-title mark").first).to_be_visible()
    passes(page)
    page.get_by_label("Search").fill("")
    page.locator(".current").get_by_role("button", name="Options").focus()
    page.keyboard.press("Enter")
    page.get_by_role("menuitem", name="Delete").click()
    expect(page.get_by_role("button", name="Undo")).to_be_visible()
    passes(page)


def test_chat_with_nothing_to_show(narrow: RunningServer, visit: Visit) -> None:
    page = visit(narrow, "/c/0123456789abcdef0123456789abcdef")
    expect(page.get_by_role("heading", name="There is no such conversation.")).to_be_visible()
    passes(page)


PAGES = {
    "/account": ".q-field",
    "/review": ".inbox",
    "/review/retention": "h2",
    "/admin": ".figure",
    "/admin/steer": "h2",
    "/admin/history": "h2",
    "/admin/people": "td",
    "/admin/audit": "td",
}


def test_the_other_pages(narrow: RunningServer, visit: Visit, look: dict[str, Any]) -> None:
    page = visit(narrow, "/account", **look)
    for path, part in PAGES.items():
        page.goto(narrow.url + path)
        expect(page.locator(part).first).to_be_visible()
        passes(page)


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
    page.goto(narrow.url + "/setup?token=old")
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
