"""Answers whose person, page or conversation goes away in the middle: each has an end, and what was said is kept."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Visit
from tests.server import PASSWORD, RunningServer, eventually, running_server

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def office() -> Iterator[RunningServer]:
    """An answer that nobody's page minds ends soon."""
    with running_server(abandon_after_s=0.2, accounts={"ada": "staff", "bob": "staff", "cleo": "staff"}) as running:
        yield running


def begin(page: Page, question: str) -> None:
    page.get_by_label("Write a message").fill(question)
    page.get_by_label("Write a message").press("Enter")
    expect(answer(page)).to_contain_text("word3")


def answer(page: Page) -> Locator:
    return page.locator(".turn").last.locator(".answer-text")


def note(page: Page) -> Locator:
    return page.locator(".turn").last.locator(".note")


def sign_in(page: Page, name: str) -> None:
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()


# A page that was leaving by a form, and that the browser brings back.
BROUGHT_BACK = """() => {
    window.leaving = true;
    dispatchEvent(new PageTransitionEvent("pageshow", {persisted: true}));
    return window.leaving;
}"""


def test_signing_out_in_another_tab_ends_the_answer_which_goes_on_later(office: RunningServer, visit: Visit) -> None:
    page = visit(office, name="ada")
    begin(page, "long, and signed out")
    address = page.url
    assert page.evaluate(BROUGHT_BACK) is False, "else it would stay here when its session ends"
    other = page.context.new_page()
    other.goto(office.url)
    other.locator(".own-button").click()
    other.get_by_role("button", name="Sign out").click()
    expect(page).to_have_url(re.compile("/login"))
    expect(page.get_by_role("status")).to_have_text("You have been signed out. Sign in to go on.")
    expect(other).to_have_url(office.url + "/login")  # where Sign out was pressed nothing needs to be said
    eventually(
        lambda: office.rows("select status from exchanges where prompt like '%signed out'") == [("disconnected",)]
    )
    sign_in(page, "ada")
    expect(page).to_have_url(address)
    expect(note(page)).to_contain_text("The answer ended because no page showed it any more.")
    kept = len(answer(page).inner_text().split())
    page.get_by_role("button", name="Continue").click()
    expect(answer(page)).to_contain_text(f"word{kept + 3}")
    page.get_by_role("button", name="Stop").click()
    expect(note(page)).to_contain_text("You stopped this answer.")


def test_an_administrator_disables_the_person_and_nothing_is_lost(office: RunningServer, visit: Visit) -> None:
    page = visit(office, name="bob")
    begin(page, "long, and disabled")
    address = page.url
    admin = visit(office, "/admin/people")
    admin.get_by_role("button", name="Disable: bob").click()
    expect(page).to_have_url(re.compile("/login"))
    expect(page.get_by_role("status")).to_have_text("Your account has been disabled. Please ask an administrator.")
    eventually(lambda: office.rows("select status from exchanges where prompt like '%disabled'") != [("running",)])
    sign_in(page, "bob")
    expect(page.get_by_role("alert")).to_be_visible()
    admin.get_by_role("button", name="Enable: bob").click()
    expect(admin.get_by_role("button", name="Disable: bob")).to_be_visible()
    sign_in(page, "bob")
    expect(page).to_have_url(address)
    expect(answer(page)).to_contain_text("word3")
    expect(page.get_by_role("button", name="Continue")).to_be_visible()


def test_a_conversation_deleted_in_another_tab_while_it_streams(office: RunningServer, visit: Visit) -> None:
    page = visit(office, name="cleo")
    begin(page, "long, and deleted")
    address = page.url
    other = page.context.new_page()
    other.goto(address)
    expect(answer(other)).to_contain_text("word3")
    other.get_by_role("button", name="Options: long, and deleted").focus()
    other.keyboard.press("Enter")
    other.get_by_role("menuitem", name="Delete").click()
    for tab in (page, other):
        expect(tab.get_by_role("heading", name="What can I help you with?")).to_be_visible()
    expect(page.get_by_role("button", name="Send")).to_be_visible()
    page.get_by_label("Write a message").fill("And something new")
    page.get_by_label("Write a message").press("Enter")
    expect(answer(page)).to_have_text("You said: And something new")
    other.get_by_role("button", name="Undo").click()
    expect(other.get_by_role("link", name="long, and deleted")).to_be_visible()
    page.goto(address)
    expect(note(page)).to_contain_text("You stopped this answer.")
