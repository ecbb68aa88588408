"""A reviewer's day in a real browser: the keyboard alone, labels, notes, corrections, rerun, export, retention."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Locator, Page, expect

from engine.types import Exchange, Message, Status
from tests.browser.barriers import passes_in_the_dark_on_a_phone_too
from tests.browser.conftest import Visit
from tests.browser.log import audit, write_log
from tests.server import RunningServer, running_server
from tests.ui.exchanges import START, exchange

pytestmark = pytest.mark.browser

TODAY = datetime.now(UTC).replace(hour=0, minute=5)
LOGGED = 6


def _exchanges() -> Iterator[Exchange]:
    after_s = (TODAY - START).total_seconds()
    for n in range(LOGGED):
        asked = (Message("system", "Be kind."), Message("user", f"差旅报销问题 number {n}"))
        one = exchange(f"e{n}", person="ada", conversation_id=f"c{n}", messages=asked, after_s=after_s + n)
        yield replace(one, answer=f"回答 {n}", status=Status.FAILED if n == 1 else Status.DONE)
    old = exchange("old", person="王小明", conversation_id="w", after_s=after_s - timedelta(days=400).total_seconds())
    yield replace(old, answer="ancient pumpernickel")
    yield exchange("erasable", person="王小明", conversation_id="v", after_s=after_s + 99, answer="secret kohlrabi")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    data_dir = tmp_path_factory.mktemp("work") / "data"
    write_log(data_dir, _exchanges())
    with running_server(data_dir) as running:
        yield running


def rows(page: Page) -> Locator:
    return page.locator(".inbox-row")


def opened(page: Page, id: str) -> None:
    """The exchange is there, and what reviewers do with it too."""
    expect(page.locator(f"#turn-{id}")).to_be_visible()
    expect(page.locator(f".inbox[data-open='{id}'] .work-bar[data-id='{id}']")).to_be_visible()


def test_a_days_log_is_finished_with_the_keyboard_alone(server: RunningServer, visit: Visit) -> None:
    page = visit(server, "/review?list=open&person=ada", name="rita")
    expect(rows(page)).to_have_count(LOGGED)
    page.keyboard.press("j")
    for n in reversed(range(LOGGED)):
        opened(page, f"e{n}")
        if n == 4:
            page.keyboard.press("l")
            page.keyboard.type("tone")
            page.keyboard.press("Enter")
            expect(page.locator(".work-row .inbox-tag--label")).to_contain_text("tone")
        if n == 3:
            page.keyboard.press("n")
            page.keyboard.type("Ask finance; see jd/n")
            page.keyboard.press("Enter")
            expect(page.locator(".work-notes")).to_contain_text("Ask finance; see jd/n")
        if n == 2:
            page.keyboard.press("c")
            page.keyboard.press("Control+a")
            page.keyboard.type("Fill in form 7.")
            page.keyboard.press("Control+Enter")
            expect(page.locator(".work-correction")).to_contain_text("Fill in form 7.")
        if n == 1:
            first = page.get_by_label("Assigned to").locator("option").nth(1).inner_text()
            page.keyboard.press("a")
            page.keyboard.press("ArrowDown")
            expect(page.locator("#row-e1")).to_contain_text(first.removeprefix("Assigned to: "))
            page.keyboard.press("Escape")
        page.keyboard.press("d")
        expect(page.locator(f"#row-e{n} .inbox-tick")).to_be_visible()
    assert [target for actor, target, _ in audit(server, "review.done")] == [f"e{n}" for n in reversed(range(LOGGED))]
    assert ("rita", "e4", "tone") in audit(server, "review.label")
    page.reload()
    expect(page.get_by_text("Nothing matches. Try fewer filters.").first).to_be_visible()

    page.keyboard.press("Escape")
    expect(page.locator(".inbox-counts")).to_contain_text(re.compile(r"rita\s*0\s*6"))
    page.get_by_role("button", name="tone").click()
    expect(rows(page)).to_have_count(1)
    expect(page).to_have_url(re.compile(r"/review\?label=tone$"))


def test_keys_do_nothing_while_somebody_composes(server: RunningServer, visit: Visit) -> None:
    page = visit(server, "/review?open=e5", name="rita")
    opened(page, "e5")
    before = audit(server, "review.undone")
    page.evaluate("""() => {
        for (const key of ["d", "j", "l", "n"])
            document.body.dispatchEvent(new KeyboardEvent("keydown", {key, isComposing: true, bubbles: true}));
        document.querySelector(".work-label").dispatchEvent(
            new KeyboardEvent("keydown", {key: "Enter", isComposing: true, bubbles: true}));
    }""")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("done, and on to the next")
    page.keyboard.press("d")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    expect(page.locator(".inbox")).to_have_attribute("data-open", "e5")
    assert audit(server, "review.undone") == before


def test_an_exchange_is_assigned_and_found_by_its_reviewer(server: RunningServer, visit: Visit) -> None:
    page = visit(server, "/review?open=erasable", name="rita")
    opened(page, "erasable")
    page.keyboard.press("a")
    expect(page.get_by_label("Assigned to")).to_be_focused()
    page.get_by_label("Assigned to").select_option(label="Assigned to: other reviewer")
    expect(page.locator("#row-erasable")).to_contain_text("other reviewer")
    other = visit(server, "/review", name="other reviewer")
    other.get_by_role("button", name="Mine").click()
    expect(rows(other)).to_have_count(1)
    expect(other).to_have_url(re.compile(r"\?list=mine$"))


def test_others_like_it_and_what_ran_beside_it_are_found(server: RunningServer, visit: Visit) -> None:
    page = visit(server, "/review?open=e5", name="rita")
    opened(page, "e5")
    page.get_by_role("button", name="What ran at the same time").click()
    expect(page.locator(".work-neighbours li")).to_have_count(LOGGED - 1)
    passes_in_the_dark_on_a_phone_too(page)
    page.get_by_role("button", name="Find others like this").click()
    expect(page).to_have_url(re.compile(r"\?like=e5&open=e5$"))
    expect(rows(page)).to_have_count(LOGGED - 1)
    with page.expect_download() as started:
        page.get_by_role("link", name="JSON lines").click()
    exported = [json.loads(line)["prompt"] for line in started.value.path().read_text(encoding="utf-8").splitlines()]
    assert exported == rows(page).locator(".inbox-prompt").all_text_contents()
    assert audit(server, "review.export")[-1] == ("rita", "jsonl", "like=e5")


def test_chat_lines_hold_the_corrected_answer(server: RunningServer) -> None:
    with server.sign_in("rita") as client:
        answer = client.get("/review/export?format=chat&person=ada&text=报销 number 2")
    (line,) = answer.text.splitlines()
    assert json.loads(line)["messages"][-1] == {"role": "assistant", "content": "Fill in form 7."}
    assert answer.headers["content-disposition"].endswith('.chat.jsonl"')


def test_retention_is_counted_held_and_deleted_and_a_person_erased(server: RunningServer, visit: Visit) -> None:
    page = visit(server, "/review?open=old")
    opened(page, "old")
    page.get_by_role("button", name="Hold").click()
    held = page.get_by_role("region", name="Hold")
    for number, (what, reason) in enumerate({"this exchange": "案件 17", "all of this person": "案件 18"}.items(), 1):
        held.get_by_role("combobox").select_option(label=what)
        page.get_by_label("Reason").fill(reason)
        page.get_by_label("Reason").press("Enter")
        expect(page.get_by_role("button", name=f"Hold ({number})")).to_be_visible()
        expect(held).to_contain_text(reason)

    page.goto(server.url + "/review/retention")
    for reason, what in {"案件 17": "Exchange old", "案件 18": "All of 王小明"}.items():
        expect(page.get_by_role("row").filter(has=page.get_by_text(reason))).to_contain_text(
            re.compile(f"{what}.*admin")
        )
    page.get_by_label("Exchanges").fill("100")
    page.get_by_role("button", name="Show what would be deleted").click()
    expect(page.locator(".plan")).to_contain_text("Exchanges: 0 would be deleted now. 1 are old enough, but held.")
    page.get_by_role("button", name="Release: All of 王小明").click()
    page.get_by_role("button", name="Release: Exchange old").click()
    expect(page.get_by_text("Nothing is held.")).to_be_visible()
    page.get_by_role("button", name="Show what would be deleted").click()
    expect(page.locator(".plan")).to_contain_text("Exchanges: 1 would be deleted now.")
    page.get_by_role("button", name="Save the days and delete now").click()
    expect(page.locator(".plan")).to_contain_text("1 are deleted, with all of their text.")
    assert not in_files(server, "pumpernickel")
    assert audit(server, "retention.run")

    page.evaluate(WATCHING_THE_LIST)
    page.get_by_label("Person").click()
    page.get_by_role("option", name="王小明").click()
    assert len(page.evaluate("listTops")) == 1, "the list moves under the pointer of whoever chooses"
    page.get_by_role("button", name="Count").click()
    expect(page.get_by_text("1 exchanges would be deleted; 0 are held")).to_be_visible()
    with page.expect_download() as started:
        page.get_by_role("link", name="Export their data").click()
    assert "secret kohlrabi" in started.value.path().read_text(encoding="utf-8")
    assert audit(server, "user.export") == [("admin", "王小明", "")]
    page.get_by_role("button", name="Erase").click()
    expect(page.get_by_text("Write the person's name into the second field.")).to_be_visible()
    assert in_files(server, "kohlrabi")
    page.get_by_label("The name again").fill("王小明")
    page.get_by_role("button", name="Erase").click()
    expect(page.get_by_text("1 are deleted, with all of their text.")).to_have_count(2)
    assert not in_files(server, "kohlrabi")


def test_only_administrators_hold_and_release(server: RunningServer, visit: Visit) -> None:
    server.change("insert into holds values ('exchange', 'e1', 'a lawsuit', 'admin', '2026-05-04 09:00:00.000000')")
    page = visit(server, "/review?open=e0", name="rita")
    opened(page, "e0")
    expect(page.get_by_role("button", name="Hold")).to_have_count(0)
    page.evaluate(SENDING, ["hold", "e0"])
    page.evaluate(SENDING, ["release", "e1"])
    page.get_by_role("button", name="What ran at the same time").click()  # comes after them on the same socket
    expect(page.locator(".work-neighbours li").first).to_be_visible()
    assert server.rows("select target from holds") == [("e1",)]
    server.change("delete from holds")


# Notes where a list of options stands, frame by frame, in `listTops`.
WATCHING_THE_LIST = """() => {
    window.listTops = [];
    const look = () => {
        const top = document.querySelector(".q-menu")?.style.top;
        if (top && !listTops.includes(top)) listTops.push(top);
        requestAnimationFrame(look);
    };
    look();
}"""

# To be run in a reviewer's page: what an administrator's sends to hold an exchange, or to release it.
SENDING = """([type, exchange]) => {
    const isWork = ([, element]) => element.events.some((event) => event.type === type);
    const [id, work] = Object.entries(mounted_app.elements).find(isWork);
    const listener_id = work.events.find((event) => event.type === type).listener_id;
    const args = [JSON.stringify({ id: exchange, kind: "exchange", reason: "mine" })];
    window.socket.emit("event", { id: Number(id), client_id: window.clientId, listener_id, args });
}"""


def in_files(server: RunningServer, text: str) -> bool:
    return any(text.encode() in file.read_bytes() for file in server.data_dir.glob("qdesk.db*"))
