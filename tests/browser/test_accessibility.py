"""axe-core finds no barrier on any page in any state, light, dark or on a phone; and what a screen reader is told.

Further states are looked at where there is a server that has them: loading and failing to load in test_states.py, the
first account in test_below_a_path.py, the second step in test_sign_in.py, the API's page in test_docs_page.py.
"""

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from playwright.sync_api import FilePayload, Locator, Page, expect

from tests.browser.barriers import PHONE, passes
from tests.browser.conftest import Chat, Visit
from tests.browser.windows import PICTURE
from tests.server import RunningServer, bearer, key_of, running_server

pytestmark = pytest.mark.browser

LOOKS: dict[str, dict[str, Any]] = {  # contrast goes by the theme and layout by the width, so two cover both
    "light": {},
    "dark phone": {
        "color_scheme": "dark",
        "viewport": PHONE,
        "has_touch": True,
        "is_mobile": True,
    },
}
WIDE = 12  # columns of a table
RICH = (
    "a list:\n\n1. one\n2. two\n- [ ] open\n- [x] done\n\n"
    f"|{' column |' * WIDE}\n|{'--|' * (WIDE - 1)}--:|\n|{' value |' * WIDE}\n\n```python\nprint('x')  # y\n```\n\n"
    "$$\n\\frac{a}{b}\n$$\n\n\\[\n\\sqrt{c}\n\\]\n\nboth $d^2$ and \\(e_1\\)\n\n"
    "> quoted [link](https://example.org) and `code`\n"
)
PROSE = (
    "A committee met on Tuesday to decide who may use the meeting room on the second floor, and for how long. After an "
    "hour nobody could remember why it had been closed in the first place, so it was opened again, with a sheet of "
    "paper at the door on which everybody writes a name and a time. It has worked well enough ever since."
)


CHARACTERS_IN_A_LINE = """(paragraph) => {
    const lines = new Map(), letter = new Range(), text = paragraph.firstChild;
    for (let at = 0; at < text.length; at++) {
        letter.setStart(text, at);
        letter.setEnd(text, at + 1);
        const { top } = letter.getBoundingClientRect();
        lines.set(top, 1 + (lines.get(top) ?? 0));
    }
    const whole = [...lines.values()].slice(0, -1);
    return whole.reduce((sum, length) => sum + length, 0) / whole.length;
}"""


@pytest.fixture(scope="module")
def narrow() -> Iterator[RunningServer]:
    """One request runs at a time; there is a template, an API key, and something in the log."""
    with running_server(
        max_concurrent_requests=1, max_requests_per_user=2, max_new_tokens=2000, accounts={"ada": "staff"}
    ) as server:
        template = "insert into templates select 't', id, 1, 'Minutes', 'Write {{them}}', created_at from users"
        server.change(template + " where name = 'ada'")
        question = {"messages": [{"role": "user", "content": "hello"}]}
        url = server.url + "/v1/chat/completions"
        assert httpx.post(url, json=question, headers=bearer(key_of("ada")), timeout=60).status_code == 200
        yield server


@pytest.fixture(params=LOOKS)
def look(request: pytest.FixtureRequest) -> dict[str, Any]:
    return dict(LOOKS[request.param])


def ask(page: Page, question: str) -> None:
    page.get_by_label("Write a message").fill(question)
    page.get_by_role("button", name="Send").click()


def test_chat_from_the_first_look_to_a_full_answer(narrow: RunningServer, chat: Chat, look: dict[str, Any]) -> None:
    page = chat(narrow, **look)
    expect(page.get_by_role("heading", name="What can I help you with?")).to_be_visible()
    passes(page)
    table = FilePayload(name="a.csv", mimeType="text/csv", buffer=b"a,b\n1,2")
    page.locator(".composer input[type=file]").set_input_files(table)
    ask(page, f"{PROSE}\n\n{RICH}")
    expect(page.locator(".answer-actions")).to_be_visible()
    formulas = page.locator(".answer-text math")
    expect(formulas).to_have_count(4)
    for formula in formulas.all():
        expect(formula).to_be_visible()
    in_a_line = page.locator(".answer-text p").first.evaluate(CHARACTERS_IN_A_LINE)
    assert 60 <= in_a_line <= 80 or look, "lines of running text are easy to read"
    page.get_by_role("button", name="Details").click()
    page.locator(".question summary").click()
    passes(page)
    scrolls = page.locator(".answer-text .table-scroll").evaluate("(box) => box.scrollWidth > box.clientWidth")
    assert scrolls or look == {}, "on a phone a wide table has a scroll bar of its own"
    page.get_by_label("Write a message").fill("word " * 4200)
    expect(page.locator(".token-count.over")).to_be_visible()
    passes(page)
    ask(page, "fail midway")
    expect(page.locator(".note-bad")).to_be_visible()
    passes(page)


def test_chat_while_answers_stream_and_wait(narrow: RunningServer, chat: Chat, look: dict[str, Any]) -> None:
    page, other = chat(narrow, **look), chat(narrow, **look)
    ask(page, "long story")
    expect(page.locator(".answer-text")).to_contain_text("word5")
    ask(other, "after that one")
    expect(other.locator(".ticket")).to_be_visible()
    passes(other)
    passes(page)
    third = chat(narrow, **look)
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


def test_chat_with_its_dialogs(narrow: RunningServer, chat: Chat, look: dict[str, Any]) -> None:
    page = chat(narrow, **look)
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
    wrong = FilePayload(name="x.json", mimeType="application/json", buffer=b"{}")
    page.get_by_label("Import", exact=True).set_input_files(wrong)
    expect(page.get_by_role("dialog", name="Nothing was imported")).to_be_visible()
    passes(page)
    page.keyboard.press("Escape")
    if page.get_by_role("button", name="Open the list of conversations").is_visible():
        page.get_by_role("button", name="Open the list of conversations").click()
        expect(page.get_by_label("Search")).to_be_visible()
        passes(page)
        page.keyboard.press("Escape")
    page.context.set_offline(True)
    lost = page.get_by_text("The connection is lost.")
    expect(lost).to_be_visible()
    passes(page)
    page.context.set_offline(False)
    expect(lost).not_to_be_visible()


def test_chat_with_what_opens_over_it(narrow: RunningServer, chat: Chat, look: dict[str, Any]) -> None:
    page = chat(narrow, **look)
    ask(page, f"to be opened in {len(look)} ways")
    expect(page.locator(".answer-actions")).to_be_visible()
    page.get_by_role("button", name="Bad answer").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    passes(page)
    page.keyboard.press("Escape")
    page.locator(".turn").get_by_label("More").click()
    passes(page)
    page.get_by_role("button", name="Regenerate with other settings").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    passes(page)
    page.get_by_role("button", name="Save and regenerate").click()
    expect(page.get_by_text("2/2")).to_be_visible()
    expect(page.locator(".turn")).to_have_attribute("data-status", "done")
    passes(page)
    page.get_by_role("button", name="Edit", exact=True).click()
    expect(page.get_by_label("Edit your message")).to_be_focused()
    passes(page)
    page.keyboard.press("Escape")
    page.get_by_label("Write a message").fill("/")
    expect(page.get_by_role("option", name="Minutes")).to_be_visible()
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
    "/review/retention": "h2",
    "/admin": ".figure",
    "/admin/history": "h2",
    "/admin/audit": "h2",
    "/nothing": "h1",
    "/": ".composer",
}


@pytest.fixture
def local(look: dict[str, Any]) -> dict[str, Any]:
    """The looks once more, the phone's in Chinese."""
    return look | ({"locale": "zh-CN"} if look else {})


def passes_as_dialog(page: Page, opener: Locator) -> None:
    opener.click()
    expect(page.get_by_role("dialog")).to_be_visible()
    passes(page)
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).not_to_be_visible()


def test_the_other_pages(narrow: RunningServer, visit: Visit, local: dict[str, Any]) -> None:
    page = visit(narrow, PICTURE, **local)
    for path, part in PAGES.items():
        page.goto(narrow.url + path)
        expect(page.locator(part).first).to_be_visible()
        passes(page)


def test_an_opened_exchange_and_its_keys(narrow: RunningServer, visit: Visit, local: dict[str, Any]) -> None:
    page = visit(narrow, "/review", **local)
    expect(page.locator(".inbox-row").first).to_be_visible()
    passes(page)
    page.locator(".inbox-row").first.click()
    expect(page.locator(".work-bar")).to_be_visible()
    passes(page)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    passes(page)


def test_the_dialogs_of_administrators(narrow: RunningServer, visit: Visit, local: dict[str, Any]) -> None:
    """By their places in the tables, since the words differ; and an invitation, as it is shown here and there."""
    page = visit(narrow, "/admin/people", **local)
    actions = page.locator("td.actions")
    expect(actions.first).to_be_visible()
    passes(page)
    for place in (0, 1):  # a limit, and another password
        passes_as_dialog(page, actions.first.locator("button").nth(place))
    passes_as_dialog(page, actions.last.locator("button"))  # taking a key away
    page.locator(".buttons .q-btn").last.click()
    link = page.locator(".fresh .key")
    expect(link).to_be_visible()
    passes(page)
    page.goto(link.inner_text())
    passes(page)
    page.goto(narrow.url + "/admin/model")
    passes_as_dialog(page, page.locator("td.actions button").first)


def test_pausing_and_the_chat_page_meanwhile(
    narrow: RunningServer, visit: Visit, chat: Chat, local: dict[str, Any]
) -> None:
    page = visit(narrow, "/admin/steer", **local)
    intake = page.locator(".buttons").first.locator(".q-btn:visible")
    passes(page)
    intake.first.click()
    expect(page.locator(".state.warn")).to_be_visible()
    passes(page)
    other = chat(narrow, **local)
    expect(other.locator(".banner")).to_be_visible()
    passes(other)
    intake.last.click()
    expect(page.locator(".state.good")).to_be_visible()


def test_signing_in(narrow: RunningServer, visit: Visit, look: dict[str, Any]) -> None:
    page = visit(narrow, PICTURE, **look)
    page.context.clear_cookies()
    page.goto(narrow.url + "/login?ended=disabled")
    passes(page)
    page.get_by_label("Name").fill("admin")
    page.get_by_label("Password").fill("not this one")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_be_visible()
    passes(page)
    for path in ("/setup?token=old", "/login/link?token=old"):
        page.goto(narrow.url + path)
        passes(page)


# --- what a screen reader is told ---


def test_a_screen_reader_hears_the_beginning_and_the_whole_and_not_each_word(narrow: RunningServer, chat: Chat) -> None:
    page = chat(narrow)
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


def test_motion_stops_for_those_who_want_none(narrow: RunningServer, chat: Chat) -> None:
    page = chat(narrow)
    probe = "() => parseFloat(getComputedStyle(document.body.appendChild(Object.assign("
    probe += "document.createElement('span'), {className: 'pulse'}))).animationDuration)"
    assert page.evaluate(probe) < 0.001
