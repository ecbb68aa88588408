"""Whatever people, files and models write is text: a corpus of attacks in every place that can be written to, on every
page, in real Chromium. No script runs, no other host is asked for anything, and no form or style gets out.

`visit` fails a test for each request to another host; here the browser is also asked whether its policy had to step in.
"""

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from engine.types import Exchange, ExchangeFilter, Message
from storage import Store
from storage.records import User
from tests.browser.conftest import PICTURE, Visit
from tests.browser.log import write_log
from tests.databases import in_a_thread
from tests.payloads import EVIL, PAYLOADS
from tests.server import RunningServer, running_server
from tests.ui.exchanges import exchange

pytestmark = pytest.mark.browser

NAMES = [f"{n} {text}"[:64] for n, text in enumerate(PAYLOADS)]
GROUP, FEW = 36, 12  # texts that are written at once; that share one template, key and session
BANNER = " ".join(PAYLOADS[:12])[:300]

# Before anything of the page: an alarm, and what the browser's policy stops, which is an attempt as well.
ALARM = """
window.pwned = () => { window.wasPwned = true };
window.stopped = [];
document.addEventListener("securitypolicyviolation", (event) => window.stopped.push(event.blockedURI));
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
        "style, script, form, input:not([type=checkbox]), textarea, select, img, [style*=position], [id=document]")]);
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
    write_log(data_dir, log, names=NAMES)
    in_a_thread(_write_the_rest(data_dir))
    with running_server(data_dir, context_tokens=100_000, max_context_tokens=100_000) as server:
        yield server


def _turn(n: int, text: str) -> Exchange:
    """One turn of the one conversation: a file with that name before the question, the answer, the error."""
    name = " ".join(text.split())[:90]
    asked = f"File: {name}\n```\n{text.replace('`', '')}\n```\n\n{text}"
    said = (Message("system", text), Message("user", asked))
    parent = f"t{n - 1}" if n else None
    who = {"person": "ada", "conversation_id": "all", "model": text[:64]}
    return exchange(f"t{n}", parent, after_s=n, messages=said, answer=text, error=text, **who)


async def _write_the_rest(data_dir: Path) -> None:
    store = Store(f"sqlite:///{data_dir / 'qdesk.db'}")
    store.open()
    ada, rita = await store.users.by_name("ada"), await store.users.by_name("rita")
    assert ada
    assert rita
    await store.options.set("banner", json.dumps({"text": BANNER, "level": "info", "until": None}))
    ids = [row.id for row in (await store.exchanges.search(ExchangeFilter(), limit=len(PAYLOADS))).items]
    for at in range(0, len(PAYLOADS), GROUP):
        group = zip(PAYLOADS[at : at + GROUP], ids[at : at + GROUP], strict=True)
        await asyncio.gather(*(_write_one(store, ada, rita, text, id) for text, id in group))
    for at in range(0, len(PAYLOADS), FEW):
        await _write_own(store, ada, PAYLOADS[at : at + FEW])
    store.close()


async def _write_one(store: Store, ada: User, rita: User, text: str, exchange_id: str) -> None:
    now = datetime.now(UTC)
    line, sealed = " ".join(text.split()) or "x", str(hash(text))
    conversation = await store.conversations.create(ada.id, title=line[:200], system_prompt=text)
    await store.conversations.move(conversation.id, ada.id, line[:60])
    await store.invites.create(
        sealed, name=line[:64], role="staff", invited_by=line[:64], expires_at=now + timedelta(days=1)
    )
    await store.feedback.set(exchange_id, ada.id, -1, reason="other", comment=text)
    await store.reviews.label(exchange_id, line[:64], rita.id)
    await store.reviews.add_note(exchange_id, text, rita.id)
    await store.reviews.correct(exchange_id, text)
    await store.audit.add(line[:64], line[:64], line[:64], text)


async def _write_own(store: Store, ada: User, texts: list[str]) -> None:
    """What stands on the account page, which is built in one go: a few things that hold it all."""
    whole, sealed = "\n".join(texts), str(hash(tuple(texts)))
    await store.templates.create(ada.id, " ".join(texts[0].split())[:64], whole, shared=True)
    await store.api_keys.create(ada.id, " ".join(texts[1].split())[:64], sealed, texts[2][:13])
    await store.sessions.create(ada.id, f"session {sealed}", whole[:300], datetime.now(UTC) + timedelta(days=1))


def opened(visit: Visit, server: RunningServer, path: str, name: str, ready: str) -> Page:
    """Open a page with the alarm in it, and wait until what is looked at is there."""
    page = visit(server, PICTURE, name=name)
    page.add_init_script(ALARM)
    page.goto(server.url + path)
    expect(page.locator(ready).first).to_be_visible()
    return page


def check(page: Page) -> None:
    """Nothing has happened, nothing is there, and moving over everything changes nothing of that."""
    page.evaluate(
        """() => { for (const type of ["mouseover", "mouseenter", "focus", "pointerenter", "toggle", "animationstart"])
            document.querySelectorAll("main *").forEach((one) => one.dispatchEvent(new Event(type))) }"""
    )
    assert page.evaluate(FOREIGN) == []
    assert page.evaluate("window.stopped") == []
    assert page.evaluate("window.wasPwned") is None
    assert page.evaluate("getComputedStyle(document.body).display") != "none"


def test_there_are_enough() -> None:
    assert len(set(PAYLOADS)) == len(PAYLOADS) >= 150
    assert sum(EVIL in text for text in PAYLOADS) > 20


def test_the_chat_page(hostile: RunningServer, visit: Visit) -> None:
    """Questions, file names, answers, errors, titles, folders, the banner; templates, when they are listed."""
    ((conversation,),) = hostile.rows("select distinct conversation_id from exchanges")
    page = opened(visit, hostile, f"/c/{conversation}", "ada", f".turn:nth-child({len(PAYLOADS)}) .answer-text")
    expect(page.locator(".sidebar-list")).to_contain_text(PAYLOADS[0])
    expect(page.locator(".site-banner")).to_contain_text(PAYLOADS[0])
    check(page)
    page.get_by_label("Write a message").fill("/")
    expect(page.get_by_role("option").first).to_be_visible()
    check(page)


def test_an_answer_that_is_being_written(hostile: RunningServer, visit: Visit) -> None:
    """The script echoes a third of it, piece by piece, into an open page."""
    page = opened(visit, hostile, "/", "ada", ".composer")
    page.get_by_label("Write a message").fill("\n\n".join(PAYLOADS[::3]))
    page.get_by_label("Write a message").press("Enter")
    expect(page.locator(".turn").last).to_have_attribute("data-status", "done", timeout=60_000)
    check(page)


@pytest.mark.parametrize(
    ("path", "name", "ready"),
    [
        ("/account", "ada", ".row"),
        ("/admin/people", "admin", "table tr:nth-child(50), .table tr:nth-child(50), [role=row]:nth-child(50)"),
        ("/admin/audit", "admin", "tr:nth-child(20), [role=row]:nth-child(20)"),
        ("/review/retention", "admin", "main"),
        ("/login", "admin", "main"),
    ],
)
def test_the_other_pages(hostile: RunningServer, visit: Visit, path: str, name: str, ready: str) -> None:
    """Names, keys, devices, templates, invitations, the audit trail, the banner."""
    check(opened(visit, hostile, path, name, ready))


def test_the_review_page(hostile: RunningServer, visit: Visit) -> None:
    """The list, and the whole conversation with labels, notes, corrections, feedback and the exact messages."""
    page = opened(visit, hostile, f"/review?open=t{len(PAYLOADS) - 1}", "rita", ".inbox-row")
    expect(page.locator(".turn-prompt")).to_have_count(len(PAYLOADS))
    page.get_by_role("button", name="Show the exact messages").first.click()
    expect(page.locator(".turn-sent li").first).to_be_visible()
    check(page)
