"""What goes wrong around a chat page: full house, lost network, hostile text, a model that is not there."""

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager

import httpx
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.barriers import passes
from tests.browser.conftest import Visit
from tests.server import API_KEY, RunningServer, bearer, key_of, running_server
from tests.ui.test_markdown import ATTACKS

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def narrow() -> Iterator[RunningServer]:
    """One request runs, one waits, and every person may have three."""
    with running_server(max_concurrent_requests=1, max_waiting_requests=1) as server:
        yield server


def ask(page: Page, question: str) -> None:
    page.get_by_label("Write a message").fill(question)
    page.get_by_label("Write a message").press("Enter")


def answer(page: Page) -> Locator:
    return page.locator(".turn").last.locator(".answer-text")


def test_waiting_in_line_leaving_and_a_full_house(narrow: RunningServer, visit: Visit) -> None:
    first, second, third = (visit(narrow) for _ in range(3))
    ask(first, "long first")
    expect(answer(first)).to_contain_text("word2")

    ask(second, "second in line")
    expect(second.locator(".ticket")).to_contain_text("You are next in line")

    ask(third, "no place for this")
    expect(third.get_by_role("alert")).to_contain_text("All places are taken at the moment.")
    expect(third.get_by_label("Write a message")).to_have_value("no place for this")
    expect(third.locator(".turn")).to_have_count(0)

    second.get_by_role("button", name="Leave").click()
    expect(second.locator(".note")).to_contain_text("This question left the line")
    third.get_by_role("button", name="Try again").click()
    expect(third.locator(".ticket")).to_contain_text("You are next in line")
    expect(third.get_by_label("Write a message")).to_have_value("")

    first.get_by_role("button", name="Stop").click()
    expect(answer(third)).to_have_text("You said: no place for this")
    ask(second, "a short one, so that there is something to measure")
    expect(answer(second)).to_contain_text("something to measure")

    ask(first, "long again")
    expect(answer(first)).to_contain_text("word2")
    ask(second, "how long will it take")
    expect(second.locator(".ticket")).to_have_text(re.compile(r"You are next in line, (about \d+ s|any moment now)"))
    first.get_by_role("button", name="Stop").click()
    expect(answer(second)).to_have_text("You said: how long will it take")


def test_the_place_in_line_is_told_with_a_wait_that_counts_down(visit: Visit) -> None:
    with running_server(max_concurrent_requests=1, accounts={"ada": "staff", "bob": "staff"}) as server:

        def asked(key: str, **other: object) -> AbstractContextManager[httpx.Response]:
            question = {"messages": [{"role": "user", "content": "long"}], "stream": True, **other}
            url = server.url + "/v1/chat/completions"
            return httpx.stream("POST", url, json=question, headers=bearer(key), timeout=60)

        with asked(API_KEY, max_tokens=150) as measured:  # so that it is known how long a request takes
            measured.read()
        page = visit(server)
        with asked(API_KEY), asked(key_of("ada")), asked(key_of("bob")):
            ask(page, "third")
            ticket = page.locator(".ticket")
            expect(ticket).to_contain_text(re.compile(r"You are 3rd in line, about \d+ s"))
            wait = re.search(r"about (\d+) s", ticket.inner_text())
            assert wait
            fewer = "n => Number(/about (\\d+) s/.exec(document.querySelector('.ticket').innerText)[1]) < n"
            page.wait_for_function(fewer, arg=int(wait[1]))
            page.get_by_role("button", name="Leave").click()
            expect(page.locator(".note")).to_contain_text("This question left the line")


def test_five_seconds_without_a_network_lose_no_word(server: RunningServer, visit: Visit) -> None:
    page = visit(server)
    page.evaluate("window.sameDocument = true")
    ask(page, "long story")
    expect(answer(page)).to_contain_text("word10")
    network = page.context.new_cdp_session(page)
    network.send("Network.enable")
    offline = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    network.send("Network.emulateNetworkConditions", {"offline": True, **offline})
    expect(page.get_by_text("The connection is lost.")).to_be_visible()
    page.wait_for_timeout(5_000)  # the loss itself, not a wait for something to happen
    network.send("Network.emulateNetworkConditions", {"offline": False, **offline})
    expect(page.get_by_text("The connection is lost.")).not_to_be_visible()
    expect(answer(page)).to_contain_text("word400", timeout=60_000)
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".note")).to_contain_text("You stopped this answer.")
    words = answer(page).inner_text().split()
    assert words == [f"word{i}" for i in range(len(words))]
    assert page.evaluate("window.sameDocument")


def test_a_cut_socket_is_mended_without_a_reload(server: RunningServer, visit: Visit) -> None:
    page = visit(server)
    page.evaluate("window.sameDocument = true")
    ask(page, "long story")
    expect(answer(page)).to_contain_text("word10")
    page.evaluate("window.socket.io.engine.close()")
    expect(answer(page)).to_contain_text("word120")
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".note")).to_contain_text("You stopped this answer.")
    words = answer(page).inner_text().split()
    assert words == [f"word{i}" for i in range(len(words))]
    assert page.evaluate("window.sameDocument")


def test_hostile_text_stays_text_wherever_it_is_shown(server: RunningServer, visit: Visit) -> None:
    """As question, answer, title and search result: no script runs, no image loads, no link has a bad scheme."""
    page = visit(server)
    page.evaluate("window.alert = () => { window.attacked = true }")
    text = "\n\n".join(attack.replace("\0", "") for attack in ATTACKS)
    ask(page, text)
    expect(page.get_by_role("button", name="Regenerate")).to_be_visible(timeout=60_000)
    for attack in (
        "<img src=x onerror=alert(1)>",
        "{{constructor.constructor('alert(1)')()}}",
        "</script><script>alert(1)</script>",
    ):
        ask(page, attack)
        expect(page.locator(".turn").last.get_by_role("button", name="Regenerate")).to_be_visible()
        expect(answer(page)).to_have_text(f"You said: {attack}")
    page.get_by_label("Search").fill("ontoggle")
    expect(page.locator(".item-snippet").first).to_be_visible()
    page.reload()
    expect(page.locator(".turn")).to_have_count(4)
    for link in page.locator(".answer-text a").all():
        assert re.match(r"https?://|mailto:", link.get_attribute("href") or "")
        assert link.get_attribute("rel") == "noopener noreferrer nofollow"
    assert page.locator(".chat :is(img, script, iframe, object, embed, style, base, meta)").count() == 0
    assert page.evaluate("window.attacked") is None


def test_signing_out_elsewhere_takes_the_page_away(server: RunningServer, chromium: Browser) -> None:
    context = chromium.new_context(locale="en-GB")  # with a session of its own
    tab = context.new_page()
    tab.goto(server.url + "/login")
    tab.get_by_label("Name").fill("admin")
    tab.get_by_label("Password").fill("correct horse battery")
    tab.get_by_role("button", name="Sign in").click()
    expect(tab.get_by_label("Write a message")).to_be_visible()
    other = context.new_page()
    other.goto(server.url)
    other.locator(".own-button").click()
    other.get_by_role("button", name="Sign out").click()
    expect(tab).to_have_url(re.compile("/login"))
    context.close()


def test_what_the_model_no_longer_reads_is_marked(visit: Visit) -> None:
    with running_server(max_context_tokens=64) as server:
        page = visit(server)
        for number in range(1, 4):
            question = f"question {number} of ten words, which are all counted here"
            ask(page, question)
            expect(answer(page)).to_have_text(f"You said: {question}")
            expect(page.locator(".turn").last).to_have_attribute("data-status", "done")
        mark = page.get_by_text("Earlier messages are no longer read by the model")
        expect(mark).to_have_count(1)
        page.reload()
        expect(page.locator(".turn").nth(1).get_by_text("Earlier messages are no longer read")).to_be_visible()
        passes(page)
