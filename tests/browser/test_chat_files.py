"""Conversations as files, over the pages and the routes: out, in again, and never anybody else's."""

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visit
from tests.browser.windows import PICTURE
from tests.server import RunningServer, form_token, running_server

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def office() -> Iterator[RunningServer]:
    with running_server(accounts={"ada": "staff", "bob": "staff", "cleo": "staff"}) as running:
        yield running


def ask(page: Page, question: str) -> None:
    page.get_by_label("Write a message").fill(question)
    page.get_by_label("Write a message").press("Enter")
    expect(page.locator(".turn").last.locator(".answer-text")).to_have_text(f"You said: {question}")
    expect(page.locator(".turn").last).to_have_attribute("data-status", "done")


def test_a_conversation_goes_out_and_comes_in_again(office: RunningServer, visit: Visit) -> None:
    page = visit(office, name="ada")
    ask(page, "天气 <b>")
    ask(page, "and then")
    page.get_by_role("button", name="Options: 天气 <b>").focus()
    page.keyboard.press("Enter")
    with page.expect_download() as markdown:
        page.get_by_role("menuitem", name="Export as Markdown").click()
    assert markdown.value.suggested_filename == "天气 _b_.md"
    assert "## You\n\n天气 <b>\n\n## scripted\n\nYou said: 天气 <b>" in markdown.value.path().read_text(
        encoding="utf-8"
    )

    page.get_by_role("button", name="Options: 天气 <b>").focus()
    page.keyboard.press("Enter")
    with page.expect_download() as file:
        page.get_by_role("menuitem", name="Export as JSON").click()
    page.get_by_label("Import", exact=True).set_input_files(file.value.path())
    expect(page.get_by_text("Conversations imported: 1")).to_be_visible()
    links = page.get_by_role("navigation", name="Conversations").get_by_role("link", name="天气 <b>")
    expect(links).to_have_count(2)
    links.and_(page.locator("a:not([aria-current])")).click()
    expect(page.locator(".question")).to_have_text(["You asked: 天气 <b>", "You asked: and then"])
    expect(page.get_by_text("Earlier messages are no longer read")).to_have_count(0)
    ask(page, "and on from here")
    told = office.rows("select messages from exchanges where prompt = 'and on from here'")[0][0]
    assert [message["content"] for message in json.loads(told)][-3:] == [
        "and then",
        "You said: and then",
        "and on from here",
    ]


def test_a_file_that_makes_no_sense_is_told_by_line(office: RunningServer, visit: Visit) -> None:
    page = visit(office, name="bob")
    good = {"format": "qdesk.conversation", "version": 1, "exchanges": [{"id": "a", "question": "q"}]}
    lines = [json.dumps(good), json.dumps({**good, "version": 3})]
    file = {"name": "x.jsonl", "mimeType": "application/json", "buffer": "\n".join(lines).encode()}
    page.get_by_label("Import", exact=True).set_input_files(file)  # type: ignore[arg-type]  # a FilePayload
    dialog = page.get_by_role("dialog", name="Nothing was imported")
    expect(dialog).to_contain_text("Line 2: version: Input should be 1")
    dialog.get_by_role("button", name="Close").click()
    expect(page.get_by_text("Your conversations will be listed here.")).to_be_visible()


def test_files_are_ones_own_alone(office: RunningServer, visit: Visit) -> None:
    page = visit(office, name="cleo")
    ask(page, "a secret")
    (id,) = office.rows("select id from conversations where title = 'a secret'")[0]
    path = f"/conversations/{id}/export"
    with office.sign_in("bob") as bob, office.sign_in("cleo") as cleo:
        assert bob.get(path).status_code == 404
        assert cleo.get(path, params={"format": "exe"}).status_code == 400
        assert json.loads(cleo.get(path, params={"format": "json"}).text)["title"] == "a secret"
        whole = cleo.get("/conversations/export")
        assert [json.loads(line)["title"] for line in whole.text.splitlines()] == ["a secret"]
        assert "secret" not in bob.get("/conversations/export").text

        assert bob.post("/conversations/import", content=whole.content).status_code == 403, "no token of the page"
        token = {"x-form-token": form_token(bob.get("/account").text)}
        assert bob.post("/conversations/import", content=whole.content, headers=token).json() == {
            "imported": 1,
            "errors": [],
        }
        too_large = bob.post("/conversations/import", content=b" " * (20 * 1024**2 + 1), headers=token)
        assert (too_large.status_code, too_large.json()["errors"]) == (413, ["A file may have 20 MB."])
    rows = office.rows(
        "select users.name, source, exchanges.conversation_id = ? from exchanges join users on users.id = person "
        "where prompt = 'a secret' order by number",
        id,
    )
    assert rows == [("cleo", "page", 1), ("bob", "import", 0)]


def test_nobody_gets_a_file_without_signing_in(office: RunningServer, visit: Visit) -> None:
    page = visit(office, PICTURE)
    page.context.clear_cookies()
    page.goto(office.url + "/conversations/export")
    expect(page).to_have_url(office.url + "/login?next=/conversations/export")
