"""What tests of the administrators' pages do and look for; the server is `office` of conftest.py."""

from playwright.sync_api import Locator, Page, expect

from tests.server import RunningServer


def ask(page: Page, question: str) -> None:
    page.get_by_label("Write a message").fill(question)
    page.get_by_label("Write a message").press("Enter")


def one_answers_and_one_waits(admin: Page, ada: Page, bob: Page, question: str) -> None:
    """Ada's long question has the one place there is, and Bob's `question` waits, as `admin` at /admin sees it."""
    ask(ada, "long")
    expect(row(admin, "ada")).to_contain_text("answering")
    ask(bob, question)
    expect(row(admin, "bob")).to_contain_text("waiting")


def row(within: Page | Locator, name: str) -> Locator:
    """The rows of this person or thing. Not by any text in them: "never" has an "eve" in it."""
    page = within if isinstance(within, Page) else within.page
    return within.get_by_role("row").filter(has=page.locator("td:first-child").get_by_text(name, exact=True))


def button(page: Page, label: str) -> Locator:
    return page.get_by_role("button", name=label, exact=True)


def confirm(page: Page, label: str, reason: str = "because") -> None:
    """Give a reason in the dialog that has come up, and press its button."""
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Reason").fill(reason)
    dialog.get_by_role("button", name=label, exact=True).click()
    expect(dialog).to_have_count(0)  # else a next one is asked for while this one fades, and its reason is emptied


def cancel(page: Page, person: str) -> None:
    button(page, f"Cancel: {person}").click()
    confirm(page, "Cancel the request")


def move_to_front(page: Page, person: str) -> None:
    button(page, f"To the front: {person}").click()
    confirm(page, "Move it")


def audit(server: RunningServer, action: str) -> list[tuple[str, str]]:
    """Who did this, and to whom or what, in order."""
    found = server.rows("SELECT actor, target FROM audit WHERE action = ? ORDER BY id", action)
    return [(str(actor), str(target)) for actor, target in found]
