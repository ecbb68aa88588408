"""The list of conversations: search, rename, delete and undo, moving between them, and nobody else's."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from storage.records import UserRole
from tests.browser.conftest import Chat, Visit
from tests.server import RunningServer, running_server

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def office() -> Iterator[RunningServer]:
    """For tests that look at whole lists, each of somebody's own."""
    people: dict[str, UserRole] = {"ada": "staff", "bob": "staff", "cleo": "staff", "dora": "staff"}
    with running_server(accounts=people) as running:
        yield running


def ask(page: Page, question: str) -> None:
    page.get_by_label("Write a message").fill(question)
    page.get_by_label("Write a message").press("Enter")
    expect(page.locator(".turn").last.locator(".answer-text")).to_have_text(f"You said: {question}")
    expect(page.locator(".turn").last).to_have_attribute("data-status", "done")


def listed(page: Page) -> Locator:
    return page.get_by_role("navigation", name="Conversations").locator("li")


def act(page: Page, title: str, what: str) -> None:
    """Choose from the menu of a conversation; by the keyboard, since the list may be moving under the mouse."""
    page.get_by_role("button", name=f"Options: {title}").focus()
    page.keyboard.press("Enter")
    page.get_by_role("menuitem", name=what, exact=True).click()


def into_folder(page: Page, title: str, folder: str) -> None:
    act(page, title, "Move to a folder")
    page.get_by_role("combobox", name="Folder").fill(folder)
    page.get_by_role("dialog").get_by_role("button", name="Save").click()


def group(page: Page, name: str) -> Locator:
    """One part of the list, by its heading."""
    return page.locator(".sidebar-list section").filter(has=page.locator("h2", has_text=name))


def new_chat(page: Page) -> None:
    page.get_by_role("link", name="New chat").click()
    expect(page.get_by_role("heading", name="What can I help you with?")).to_be_visible()


def test_moving_between_conversations_needs_no_reload(server: RunningServer, chat: Chat) -> None:
    page = chat(server)
    page.evaluate("window.sameDocument = true")
    ask(page, "About apples")
    first = page.url
    new_chat(page)
    expect(page).to_have_url(server.url + "/")
    ask(page, "About pears")
    listed(page).get_by_role("link", name="About apples").click()
    expect(page.locator(".question")).to_have_text("You asked: About apples")
    expect(page).to_have_url(first)
    page.go_back()
    expect(page.locator(".question")).to_have_text("You asked: About pears")
    listed(page).filter(has_text="About apples").hover()
    page.get_by_role("button", name="Options: About apples").click()
    expect(page.get_by_role("menuitem", name="Rename")).to_be_visible()
    page.keyboard.press("Escape")
    assert page.evaluate("window.sameDocument")


def test_renaming_is_seen_in_every_tab(server: RunningServer, chat: Chat) -> None:
    page = chat(server)
    ask(page, "A clumsy first title")
    other = page.context.new_page()
    other.goto(page.url)
    expect(other.get_by_role("heading", name="A clumsy first title")).to_be_visible()
    act(page, "A clumsy first title", "Rename")
    page.get_by_label("Rename", exact=True).fill("计划 <b>2027</b>")
    page.keyboard.press("Enter")
    for tab in (page, other):
        expect(tab.get_by_role("heading", name="计划 <b>2027</b>")).to_be_visible()
        expect(listed(tab).filter(has_text="计划 <b>2027</b>")).to_be_visible()


def test_deleting_can_be_undone(server: RunningServer, visit: Visit) -> None:
    page = visit(server)
    ask(page, "To be deleted by mistake")
    address = page.url
    act(page, "To be deleted by mistake", "Delete")
    expect(listed(page).filter(has_text="To be deleted")).to_have_count(0)
    expect(page.get_by_role("heading", name="What can I help you with?")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    listed(page).filter(has_text="To be deleted").click()
    expect(page).to_have_url(address)
    expect(page.locator(".turn")).to_have_count(1)

    page.clock.install()
    act(page, "To be deleted by mistake", "Delete")
    undo = page.get_by_role("button", name="Undo")
    expect(undo).to_be_visible()
    page.clock.fast_forward(8_000)
    expect(undo).to_be_visible()
    page.clock.fast_forward(2_000)
    expect(undo).not_to_be_visible()
    page.context.close()  # its clock stays as it is in every page that it opens


def test_deleting_a_conversation_ends_its_running_answer(server: RunningServer, chat: Chat) -> None:
    page = chat(server)
    page.get_by_label("Write a message").fill("long and deleted")
    page.keyboard.press("Enter")
    expect(page.locator(".answer-text")).to_contain_text("word3")
    act(page, "long and deleted", "Delete")
    expect(page.get_by_role("heading", name="What can I help you with?")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    listed(page).filter(has_text="long and deleted").click()
    expect(page.locator(".note")).to_contain_text("You stopped this answer.")


def test_search_finds_titles_and_texts_and_two_chinese_characters(server: RunningServer, chat: Chat) -> None:
    page = chat(server)
    ask(page, "Where do zebras live?")
    ask(page, "今天的天气怎么样")
    new_chat(page)
    ask(page, "Something else altogether")
    search = page.get_by_label("Search")
    for wanted, marks in (("zebra", ["zebra"]), ("天气", ["天气"]), ("LIVE where", ["Where", "live"])):
        search.fill(wanted)
        expect(listed(page)).to_have_count(1)
        expect(listed(page)).to_contain_text("Where do zebras live?")
        expect(listed(page).locator("mark")).to_have_text(marks)
    search.fill("nowhere to be found")
    expect(page.get_by_text("Nothing found.")).to_be_visible()
    search.press("Escape")
    expect(listed(page).filter(has_text="Something else altogether")).to_be_visible()


def test_hits_are_gone_through_with_the_keyboard(server: RunningServer, chat: Chat) -> None:
    page = chat(server)
    for title in ("quince one", "quince two", "quince <i>three</i>"):
        ask(page, title)
        new_chat(page)
    search = page.get_by_label("Search")
    search.fill("quince")
    expect(listed(page)).to_have_count(3)
    expect(page.get_by_text("3 found")).to_have_count(1)
    search.press("ArrowDown")
    expect(listed(page).nth(0).get_by_role("link")).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(listed(page).nth(1).get_by_role("link")).to_be_focused()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    expect(search).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Escape")
    expect(search).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".question")).to_have_text("You asked: quince <i>three</i>")
    search.press("Escape")
    expect(search).to_have_value("")


def test_the_menu_of_a_conversation_is_used_with_the_keyboard(server: RunningServer, chat: Chat) -> None:
    page = chat(server)
    ask(page, "by keyboard")
    page.get_by_role("button", name="Options: by keyboard").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("menuitem", name="Pin")).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(page.get_by_role("menuitem", name="Delete")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("menu")).to_have_count(0)
    expect(page.get_by_role("button", name="Options: by keyboard")).to_be_focused()


def test_pins_folders_and_the_archive_are_the_same_in_every_tab(office: RunningServer, visit: Visit) -> None:
    page = visit(office, name="ada")
    for title in ("important", "for work", "over and done"):
        ask(page, title)
        new_chat(page)
    other = page.context.new_page()
    other.goto(office.url)
    act(page, "important", "Pin")
    into_folder(page, "for work", "工作 <b>")
    act(page, "over and done", "Archive")
    for tab in (page, other):
        expect(group(tab, "Pinned").locator("li")).to_have_text([re.compile("important")])
        expect(group(tab, "工作 <b>").locator("li")).to_have_text([re.compile("for work")])
        expect(listed(tab)).to_have_count(2)
    page.get_by_role("button", name="工作 <b>", exact=True).click()
    expect(listed(page)).to_have_count(1)
    page.reload()
    expect(listed(page)).to_have_count(1)
    page.get_by_role("button", name="工作 <b>", exact=True).click()

    page.locator(".own-button").click()
    page.get_by_role("button", name="Archived").click()
    expect(listed(page)).to_have_text([re.compile("over and done")])
    act(page, "over and done", "Take out of the archive")
    expect(page.get_by_text("Nothing is archived.")).to_be_visible()
    page.get_by_role("button", name="Back to the list").click()
    expect(group(page, "Today").locator("li")).to_have_text([re.compile("over and done")])

    page.get_by_role("button", name="Rename this folder: 工作 <b>").click()
    page.get_by_role("combobox", name="Folder").fill("")
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    act(page, "important", "Unpin")
    expect(group(page, "Today").locator("li")).to_have_count(3)
    expect(listed(other)).to_have_count(3)


def test_what_is_archived_is_found(server: RunningServer, chat: Chat) -> None:
    page = chat(server)
    ask(page, "a dusty persimmon")
    act(page, "a dusty persimmon", "Archive")
    page.get_by_label("Search").fill("persimmon")
    expect(listed(page).locator(".item-tag")).to_have_text(["Archived"])


def test_the_list_is_divided_by_the_readers_days(office: RunningServer, visit: Visit) -> None:
    page = visit(office, name="bob")
    for title, days in (("Long ago", 40), ("Some days ago", 4), ("The day before", 1), ("Just now", 0)):
        ask(page, title)
        earlier = "update conversations set updated_at = datetime(updated_at, ?) where title = ?"
        office.change(earlier, f"-{days} days", title)
        new_chat(page)
    page.reload()
    groups = page.get_by_role("navigation", name="Conversations").locator("section")
    expect(groups).to_have_text(
        [
            re.compile(r"^Today\s*Just now"),
            re.compile(r"^Yesterday\s*The day before"),
            re.compile(r"^Last 7 days\s*Some days ago"),
            re.compile(r"^Older\s*Long ago"),
        ]
    )


def test_nobody_sees_what_is_somebody_elses(office: RunningServer, visit: Visit) -> None:
    page = visit(office, name="cleo")
    ask(page, "A secret of mine")
    expect(page).to_have_url(re.compile(r"/c/\w+$"))
    other = visit(office, page.url.removeprefix(office.url), name="dora")
    expect(other.get_by_role("heading", name="There is no such conversation.")).to_be_visible()
    expect(other.get_by_text("secret")).to_have_count(0)
    other.get_by_label("Search").fill("secret")
    expect(other.get_by_text("Nothing found.")).to_be_visible()


def test_on_a_phone_the_list_is_a_drawer(server: RunningServer, visit: Visit) -> None:
    page = visit(server, viewport={"width": 360, "height": 740})
    ask(page, "From a phone")
    drawer = page.get_by_role("navigation", name="Conversations")
    expect(drawer).not_to_be_visible()
    page.get_by_role("button", name="Open the list of conversations").click()
    expect(drawer).to_be_visible()
    expect(page.get_by_role("button", name="Close")).to_be_focused()
    page.keyboard.press("Escape")
    expect(drawer).not_to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == 360


def test_the_page_speaks_chinese(server: RunningServer, visit: Visit) -> None:
    page = visit(server, locale="zh-CN")
    expect(page.get_by_label("输入消息")).to_be_visible()
    expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
    expect(page.locator("body")).not_to_contain_text(re.compile("Search|New chat|Settings"))


def test_the_model_makes_a_title_when_it_is_idle_unless_a_person_has(visit: Visit) -> None:
    with running_server(max_concurrent_requests=1) as server:
        page = visit(server)
        page.get_by_label("Write a message").fill("Where do they live?\ntitle: Zebras in the wild")
        page.keyboard.press("Enter")
        expect(listed(page)).to_have_text(re.compile("Where do they live?"))
        expect(listed(page)).to_have_text(re.compile("Zebras in the wild"))
        expect(page.get_by_role("heading", name="Zebras in the wild")).to_be_visible()
        assert server.rows("select count(*) from exchanges") == [(1,)], "nobody asked it: it is not in the log"

        new_chat(page)
        page.get_by_label("Write a message").fill("long\ntitle: Not this one")
        page.keyboard.press("Enter")
        expect(page.locator(".answer-text")).to_contain_text("word3")
        act(page, "long", "Rename")
        page.get_by_label("Rename", exact=True).fill("My own title")
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Stop").click()
        ask(page, "and on")
        page.reload()
        expect(page.get_by_role("heading", name="My own title")).to_be_visible()
