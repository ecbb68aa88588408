"""Signing in with a real browser: to the OpenID provider and back, as cookies and policies allow it."""

import re
from collections.abc import Iterator

import pyotp
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.barriers import passes
from tests.browser.conftest import Visit
from tests.openid import CLIENT_ID, CLIENT_SECRET, Provider, running_provider
from tests.server import PASSWORD, RunningServer, running_server

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with running_provider() as running:
        yield running


@pytest.fixture(scope="module")
def server(provider: Provider) -> Iterator[RunningServer]:
    with running_server(
        accounts={"ada": "staff", "rita": "reviewer"},
        require_totp="reviewer",
        oidc_issuer=provider.url,
        oidc_client_id=CLIENT_ID,
        oidc_client_secret=CLIENT_SECRET,
        oidc_name="the office",
        oidc_logout=True,
    ) as running:
        yield running


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    context = chromium.new_context(locale="en-GB")
    yield context.new_page()
    context.close()


def test_an_account_is_connected_and_opened_by_the_provider_from_then_on(
    provider: Provider, server: RunningServer, page: Page
) -> None:
    page.goto(server.url + "/login?next=/account")
    passes(page)
    page.get_by_label("Name").fill("ada")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.get_by_role("button", name="Connect", exact=True).click()
    expect(page.get_by_text("Your account is connected.")).to_be_visible()
    assert server.rows("select action, target, detail from audit") == [("user.connect", "ada", provider.url)]

    page.get_by_role("button", name="Sign out", exact=True).first.click()
    page.get_by_role("link", name="Sign in with the office").click()
    expect(page.get_by_label("Write a message")).to_be_visible()
    assert provider.ended == []  # the first session began with a password
    page.get_by_role("button", name="ada", exact=True).click()
    page.get_by_role("button", name="Sign out", exact=True).click()
    page.get_by_role("link", name="Sign in with the office").click()
    assert [claims["sub"] for claims in provider.ended] == ["1"]
    expect(page.get_by_label("Write a message")).to_be_visible()
    page.goto(server.url + "/account")
    expect(page.get_by_role("heading", name="Account")).to_be_visible()
    expect(page.locator("h1 + .name")).to_have_text("ada")
    page.get_by_role("button", name="Disconnect").click()
    expect(page.get_by_role("button", name="Connect", exact=True)).to_be_visible()
    assert server.rows("select count(*) from identities") == [(0,)]


def test_the_second_step_is_set_up_on_a_phone_without_barriers(server: RunningServer, page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(server.url + "/login")
    page.get_by_label("Name").fill("rita")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.get_by_role("heading", name="Set up the second step")).to_be_visible()
    passes(page)
    page.get_by_label("Code").fill(pyotp.TOTP(page.locator(".secret").inner_text().replace(" ", "")).now())
    page.get_by_role("button", name="Turn it on").click()
    expect(page.get_by_role("heading", name="Recovery codes")).to_be_visible()
    passes(page)
    code = page.locator(".codes li").first.inner_text()
    page.get_by_role("link", name="Go on").click()
    expect(page.get_by_label("Write a message")).to_be_visible()
    page.context.clear_cookies()
    page.goto(server.url + "/login")
    page.get_by_label("Name").fill("rita")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    passes(page)
    page.get_by_label("Code").fill(code)
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.get_by_label("Write a message")).to_be_visible()


def test_an_administrator_resets_a_second_step(server: RunningServer, visit: Visit) -> None:
    server.change("update users set totp_nonce = 'some nonce' where name = 'ada'")
    admin = visit(server, "/admin/people")
    admin.get_by_role("button", name=re.compile("Reset second step.*ada")).click()
    expect(admin.get_by_text("Second step of ada")).to_be_visible()
    admin.get_by_role("dialog").get_by_role("button", name="Reset second step").click()
    expect(admin.get_by_text("ada signs in without a second step now.")).to_be_visible()
    assert server.rows("select actor, target from audit where action = 'user.second_step_reset'") == [("admin", "ada")]
    assert server.rows("select totp_nonce from users where name = 'ada'") == [("",)]
