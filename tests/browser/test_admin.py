"""The administrators' pages in a real browser, beside people who ask."""

import re
from datetime import datetime, timedelta

import pytest
from playwright.sync_api import expect

from tests.browser.admin import ask, audit, button, cancel, confirm, one_answers_and_one_waits, row
from tests.browser.barriers import passes, passes_in_the_dark_on_a_phone_too
from tests.browser.conftest import Chat, Visit
from tests.browser.moments import CHINESE, ENGLISH, tells_the_readers_time
from tests.server import PASSWORD, RunningServer

pytestmark = pytest.mark.browser


def test_requests_are_seen_opened_and_cancelled_as_they_come_and_go(
    office: RunningServer, visit: Visit, chat: Chat
) -> None:
    admin = visit(office, "/admin", reduced_motion="reduce")
    ada, bob = chat(office, name="ada"), chat(office, name="bob")
    expect(admin.get_by_text("Nothing is running or waiting.")).to_be_visible()
    ask(ada, "long <b>tale</b>")
    expect(row(admin, "ada")).to_contain_text("answering")
    ask(bob, "hello")
    expect(row(admin, "bob")).to_contain_text("waiting, place 1")
    expect(admin.get_by_role("img", name="1 running, 1 waiting")).to_be_visible()

    assert "tale" not in admin.content()
    button(admin, "Prompt: ada").click()
    expect(admin.get_by_role("dialog")).to_contain_text("long <b>tale</b>")
    passes(admin)
    button(admin, "Close").click()
    expect(admin.get_by_role("dialog")).not_to_be_visible()

    cells = row(admin, "ada").locator("td")
    expect(cells.nth(1)).to_have_text("page")
    expect(cells.nth(3)).to_have_text(re.compile(r"^\d+ s$"))  # its age
    expect(cells.nth(4)).to_have_text(re.compile(r"^[1-9][\d,]*$"))  # tokens so far
    expect(cells.nth(5)).to_have_text(re.compile(r"^[1-9][\d,]*\.\d$"))  # and a second
    expect(cells.nth(6)).to_have_text("1")  # page that watches

    button(admin, "Cancel: ada").click()
    button(admin, "Cancel the request").click()
    expect(admin.get_by_text("Please give a reason.")).to_be_visible()
    passes_in_the_dark_on_a_phone_too(admin)
    expect(row(admin, "ada")).to_contain_text("answering")
    confirm(admin, "Cancel the request", "=too long")
    expect(ada.locator(".turn").last).to_contain_text("An administrator ended this answer.")
    expect(bob.locator(".turn").last).to_contain_text("You said: hello")
    expect(admin.get_by_text("Nothing is running or waiting.")).to_be_visible()
    [opened], [cancelled] = audit(office, "request.open"), audit(office, "request.cancel")
    assert opened == cancelled
    assert opened[0] == "admin"
    assert office.rows("select detail from audit where action = 'request.cancel'") == [("ada: =too long",)]


def test_a_waiting_request_is_moved_to_the_front(office: RunningServer, visit: Visit, chat: Chat) -> None:
    admin = visit(office, "/admin")
    ada, bob, eve = (chat(office, name=name) for name in ("ada", "bob", "eve"))
    ask(ada, "long one")
    expect(row(admin, "ada")).to_contain_text("answering")
    ask(bob, "hello from bob")
    expect(row(admin, "bob")).to_contain_text("waiting, place 1")
    ask(eve, "hello from eve")
    expect(row(admin, "eve")).to_contain_text("waiting, place 2")
    button(admin, "To the front: eve").click()
    reason = admin.get_by_role("dialog").get_by_label("Reason")
    reason.fill("a customer waits")
    reason.press("Enter")
    expect(row(admin, "eve")).to_contain_text("waiting, place 1")
    expect(row(admin, "bob")).to_contain_text("waiting, place 2")
    [(actor, detail)] = office.rows("select actor, detail from audit where action = 'request.front'")
    assert (actor, detail) == ("admin", "eve: a customer waits")
    cancel(admin, "ada")
    expect(bob.locator(".turn").last).to_contain_text("You said: hello from bob")


def test_how_far_a_prompt_is_read_is_seen(office: RunningServer, visit: Visit, chat: Chat) -> None:
    admin, ada = visit(office, "/admin"), chat(office, name="ada")
    ask(ada, "read slowly " + "word " * 600)
    expect(row(admin, "ada")).to_contain_text(re.compile(r"reading the prompt, \d+% of \d+ tokens"))
    expect(row(admin, "ada").locator("td").nth(7)).to_have_text("1")  # slot
    expect(row(admin, "ada").locator("td").nth(8)).to_have_text("2")  # tokens that were in the cache
    cancel(admin, "ada")
    expect(admin.get_by_text("Nothing is running or waiting.")).to_be_visible()


def test_a_higher_limit_is_previewed_lets_a_waiting_request_start_and_is_kept(
    office: RunningServer, visit: Visit, chat: Chat
) -> None:
    admin, steer = visit(office, "/admin"), visit(office, "/admin/steer")
    ada, bob = chat(office, name="ada"), chat(office, name="bob")
    one_answers_and_one_waits(admin, ada, bob, "long two")

    running = steer.get_by_label("Running at once")
    running.fill("0")
    button(steer, "Change the limits…").click()
    expect(steer.get_by_text("Running at once: please give a whole number from 1 to 256.")).to_be_visible()
    running.fill("2")
    others = {"Waiting at most": "40", "Of one person": "4", "Tokens of one answer": "3000"}
    for name, value in others.items():
        steer.get_by_label(name).fill(value)
    button(steer, "Change the limits…").click()
    expect(steer.get_by_role("dialog", name="Change the limits?")).to_contain_text("Running at once 1 → 2")
    expect(steer.get_by_role("dialog")).to_contain_text("Starts at once: bob.")
    expect(row(admin, "bob")).to_contain_text("waiting")  # a preview changes nothing
    button(steer, "Apply").click()
    expect(row(admin, "bob")).to_contain_text("answering")
    for person in ("ada", "bob"):
        cancel(admin, person)
    expect(admin.get_by_text("Nothing is running or waiting.")).to_be_visible()

    steer.reload()
    expect(steer.get_by_label("Running at once")).to_have_value("2")
    for name, value in others.items():
        expect(steer.get_by_label(name)).to_have_value(value)
    button(steer, "As in the settings…").click()
    button(steer, "Apply").click()
    expect(steer.get_by_label("Running at once")).to_have_value("1")
    assert [actor for actor, _ in audit(office, "limits.change") + audit(office, "limits.reset")] == ["admin", "admin"]


def test_a_new_account_signs_in_and_a_disabled_one_is_out_at_once(office: RunningServer, visit: Visit) -> None:
    admin = visit(office, "/admin/people")
    admin.get_by_label("Name", exact=True).fill("<i>dora</i>")
    admin.get_by_label("Password", exact=True).fill("short")
    button(admin, "Create the account").click()
    expect(admin.get_by_text("A password has 8 to 200 characters.")).to_be_visible()
    admin.get_by_label("Password", exact=True).fill(PASSWORD)
    button(admin, "Create the account").click()
    expect(row(admin, "<i>dora</i>")).to_contain_text("active")

    dora = visit(office, name="<i>dora</i>")
    ask(dora, "long")
    watching = visit(office, "/admin")
    expect(row(watching, "<i>dora</i>")).to_contain_text("answering")
    button(admin, "Disable: <i>dora</i>").click()
    expect(dora).to_have_url(re.compile("/login.ended=disabled&next=%2Fc%2F"))
    expect(watching.get_by_text("Nothing is running or waiting.")).to_be_visible()
    expect(row(admin, "<i>dora</i>")).to_contain_text("disabled")
    dora.goto(office.url)
    expect(dora).to_have_url(office.url + "/login?ended=signed-out")

    button(admin, "Enable: <i>dora</i>").click()
    expect(row(admin, "<i>dora</i>")).to_contain_text("active")
    for action in ("user.create", "user.disable", "user.enable"):
        assert audit(office, action) == [("admin", "<i>dora</i>")]


def test_a_role_and_a_password_are_changed(office: RunningServer, visit: Visit) -> None:
    admin, eve = visit(office, "/admin/people"), visit(office, name="eve")
    admin.get_by_label("Role: eve").select_option("reviewer")
    expect(admin.get_by_label("Role: eve")).to_have_value("reviewer")
    eve.goto(office.url + "/account")
    expect(eve.get_by_role("link", name="Review")).to_be_visible()
    admin.get_by_label("Role: eve").select_option("staff")
    expect(admin.get_by_label("Role: eve")).to_have_value("staff")

    button(admin, "New password: eve").click()
    admin.get_by_role("dialog").get_by_label("New password").fill("another password")
    button(admin, "Set the password").click()
    expect(eve).to_have_url(office.url + "/login?ended=signed-out&next=%2Faccount")
    with office.sign_in("eve", "another password") as browser:
        assert browser.get("/account").status_code == 200
    assert audit(office, "user.role") == [("admin", "eve")] * 2
    assert audit(office, "user.password") == [("admin", "eve")]


@pytest.mark.parametrize("way", ["disable", "demote"])
def test_the_last_administrator_stays(server: RunningServer, visit: Visit, way: str) -> None:
    page = visit(server, "/admin/people")
    if way == "disable":
        button(page, "Disable: admin").click()
    else:
        page.get_by_label("Role: admin").select_option("staff")
    expect(page.get_by_text("That is the last administrator.")).to_be_visible()
    expect(page.get_by_label("Role: admin")).to_have_value("admin")
    expect(row(page, "admin")).to_contain_text("active")


def test_the_audit_trail_is_read_by_kind_and_by_person(office: RunningServer, visit: Visit) -> None:
    people = visit(office, "/admin/people", name="chief")
    people.get_by_label("Role: rita").select_option("reviewer")
    page = visit(office, "/admin/audit", timezone_id="America/Bogota")
    tells_the_readers_time(page.locator("td time").first, "America/Bogota", ENGLISH)
    entry = page.get_by_role("row").filter(has=page.get_by_role("cell", name="rita", exact=True)).first
    expect(entry).to_contain_text("changed a role")
    expect(entry).to_contain_text("Reviewer → Reviewer")
    page.get_by_label("Who").fill("nobody")
    expect(page.get_by_text("Nothing found.")).to_be_visible()
    page.get_by_label("Who").fill("chief")
    expect(page.locator("tbody tr")).to_have_count(1)
    today = datetime.now()  # the server's days, which are this machine's
    for field, days, found in (("From", 1, 0), ("From", 0, 1), ("To", -1, 0), ("To", 0, 1)):
        page.get_by_label(field).fill(f"{today + timedelta(days=days):%Y-%m-%d}")
        expect(page.get_by_text("Nothing found.")).to_have_count(1 - found)
        expect(page.locator("tbody").get_by_text("chief", exact=True)).to_have_count(found)
    page.get_by_label("What").click()
    page.get_by_role("option", name="Limits").click()
    expect(page.get_by_text("Nothing found.")).to_be_visible()


def test_a_socket_of_somebody_else_cannot_press_an_administrators_buttons(
    office: RunningServer, visit: Visit, chat: Chat
) -> None:
    admin, ada, bob = visit(office, "/admin"), chat(office, name="ada"), chat(office, name="bob")
    ask(ada, "long")
    expect(row(admin, "ada")).to_contain_text("answering")
    bob.wait_for_function("window.socket?.connected")
    stolen = admin.evaluate("window.clientId")
    sent = admin.evaluate(
        """() => new Promise(done => {
            const emit = window.socket.emit;
            window.socket.emit = (...message) => { if (message[0] === 'event') done(message[1]); };
            [...document.querySelectorAll('button')].find(b => b.ariaLabel === 'Prompt: ada').click();
            setTimeout(() => { window.socket.emit = emit; });
        })"""
    )
    opened = audit(office, "request.open")
    assert sent["client_id"] == stolen
    bob.evaluate("message => window.socket.emit('event', message)", sent)
    bob.evaluate("message => window.socket.emit('event', {...message, client_id: window.clientId})", sent)
    ask(bob, "hello")  # comes after them on the same socket
    expect(row(admin, "bob")).to_contain_text("waiting")
    assert audit(office, "request.open") == opened
    expect(admin.get_by_role("dialog")).to_have_count(0)
    cancel(admin, "ada")
    expect(bob.locator(".turn").last).to_contain_text("You said: hello")


def test_who_is_no_administrator_any_more_is_led_away(office: RunningServer, visit: Visit) -> None:
    admin, people = visit(office, "/admin/people"), visit(office, "/admin/people", name="chief")
    overview = visit(office, "/admin", name="chief")
    admin.get_by_label("Role: chief").select_option("staff")
    for page in (overview, people):
        expect(page).to_have_url(office.url + "/")
    admin.get_by_label("Role: chief").select_option("admin")
    expect(admin.get_by_label("Role: chief")).to_have_value("admin")


@pytest.mark.parametrize(
    ("path", "chinese", "english"),
    [
        ("/admin", "运行中", ("Running now", "Waiting now", "Machine", "Queue time", "Answering", "Slots")),
        ("/admin/steer", "限额", ("Limits", "Intake", "Pause", "Banner on every page", "Level")),
        ("/admin/history", "趋势", ("Over time", "Throughput", "Queue time", "median", "Hour")),
        ("/admin/model", "可加载的模型", ("Model", "Listed models", "Load again…", "Loaded in", "State")),
        ("/admin/people", "邀请", ("People", "Last seen", "New account", "Invite by link", "API keys")),
    ],
)
def test_in_chinese_nothing_stays_english(
    office: RunningServer, visit: Visit, path: str, chinese: str, english: tuple[str, ...]
) -> None:
    page = visit(office, path, locale="zh-CN", timezone_id="Asia/Shanghai")
    expect(page.get_by_text(chinese).first).to_be_visible()
    for text in (*english, "There is no NVIDIA driver on this machine.", "A script plays the model."):
        expect(page.get_by_text(text, exact=True)).to_have_count(0)
    if path == "/admin/people":
        tells_the_readers_time(page.locator("td time").first, "Asia/Shanghai", CHINESE)
