"""What an open page costs the server while nobody does anything on it."""

import httpx
import psutil

from bench.page import Page
from tests.server import RunningServer

PAGES, FIRST = 40, 10  # pages that are looked at; those before them, which load what all of them share
MOST_BYTES = 500_000  # of the server's resident memory for each


async def test_an_idle_page_costs_less_than_half_a_megabyte(server: RunningServer) -> None:
    server_memory = psutil.Process(server.process.pid).memory_info
    with server.sign_in("rita") as rita:
        session = rita.cookies["qdesk_session"]
        async with httpx.AsyncClient(base_url=server.url, timeout=60) as http:
            pages = [Page(http, session) for _ in range(FIRST + PAGES)]
            for page in pages[:FIRST]:
                await page.open()
            before = server_memory().rss
            for page in pages[FIRST:]:
                await page.open()
            assert server_memory().rss - before < PAGES * MOST_BYTES
            for page in pages:
                await page.close()
