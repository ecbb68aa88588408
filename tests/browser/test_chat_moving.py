"""Questions asked by somebody who moves on at once: nothing is lost, nothing is asked twice, and the list tells."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Chat, Visit
from tests.server import RunningServer, eventually, running_server

pytestmark = pytest.mark.browser

LEAVE_AT_ONCE = """([question]) => {
    const box = document.querySelector(".composer textarea");
    box.value = question;
    box.dispatchEvent(new Event("input", {bubbles: true}));
    box.dispatchEvent(new KeyboardEvent("keydown", {key: "Enter", bubbles: true, cancelable: true}));
    document.querySelector(".sidebar-item a, nav li a").click();
}"""


@pytest.fixture(scope="module")
def hasty() -> Iterator[RunningServer]:
    """An answer that no page minds ends as soon as it has begun."""
    with running_server(abandon_after_s=0.2, max_requests_per_user=10) as running:
        yield running


def box(page: Page) -> Locator:
    return page.get_by_label("Write a message")


def ask(page: Page, question: str) -> None:
    box(page).fill(question)
    box(page).press("Enter")


def listed(page: Page, title: str) -> Locator:
    return page.get_by_role("navigation", name="Conversations").locator("li").filter(has_text=title)


def answer(page: Page) -> Locator:
    return page.locator(".turn").last.locator(".answer-text")


def test_an_answer_goes_on_while_its_page_shows_another_conversation(hasty: RunningServer, chat: Chat) -> None:
    page = chat(hasty)
    ask(page, "A short one")
    expect(answer(page)).to_have_text("You said: A short one")
    page.get_by_role("link", name="New chat").click()
    text = "many words " * 50
    ask(page, text)
    expect(answer(page)).to_contain_text("many words")
    listed(page, "A short one").get_by_role("link").click()
    expect(answer(page)).to_have_text("You said: A short one")
    eventually(lambda: hasty.rows("select status from exchanges where prompt like 'many words%'") == [("done",)])


def test_leaving_before_the_question_is_taken(hasty: RunningServer, chat: Chat) -> None:
    page = chat(hasty)
    ask(page, "Where I go")
    expect(answer(page)).to_have_text("You said: Where I go")
    page.goto(hasty.url + "/")
    expect(listed(page, "Where I go").first).to_be_visible()
    page.evaluate(LEAVE_AT_ONCE, ["What I leave behind " * 20])
    expect(listed(page, "What I leave behind")).to_have_count(1)
    eventually(lambda: hasty.rows("select status from exchanges where prompt like 'What I leave%'") == [("done",)])
    page.get_by_role("link", name="New chat").click()
    expect(page.get_by_role("heading", name="What can I help you with?")).to_be_visible()
    expect(box(page)).to_have_value("")  # it was taken, and is not there to be asked again
    listed(page, "What I leave behind").get_by_role("link").click()
    expect(answer(page)).to_have_text(re.compile(r"You said: What I leave behind"))


def test_half_an_emoji_is_taken(hasty: RunningServer, chat: Chat) -> None:
    page = chat(hasty)
    page.evaluate(
        LEAVE_AT_ONCE.replace('document.querySelector(".sidebar-item a, nav li a").click();', ""), ["a\ud83d"]
    )
    expect(answer(page)).to_have_text("You said: a\ufffd")


@contextmanager
def locked(server: RunningServer) -> Iterator[None]:
    """Another program is in the middle of a long change."""
    with closing(sqlite3.connect(server.data_dir / "qdesk.db", isolation_level=None)) as other:
        other.execute("begin immediate")
        yield
        other.execute("rollback")


def test_a_locked_database_costs_no_word(visit: Visit) -> None:
    with running_server() as server:
        page = visit(server)
        expect(box(page)).to_be_visible()
        with locked(server):
            ask(page, "Please keep this")
            alert = page.get_by_role("alert")
            expect(alert).to_contain_text(re.compile("Nothing can be saved|cannot be logged"), timeout=40_000)
            expect(box(page)).to_have_value("Please keep this")
        eventually(lambda: "works again" in server.output())
        page.get_by_role("button", name="Try again").click()
        expect(answer(page)).to_have_text("You said: Please keep this")
        assert server.rows("select count(*) from conversations where deleted_at is null") == [(1,)]


def test_where_answers_go_on_without_the_log_so_do_new_conversations(visit: Visit) -> None:
    with running_server(on_log_failure="warn") as server:
        page = visit(server)
        expect(box(page)).to_be_visible()
        with locked(server):
            ask(page, "Please go on")
            expect(answer(page)).to_have_text("You said: Please go on")
            page.reload()
            expect(box(page)).to_be_visible()
            expect(page.get_by_role("alert")).to_be_hidden()
            assert server.rows("select count(*) from conversations") == [(0,)]
        eventually(lambda: server.rows("select status from exchanges") == [("done",)])
        page.reload()
        expect(answer(page)).to_have_text("You said: Please go on")
        expect(listed(page, "Please go on")).to_have_count(1)


# --- acting at the first moment at which the page shows that one can ---

ASK_AS_SOON_AS = """([selector, question]) => new MutationObserver((changes, observer) => {
    if (!document.querySelector(selector)) return;
    observer.disconnect();
    const box = document.querySelector(".composer textarea");
    box.value = question;
    box.dispatchEvent(new Event("input", {bubbles: true}));
    box.dispatchEvent(new KeyboardEvent("keydown", {key: "Enter", bubbles: true, cancelable: true}));
}).observe(document.querySelector(".thread"), {subtree: true, childList: true, attributes: true})"""


def test_a_question_is_taken_at_the_moment_the_answer_before_is_seen_to_end(server: RunningServer, chat: Chat) -> None:
    page = chat(server)
    ask(page, "first")
    page.evaluate(ASK_AS_SOON_AS, ['.turn[data-status="done"]', "second"])
    expect(page.locator(".turn")).to_have_count(2)
    expect(answer(page)).to_have_text("You said: second")


def test_a_question_is_taken_at_the_moment_a_new_chat_is_seen(server: RunningServer, chat: Chat) -> None:
    page = chat(server)
    ask(page, "in the one before")
    expect(answer(page)).to_have_text("You said: in the one before")
    page.evaluate(ASK_AS_SOON_AS, [".welcome", "in the new one"])
    page.get_by_role("link", name="New chat").click()
    expect(answer(page)).to_have_text("You said: in the new one")
    expect(page.locator(".turn")).to_have_count(1)


def test_who_types_right_after_the_click_types_into_the_conversation_that_was_clicked(
    server: RunningServer, chat: Chat
) -> None:
    page = chat(server)
    ask(page, "about plums")
    expect(page.locator('.turn[data-status="done"]')).to_be_visible()
    page.evaluate(
        """([where, question]) => {
            document.querySelector(where).click();
            const box = document.querySelector(".composer textarea");
            box.value = question;
            box.dispatchEvent(new Event("input", {bubbles: true}));
            box.dispatchEvent(new KeyboardEvent("keydown", {key: "Enter", bubbles: true, cancelable: true}));
        }""",
        [".new-chat", "about figs"],
    )
    expect(answer(page)).to_have_text("You said: about figs")
    expect(page.locator(".turn")).to_have_count(1)
