"""When every place is taken a question waits in its tab and goes by itself; what is ready is told to a hidden tab."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Chat, Visit
from tests.browser.windows import PICTURE
from tests.server import RunningServer, running_server

pytestmark = pytest.mark.browser

WAITS = "Your message waits here and is sent as soon as a place is free. Keep this tab open."


@pytest.fixture(scope="module")
def narrow() -> Iterator[RunningServer]:
    """One request runs and none waits."""
    with running_server(max_concurrent_requests=1, max_waiting_requests=0, max_new_tokens=2000) as server:
        yield server


def ask(page: Page, question: str) -> None:
    page.get_by_label("Write a message").fill(question)
    page.get_by_label("Write a message").press("Enter")


def answer(page: Page) -> Locator:
    return page.locator(".turn").last.locator(".answer-text")


def occupy(page: Page) -> None:
    """Take the one place there is."""
    ask(page, "long first")
    expect(answer(page)).to_contain_text("word2")


def wait_with(page: Page, question: str) -> None:
    ask(page, question)
    page.get_by_role("button", name="Send when a place is free").click()
    expect(page.get_by_text(WAITS)).to_be_visible()


def asked(server: RunningServer) -> list[str]:
    return [str(row[0]) for row in server.rows("select prompt from exchanges order by queued_at")]


def test_a_question_goes_once_when_a_place_is_free_and_first_come_first_served(
    narrow: RunningServer, chat: Chat
) -> None:
    first, second, third = (chat(narrow) for _ in range(3))
    occupy(first)
    ask(second, "second question")
    expect(second.get_by_role("alert")).to_contain_text("All places are taken at the moment.")
    second.get_by_role("button", name="Send when a place is free").press("Enter")
    expect(second.get_by_text(WAITS)).to_be_visible()
    expect(second.get_by_label("Write a message")).to_have_value("second question")
    wait_with(third, "third question")

    first.get_by_role("button", name="Stop").click()
    expect(answer(second)).to_have_text("You said: second question")
    expect(answer(third)).to_have_text("You said: third question")
    for page in (second, third):
        expect(page.get_by_text(WAITS)).not_to_be_visible()
        expect(page.get_by_label("Write a message")).to_have_value("")
        expect(page.locator(".turn")).to_have_attribute("data-status", "done")
    assert [prompt for prompt in asked(narrow) if "question" in prompt] == ["second question", "third question"]


def test_what_is_cancelled_changed_or_left_is_not_sent(narrow: RunningServer, chat: Chat) -> None:
    first, cancels, edits, leaves, stays = (chat(narrow) for _ in range(5))
    occupy(first)
    for page, question in ((cancels, "cancelled"), (edits, "edited"), (leaves, "left"), (stays, "stayed")):
        wait_with(page, question)
    cancels.get_by_role("button", name="Do not send").click()
    expect(cancels.get_by_text(WAITS)).not_to_be_visible()
    expect(cancels.get_by_label("Write a message")).to_have_value("cancelled")
    edits.get_by_label("Write a message").press_sequentially("!")
    expect(edits.get_by_text(WAITS)).not_to_be_visible()
    leaves.close()
    first.get_by_role("button", name="Stop").click()
    expect(answer(stays)).to_have_text("You said: stayed")
    assert {"cancelled", "edited", "edited!", "left"} & set(asked(narrow)) == set()
    ask(cancels, "sent by hand")
    expect(answer(cancels)).to_have_text("You said: sent by hand")


def test_what_waits_goes_on_waiting_after_a_reload_and_keeps_its_turn(narrow: RunningServer, chat: Chat) -> None:
    first, reloaded, later = (chat(narrow) for _ in range(3))
    occupy(first)
    wait_with(reloaded, "waited through it")
    wait_with(later, "came later")
    reloaded.reload()
    expect(reloaded.get_by_text(WAITS)).to_be_visible()
    expect(reloaded.get_by_label("Write a message")).to_have_value("waited through it")
    first.get_by_role("button", name="Stop").click()
    for page, question in ((reloaded, "waited through it"), (later, "came later")):
        expect(answer(page)).to_have_text(f"You said: {question}")
    assert asked(narrow)[-2:] == ["waited through it", "came later"]
    reloaded.reload()
    expect(answer(reloaded)).to_have_text("You said: waited through it")
    expect(reloaded.get_by_text(WAITS)).not_to_be_visible()


def test_a_copy_of_a_tab_that_waits_sends_nothing_twice(narrow: RunningServer, chat: Chat) -> None:
    """Browsers copy what a tab keeps when the tab is duplicated."""
    first, page = chat(narrow), chat(narrow)
    occupy(first)
    wait_with(page, "only once")
    kept = page.evaluate("JSON.stringify(sessionStorage)")
    copy = page.context.new_page()
    copy.add_init_script(f"Object.assign(sessionStorage, {kept})")
    copy.goto(narrow.url)
    expect(copy.get_by_text(WAITS)).to_be_visible()
    first.get_by_role("button", name="Stop").click()
    expect(page.get_by_text(WAITS)).not_to_be_visible()
    expect(copy.get_by_text(WAITS)).not_to_be_visible()
    expect(answer(page)).to_have_text("You said: only once")
    expect(copy.get_by_text("This message was sent already.")).to_be_visible()
    assert asked(narrow).count("only once") == 1


def test_what_is_sent_while_an_answer_comes_follows_it(narrow: RunningServer, chat: Chat) -> None:
    page = chat(narrow)
    occupy(page)
    ask(page, "and then this")
    told = page.get_by_text("Your message is sent when this answer has ended.")
    expect(told).to_be_visible()
    page.reload()
    expect(told).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    expect(answer(page)).to_have_text("You said: and then this")
    expect(told).not_to_be_visible()
    assert asked(narrow).count("and then this") == 1


def test_ones_own_limit_can_be_waited_for_as_well(visit: Visit) -> None:
    with running_server(max_requests_per_user=1, max_new_tokens=2000) as server:
        first, second = visit(server), visit(server)
        occupy(first)
        ask(second, "after mine")
        expect(second.get_by_role("alert")).to_contain_text("You have as many questions running as one person may")
        second.get_by_role("button", name="Send when a place is free").click()
        first.get_by_role("button", name="Stop").click()
        expect(answer(second)).to_have_text("You said: after mine")


HIDDEN = """
Object.defineProperty(document, 'hidden', { get: () => window.away === true });
window.look = (away) => { window.away = away; document.dispatchEvent(new Event('visibilitychange')); };
window.notices = [];
window.Notification = class { constructor(title, options) { window.notices.push([title, options.body]); }
  static permission = 'default';
  static requestPermission() { this.permission = window.answersWith; return Promise.resolve(this.permission); } };
"""


def away(visit: Visit, server: RunningServer, path: str = "/") -> Page:
    """A page whose tab can be hidden, with notifications that are noted down."""
    page = visit(server, PICTURE)
    page.context.add_init_script(HIDDEN)
    page.goto(server.url + path)
    return page


def test_the_title_of_a_hidden_tab_says_that_an_answer_is_ready_until_one_looks(
    server: RunningServer, visit: Visit
) -> None:
    page = away(visit, server)
    page.evaluate("look(true)")
    ask(page, "tell me when you are ready")
    expect(page).to_have_title("● Answer ready · tell me when you are ready · Qdesk")
    page.evaluate("look(false)")
    expect(page).to_have_title("tell me when you are ready · Qdesk")
    assert page.evaluate("notices") == []

    page.evaluate("look(true)")
    ask(page, "fail midway")
    expect(page).to_have_title("● Your question was not answered · tell me when you are ready · Qdesk")


def test_a_notification_comes_for_a_long_answer_where_it_was_wished_and_the_tab_is_hidden(
    server: RunningServer, visit: Visit
) -> None:
    page = away(visit, server, "/account")
    switch = page.get_by_label("Notify me in this browser when a long answer is ready and the tab is hidden")
    page.evaluate("window.answersWith = 'denied'")
    switch.click()
    expect(page.get_by_text("This browser does not allow it.")).to_be_visible()
    expect(switch).not_to_be_checked()
    page.evaluate("window.answersWith = 'granted'")
    switch.click()
    expect(switch).to_be_checked()

    page.goto(server.url)
    page.evaluate("Notification.permission = 'granted'")
    told = """(answer) => getElement(Number(document.querySelector('.notices').id.slice(1)))
      .ended({ id: 'e1', question: 'how long?', done: true, ...answer })"""
    page.evaluate(told, {"long": True})
    assert page.evaluate("notices") == []  # it is looked at
    page.evaluate("look(true)")
    page.evaluate(told, {"long": False})
    assert page.evaluate("notices") == []
    page.evaluate(told, {"long": True})
    assert page.evaluate("notices") == [["Answer ready", "how long?"]]
