"""Whatever people, files and models write is text: a corpus of attacks in every place that can be written to, on every
page, in real Chromium. No script runs, no other host is asked for anything, and no form or style gets out.

`visit` fails a test for each request to another host; here the browser is also asked whether its policy had to step in.
"""

import asyncio
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Locator, Page, Route, expect

from engine.types import Exchange, ExchangeFilter, Message
from storage import Store
from storage.records import User
from tests.browser.conftest import Visit
from tests.browser.log import write_log
from tests.browser.windows import PICTURE
from tests.databases import SECRET, in_a_thread
from tests.payloads import EVIL, PAYLOADS
from tests.server import RunningServer, bearer, key_of, running_server
from tests.ui.exchanges import exchange
from ui.seal import Seal

pytestmark = pytest.mark.browser

NAMES = [f"{n} {text}"[:64] for n, text in enumerate(PAYLOADS)]
GROUP, FEW = 36, 12  # texts that are written at once; that share one template, key and session
WHOLE = "\n\n".join(PAYLOADS)
# The name of the administrator who looks at the pages, and what the banner says; the store keeps no NUL.
EVERYTHING = " ".join(WHOLE.split()).replace("\0", "\ufffd")
POLICY = "content-security-policy"
INVITATION, KEY = "everythings-invitation", key_of("everything")

# Before anything of the page: an alarm, and what the browser's policy stops, which is an attempt as well.
ALARM = """
window.pwned = () => { window.wasPwned = true };
window.stopped = [];
window.used = [];
document.addEventListener("securitypolicyviolation", ({ disposition, effectiveDirective, blockedURI }) => {
    if (disposition === "report") window.used.push([effectiveDirective, blockedURI]);
    else window.stopped.push(blockedURI);
});
"""

# What is on a page that only foreign text could have brought there.
FOREIGN = """() => {
    const all = [...document.body.querySelectorAll("*")];
    const bad = all.filter((one) => one.matches(
        "iframe, object, embed, frame, frameset, base, portal, video, audio, picture, marquee, isindex, xss, area, " +
        "link, meta, component, [ping], [srcset], [srcdoc], [background], [formaction], [popover], [contenteditable]"));
    const handlers = all.filter((one) => one.getAttributeNames().some((name) => /^(on|v-|@|:)/.test(name)));
    const leading = all.filter((one) => /elsewhere\\.invalid/.test(
        (one.getAttribute("src") || "") + (one.getAttribute("style") || "") + (one.getAttribute("action") || "")));
    const links = [...document.querySelectorAll("a[href]")].filter((one) =>
        !/^(https?:|mailto:|\\/|#|\\?)/i.test(one.getAttribute("href")));
    const answers = [...document.querySelectorAll(".answer-text, .question, .turn-prompt, .sidebar-list")];
    const inside = answers.flatMap((one) => [...one.querySelectorAll(
        "style, script, form, input:not([type=checkbox]), textarea, select, img, [style*=position], " +
        "[name], [id=document], [id=mounted_app], [id=test], [id=x]")]);
    const escaped = answers.flatMap((one) => [...one.querySelectorAll(".answer-text *")])
        .filter((one) => getComputedStyle(one).position === "fixed");
    return [...bad, ...handlers, ...leading, ...links, ...inside, ...escaped]
        .map((one) => one.outerHTML.slice(0, 200));
}"""


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server whose people and models have written the corpus wherever they can."""
    data_dir = tmp_path_factory.mktemp("hostile") / "data"
    log = [_turn(n, text) for n, text in enumerate(PAYLOADS)]
    write_log(data_dir, log, names=[*NAMES, EVERYTHING])
    in_a_thread(_write_the_rest(data_dir))
    with running_server(data_dir, context_tokens=100_000, max_context_tokens=100_000) as server:
        told = "update conversations set system_prompt = ? where id in (select conversation_id from exchanges)"
        server.change(told, WHOLE)
        yield server


def _turn(n: int, text: str) -> Exchange:
    """One turn of the one conversation: a file with that name before the question, the answer, the error."""
    name = " ".join(text.split())[:90]
    asked = f"File: {name}\n```\n{text.replace('`', '')}\n```\n\n{text}"
    said = (Message("system", text), Message("user", asked))
    parent = f"t{n - 1}" if n else None
    who = {"person": EVERYTHING, "conversation_id": "all", "model": text[:64]}
    return exchange(f"t{n}", parent, after_s=n, messages=said, answer=text, error=text, **who)


async def _write_the_rest(data_dir: Path) -> None:
    store = Store(f"sqlite:///{data_dir / 'qdesk.db'}")
    store.open()
    own, rita = await store.users.by_name(EVERYTHING), await store.users.by_name("rita")
    assert own
    assert rita
    await store.users.set_role(own.id, "admin")
    await store.options.set("banner", json.dumps({"text": EVERYTHING, "level": "info", "until": None}))
    ids = [row.id for row in (await store.exchanges.search(ExchangeFilter(), limit=len(PAYLOADS))).items]
    for at in range(0, len(PAYLOADS), GROUP):
        group = zip(PAYLOADS[at : at + GROUP], ids[at : at + GROUP], strict=True)
        await asyncio.gather(*(_write_one(store, own, rita, text, id) for text, id in group))
    for at in range(0, len(PAYLOADS), FEW):
        await _write_own(store, own, PAYLOADS[at : at + FEW])
    seal, later = Seal(SECRET.encode()), datetime.now(UTC) + timedelta(days=1)
    await store.sessions.create(own.id, "a session that nobody has", WHOLE, later)
    await store.api_keys.create(own.id, EVERYTHING, seal("api key", KEY), KEY[:13])
    await store.invites.create(
        seal("invite", INVITATION), name=EVERYTHING, role="staff", invited_by=EVERYTHING, expires_at=later
    )
    store.close()


async def _write_one(store: Store, own: User, rita: User, text: str, exchange_id: str) -> None:
    now = datetime.now(UTC)
    line, sealed = " ".join(text.split()) or "x", str(hash(text))
    conversation = await store.conversations.create(own.id, title=line[:200], system_prompt=text)
    await store.conversations.move(conversation.id, own.id, line[:60])
    await store.invites.create(
        sealed, name=line[:64], role="staff", invited_by=line[:64], expires_at=now + timedelta(days=1)
    )
    await store.feedback.set(exchange_id, own.id, -1, reason="other", comment=text)
    await store.reviews.label(exchange_id, line[:64], rita.id)
    await store.reviews.add_note(exchange_id, text, rita.id)
    await store.reviews.correct(exchange_id, text)
    await store.audit.add(line[:64], line[:64], line[:64], text)


async def _write_own(store: Store, own: User, texts: list[str]) -> None:
    """What stands on the account page, which is built in one go: a few things that hold it all."""
    whole, sealed = "\n".join(texts), str(hash(tuple(texts)))
    await store.templates.create(own.id, " ".join(texts[0].split())[:64], whole, shared=True)
    await store.api_keys.create(own.id, " ".join(texts[1].split())[:64], sealed, texts[2][:13])
    await store.sessions.create(own.id, f"session {sealed}", whole[:300], datetime.now(UTC) + timedelta(days=1))


@pytest.fixture
def page(hostile: RunningServer, visit: Visit) -> Page:
    """A browser with the alarm in every page it opens, of the person whose name holds it all."""
    page = visit(hostile, PICTURE, name=EVERYTHING)
    page.add_init_script(ALARM)
    return page


def go(page: Page, server: RunningServer, path: str, ready: str) -> None:
    """Open a page, and wait until what is looked at is there."""
    page.goto(server.url + path)
    expect(page.locator(ready).first).to_be_visible()


def press(button: Locator) -> None:
    """Wherever it is: a name and a banner of ten thousand characters leave little room."""
    button.dispatch_event("click")


def check(page: Page) -> None:
    """Nothing has happened, nothing is there, and moving over everything changes nothing of that."""
    page.evaluate(
        """() => { for (const type of ["mouseover", "mouseenter", "focus", "pointerenter", "toggle", "animationstart"])
            document.querySelectorAll("body *").forEach((one) => one.dispatchEvent(new Event(type))) }"""
    )
    assert page.evaluate(FOREIGN) == []
    assert page.evaluate("window.stopped") == []
    assert page.evaluate("window.wasPwned") is None
    assert page.evaluate("getComputedStyle(document.body).display") != "none"


def test_there_are_enough() -> None:
    assert len(set(PAYLOADS)) == len(PAYLOADS) >= 150
    assert sum(EVIL in text for text in PAYLOADS) > 20


def test_the_chat_page(hostile: RunningServer, page: Page) -> None:
    """Questions, file names, answers, errors, titles, folders, banner; what opens: templates, own menu, settings."""
    ((conversation,),) = hostile.rows("select distinct conversation_id from exchanges")
    go(page, hostile, f"/c/{conversation}", f".turn:nth-child({len(PAYLOADS)}) .answer-text")
    expect(page.locator(".sidebar-list")).to_contain_text(PAYLOADS[0])
    expect(page.locator(".site-banner")).to_contain_text(PAYLOADS[0])
    check(page)
    page.get_by_label("Write a message").fill("/")
    expect(page.get_by_role("option").first).to_be_visible()
    press(page.locator(".own-button"))
    expect(page.locator(".own-menu")).to_be_visible()
    press(page.get_by_role("button", name="Settings of this conversation"))
    expect(page.get_by_label("System prompt")).to_have_value(WHOLE.replace("\r\n", "\n"))
    check(page)


def test_an_answer_that_is_being_written(hostile: RunningServer, page: Page) -> None:
    """The script echoes all of it, piece by piece, into an open page."""
    go(page, hostile, "/", ".composer")
    page.get_by_label("Write a message").fill(WHOLE)
    page.get_by_label("Write a message").press("Enter")
    expect(page.locator(".turn").last).to_have_attribute("data-status", "done", timeout=60_000)
    check(page)


def test_the_pages_of_administrators_and_ones_own(hostile: RunningServer, page: Page) -> None:
    """Names, keys, devices, templates, invitations, the audit trail; the own name and the banner on each."""
    for path, ready in {
        "/account": ".row",
        "/admin/people": "tr:nth-child(50)",
        "/admin/audit": "tr:nth-child(20)",
        "/admin/steer": ".banner-fields input",
        "/admin/model": "td.actions button",
        "/admin/history": "h2",
        "/review/retention": "h2",
        "/docs": ".api-operation",
        "/login": "main",
        f"/invite?token={INVITATION}": "[name=password]",
    }.items():
        go(page, hostile, path, ready)
        expect(page.locator(".site-banner, .notice").first).to_contain_text(PAYLOADS[0])
        check(page)


def test_requests_that_run(hostile: RunningServer, page: Page) -> None:
    """Whose they are, their prompt, and the question before one is cancelled."""
    asked = {"messages": [{"role": "user", "content": f"long {WHOLE}"}], "stream": True}
    url = hostile.url + "/v1/chat/completions"
    with httpx.stream("POST", url, json=asked, headers=bearer(KEY), timeout=60):
        go(page, hostile, "/admin", "td.actions button")
        for button, told in (("Prompt", "Prompt of"), ("Cancel", "Cancel the request of")):
            press(page.locator("td.actions").get_by_text(button, exact=True))
            expect(page.get_by_role("dialog")).to_contain_text(f"{told} {PAYLOADS[0]}")
            check(page)
            page.keyboard.press("Escape")
            expect(page.get_by_role("dialog")).to_have_count(0)


def test_the_review_page(hostile: RunningServer, page: Page) -> None:
    """The list, and the whole conversation with labels, notes, corrections, feedback and the exact messages."""
    go(page, hostile, f"/review?open=t{len(PAYLOADS) - 1}", ".inbox-row")
    expect(page.locator(".turn-prompt")).to_have_count(len(PAYLOADS))
    press(page.get_by_role("button", name="Show the exact messages").first)
    expect(page.locator(".turn-sent li").first).to_be_visible()
    check(page)


def test_pages_need_all_that_their_policy_allows(hostile: RunningServer, page: Page) -> None:
    """Asked to report all that is done, the browser names every source of the policy. What got in is stopped."""

    def reported(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, headers={**answer.headers, f"{POLICY}-report-only": "default-src 'none'"})

    page.route(re.compile("/(account|docs)$"), reported)
    used = set()
    for path, ready in {"/account": ".row", "/docs": ".api-operation"}.items():
        go(page, hostile, path, ready)
        used |= {source_of(hostile, *each) for each in page.evaluate("window.used")}
    answer = page.request.get(hostile.url + "/account")
    parts = [part.split() for part in answer.headers[POLICY].split("; ")]
    allowed = {(name, re.sub("nonce-.*'", "nonce'", source)) for name, *sources in parts for source in sources}
    assert {each for each in allowed if each[1] != "'none'"} - {("form-action", "'self'")} == used
    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=data:, onerror=pwned()>')")
    page.wait_for_function("window.stopped.length")
    assert page.evaluate("[window.stopped, window.wasPwned]") == [["inline"], None]


def source_of(server: RunningServer, directive: str, blocked: str) -> tuple[str, str]:
    """How a policy names what the browser has called this."""
    name = directive.removesuffix("-elem").removesuffix("-attr")
    inline = "'nonce'" if directive == "script-src-elem" else "'unsafe-inline'"
    own = "'self'" if blocked.startswith((server.url, server.url.replace("http", "ws", 1))) else blocked
    return name, {"inline": inline, "eval": "'unsafe-eval'", "data": "data:"}.get(blocked, own)
