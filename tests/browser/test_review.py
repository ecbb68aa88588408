"""The review page in a real browser: finding, opening, links, keyboard, phone, and who may not."""

import csv
import io
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from engine.types import Exchange, Message, Role, Status
from tests.browser.conftest import Visit
from tests.browser.log import audit, write_log
from tests.server import PASSWORD, RunningServer, running_server
from tests.ui.exchanges import START, exchange

pytestmark = pytest.mark.browser

LONG_AGO = datetime(2026, 3, 1, 12, tzinfo=UTC)
PAGED = 70  # exchanges that 王小明 asked long ago


def _said(*texts: str) -> tuple[Message, ...]:
    roles: tuple[Role, Role] = ("user", "assistant")
    return (Message("system", "Be kind."), *(Message(roles[i % 2], text) for i, text in enumerate(texts)))


def _exchanges() -> Iterator[Exchange]:
    """A conversation that was asked again on the way, a failure, a program's request, and a long tail."""

    def ada(id: str, parent: str | None, *said: str, answer: str, after_s: float) -> Exchange:
        return exchange(id, parent, person="ada", messages=_said(*said), answer=answer, after_s=after_s)

    yield ada("first", None, "What is a queue?", answer="A **line** of people.", after_s=0)
    yield ada("old", "first", "a", "b", "And a stack?", answer="A pile.", after_s=60)
    yield ada("again", "first", "a", "b", "And a stack?", answer="Plates.", after_s=90)
    yield ada("last", "again", "a", "b", "c", "d", "Thanks", answer="Welcome.", after_s=120)
    broken = exchange(
        "broken", person="王小明", conversation_id="w", messages=_said("请问报销流程是什么？"), after_s=200
    )
    yield replace(broken, answer="先填写", status=Status.FAILED, finish_reason=None, error="The engine failed.")
    program = exchange("program", person=None, conversation_id=None, source="api", answer="=2", after_s=300)
    brought = _said("one", "two **bold**", "=1+1")
    yield replace(program, messages=brought, end_user="kim@shop", request_metadata=(("ticket", "4711"),))
    for n in range(PAGED):
        since_s = (LONG_AGO - START).total_seconds() - 60 * n
        yield exchange(
            f"tail-{n:03}",
            person="王小明",
            conversation_id=f"t{n}",
            messages=_said(f"tail question {n}"),
            after_s=since_s,
        )


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    data_dir = tmp_path_factory.mktemp("review") / "data"
    write_log(data_dir, _exchanges())
    with running_server(data_dir) as running:
        yield running


def rows(page: Page) -> Locator:
    return page.locator(".inbox-row")


def choose(page: Page, label: str, option: str) -> None:
    page.get_by_label(label, exact=True).select_option(label=option)


def look_for(page: Page, text: str) -> None:
    page.get_by_role("searchbox").fill(text)
    page.get_by_role("searchbox").press("Enter")


def clear(page: Page) -> None:
    page.get_by_role("button", name="Clear").click()
    expect(rows(page)).to_have_count(50)


def test_what_was_searched_for_is_marked_in_the_list_and_in_the_exchange(server: RunningServer, visit: Visit) -> None:
    marked = "[...CSS.highlights.get('found')].map(range => range.toString())"
    page = visit(server, "/review?text=报销", name="rita")
    expect(rows(page)).to_have_count(1)
    page.wait_for_function(f"{marked}.join() === '报销'")
    rows(page).click()
    page.wait_for_function(f"{marked}.join() === '报销,报销'")
    page.get_by_role("button", name="Show the exact messages").click()
    page.wait_for_function(f"{marked}.join() === '报销,报销,报销'")
    page.keyboard.press("Escape")
    look_for(page, "LINE people")
    page.wait_for_function(f"{marked}.map(word => word.toLowerCase()).join() === 'line,people'")
    look_for(page, "")
    page.wait_for_function("CSS.highlights.get('found').size === 0")


def test_exchanges_are_found_by_person_by_status_and_by_two_chinese_characters(
    server: RunningServer, visit: Visit
) -> None:
    page = visit(server, "/review", name="rita")
    choose(page, "Person", "The fixed key")
    expect(rows(page)).to_have_count(1)
    expect(rows(page)).to_contain_text("=1+1")
    expect(page).to_have_url(re.compile(r"\?person=%28fixed\+key%29$"))
    with page.expect_download() as started:
        page.get_by_role("link", name="JSON lines").click()
    exported = started.value.path().read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["prompt"] for line in exported] == ["=1+1"]

    clear(page)
    choose(page, "Status", "Failed")
    expect(rows(page)).to_have_count(1)
    rows(page).click()
    expect(page.locator(".turn-error")).to_have_text("The engine failed.")
    expect(page.locator(".answer-text")).to_have_text("先填写")

    clear(page)
    look_for(page, "报销")
    expect(rows(page)).to_have_count(1)
    look_for(page, "没有的词语")
    expect(page.get_by_text("Nothing matches. Try fewer filters.").first).to_be_visible()


def test_only_the_newest_question_counts_in_whatever_order_they_come(server: RunningServer, visit: Visit) -> None:
    page = visit(server, "/review", name="rita")
    expect(rows(page).nth(1)).to_be_visible()
    page.evaluate(
        """() => {
            const emit = window.socket.emit, kept = [];
            window.socket.emit = (...message) => kept.unshift(message);
            window.let_go = () => kept.forEach((message) => emit(...message));  // the newest first
            history.replaceState(null, "", "?status=stopped");
            window.dispatchEvent(new PopStateEvent("popstate"));  // goes back to another list
        }"""
    )
    choose(page, "Status", "Failed")
    page.evaluate("window.let_go()")
    expect(rows(page)).to_have_count(1)


def test_the_conversation_is_shown_as_the_person_saw_it(server: RunningServer, visit: Visit) -> None:
    page = visit(server, "/review?open=again", name="rita")
    turns = page.locator(".turn")
    expect(turns.locator(".turn-prompt")).to_have_text(["What is a queue?", "And a stack?", "Thanks"])
    expect(turns.locator(".answer-text")).to_have_text(["A line of people.", "Plates.", "Welcome."])
    expect(page.locator(".turn[aria-current]")).to_contain_text("Plates.")
    expect(turns.nth(0).locator("strong")).to_have_text("line")

    page.get_by_role("button", name="Older version").click()
    expect(turns.locator(".answer-text")).to_have_text(["A line of people.", "A pile."])
    expect(page).to_have_url(re.compile(r"open=old$"))


def test_the_exact_messages_are_shown_on_demand_or_said_to_be_unreadable(server: RunningServer, visit: Visit) -> None:
    page = visit(server, "/review?open=last", name="rita")
    show = page.locator("#turn-last").get_by_role("button", name="Show the exact messages")
    expect(show).to_be_visible()
    expect(page.locator(".turn-sent")).to_have_count(0)
    ((messages,),) = server.rows("select messages from exchanges where id = 'last'")
    server.change("update exchanges set messages = 'damaged' where id = 'last'")
    show.click()
    expect(page.locator(".turn-why")).to_have_text("The log could not be read. Try again in a moment.")
    server.change("update exchanges set messages = ? where id = 'last'", messages)
    show.click()
    expect(page.locator(".turn-sent pre")).to_have_text(["Be kind.", "a", "b", "c", "d", "Thanks"])
    expect(page.locator(".turn-why")).to_have_text(
        "The model that answered runs no more, and its template is not here."
    )
    expect(show).to_have_count(0)


def test_a_programs_request_shows_what_it_brought_along(server: RunningServer, visit: Visit) -> None:
    page = visit(server, "/review?source=api&open=program", name="rita")
    expect(page.locator(".turn--earlier")).to_have_count(3)
    expect(page.locator(".turn--earlier strong")).to_have_text("bold")
    expect(page.locator(".inbox-pane").get_by_role("heading")).to_have_text("The fixed key")
    expect(page.get_by_role("heading", level=1)).to_have_text("Review")
    expect(page.locator("dl > div", has_text="End user").locator("dd")).to_have_text("kim@shop")
    expect(page.locator("dl > div", has_text="ticket").locator("dd")).to_have_text("4711")


def test_a_link_opens_the_same_list(server: RunningServer, visit: Visit) -> None:
    page = visit(server, "/review", name="rita")
    choose(page, "Person", "王小明")
    look_for(page, "question 42")
    expect(rows(page)).to_have_count(1)
    rows(page).click()
    expect(page.locator(".turn-prompt")).to_have_text("tail question 42")

    page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")  # as over plain http
    page.evaluate("addEventListener('copy', () => (window.copied = getSelection().toString()))")
    page.get_by_role("button", name="Copy link").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    other = visit(server, page.evaluate("window.copied").removeprefix(server.url), name="admin")
    expect(rows(other)).to_have_count(1)
    expect(other.get_by_role("searchbox")).to_have_value("question 42")
    expect(other.get_by_label("Person")).to_have_value("王小明")
    expect(other.locator(".turn-prompt")).to_have_text("tail question 42")
    other.get_by_role("button", name="Clear").click()
    expect(other.get_by_role("searchbox")).to_have_value("")
    expect(other).to_have_url(re.compile(r"/review\?open=tail-042$"))


def test_a_link_survives_signing_in(server: RunningServer, chromium: Browser) -> None:
    page = chromium.new_page()
    page.goto(f"{server.url}/review?text=question+42&open=tail-042")
    page.get_by_label("Name").fill("rita")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator(".turn-prompt")).to_have_text("tail question 42")
    expect(page).to_have_url(re.compile(r"/review\?text=question\+42&open=tail-042$"))
    page.context.close()


def test_a_link_that_makes_no_sense_says_so(server: RunningServer, visit: Visit) -> None:
    page = visit(server, "/review?status=broken&text=zzz&open=nothing", name="rita")
    expect(page.locator(".inbox-notice")).to_have_text("Part of the address was not understood and is left out: status")
    expect(page.locator(".inbox-pane")).to_have_text("This exchange is not in the log.")
    page.goto(server.url + "/review?list=down&rating=up")
    expect(page.locator(".inbox-notice")).to_have_text("Part of the address was not understood and is left out: rating")
    page.goto(server.url + "/review?person=nobody")
    expect(page.locator(".inbox-notice")).to_have_text("Nobody here is called nobody.")


def test_days_are_the_readers_days(server: RunningServer, visit: Visit) -> None:
    before_midnight = visit(server, "/review?from=2026-03-01&to=2026-03-01", name="rita", timezone_id="Asia/Shanghai")
    expect(rows(before_midnight)).to_have_count(50)
    expect(before_midnight.get_by_label("From", exact=True)).to_have_value("2026-03-01")
    # In Kiritimati, fourteen hours ahead, it was the second of March already.
    after_midnight = visit(
        server, "/review?from=2026-03-01&to=2026-03-01", name="rita", timezone_id="Pacific/Kiritimati"
    )
    expect(after_midnight.get_by_text("Nothing matches.").first).to_be_visible()


def test_the_keyboard_is_enough_and_the_list_goes_on_to_its_end(server: RunningServer, visit: Visit) -> None:
    page = visit(server, "/review?text=tail+question", name="rita")
    expect(rows(page)).to_have_count(50)
    page.keyboard.press("j")
    expect(page.locator(".turn-prompt")).to_have_text("tail question 0")
    page.keyboard.press("j")
    expect(page.locator(".turn-prompt")).to_have_text("tail question 1")
    page.keyboard.press("k")
    expect(page.locator(".turn-prompt")).to_have_text("tail question 0")
    page.keyboard.press("Escape")
    expect(page.locator(".turn")).to_have_count(0)
    expect(page).to_have_url(re.compile(r"/review\?text=tail\+question$"))

    page.locator(".inbox-list").evaluate("list => list.scrollTo(0, list.scrollHeight)")
    expect(page.get_by_text("That is all.")).to_be_visible()
    expect(rows(page)).to_have_count(PAGED)
    assert rows(page).locator(".inbox-prompt").all_text_contents() == [f"tail question {n}" for n in range(PAGED)]
    page.keyboard.press("/")
    page.keyboard.type("j")  # a letter in the search box is a letter
    expect(page.get_by_role("searchbox")).to_have_value("tail questionj")


def test_on_a_phone_list_and_exchange_come_one_after_the_other(server: RunningServer, visit: Visit) -> None:
    page = visit(server, "/review?text=tail+question", name="rita", viewport={"width": 360, "height": 740})
    expect(page.locator(".inbox-pane")).to_be_hidden()
    rows(page).nth(1).click()
    expect(page.locator(".turn-prompt")).to_have_text("tail question 1")
    expect(rows(page).first).to_be_hidden()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.go_back()
    expect(rows(page).nth(1)).to_be_visible()
    rows(page).nth(2).click()
    page.get_by_role("button", name="Back").click()
    expect(rows(page).nth(2)).to_be_visible()
    expect(page).to_have_url(re.compile(r"/review\?text=tail\+question$"))


def test_the_page_speaks_chinese(server: RunningServer, visit: Visit) -> None:
    page = visit(server, "/review?open=broken", name="rita", locale="zh-CN")
    expect(page.get_by_role("searchbox")).to_have_attribute("placeholder", "搜索提问和回答")
    expect(page.locator(".turn-groups")).to_contain_text("排队时间")
    expect(page.locator("#row-broken .inbox-status")).to_have_text("失败")


def test_the_list_is_exported_as_filtered(server: RunningServer) -> None:
    with server.sign_in("rita") as client:
        lines = client.get("/review/export?format=jsonl&person=王小明&text=tail+question")
        table = client.get("/review/export?format=csv&source=api")
        assert client.get("/review/export?format=xlsx").status_code == 400
        assert client.get("/review/export?format=csv&status=broken").status_code == 400
        assert client.get("/review/export?format=csv&list=down&rating=up").status_code == 400
    asked = [json.loads(line)["prompt"] for line in lines.text.splitlines()]
    assert asked == [f"tail question {n}" for n in range(PAGED)]
    assert table.content.startswith(b"\xef\xbb\xbf")
    head, line = csv.reader(io.StringIO(table.content.decode("utf-8-sig"), newline=""))
    read = dict(zip(head, line, strict=True))
    assert (read["prompt"], read["answer"], read["person"]) == ("'=1+1", "'=2", "")
    assert ("rita", "csv", "source=api") in audit(server, "review.export")
