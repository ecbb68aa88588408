"""What is a person's own on the account page: defaults, templates, sessions, data, and who has read it."""

import json
import re
from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.browser.barriers import passes, passes_in_the_dark_on_a_phone_too
from tests.browser.conftest import Visit
from tests.browser.moments import ENGLISH, tells_the_readers_time
from tests.server import RunningServer, bearer, eventually, key_of, running_server
from tests.ui.api.test_running import running_long

pytestmark = pytest.mark.browser

PEOPLE = {"ada": "staff", "bob": "staff", "eve": "staff", "kim": "staff", "rita": "reviewer"}


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with running_server(accounts=PEOPLE) as running:  # type: ignore[arg-type]  # a dict of roles
        yield running


def ask(page: Page, question: str) -> None:
    page.get_by_label("Write a message").fill(question)
    page.get_by_label("Write a message").press("Enter")
    expect(page.locator(".turn").last.get_by_role("button", name="Regenerate")).to_be_visible()


def asked_by(server: RunningServer, name: str) -> list[tuple[str, str]]:
    sql = "select prompt, answer from exchanges where person = (select id from users where name = ?) order by number"
    return [(str(prompt), str(answer)) for prompt, answer in server.rows(sql, name)]


def test_new_conversations_begin_with_what_was_set_on_the_account_page(server: RunningServer, visit: Visit) -> None:
    page = visit(server, "/account", name="ada")
    page.get_by_label("Temperature").fill("3")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Temperature goes from 0 to 2")).to_be_visible()
    page.get_by_label("Temperature").fill("0.1")
    page.get_by_label("System prompt").fill("Answer in rhymes.")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Saved. It holds for new conversations.")).to_be_visible()

    page.goto(server.url)
    page.get_by_role("button", name="Settings of this conversation").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("System prompt")).to_have_value("Answer in rhymes.")
    expect(dialog.get_by_label("Temperature")).to_have_value("0.1")
    dialog.get_by_role("button", name="Cancel").click()
    ask(page, "about the defaults")
    ((messages, sampling),) = server.rows(
        "select messages, sampling from exchanges where prompt = 'about the defaults'"
    )
    assert json.loads(messages)[0] == {"role": "system", "content": "Answer in rhymes."}
    assert json.loads(sampling)["temperature"] == 0.1


def make_template(page: Page, name: str, text: str, *, which: int = 0) -> None:
    page.get_by_label("Name of the template").nth(which).fill(name)
    page.get_by_label("Text", exact=True).nth(which).fill(text)
    page.get_by_role("button", name="Save the template").nth(which).click()
    expect(page.locator(".row").filter(has_text=name)).to_be_visible()


def test_templates_are_made_changed_and_used_from_a_slash(server: RunningServer, visit: Visit) -> None:
    admin = visit(server, "/account")
    make_template(admin, "Summarise", "Summarise in {{number}} points:", which=1)
    make_template(admin, "Gone", "Only for a moment.", which=1)
    admin.get_by_role("button", name="Delete: Gone").click()
    expect(admin.locator(".row").filter(has_text="Gone")).to_have_count(0)
    assert server.rows("select actor, action, target from audit where action like 'template.%' order by id") == [
        ("admin", "template.share", "Summarise"),
        ("admin", "template.share", "Gone"),
        ("admin", "template.unshare", "Gone"),
    ]
    page = visit(server, "/account", name="bob", reduced_motion="reduce")
    expect(page.get_by_text("Shared prompt templates")).to_have_count(0)
    make_template(page, "Translate", "Translate into {{language}}, {{tone}} in tone:")
    make_template(page, "<b>Draft</b>", "Write a draft.")
    passes(page)
    page.get_by_role("button", name="Change: <b>Draft</b>").click()
    expect(page.get_by_label("Text", exact=True)).to_have_value("Write a draft.")
    page.get_by_label("Text", exact=True).fill("Write a short draft.")
    page.get_by_role("button", name="Save the template").click()
    expect(page.locator(".row").filter(has_text="Write a short draft.")).to_be_visible()

    page.goto(server.url)
    message = page.get_by_label("Write a message")
    message.press("/")
    options = page.get_by_role("option")
    expect(options).to_have_count(3)
    expect(options.first).to_contain_text("<b>Draft</b>")
    message.press("ArrowDown")
    expect(message).to_have_attribute("aria-activedescendant", "template-1")
    expect(options.nth(1)).to_contain_text("Summarise")
    expect(options.nth(1)).to_contain_text("shared")
    message.press("Escape")
    expect(options.first).not_to_be_visible()
    expect(message).to_have_value("/")

    message.fill("")
    message.press("/")
    message.press_sequentially("trans")
    expect(page.locator(".templates li:visible")).to_have_count(1)
    message.press("Enter")
    expect(message).to_have_value("Translate into {{language}}, {{tone}} in tone:")
    page.wait_for_function("document.activeElement.selectionStart === 15 && document.activeElement.selectionEnd === 27")
    page.keyboard.type("Chinese")
    page.keyboard.press("Tab")
    page.keyboard.type("friendly")
    expect(message).to_have_value("Translate into Chinese, friendly in tone:")
    message.fill("/no such template")
    message.press("Enter")
    expect(page.locator(".turn .answer-text")).to_have_text("You said: /no such template")


def test_a_template_that_is_deleted_is_offered_no_more(server: RunningServer, visit: Visit) -> None:
    page = visit(server, "/account", name="rita")
    make_template(page, "Only for a moment", "text")
    page.get_by_role("button", name="Delete: Only for a moment").click()
    expect(page.locator(".row").filter(has_text="Only for a moment")).to_have_count(0)
    assert server.rows("select * from templates where name = 'Only for a moment'") == []


def test_all_other_sessions_are_ended_and_this_one_stays(server: RunningServer, visit: Visit) -> None:
    firefox = "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0"
    page = visit(server, "/account", name="eve")
    with server.sign_in("eve", **{"User-Agent": firefox}) as elsewhere:
        page.reload()
        expect(page.locator(".row").filter(has_text="Firefox on Windows")).to_be_visible()
        page.get_by_role("button", name="Sign out everywhere else").click()
        expect(page.locator(".row").filter(has_text="Firefox on Windows")).to_have_count(0)
        expect(page.get_by_text("here, now")).to_be_visible()
        assert elsewhere.get("/account").status_code == 303


def test_ones_own_data_is_exported_without_secrets_and_without_anybody_elses(
    server: RunningServer, visit: Visit
) -> None:
    page = visit(server, name="eve")
    ask(page, "rated by eve")
    page.get_by_role("button", name="Good answer").click()
    page.keyboard.press("Escape")
    eventually(lambda: len(server.rows("select * from feedback")) == 1)
    for name in ("eve", "ada"):
        body = {"messages": [{"role": "user", "content": f"asked by {name}'s program"}]}
        httpx.post(server.url + "/v1/chat/completions", json=body, headers=bearer(key_of(name)), timeout=30)
    with server.sign_in("eve") as browser:
        exported = browser.get("/account/export")
    lines = [json.loads(line) for line in exported.text.splitlines()]
    by_type = {line["type"]: line for line in lines}
    assert set(by_type) == {"account", "session", "api_key", "rating", "request"}
    assert by_type["account"]["name"] == "eve"
    assert by_type["rating"]["rating"] == 1
    assert by_type["request"]["messages"][-1]["content"] == "asked by eve's program"
    ((password, key, token),) = server.rows(
        "select password_hash, key_hash, token_hash from users join api_keys on api_keys.user_id = users.id "
        "join sessions on sessions.user_id = users.id where users.name = 'eve' limit 1"
    )
    assert not [secret for secret in (password, key, token) if secret in exported.text]
    assert not {"ada", "bob"} & set(re.findall(r"\w+", exported.text))  # as words: "metadata" is nobody's name


def test_erasure_is_asked_for_and_then_done_by_an_administrator(server: RunningServer, visit: Visit) -> None:
    page = visit(server, name="kim", reduced_motion="reduce", timezone_id="Asia/Kathmandu")
    ask(page, "erase me later")
    page.goto(server.url + "/account")
    page.get_by_label("Type your name to confirm: kim").fill("kin")
    page.get_by_role("button", name="Erase what I wrote").click()
    expect(page.get_by_text("That is not your name, so nothing was erased.")).to_be_visible()
    page.get_by_label("Type your name to confirm: kim").fill("kim")
    page.get_by_role("button", name="Erase what I wrote").click()
    asked = page.get_by_text(re.compile("You asked for it on .* An administrator has to do it."))
    for moment in (asked, page.get_by_text("since ")):  # of this session
        tells_the_readers_time(moment, "Asia/Kathmandu", ENGLISH)
    passes_in_the_dark_on_a_phone_too(page)
    page.goto(server.url)
    expect(page.get_by_text("Your conversations will be listed here.")).to_be_visible()
    assert asked_by(server, "kim") == [("erase me later", "You said: erase me later")]

    admin = visit(server, "/admin/people")
    admin.get_by_role("button", name="Erase: kim").click()
    admin.get_by_role("button", name="Erase for good").click()
    expect(admin.get_by_text("What kim wrote is erased.")).to_be_visible()
    expect(admin.get_by_role("button", name="Erase: kim")).to_have_count(0)
    assert asked_by(server, "kim") == []
    trail = [str(row[0]) for row in server.rows("select action from audit where target = 'kim' order by id")]
    assert trail == ["erasure.request", "erasure.done"]


def test_where_the_operator_allows_it_one_erases_at_once_and_readers_stay_unnamed(visit: Visit) -> None:
    with running_server(self_erase="now", show_reviews=False) as server:
        page = visit(server)
        ask(page, "erase me now")
        page.goto(server.url + "/account")
        expect(page.get_by_text("Who read your conversations")).to_have_count(0)
        page.get_by_label("Type your name to confirm: admin").fill("admin")
        page.get_by_role("button", name="Erase what I wrote").click()
        expect(page.get_by_text("It is erased.")).to_be_visible()
        assert asked_by(server, "admin") == []


def test_a_key_that_is_deleted_on_the_page_ends_its_stream_at_once(server: RunningServer, visit: Visit) -> None:
    page = visit(server, "/account", name="bob")
    with running_long(server, "bob") as (_, lines):
        page.get_by_role("button", name="Delete: tests").click()
        rest = [line for line in lines if line]
        assert json.loads(rest[-2].removeprefix("data: "))["error"]["code"] == "access_ended"
