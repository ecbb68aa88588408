"""From a thumb on the chat page to a reviewer's desk, into the audit trail, and back to whoever was read."""

import re
from urllib.parse import quote

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.barriers import passes, passes_in_the_dark_on_a_phone_too
from tests.browser.conftest import Visit
from tests.browser.moments import ENGLISH, tells_the_readers_time
from tests.server import RunningServer, eventually

pytestmark = pytest.mark.browser

QUESTION = "周末出差用哪张表 zebra"
DONE = (  # as the audit trail says it
    "opened an exchange",
    "ran an exchange again",
    "gave a label",
    "wrote a note",
    "corrected an answer",
    "finished with an exchange",
)


def test_a_thumb_down_goes_from_staff_to_a_reviewer_into_the_audit_trail_and_back(
    office: RunningServer, visit: Visit
) -> None:
    """An administrator, a reviewer and two staff, each in a browser window of their own."""
    ada = visit(office, name="ada", timezone_id="Asia/Kolkata")
    thumb_down(ada, "That is no form.")
    eventually(lambda: office.rows("select rating, comment from feedback") == [(-1, "That is no form.")])
    rita = visit(office, "/review", name="rita", reduced_motion="reduce")
    id, conversation, logged, sampling = office.rows(
        "select id, conversation_id, answer, sampling from exchanges where prompt = ?", QUESTION
    )[0]
    find(rita)
    rows(rita).click()
    expect(rita.locator(f".inbox[data-open='{id}'] .work-bar[data-id='{id}']")).to_be_visible()
    read(rita)
    run_again(rita, logged)
    again = "select answer, sampling, conversation_id, parent_id from exchanges where source = 'review' order by number"
    assert office.rows(again)[0] == (logged, sampling, None, id), "the same values draw the same answer"
    finish(rita, id)
    choose_everything(rita)
    expect(rows(rita)).to_have_count(1)

    admin = visit(office, "/admin/audit")
    admin.get_by_label("Who").fill("rita")
    for done in DONE:
        expect(admin.get_by_role("row", name=id).filter(has_text=done).first).to_contain_text("rita")
    expect(admin.get_by_role("row").filter(has_text="List: down · Text: zebra").first).to_contain_text(
        "searched the log"
    )

    ada.reload()
    expect(ada.locator(".turn .answer-text")).to_have_text([logged])
    assert office.rows("select count(*) from exchanges where conversation_id = ?", conversation) == [(1,)]
    ada.goto(office.url + "/account")
    expect(ada.locator(".readings .row").first).to_contain_text(re.compile(f"rita.*{QUESTION}", re.DOTALL))
    tells_the_readers_time(ada.locator(".readings time").first, "Asia/Kolkata", ENGLISH)
    bob = visit(office, "/account", name="bob")
    expect(bob.locator(".readings")).to_have_text("Nobody so far.")
    for path in (f"/c/{conversation}", f"/review?open={id}"):
        bob.goto(office.url + path)
        expect(bob.locator("body")).not_to_contain_text("zebra")


def rows(page: Page) -> Locator:
    return page.locator(".inbox-row")


def thumb_down(staff: Page, comment: str) -> None:
    staff.get_by_label("Write a message").fill(QUESTION)
    staff.get_by_label("Write a message").press("Enter")
    turn = staff.locator(".turn").last
    expect(turn).to_have_attribute("data-status", "done")
    turn.get_by_role("button", name="Bad answer").click()
    dialog = staff.get_by_role("dialog", name="What was wrong?")
    dialog.get_by_label("Comment, if you like").fill(comment)
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_be_hidden()


def find(reviewer: Page) -> None:
    """In the list of thumbs-down, by a word of Latin letters and by one of two Han."""
    reviewer.get_by_role("button", name="Thumbs down", exact=True).click()
    expect(reviewer).to_have_url(re.compile(r"\?list=down$"))
    for text in ("出差", "zebra"):
        reviewer.get_by_role("searchbox").fill(text)
        reviewer.get_by_role("searchbox").press("Enter")
        expect(reviewer).to_have_url(re.compile(f"list=down&text={quote(text)}$"))
        expect(rows(reviewer)).to_have_count(1)


def read(reviewer: Page) -> None:
    """What the person said, the numbers, and the prompt as it went to the model."""
    expect(reviewer.locator(".work-feedback")).to_contain_text("That is no form.")
    facts = reviewer.locator(".turn dl > div")
    for name in (
        "Queue wait",
        "Time to first token",
        "Total time",
        "Prompt tokens",
        "Completion tokens",
        "Speed",
        "Seed",
    ):
        expect(facts.filter(has_text=name).locator("dd")).to_have_text(re.compile(r"\d"))
    for name, value in {"Model name": "scripted", "Finish reason": "stop"}.items():
        expect(facts.filter(has_text=name).locator("dd")).to_have_text(value)
    reviewer.get_by_role("button", name="Show the exact messages").click()
    expect(reviewer.locator(".turn-read pre")).to_have_text(re.compile(re.escape(f"<|user|>{QUESTION}") + "$"))
    expect(reviewer.locator(".turn-read b")).to_have_text(["<|system|>", "<|user|>"])


def run_again(reviewer: Page, logged: str) -> None:
    """As it was, then with another value, then with one that is none."""
    again = reviewer.locator(".work-rerun")
    for temperature in (None, "0", "9"):
        reviewer.get_by_role("button", name="Run again").click()
        if temperature:
            reviewer.get_by_label("Temperature").fill(temperature)
        reviewer.get_by_role("button", name="Run", exact=True).click()
        if temperature != "9":
            expect(again).to_have_count(2 if temperature else 1)
            expect(again.first.locator(".answer-text")).to_have_text(logged)
    expect(again.first).to_contain_text("temperature 0,")
    expect(reviewer.locator(".work-beside")).to_contain_text("Logged answer")
    expect(reviewer.get_by_role("alert")).to_contain_text("temperature is 9.0; it must be from 0 to 2")
    passes_in_the_dark_on_a_phone_too(reviewer)
    reviewer.get_by_role("button", name="Cancel").click()


def finish(reviewer: Page, id: str) -> None:
    """With the keyboard: label, note, correction, done."""
    for key, text, end in (("l", "policy", "Enter"), ("n", "Ask finance.", "Enter"), ("c", "Form 7.", "Control+Enter")):
        reviewer.keyboard.press(key)
        reviewer.keyboard.press("Control+a")
        reviewer.keyboard.type(text)
        if key == "c":
            passes(reviewer)  # with a note above the form
        reviewer.keyboard.press(end)
        expect(reviewer.locator(".inbox-work")).to_contain_text(text)
    reviewer.keyboard.press("d")
    expect(reviewer.locator(f"#row-{id} .inbox-tick")).to_be_visible()
    passes_in_the_dark_on_a_phone_too(reviewer)


def choose_everything(reviewer: Page) -> None:
    """Every filter there is, together."""
    chosen = {"Person": "ada", "Time": "Today", "Status": "Done", "Source": "Chat page", "Model": "scripted"}
    for label, option in {**chosen, "Rating": "Thumbs down", "Label": "policy"}.items():
        reviewer.get_by_label(label, exact=True).select_option(label=option)
    every = "person=ada&time=today&status=done&source=page&model=scripted&rating=down&label=policy&text=zebra"
    expect(reviewer).to_have_url(re.compile(rf"\?{every}&open="))
