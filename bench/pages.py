"""Many open chat pages: what one costs in memory, what is left when all have closed, and how soon a page still answers.

    python -m bench.pages                                 # 200 pages, 16 of them streaming; about three minutes
    python -m bench.pages --model packaged --streaming 0  # the memory of a whole server, with a model in it

The pages are NiceGUI clients without a browser: each loads the page over HTTP, opens its socket and confirms what it
gets, as a browser does. One real Chromium beside them clicks and types, and says how long it took until the page showed
what was asked for. A script plays the model unless one is named, so that the figures are of the pages alone.
"""

import argparse
import asyncio
import html
import json
import re
import shutil
import statistics
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

import httpx
import psutil
from playwright.async_api import Page, async_playwright
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from bench.report import save
from storage.records import UserRole
from tests.server import PASSWORD, RunningServer, form_token, running_server

PEOPLE: dict[str, UserRole] = {f"person{n:02}": "staff" for n in range(20)}
CONFIRMS_EVERY_S = 3.0  # as NiceGUI's script does
GONE_AFTER_S = 35.0  # a page that went away is kept for 30 s, in case it comes back
WARM_PAGES = 20  # opened and closed first: what is loaded at first use is no page's own
STEPS = 40  # of each kind that Chromium takes, while the answers stream

Times = dict[str, list[float]]  # milliseconds, by what was done

TIMED = """async ([act, shows]) => {
  const seen = new Function("return " + shows);
  const there = new Promise((resolve, reject) => {
    setTimeout(() => reject(new Error("nothing came of: " + act)), 10000);
    const look = () => (seen() ? resolve(performance.now()) : requestAnimationFrame(look));
    requestAnimationFrame(look);
  });
  const began = performance.now();
  new Function(act)();
  return (await there) - began;
}"""
INTERACTIONS = {  # what is done -> the script that does it, and the condition that shows it
    "type a character": (
        "const box = document.querySelector('.composer textarea'); box.value += 'x';"
        "box.dispatchEvent(new Event('input', { bubbles: true })); window.typed = box.value.length",
        "document.querySelector('.composer textarea').value.length === window.typed",
    ),
    "open the settings": (
        "window.dispatchEvent(new CustomEvent('qdesk:shortcuts'))",
        "document.querySelector('dialog[open]')",
    ),
    "open a conversation": (
        "document.querySelector('.sidebar-list li a').click()",
        "document.querySelector('.turn .answer-text p')",
    ),
    "begin a new one": ("document.querySelector('.new-chat').click()", "document.querySelector('.welcome')"),
}


@dataclass
class Open:
    """One page without a browser."""

    id: str
    connection: ClientConnection
    composer: str  # the number of its element, and "" on a page that has none
    listener: str  # which hears what the composer asks

    async def ask(self, question: str) -> None:
        asked = {"text": question, "files": [], "nonce": self.id, "conversation": ""}
        event = {
            "id": int(self.composer),
            "client_id": self.id,
            "listener_id": self.listener,
            "args": [json.dumps(asked)],
        }
        await self.connection.send("42" + json.dumps(["event", event]))

    async def live(self) -> None:
        """Answer pings, and confirm what has come, until the connection ends."""
        confirmed, following = time.monotonic(), 0
        try:
            async for packet in self.connection:
                text = str(packet)
                if text == "2":
                    await self.connection.send("3")
                if found := re.search(r'"_id":(\d+)', text):
                    following = int(found[1]) + 1
                if time.monotonic() - confirmed > CONFIRMS_EVERY_S:
                    confirmed = time.monotonic()
                    heard = {"client_id": self.id, "next_message_id": following}
                    await self.connection.send("42" + json.dumps(["ack", heard]))
        except ConnectionClosed:
            pass


@asynccontextmanager
async def opened(server: RunningServer, browser: httpx.AsyncClient, path: str = "/") -> AsyncIterator[Open]:
    text = (await browser.get(path)).text
    client = re.search(r"'client_id': '([\w-]+)'", text)
    raw = re.search(r"parseElements\(String\.raw`(.*?)`\)", text, re.DOTALL)
    assert client
    assert raw
    elements: dict[str, dict[str, Any]] = json.loads(html.unescape(raw[1]))
    composer = next((number for number, one in elements.items() if one["tag"] == "nicegui-composer"), "")
    heard = elements[composer]["events"] if composer else []
    listener = next((one["listener_id"] for one in heard if one["type"] == "ask"), "")
    query = f"client_id={client[1]}&tab_id={client[1]}&document_id=d&next_message_id=0&implicit_handshake=true"
    address = f"{server.url.replace('http', 'ws')}/_nicegui_ws/socket.io/?EIO=4&transport=websocket&{query}"
    cookie = {"Cookie": f"qdesk_session={browser.cookies['qdesk_session']}"}
    async with connect(address, additional_headers=cookie, max_size=None) as connection:
        await connection.recv()
        await connection.send("40")
        page = Open(client[1], connection, composer, listener)
        living = asyncio.create_task(page.live())
        yield page
    await living


@asynccontextmanager
async def many(
    server: RunningServer, browsers: list[httpx.AsyncClient], pages: int, path: str = "/"
) -> AsyncIterator[list[Open]]:
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(opened(server, browsers[n % len(browsers)], path)) for n in range(pages)]


async def signed_in(server: RunningServer, name: str) -> httpx.AsyncClient:
    browser = httpx.AsyncClient(base_url=server.url, timeout=60)
    fields = {"form_token": form_token((await browser.get("/login")).text), "name": name, "password": PASSWORD}
    assert (await browser.post("/login", data=fields)).status_code == 303
    return browser


# --- what Chromium says ---


async def interactions(server: RunningServer, *, steps: int) -> Times:
    """How long a page took to show what was done on it, in a real Chromium."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = await browser.new_page(base_url=server.url)
        await page.goto("/login")
        await page.fill("input[name=name]", "admin")
        await page.fill("input[name=password]", PASSWORD)
        await page.click("button[type=submit]")
        await page.get_by_label("Write a message").fill("A question, so that there is a conversation to open.")
        await page.get_by_role("button", name="Send").click()
        await page.wait_for_selector(".answer-actions")
        await page.evaluate("document.querySelector('.new-chat').click()")
        await page.wait_for_selector(".welcome")
        taken: Times = {name: [] for name in INTERACTIONS}
        for _ in range(steps):
            for name, (act, shows) in INTERACTIONS.items():
                taken[name].append(float(await page.evaluate(TIMED, [act, shows])))
                await _tidy(page)
        await browser.close()
        return taken


async def _tidy(page: Page) -> None:
    await page.evaluate("document.querySelector('dialog[open]')?.close()")
    await page.wait_for_timeout(50)  # people take at least as long


# --- all of it ---


@dataclass(frozen=True)
class Figures:
    pages: int
    streaming: int
    fresh_mb: float  # before anybody came
    start_mb: float  # after a few pages, with all that is done on pages, have closed
    idle_mb: float
    streaming_mb: float
    closed_mb: float
    p50_ms: float
    p95_ms: float
    slowest_ms: float

    @property
    def kb_a_page(self) -> float:
        return 1e3 * (self.idle_mb - self.start_mb) / (self.pages - WARM_PAGES)  # these find their room ready

    @property
    def left_over(self) -> float:
        """Memory after all pages have closed, over the start."""
        return self.closed_mb / self.start_mb


async def measure(server: RunningServer, pages: int, streaming: int) -> tuple[Figures, Times]:
    fresh = await settled(server, "fresh", within_s=0)
    browsers = [await signed_in(server, name) for name in PEOPLE]
    async with many(server, browsers, WARM_PAGES) as warm:
        await ask_all(warm if streaming else [])
        await interactions(server, steps=2)
    start = await settled(server, "start")
    async with many(server, browsers, pages) as all_of_them:
        idle = await settled(server, f"{pages} idle pages", within_s=5)
        await ask_all(all_of_them[:streaming])
        taken = await interactions(server, steps=STEPS)
        still = server.rows("select count(*) from exchanges where status = 'running'")[0][0]
        assert still == streaming, f"only {still} answers were still streaming: take fewer steps"
        busy = await settled(server, f"{still} streaming", within_s=0)
    closed = await settled(server, "all closed")
    for browser in browsers:
        await browser.aclose()
    every = sorted(one for times in taken.values() for one in times)
    return Figures(
        pages, streaming, fresh, start, idle, busy, closed, statistics.median(every), p95(every), every[-1]
    ), taken


async def ask_all(pages: list[Open]) -> None:
    for page in pages:
        await page.ask("long answer, please")


async def settled(server: RunningServer, what: str, *, within_s: float = GONE_AFTER_S) -> float:
    await asyncio.sleep(within_s)
    megabytes = float(psutil.Process(server.process.pid).memory_info().rss) / 1e6
    print(f"{what}: {megabytes:.1f} MB", flush=True)
    return megabytes


def p95(times: list[float]) -> float:
    return statistics.quantiles(times, n=20)[-1]


def table(figures: Figures, taken: Times) -> str:
    rows = [
        ("memory before anybody came, MB", f"{figures.fresh_mb:.0f}"),
        (f"after {WARM_PAGES} pages had come and gone, MB", f"{figures.start_mb:.0f}"),
        (f"with {figures.pages} idle pages, MB", f"{figures.idle_mb:.0f}"),
        ("an idle page, kB", f"{figures.kb_a_page:.0f}"),
        (f"with {figures.streaming} of them streaming, MB", f"{figures.streaming_mb:.0f}"),
        ("after all had closed, MB", f"{figures.closed_mb:.0f}; ratio {figures.left_over:.3f}"),
        (
            "all interactions: median, p95, slowest, ms",
            f"{figures.p50_ms:.0f}, {figures.p95_ms:.0f}, {figures.slowest_ms:.0f}",
        ),
        *(
            (f"{name}: median, p95, ms", f"{statistics.median(times):.0f}, {p95(times):.0f}")
            for name, times in taken.items()
        ),
    ]
    return "\n".join(["| what | how much |", "|---|---|", *(f"| {what} | {much} |" for what, much in rows)])


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--pages", type=int, default=200)
    options.add_argument("--streaming", type=int, default=16)
    options.add_argument("--model", help="as in QDESK_MODEL")
    chosen, began = options.parse_args(), datetime.now(UTC)
    settings: dict[str, Any] = {
        "max_concurrent_requests": max(chosen.streaming, WARM_PAGES) + 1,
        "max_new_tokens": 4000 if chosen.streaming else 64,  # long enough to last, or short enough to wait for
    }
    if chosen.model:
        settings |= {"backend": "qwen2", "model": chosen.model}
    with running_server(accounts=PEOPLE, **settings) as server:
        figures, taken = asyncio.run(measure(server, chosen.pages, chosen.streaming))
    save(began, table(figures, taken), asdict(figures) | {"milliseconds": taken})


if __name__ == "__main__":
    main()
