"""What an open page costs the server while nobody does anything on it."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil

from bench.page import Page
from engine.types import Exchange, Message
from tests.browser.log import write_log
from tests.server import RunningServer, running_server
from tests.ui.exchanges import exchange

PAGES, FIRST = 40, 10  # pages that are looked at; those before them, which load what all of them share
MOST_BYTES = 500_000  # of the server's resident memory for each
LONG, MOST_BYTES_LONG = 200, 4_000_000  # exchanges of a long conversation; the same for a page that shows it
READ = 27  # of these are read for the next one: a context of 4,096 tokens


async def test_an_idle_page_costs_less_than_half_a_megabyte(server: RunningServer) -> None:
    assert await bytes_a_page(server, "rita", "/", first=FIRST, pages=PAGES) < MOST_BYTES


async def test_a_page_of_a_long_conversation_costs_less_than_four_megabytes(tmp_path: Path) -> None:
    write_log(tmp_path, long_conversation())
    with running_server(tmp_path) as server:
        [(id,)] = server.rows("select id from conversations")
        assert await bytes_a_page(server, "ada", f"/c/{id}", first=2, pages=6) < MOST_BYTES_LONG


async def bytes_a_page(server: RunningServer, name: str, path: str, *, first: int, pages: int) -> float:
    """How much the server's resident memory grows with each page that is opened beside the first ones."""
    server_memory = psutil.Process(server.process.pid).memory_info
    with server.sign_in(name) as browser:
        session = browser.cookies["qdesk_session"]
    async with httpx.AsyncClient(base_url=server.url, timeout=60) as http:
        opened = [Page(http, session) for _ in range(first + pages)]
        for page in opened[:first]:
            await page.open(path)
        before = server_memory().rss
        for page in opened[first:]:
            await page.open(path)
        grown: int = server_memory().rss - before
        for page in opened:
            await page.close()
    return grown / pages


def long_conversation() -> Iterator[Exchange]:
    """One after the other, each with those before it that the model was told of."""
    said = list[Message]()
    for n in range(LONG):
        question = Message("user", f"{n}: how do I count the words of the files in a folder, the hidden ones left out?")
        answer = f"{n}. " + "Split the **text** at white space and count the pieces with `Counter`, file by file. " * 8
        asked = (Message("system", "Be kind."), *said[-2 * READ :], question)
        parent = f"e{n - 1}" if n else None
        yield exchange(f"e{n}", parent, after_s=n, person="ada", messages=asked, answer=answer)
        said += [question, Message("assistant", answer)]
