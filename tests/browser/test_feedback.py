"""Thumbs under an answer in a real browser: given with one click, explained, changed, taken back; and its figures."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Chat, Visit
from tests.server import RunningServer, eventually

pytestmark = pytest.mark.browser


def ask(page: Page, question: str) -> Locator:
    """Ask, wait for the answer's end, and return its turn."""
    page.get_by_label("Write a message").fill(question)
    page.get_by_label("Write a message").press("Enter")
    turn = page.locator(".turn").last
    expect(turn.get_by_role("button", name="Regenerate")).to_be_visible()
    return turn


def kept(server: RunningServer, question: str) -> list[tuple[int, str, str]]:
    return server.rows(
        "select rating, reason, comment from feedback join exchanges on id = exchange_id where prompt = ?", question
    )


def test_a_thumb_counts_at_once_and_can_be_explained_changed_and_taken_back(server: RunningServer, chat: Chat) -> None:
    page = chat(server)
    turn = ask(page, "rate me")
    good, bad = turn.get_by_role("button", name="Good answer"), turn.get_by_role("button", name="Bad answer")
    good.click()
    dialog = page.get_by_role("dialog", name="What was good?")
    expect(dialog).to_be_visible()
    expect(good).to_have_attribute("aria-pressed", "true")
    eventually(lambda: kept(server, "rate me") == [(1, "", "")])
    page.keyboard.press("Escape")
    expect(dialog).not_to_be_visible()
    expect(good).to_be_focused()

    bad.press("Enter")
    dialog = page.get_by_role("dialog", name="What was wrong?")
    dialog.get_by_role("button", name="Not correct").click()
    dialog.get_by_label("Comment, if you like").fill("<b>WAL</b> 不是这样的")
    dialog.get_by_role("button", name="Save").click()
    expect(bad).to_have_attribute("aria-pressed", "true")
    expect(good).to_have_attribute("aria-pressed", "false")
    eventually(lambda: kept(server, "rate me") == [(-1, "incorrect", "<b>WAL</b> 不是这样的")])

    page.reload()
    expect(bad).to_have_attribute("aria-pressed", "true")
    bad.click()
    expect(dialog.get_by_label("Comment, if you like")).to_have_value("<b>WAL</b> 不是这样的")
    expect(dialog.get_by_role("button", name="Not correct")).to_have_attribute("aria-pressed", "true")
    dialog.get_by_role("button", name="Take back").click()
    expect(bad).to_have_attribute("aria-pressed", "false")
    eventually(lambda: kept(server, "rate me") == [])


def test_a_rating_shows_in_the_other_tab_of_the_same_conversation(server: RunningServer, chat: Chat) -> None:
    page = chat(server)
    turn = ask(page, "seen in two tabs")
    other = page.context.new_page()
    other.goto(page.url)
    thumb = other.locator(".turn").last.get_by_role("button", name="Good answer")
    expect(thumb).to_have_attribute("aria-pressed", "false")
    turn.get_by_role("button", name="Good answer").click()
    expect(thumb).to_have_attribute("aria-pressed", "true")


def test_the_dialog_fits_a_phone(server: RunningServer, visit: Visit) -> None:
    page = visit(server, viewport={"width": 360, "height": 640}, has_touch=True, is_mobile=True, locale="zh-CN")
    page.get_by_label("输入消息").fill("手机上")
    page.get_by_role("button", name="发送").click()
    page.get_by_role("button", name="回答得不好").tap()
    box = page.get_by_role("dialog", name="哪里不好？").bounding_box()
    assert box is not None
    assert 0 <= box["x"] <= box["x"] + box["width"] <= 360
    assert box["y"] + box["height"] <= 640
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_the_figures_of_an_answer_are_there_on_demand_by_keyboard(server: RunningServer, chat: Chat) -> None:
    page = chat(server)
    turn = ask(page, "how fast were you today")
    details = turn.get_by_role("button", name="Details")
    expect(details).to_have_attribute("aria-expanded", "false")
    details.press("Enter")
    for name in ("Waited", "First token after", "Tokens", "Tokens per second", "Model"):
        expect(turn.locator("dt").get_by_text(name, exact=True)).to_be_visible()
    expect(turn.locator(".figures")).to_contain_text(re.compile(r"Ended\s*by itself"))
    details.press("Enter")
    expect(turn.locator(".figures")).to_have_count(0)
