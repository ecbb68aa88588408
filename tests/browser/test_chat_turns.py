"""A conversation as a tree in a real browser: edit, versions, continue, delete with undo, branch into a new chat."""

import json
import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Chat, Visit
from tests.server import RunningServer, eventually

pytestmark = pytest.mark.browser


def ask(page: Page, question: str) -> None:
    page.get_by_label("Write a message").fill(question)
    page.get_by_label("Write a message").press("Enter")
    expect(answer(page)).to_have_text(f"You said: {question}")
    expect(turn(page)).to_have_attribute("data-status", "done")


def turn(page: Page, number: int = -1) -> Locator:
    return page.locator(".turn").nth(number)


def answer(page: Page, number: int = -1) -> Locator:
    return turn(page, number).locator(".answer-text")


def questions(page: Page) -> Locator:
    return page.locator(".question")


def edit(page: Page, number: int, text: str) -> None:
    turn(page, number).hover()
    turn(page, number).get_by_role("button", name="Edit").click()
    page.get_by_label("Edit your message").fill(text)
    page.get_by_label("Edit your message").press("Enter")


def more(page: Page, number: int, what: str) -> None:
    turn(page, number).get_by_label("More").click()
    turn(page, number).get_by_role("button", name=what, exact=True).click()


def stopped(page: Page, question: str) -> str:
    """Ask for a long answer, stop it, and return what is there of it."""
    page.get_by_label("Write a message").fill(question)
    page.get_by_label("Write a message").press("Enter")
    expect(answer(page)).to_contain_text("word3")
    page.get_by_role("button", name="Stop").click()
    expect(turn(page).locator(".note")).to_contain_text("You stopped this answer.")
    return answer(page).inner_text()


def second_tab(page: Page) -> Page:
    other = page.context.new_page()
    other.goto(page.url)
    expect(other.locator(".turn").first).to_be_visible()
    return other


def test_an_edited_question_begins_a_branch_and_both_can_be_read_in_both_tabs(
    server: RunningServer, chat: Chat
) -> None:
    page = chat(server)
    ask(page, "apples")
    ask(page, "pears")
    other = second_tab(page)
    edit(page, 0, "cherries")
    for tab in (page, other):
        expect(answer(tab)).to_have_text("You said: cherries")
        expect(turn(tab)).to_have_attribute("data-status", "done")
        expect(questions(tab)).to_have_count(1)
        expect(turn(tab).get_by_text("2/2")).to_be_visible()
    ask(page, "plums")
    back = page.get_by_role("button", name="Previous version of your message")
    back.focus()
    page.keyboard.press("Enter")
    for tab in (page, other):
        expect(questions(tab)).to_have_text(["You asked: apples", "You asked: pears"])
    expect(page.get_by_role("button", name="Previous version of your message")).to_be_focused()
    page.reload()
    expect(questions(page)).to_have_text(["You asked: apples", "You asked: pears"])
    page.get_by_role("button", name="Next version of your message").focus()
    page.keyboard.press("ArrowRight")
    for tab in (page, other):
        expect(questions(tab)).to_have_text(["You asked: cherries", "You asked: plums"])


def test_an_edit_can_be_left_and_an_empty_one_is_not_sent(server: RunningServer, chat: Chat) -> None:
    page = chat(server)
    ask(page, "as it was")
    question, said = questions(page).bounding_box(), answer(page).bounding_box()
    assert question
    assert said
    assert said["y"] - question["y"] - question["height"] < 24, "nothing stands between a question and its answer"
    turn(page).get_by_role("button", name="Edit").click()
    expect(page.get_by_label("Edit your message")).to_be_focused()
    page.get_by_label("Edit your message").fill("  ")
    expect(page.locator(".question-edit").get_by_role("button", name="Send")).to_be_disabled()
    page.keyboard.press("Escape")
    expect(questions(page)).to_have_text("You asked: as it was")
    expect(turn(page).get_by_role("button", name="Edit")).to_be_focused()


def test_an_edit_that_is_not_taken_stays_where_it_is_written(server: RunningServer, chat: Chat) -> None:
    page = chat(server)
    ask(page, "short")
    edit(page, 0, "word " * 4200)
    expect(page.get_by_role("alert")).to_contain_text("4,206 tokens, and the model reads 4,096")
    expect(page.get_by_label("Edit your message")).to_have_value("word " * 4200)


def test_editing_while_it_streams_stops_the_answer_and_keeps_it(server: RunningServer, chat: Chat) -> None:
    page = chat(server)
    page.get_by_label("Write a message").fill("long and wrong")
    page.get_by_label("Write a message").press("Enter")
    expect(answer(page)).to_contain_text("word3")
    edit(page, 0, "short and right")
    expect(answer(page)).to_have_text("You said: short and right")
    page.get_by_role("button", name="Previous version of your message").click()
    expect(turn(page).locator(".note")).to_contain_text("You stopped this answer.")
    expect(answer(page)).to_contain_text("word3")


def test_versions_are_chosen_for_every_tab_and_the_draft_stays(server: RunningServer, chat: Chat) -> None:
    page = chat(server)
    ask(page, "again and again")
    page.get_by_label("Write a message").fill("half a thought")
    for versions in ("2/2", "3/3"):  # one after the other: a second press while the first is being taken is passed over
        page.get_by_role("button", name="Regenerate", exact=True).click()
        expect(page.get_by_text(versions)).to_be_visible()
    other = second_tab(page)
    page.get_by_role("button", name="Previous version", exact=True).click()
    expect(page.get_by_text("2/3")).to_be_visible()
    expect(other.get_by_text("2/3")).to_be_visible()
    expect(page.get_by_label("Write a message")).to_have_value("half a thought")


def test_regenerates_with_other_settings(server: RunningServer, chat: Chat) -> None:
    page = chat(server)
    ask(page, "one two three four")
    more(page, 0, "Regenerate with other settings")
    page.get_by_label("Longest answer").fill("3")
    page.get_by_label("Temperature").fill("0.3")
    page.get_by_role("button", name="Save and regenerate").click()
    expect(answer(page)).to_have_text("You said: one")
    expect(page.get_by_text("2/2")).to_be_visible()
    newest = json.loads(server.rows("select sampling from exchanges order by number desc limit 1")[0][0])
    assert (newest["max_tokens"], newest["temperature"]) == (3, 0.3)


@pytest.mark.parametrize("tabs", [1, 2])
def test_a_cut_off_answer_goes_on_where_it_stopped_as_one_message(server: RunningServer, chat: Chat, tabs: int) -> None:
    page = chat(server)
    kept = stopped(page, f"long in {tabs}")
    other = second_tab(page) if tabs == 2 else page
    other.get_by_role("button", name="Continue").click()
    expect(answer(page)).to_contain_text(f"word{len(kept.split()) + 20}")
    page.get_by_role("button", name="Stop").click()
    expect(turn(other).locator(".note")).to_contain_text("You stopped this answer.")
    words = answer(page).inner_text().split()
    assert words == [f"word{i}" for i in range(len(words))]
    expect(answer(other)).to_have_text(" ".join(words))
    expect(page.locator(".turn")).to_have_count(1)
    page.reload()
    expect(answer(page)).to_have_text(" ".join(words))
    expect(page.locator(".turn")).to_have_count(1)
    rows = server.rows(
        "select id, parent_id, answer from exchanges where prompt = ? order by number", f"long in {tabs}"
    )
    assert [row[1] for row in rows] == [None, rows[0][0]]
    assert "".join(row[2] for row in rows) == " ".join(words)


def test_a_failed_answer_goes_on_and_the_next_question_follows_the_whole_of_it(
    server: RunningServer, chat: Chat
) -> None:
    page = chat(server)
    page.get_by_label("Write a message").fill("fail midway, please")
    page.get_by_label("Write a message").press("Enter")
    expect(turn(page).locator(".note")).to_contain_text("Something went wrong")
    page.get_by_role("button", name="Continue").click()
    expect(answer(page)).to_have_text("This answer breaks off and goes on.")
    expect(turn(page).locator(".note")).to_have_count(0)
    ask(page, "and then?")
    told = server.rows("select messages from exchanges where prompt = 'and then?'")[0][0]
    assert '"content": "This answer breaks off and goes on."' in told
    page.get_by_role("button", name="Regenerate", exact=True).first.click()
    expect(turn(page, 0).get_by_text("2/2")).to_be_visible()
    turn(page, 0).get_by_role("button", name="Previous version", exact=True).click()
    expect(answer(page, 0)).to_have_text("This answer breaks off and goes on.")


def test_a_deleted_turn_goes_from_every_tab_and_can_come_back(server: RunningServer, chat: Chat) -> None:
    page = chat(server)
    for question in ("first", "second", "third"):
        ask(page, question)
    other = second_tab(page)
    more(page, 1, "Delete")
    for tab in (page, other):
        expect(questions(tab)).to_have_text(["You asked: first"])
    page.reload()
    expect(questions(page)).to_have_text(["You asked: first"])
    more(other, 0, "Delete")
    expect(other.get_by_role("heading", name="What can I help you with?")).to_be_visible()
    other.get_by_role("button", name="Undo").click()
    for tab in (page, other):
        expect(questions(tab)).to_have_text(["You asked: first"])
    assert server.rows("select count(*) from exchanges where prompt in ('first', 'second', 'third')") == [(3,)]


def test_deleting_a_turn_that_streams_stops_it(server: RunningServer, chat: Chat) -> None:
    page = chat(server)
    ask(page, "stays")
    page.get_by_label("Write a message").fill("long and unwanted")
    page.get_by_label("Write a message").press("Enter")
    expect(answer(page)).to_contain_text("word3")
    more(page, 0, "Delete")
    expect(page.get_by_role("heading", name="What can I help you with?")).to_be_visible()
    assert server.rows("select status from exchanges where prompt = 'long and unwanted'") == [("stopped",)]
    page.get_by_role("button", name="Undo").click()
    expect(questions(page)).to_have_text(["You asked: stays", "You asked: long and unwanted"])


def test_one_version_is_deleted_and_the_other_is_shown(server: RunningServer, chat: Chat) -> None:
    page = chat(server)
    ask(page, "twice")
    first = turn(page).get_attribute("data-id")
    page.get_by_role("button", name="Regenerate", exact=True).click()
    expect(page.get_by_text("2/2")).to_be_visible()
    more(page, 0, "Delete")
    expect(turn(page)).to_have_attribute("data-id", str(first))
    expect(page.get_by_text("1/1")).to_have_count(0)


def test_a_branch_into_a_new_chat_begins_alike_and_goes_its_own_way(server: RunningServer, chat: Chat) -> None:
    page = chat(server)
    ask(page, "root")
    ask(page, "stem")
    address = page.url
    more(page, 0, "Branch into a new chat")
    expect(page.get_by_role("heading", name="Branch of root")).to_be_visible()
    expect(questions(page)).to_have_text(["You asked: root"])
    assert page.url != address
    ask(page, "another leaf")
    page.go_back()
    expect(page).to_have_url(address)
    expect(questions(page)).to_have_text(["You asked: root", "You asked: stem"])
    counted = "select count(*) from exchanges where prompt in ('root', 'stem', 'another leaf')"
    assert server.rows(counted) == [(3,)], "nothing is in the log twice"


def test_two_tabs_that_ask_at_once_ask_once(server: RunningServer, chat: Chat) -> None:
    """The second of two is told that an answer is on its way."""
    page = chat(server)
    kept = stopped(page, "long, at once")
    other = second_tab(page)
    expect(other.get_by_role("button", name="Continue")).to_be_visible()
    for tab in (page, other):
        tab.evaluate("document.querySelector('.go-on')?.click()")
    expect(answer(page)).to_contain_text(f"word{len(kept.split()) + 5}")
    page.get_by_role("button", name="Stop").click()
    expect(turn(other).locator(".note")).to_contain_text("You stopped this answer.")
    eventually(lambda: len(server.rows("select id from exchanges where prompt = 'long, at once'")) == 2)


def test_turns_in_chinese_on_a_phone(server: RunningServer, visit: Visit) -> None:
    page = visit(server, locale="zh-CN", viewport={"width": 360, "height": 740})
    page.get_by_label("输入消息").fill("你好")
    page.get_by_label("输入消息").press("Enter")
    expect(answer(page)).to_have_text("You said: 你好")
    turn(page).get_by_label("更多").click()
    expect(page.locator(".more-list")).to_have_text(
        re.compile("换用其他设置重新生成.*从这里另开新对话.*删除", re.DOTALL)
    )
    assert page.evaluate("document.documentElement.scrollWidth") == 360
