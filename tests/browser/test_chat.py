"""The chat page in a real browser: a conversation from the first question on, and what can happen on the way."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visit
from tests.server import RunningServer

pytestmark = pytest.mark.browser

LAST_WORD = "word1999"  # of the scripted answer to "long"


def box(page: Page):  # type: ignore[no-untyped-def]
    return page.get_by_label("Write a message")


def ask(page: Page, question: str) -> None:
    box(page).fill(question)
    box(page).press("Enter")


def answer(page: Page, number: int = -1):  # type: ignore[no-untyped-def]
    return page.locator(".turn").nth(number).locator(".answer-text")


def test_a_question_is_answered_and_gets_an_address_of_its_own(server: RunningServer, visit: Visit) -> None:
    page = visit(server)
    expect(page.get_by_role("heading", name="What can I help you with?")).to_be_visible()
    ask(page, "Say **hello**, please")
    expect(answer(page)).to_have_text("You said: Say hello, please")
    expect(answer(page).locator("strong")).to_have_text("hello")
    expect(page).to_have_url(re.compile(r"/c/[0-9a-f]{32}$"))
    expect(box(page)).to_have_value("")
    expect(
        page.get_by_role("navigation", name="Conversations").get_by_role("link", name="Say **hello**")
    ).to_be_visible()

    page.reload()
    expect(answer(page)).to_have_text("You said: Say hello, please")
    expect(page.locator(".turn")).to_have_count(1)
