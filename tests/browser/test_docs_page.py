"""The API's page in a real browser, which is watched for requests to other hosts: read, tried, and free of barriers."""

import json
import shlex

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.barriers import passes, passes_in_the_dark_on_a_phone_too
from tests.browser.conftest import Visit
from tests.browser.windows import PICTURE
from tests.server import API_KEY, RunningServer

pytestmark = pytest.mark.browser

CHAT, MODELS = "/v1/chat/completions", "/v1/models"


def operation(page: Page, path: str) -> Locator:
    return page.locator(f'[data-path="{path}"]')


def opened(page: Page, path: str) -> Locator:
    found = operation(page, path)
    found.get_by_role("button", name=path).click()
    expect(found.get_by_role("heading", name="Try it")).to_be_visible()
    return found


def asked(found: Locator, body: object) -> None:
    found.get_by_label("Body (JSON)").fill(json.dumps(body))
    found.get_by_role("button", name="Send").click()


def test_the_api_can_be_read_and_tried(server: RunningServer, visit: Visit) -> None:
    page = visit(server, "/docs")
    for path in (CHAT, MODELS, "/v1/requests", "/readyz", "/metrics"):
        expect(operation(page, path).first).to_be_visible()
    expect(page.locator('[data-path*="{path}"]')).to_have_count(0)  # files are no part of the API
    models = opened(page, MODELS)
    models.get_by_role("button", name="Send").click()
    expect(models.get_by_label("Answer")).to_contain_text("A script plays the model.")
    expect(models.get_by_role("status")).to_contain_text("200 after")
    expect(models.get_by_text("x-request-id: ")).to_be_visible()


def test_asking_needs_a_key_which_stays_in_the_browser(server: RunningServer, visit: Visit) -> None:
    page = visit(server, "/docs")
    sent: list[str] = []
    page.on("websocket", lambda socket: socket.on("framesent", lambda frame: sent.append(str(frame))))
    page.reload()
    chat = opened(page, CHAT)
    asked(chat, {"messages": [{"role": "user", "content": "hello"}]})
    expect(chat.get_by_role("status")).to_contain_text("401")
    expect(chat.get_by_label("Answer")).to_contain_text('"error"')
    page.get_by_label("API key").fill(API_KEY)
    chat.get_by_role("button", name="Send").click()
    expect(chat.get_by_role("status")).to_contain_text("200")
    expect(chat.get_by_label("Answer")).to_contain_text("You said: hello")
    assert sent
    assert not [frame for frame in sent if API_KEY in frame]
    assert API_KEY not in page.url + page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}])")


def test_an_answer_is_shown_while_it_comes_and_can_be_stopped(server: RunningServer, visit: Visit) -> None:
    page = visit(server, "/docs")
    page.get_by_label("API key").fill(API_KEY)
    chat = opened(page, CHAT)
    asked(chat, {"messages": [{"role": "user", "content": "long story"}], "stream": True, "max_tokens": 1000})
    expect(chat.get_by_label("Answer")).to_contain_text("word5")
    expect(chat.get_by_role("status")).to_have_text("Waiting for the answer …")
    chat.get_by_role("button", name="Stop").click()
    expect(chat.get_by_role("status")).to_have_text("Stopped.")
    expect(chat.get_by_role("button", name="Stop")).to_have_count(0)


def test_the_same_in_a_shell_is_what_is_sent(server: RunningServer, visit: Visit) -> None:
    page = visit(server, "/docs")
    chat = opened(page, CHAT)
    body = {"messages": [{"role": "user", "content": "it's $HOME"}]}
    chat.get_by_label("Body (JSON)").fill(json.dumps(body))
    chat.get_by_text("Headers", exact=True).first.click()
    chat.get_by_label("x-request-id").fill("mine")
    chat.get_by_text("The same in a shell").click()
    command = chat.get_by_label("The same in a shell").inner_text()
    words = shlex.split(command.replace("\\\n", ""))  # which shlex, unlike a shell, takes for a word
    key, sent = "Authorization: Bearer $QDESK_API_KEY", ["-H", "x-request-id: mine", "-d", json.dumps(body)]
    assert words == ["curl", "-X", "POST", server.url + CHAT, "-H", key, "-H", "content-type: application/json", *sent]


def test_it_is_copied_over_plain_http_too(server: RunningServer, visit: Visit) -> None:
    """Where browsers have no clipboard for scripts: what is chosen is copied, as by Ctrl+C."""
    page = visit(server, PICTURE)
    page.add_init_script(
        "Object.defineProperty(navigator, 'clipboard', { value: undefined });"
        "addEventListener('copy', () => (window.copied = getSelection().toString()));"
    )
    page.goto(server.url + "/docs")
    models = opened(page, MODELS)
    models.get_by_text("The same in a shell").click()
    command = models.get_by_label("The same in a shell").inner_text()
    models.get_by_role("button", name="Copy").click()
    expect(models.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("window.copied") == command
    expect(page.locator("body > textarea")).to_have_count(0)


def test_a_place_in_the_path_must_be_filled_in(server: RunningServer, visit: Visit) -> None:
    page = visit(server, "/docs")
    model = opened(page, "/v1/models/{name}")
    model.get_by_role("button", name="Send").click()
    expect(model.get_by_label("name")).to_be_focused()
    expect(model.get_by_role("status")).to_have_text("")
    model.get_by_label("name").fill("no/such model")
    page.keyboard.press("Enter")
    expect(model.get_by_label("Answer")).to_contain_text("no/such model")
    expect(model.get_by_role("status")).to_contain_text("404")


def test_keys_reach_everything_and_an_address_leads_to_one_operation(server: RunningServer, visit: Visit) -> None:
    page = visit(server, "/docs")
    head = operation(page, MODELS).get_by_role("button", name=MODELS)
    expect(head).to_have_attribute("aria-expanded", "false")
    head.focus()
    page.keyboard.press("Enter")
    expect(head).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("Tab")
    expect(operation(page, MODELS).get_by_role("button", name="Send")).to_be_focused()
    page.keyboard.press("Enter")
    expect(operation(page, MODELS).get_by_role("status")).to_contain_text("200")
    page.keyboard.press("Tab")
    expect(operation(page, MODELS).get_by_label("Answer")).to_be_focused()
    page.reload()
    expect(operation(page, MODELS).get_by_role("button", name="Send")).to_be_in_viewport()
    head.click()
    page.reload()
    expect(head).to_have_attribute("aria-expanded", "false")


def has_no_barriers(page: Page) -> None:
    """Seen from the top: what has been scrolled half under the bar is too small a target there."""
    page.evaluate("scrollTo(0, 0)")
    passes_in_the_dark_on_a_phone_too(page)


def test_it_has_no_barriers(server: RunningServer, visit: Visit) -> None:
    page = visit(server, "/docs")
    expect(operation(page, CHAT)).to_be_visible()
    has_no_barriers(page)
    chat = opened(page, CHAT)
    has_no_barriers(page)
    asked(chat, {"messages": []})
    expect(chat.get_by_role("status")).to_contain_text("401")
    has_no_barriers(page)
    page.get_by_label("API key").fill(API_KEY)
    asked(chat, {"messages": [{"role": "user", "content": "long " * 99}], "stream": True, "max_tokens": 1000})
    expect(chat.get_by_label("Answer")).to_contain_text("word5")
    has_no_barriers(page)
    chat.get_by_role("button", name="Stop").click()
    expect(chat.get_by_role("status")).to_have_text("Stopped.")
    for summary in chat.locator("summary").all():
        summary.click()
    models = opened(page, MODELS)
    models.get_by_role("button", name="Send").click()
    expect(models.get_by_role("status")).to_contain_text("200")
    has_no_barriers(page)


def test_it_speaks_the_readers_language(server: RunningServer, visit: Visit) -> None:
    page = visit(server, PICTURE, locale="zh-CN")
    page.goto(server.url + "/docs")
    expect(page.get_by_role("heading", name="提问")).to_be_visible()
    expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
    operation(page, CHAT).get_by_role("button", name=CHAT).click()
    expect(page.get_by_role("heading", name="正文字段")).to_be_visible()
    passes(page)
