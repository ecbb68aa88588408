"""The account page in a real browser: keys for programs, password, sessions, language and theme."""

from collections.abc import Iterator

import httpx
import pyotp
import pytest
from playwright.sync_api import Page, expect

from tests.browser.barriers import passes, passes_in_the_dark_on_a_phone_too
from tests.browser.conftest import Visit
from tests.browser.moments import CHINESE, tells_the_readers_time
from tests.server import PASSWORD, RunningServer, bearer, running_server

pytestmark = pytest.mark.browser

NEW_PASSWORD = "a longer horse battery"


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with running_server(accounts={"ada": "staff", "bob": "staff", "eve": "staff"}) as running:
        yield running


def models(server: RunningServer, key: str) -> int:
    """What the API answers to a program with this key."""
    return httpx.get(server.url + "/v1/models", headers=bearer(key)).status_code


def change_password(page: Page, now: str, new: str, again: str) -> None:
    page.get_by_label("Password now").fill(now)
    page.get_by_label("New password", exact=True).fill(new)
    page.get_by_label("New password again").fill(again)
    page.get_by_role("button", name="Change password").click()


def test_a_key_is_shown_once_works_and_ends_when_it_is_deleted(server: RunningServer, visit: Visit) -> None:
    page = visit(server, "/account", name="ada", reduced_motion="reduce")
    page.get_by_role("button", name="Make a key").click()
    expect(page.get_by_text("Please say what the key is for.")).to_be_visible()
    page.get_by_label("What the key is for").fill('nightly "report"')
    page.get_by_role("button", name="Make a key").click()
    expect(page.get_by_text("Copy the key now; it is not shown again.")).to_be_visible()
    passes_in_the_dark_on_a_phone_too(page)
    key = page.locator(".key").inner_text()
    assert models(server, key) == 200
    assert not [row for row in server.rows("select * from api_keys") if key in row]

    page.reload()
    row = page.locator(".row").filter(has_text='nightly "report"')
    expect(row).to_contain_text("used")
    assert key not in page.content()
    page.get_by_role("button", name='Delete: nightly "report"').click()
    expect(row).to_have_count(0)
    assert models(server, key) == 401


def test_a_new_password_holds_at_once_and_ends_the_other_sessions(server: RunningServer, visit: Visit) -> None:
    page = visit(server, "/account", name="bob")
    with server.sign_in("bob") as elsewhere:
        for now, new, again, sentence in (
            ("wrong wrong", NEW_PASSWORD, NEW_PASSWORD, "That is not your password now."),
            ("correct horse battery", NEW_PASSWORD, "another one", "The two passwords differ."),
            ("correct horse battery", "short", "short", "A password has 8 to 200 characters."),
        ):
            change_password(page, now, new, again)
            expect(page.get_by_text(sentence)).to_be_visible()
        assert elsewhere.get("/account").status_code == 200
        change_password(page, "correct horse battery", NEW_PASSWORD, NEW_PASSWORD)
        expect(page.get_by_text("Your password is changed.")).to_be_visible()
        assert elsewhere.get("/account").status_code == 303
    expect(page.get_by_text("here, now")).to_be_visible()
    with server.sign_in("bob", NEW_PASSWORD) as again_here:
        assert again_here.get("/account").status_code == 200


def test_the_second_step_is_set_up_gives_codes_and_is_turned_off(server: RunningServer, visit: Visit) -> None:
    page = visit(server, "/account", name="ada")
    step = page.locator(".second-step")
    step.get_by_label("Your password").fill(PASSWORD)
    step.get_by_role("button", name="Set up the second step").click()
    expect(step.locator("img.qr")).to_be_visible()
    passes_in_the_dark_on_a_phone_too(page)
    totp = pyotp.TOTP(step.locator(".key").inner_text().replace(" ", ""))
    with server.sign_in("ada") as elsewhere:
        step.get_by_label("Code").fill(totp.now())
        step.get_by_role("button", name="Turn it on").click()
        expect(step.get_by_text("Recovery codes that are left: 10.")).to_be_visible()
        assert elsewhere.get("/account").status_code == 303
    codes = step.locator(".codes li").all_inner_texts()
    assert len(codes) == 10
    page.reload()
    expect(step.get_by_text("Recovery codes that are left: 10.")).to_be_visible()
    passes(page)
    assert codes[0] not in page.content()
    step.get_by_label("Your password").fill(PASSWORD)
    step.get_by_label("Code").fill(codes[0])
    step.get_by_role("button", name="Turn it off").click()
    expect(step.get_by_role("button", name="Set up the second step")).to_be_visible()
    step.get_by_label("Your password").fill("not the password")
    step.get_by_role("button", name="Set up the second step").click()
    expect(page.get_by_text("That is not your password now.")).to_be_visible()
    with server.sign_in("ada") as again:
        assert again.get("/account").status_code == 200


def test_a_session_is_ended_from_another_and_then_all_of_them(server: RunningServer, visit: Visit) -> None:
    page = visit(server, "/account", name="eve")
    with server.sign_in("eve", **{"User-Agent": "the forgotten <b>tablet</b>"}) as tablet:
        page.reload()
        row = page.locator(".row").filter(has_text="the forgotten <b>tablet</b>")
        row.get_by_role("button", name="Sign out").click()
        expect(row).to_have_count(0)
        assert tablet.get("/account").status_code == 303
    page.get_by_role("button", name="Sign out everywhere").click()
    expect(page).to_have_url(server.url + "/login?ended=signed-out&next=%2Faccount")


def test_language_and_theme_are_kept_with_the_account(server: RunningServer, visit: Visit) -> None:
    page = visit(server, "/account", name="ada", timezone_id="Asia/Shanghai")
    page.get_by_label("Theme").click()
    page.get_by_role("option", name="Dark").click()
    expect(page.locator("body.body--dark")).to_be_visible()
    page.emulate_media(color_scheme="dark")
    for theme, looks in (("Light", "light"), ("As the system", "dark")):
        page.get_by_label("Theme").click()
        page.get_by_role("option", name=theme).click()
        expect(page.locator(f"body.body--{looks}")).to_be_visible()
    page.emulate_media(color_scheme="light")
    expect(page.locator("body.body--light")).to_be_visible()
    page.get_by_label("Language").click()
    page.get_by_role("option", name="中文").click()
    expect(page.get_by_role("heading", name="API 密钥")).to_be_visible()
    tells_the_readers_time(page.locator(".row time").first, "Asia/Shanghai", CHINESE)
    with server.sign_in("ada", **{"Accept-Language": "en"}) as another_browser:
        assert "<title>对话" in another_browser.get("/").text
