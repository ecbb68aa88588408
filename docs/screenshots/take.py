"""Takes every picture of docs/screenshots: the real server, the real pages, a real Chromium; a script plays the model.

    make screenshots

A small organisation is written into a fresh database first, so that lists and charts have something to show. Each page
is taken as a wide light one, dark, on a phone, and in Chinese.
"""

import asyncio
import random
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
from PIL import Image
from playwright.sync_api import Browser, Page, StorageState

from engine.sketch import Sketch
from engine.spans import Span
from engine.types import Exchange, Message, Sampling, Status, new_id
from storage import Store
from tests.chromium import running_chromium
from tests.server import API_KEY, RunningServer, running_server
from ui.components.attachments import TextFile, split_files, with_files
from ui.passwords import Passwords

PICTURES = Path(__file__).parent
PASSWORD = "a picture of a password"
COLOURS = 128  # of a picture's palette
RUNNING = 3  # requests at once

TALKS = [  # person, minutes ago, question, answer
    ("lin", 3100, "把这句话改得更正式：东西坏了，快来修。", "设备出现故障，烦请尽快安排维修。谢谢。"),
    ("ada", 2900, "What does HTTP 503 mean?", "The server cannot answer *at the moment*. It often says when to retry."),
    ("lin", 1500, "会议纪要怎么写才清楚？", "先写**决定**，再写**谁在何时之前做什么**，最后写未决的问题。"),
    (
        "omar",
        900,
        "Draft a short out-of-office note.",
        "I am away until Monday. For anything urgent, please write to the desk.",
    ),
    ("lin", 240, "用一句话解释什么是量化。", "量化是用更少的位数来表示模型的权重，让它占用更少的内存、运行得更快。"),
    (
        "ada",
        12,
        "How do I count the words of a file in Python?",
        "Split the text at white space and count the pieces:\n\n```python\nfrom collections import Counter\n"
        'from pathlib import Path\n\nwords = Path("notes.txt").read_text(encoding="utf-8").split()\n'
        "for word, times in Counter(words).most_common(5):\n"
        '    print(f"{times:>5}  {word}")\n```\n\n'
        "- `split()` without arguments takes any run of white space as one gap.\n"
        "- `Counter` is a dictionary that counts; `most_common` sorts it.\n\n"
        "For a file that does not fit in memory, go through it line by line and `update` the counter.",
    ),
]


MEASURED = with_files(
    "How much do these readings vary?", [TextFile("readings.csv", "hour,value\n9,4.1\n10,3.9\n11,4.4\n12,4.0\n")]
)
ABOUT_IT = (  # an answer with a formula and a table
    "Very little. Their spread is the **standard deviation**\n\n"
    "$$\ns = \\sqrt{\\frac{1}{n-1} \\sum_{i=1}^{n} (x_i - \\bar{x})^2}\n$$\n\n"
    "with $n = 4$ readings and their mean $\\bar{x} = 4.1$:\n\n"
    "| hour | value | from the mean |\n|-----:|------:|--------------:|\n"
    "| 9 | 4.1 | 0.0 |\n| 10 | 3.9 | −0.2 |\n| 11 | 4.4 | +0.3 |\n| 12 | 4.0 | −0.1 |\n\n"
    "That makes $s \\approx 0.22$, or 5 % of the mean."
)
TALKS.append(("ada", 3, MEASURED, ABOUT_IT))


@dataclass(frozen=True)
class Look:
    """One way to look at a page."""

    name: str
    width: int = 1280
    height: int = 800
    language: str = "en-US"
    dark: bool = False


LOOKS = (
    Look("light"),
    Look("dark", dark=True),
    Look("phone", width=390, height=780),
    Look("chinese", language="zh-CN"),
)


async def furnish(data_dir: Path) -> list[str]:
    """Write people and their conversations into a fresh database; return the ids of the conversations."""
    store, passwords = Store(f"sqlite:///{data_dir / 'qdesk.db'}"), Passwords()
    store.open()
    people = {}
    for name, role in (("ada", "admin"), ("lin", "staff"), ("omar", "reviewer")):
        user = await store.users.create(name, await passwords.hash(PASSWORD), role)  # type: ignore[arg-type]  # one of the roles
        assert user
        people[name] = user.id
    conversations = []
    for person, minutes, question, answer in TALKS:
        conversation = await store.conversations.create(people[person], title=split_files(question)[0])
        exchange = _exchange(people[person], conversation.id, minutes, question, answer)
        await store.exchanges.record(exchange)
        await store.conversations.set_head(conversation.id, people[person], exchange.id)
        conversations.append(conversation.id)
    for span in _a_day():
        await store.samples.add(span)
    passwords.close()
    store.close()
    return conversations


def _a_day() -> Iterator[Span]:
    """A made-up day with a busy noon, five minutes a piece, so that the charts have something to show."""
    draw, now = random.Random(1), datetime.now(UTC)
    for minutes in range(24 * 60, 0, -5):
        at = now - timedelta(minutes=minutes)
        busy = max(0.0, 1 - abs(at.hour + at.minute / 60 - 12) / 7)
        answers = round(45 * busy * draw.random())
        first, gaps, queue = Sketch(), Sketch(), Sketch()
        for _ in range(answers):
            first.add(0.3 + draw.expovariate(4 / (0.2 + busy)))
            gaps.add(0.03 + draw.expovariate(90), times=60)
            queue.add(draw.expovariate(5 / (0.02 + busy**3)))
        yield Span(
            at=at,
            seconds=300,
            running=RUNNING * busy * draw.uniform(0.7, 1),
            waiting=max(0.0, 5 * busy - 3.5) * draw.random(),
            tokens=answers * 160,
            ended={"done": answers},
            refused={"queue_full": round(6 * draw.random())} if busy > 0.93 else {},
            ttft=first,
            gaps=gaps,
            queue=queue,
            cpu=0.05 + 0.8 * busy * draw.uniform(0.8, 1),
            memory=round((5.8 + 0.4 * busy) * 2**30),
        )


def _exchange(person: str, conversation_id: str, minutes: int, question: str, answer: str) -> Exchange:
    asked = datetime.now(UTC) - timedelta(minutes=minutes)
    tokens = max(8, len(answer) // 3)
    return Exchange(
        id=new_id(),
        person=person,
        source="page",
        conversation_id=conversation_id,
        parent_id=None,
        messages=(Message("user", question),),
        answer=answer,
        status=Status.DONE,
        finish_reason="stop",
        error=None,
        model="Qwen2-7B-Instruct",
        quantization="nf4",
        sampling=Sampling(),
        prompt_tokens=24 + len(question) // 3,
        cached_tokens=16,
        completion_tokens=tokens,
        queue_depth=minutes % 4,
        queued_at=asked,
        started_at=asked + timedelta(seconds=0.1 * (minutes % 7)),
        first_token_at=asked + timedelta(seconds=0.1 * (minutes % 7) + 0.3),
        finished_at=asked + timedelta(seconds=1 + tokens / 40),
    )


@contextmanager
def crowd(server: RunningServer, size: int) -> Iterator[None]:
    """So many programs that ask for a long answer at once, until the block ends."""
    question = {"model": "scripted", "messages": [{"role": "user", "content": "long"}], "stream": True}
    key = {"Authorization": f"Bearer {API_KEY}"}
    with ExitStack() as answers, httpx.Client(base_url=server.url, headers=key, timeout=60) as programs:
        for _ in range(size):
            answers.enter_context(programs.stream("POST", "/v1/chat/completions", json=question))
        yield


class Photographer:
    """Opens pages as somebody, in each look, and takes their pictures."""

    def __init__(self, browser: Browser, server: RunningServer) -> None:
        self._browser, self._server = browser, server
        self._cookies: dict[str, StorageState] = {}

    def sign_in(self, person: str) -> None:
        with self._browser.new_context(base_url=self._server.url) as context:
            page = context.new_page()
            page.goto("/login")
            page.fill("input[name=name]", person)
            page.fill("input[name=password]", PASSWORD)
            page.click("button[type=submit]")
            page.wait_for_url("**/")
            self._cookies[person] = context.storage_state()

    def take(self, name: str, path: str, person: str = "", *, shows: str = "", ask: str = "") -> None:
        """One picture a look of this page, once `shows` (a CSS selector) is there and `ask` is asked."""
        for look in LOOKS:
            with self._browser.new_context(
                viewport={"width": look.width, "height": look.height},
                locale=look.language,
                timezone_id="UTC",
                color_scheme="dark" if look.dark else "light",
                reduced_motion="reduce",
                base_url=self._server.url,
                storage_state=self._cookies.get(person),
            ) as context:
                page = context.new_page()
                page.goto(path)
                if ask:
                    page.fill("textarea", ask)
                    page.press("textarea", "Enter")
                if shows:
                    page.wait_for_selector(shows)
                page.wait_for_load_state("networkidle")
                _save(page, PICTURES / f"{name}-{look.name}.png")


def _save(page: Page, path: Path) -> None:
    """Take the picture and keep it small: a page has few colours."""
    page.screenshot(path=path)
    with Image.open(path) as picture:
        picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path.name}  {path.stat().st_size / 1024:.0f} kB")


def take_all(browser: Browser, server: RunningServer, conversations: list[str]) -> None:
    camera = Photographer(browser, server)
    for person in ("ada", "lin", "omar"):
        camera.sign_in(person)
    camera.take("login", "/login")
    camera.take("chat-empty", "/", "lin", shows="textarea")
    camera.take("chat", f"/c/{conversations[-2]}", "ada", shows="pre code")
    camera.take("chat-formula", f"/c/{conversations[-1]}", "ada", shows="math")
    camera.take("account", "/account", "ada")
    camera.take("review", "/review", "omar", shows=".inbox-row")
    with crowd(server, RUNNING + 2):
        camera.take("chat-waiting", "/", "lin", shows=".ticket", ask="会议纪要怎么写才清楚？")
        camera.take("admin", "/admin", "ada")
        camera.take("admin-steer", "/admin/steer", "ada")
        camera.take("admin-people", "/admin/people", "ada")
        camera.take("admin-history", "/admin/history?range=day", "ada", shows=".timeline:not(.busy) path.stack")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        data_dir = Path(folder) / "data"
        data_dir.mkdir()
        conversations = asyncio.run(furnish(data_dir))
        with (
            running_chromium() as browser,
            running_server(data_dir, max_concurrent_requests=RUNNING, max_requests_per_user=9) as server,
        ):
            take_all(browser, server, conversations)


if __name__ == "__main__":
    main()
