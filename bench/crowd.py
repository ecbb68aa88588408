"""A crowd of pages and programs that ask a bit more than twice what a server answers, stop, reload and go away.

Every question has a word of its own, which its answer repeats: whoever sees another's is told. Knows what people do;
figures and limits are bench/soak.py's.
"""

import asyncio
import random
import re
import time
from collections import Counter
from collections.abc import Awaitable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import psutil

from bench.page import Page
from bench.watcher import CHAT, is_refusal
from engine.types import new_id
from storage import Store
from tests.databases import SECRET
from tests.server import RunningServer, bearer
from ui.seal import Seal

THINK_S, RETRY_S, BETWEEN_S = 30.0, 13.0, 11.0  # at most, a person's after an answer and a refusal, and a program's
# pauses: together they ask for a bit more than twice of what these places answer
WORD = re.compile(r"nonce[0-9a-f]{32}")
WORDS = (1, 5, 20, 60)  # of a question, each as often as the others
OWN_LAG_EVERY_S = 0.1


@dataclass
class Soak:
    """What has happened so far, and the dice that decide what happens next."""

    until_s: float  # time.monotonic()
    dice: random.Random
    words: tuple[int, ...] = WORDS
    taken: set[str] = field(default_factory=set)  # words of questions that the server has taken
    did: Counter[str] = field(default_factory=Counter)
    refused_s: dict[str, list[float]] = field(default_factory=lambda: {"pages": [], "programs": []})  # from asking on
    own_lag_s: list[float] = field(default_factory=list)  # how late this process itself is, which is in all it measures
    faults: list[str] = field(default_factory=list)

    @property
    def asked_over_taken(self) -> float:
        """How many times what is taken is asked for."""
        taken = self.did["pages answered"] + self.did["programs answered"]
        return 1 + (self.did["pages refused"] + self.did["programs refused"]) / max(1, taken)

    @property
    def over(self) -> bool:
        return time.monotonic() >= self.until_s

    def word(self) -> str:
        return f"nonce{new_id()}"

    def question(self, word: str) -> str:
        return "\n".join(["soak", " ".join([word] * self.dice.choice(self.words))])

    def check(self, seen: str, own: set[str]) -> None:
        """Every word in a text is the reader's own."""
        if foreign := set(WORD.findall(seen)) - own:
            self.faults.append(f"somebody saw the words of others: {sorted(foreign)[:3]}")

    def refused(self, whom: str, began: float) -> None:
        """One of the pages or programs was refused that asked at this time.monotonic()."""
        self.refused_s[whom].append(time.monotonic() - began)
        self.did[f"{whom} refused"] += 1

    async def pause(self, most_s: float) -> None:
        """At most so long, and not longer than all this."""
        await asyncio.sleep(max(0.0, min(self.dice.uniform(0, most_s), self.until_s - time.monotonic())))


async def page(soak: Soak, http: httpx.AsyncClient, session: str) -> None:
    """A person with one tab: asks, reads or stops or reloads, thinks, begins anew now and then."""
    own: set[str] = set()
    tab = Page(http, session, lambda frame: soak.check(frame, own))
    await soak.pause(THINK_S)
    await tab.open()
    while not soak.over:
        word = soak.word()
        own.add(word)
        began = time.monotonic()
        if await tab.ask(soak.question(word)):
            soak.refused("pages", began)
            await soak.pause(RETRY_S)
            continue
        soak.taken.add(word)
        soak.did["pages answered"] += 1
        match soak.dice.random():
            case luck if luck < 0.15:
                await soak.pause(1)
                await tab.stop()
                soak.did["stopped"] += 1
            case luck if luck < 0.3:
                await soak.pause(1)
                await tab.open(f"/c/{tab.conversation}")
                soak.did["reloaded"] += 1
        await tab.until_answered()
        await soak.pause(THINK_S)
        if soak.dice.random() < 0.3:
            await tab.open()
    await tab.close()


async def program(soak: Soak, http: httpx.AsyncClient) -> None:
    """A program that asks one thing after the other, half of it streamed, and hangs up on every fifth."""
    while not soak.over:
        word = soak.word()
        body = {"messages": [{"role": "user", "content": soak.question(word)}], "stream": soak.dice.random() < 0.5}
        patience_s = soak.dice.uniform(0.05, 2) if soak.dice.random() < 0.2 else 120
        began = time.monotonic()
        try:
            async with asyncio.timeout(patience_s), http.stream("POST", CHAT, json=body, headers=bearer()) as response:
                if response.status_code == 200:
                    soak.taken.add(word)
                    soak.did["programs answered"] += 1
                soak.check((await response.aread()).decode(), {word})
                if response.status_code != 200:
                    assert is_refusal(response), response.text
                    soak.refused("programs", began)
        except TimeoutError:
            soak.did["hung up"] += 1
        await soak.pause(BETWEEN_S)


async def soaked(
    server: RunningServer, sessions: list[str], programs: int, seconds: float, words: tuple[int, ...] = WORDS
) -> tuple[Soak, list[float]]:
    """Let everybody do as they do for so long; also the server's memory every few seconds, in bytes."""
    soak = Soak(time.monotonic() + seconds, random.Random(7), words)
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=100)
    memory: list[float] = []

    async def weigh() -> None:
        while not soak.over:
            memory.append(memory_of(server))
            await asyncio.sleep(min(5.0, seconds / 12))

    async def notice_own_lag() -> None:
        while not soak.over:
            due = time.monotonic() + OWN_LAG_EVERY_S
            await asyncio.sleep(OWN_LAG_EVERY_S)
            soak.own_lag_s.append(time.monotonic() - due)

    async with httpx.AsyncClient(base_url=server.url, timeout=120, limits=limits) as http:
        everybody: list[Awaitable[None]] = [page(soak, http, session) for session in sessions]
        everybody += [program(soak, http) for _ in range(programs)]
        everybody += [weigh(), notice_own_lag()]
        await asyncio.gather(*everybody)
    return soak, memory


async def people(data_dir: Path, count: int) -> list[str]:
    """Accounts with a session each, put into the database of a server that does not run; their cookies."""
    store, seal = Store(f"sqlite:///{data_dir / 'qdesk.db'}"), Seal(SECRET.encode())
    store.open()
    cookies = []
    for number in range(count):
        user = await store.users.create(f"person {number}", "no password", "staff")
        assert user is not None
        cookies.append(cookie := new_id())
        await store.sessions.create(user.id, seal("session", cookie), "soak", datetime.now(UTC) + timedelta(days=1))
    store.close()
    return cookies


def memory_of(server: RunningServer) -> float:
    """Resident, in bytes."""
    return float(psutil.Process(server.process.pid).memory_info().rss)
