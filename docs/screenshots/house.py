"""A small organisation for the pictures: its people, what they asked, and a day of its server, all made up.

Written into a fresh database, so that lists and charts have something to show. Knows nothing of pages.
"""

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from engine.sketch import Sketch
from engine.spans import Span
from engine.types import Exchange, Message, Sampling, Status, new_id
from storage import Store
from storage.records import UserRole
from ui.components.attachments import TextFile, split_files, with_files
from ui.passwords import Passwords

PASSWORD = "a picture of a password"
RUNNING = 3  # requests at once
RATED = 1  # which of TALKS has been rated and reviewed
PEOPLE: dict[str, UserRole] = {"ada": "admin", "lin": "staff", "omar": "reviewer"}
TEMPLATES = [  # name, text, for everybody
    ("改得更正式", "请把下面的文字改得更正式、更简洁：\n\n{{文字}}", True),
    ("Minutes", "Write minutes of this meeting: decisions first, then who does what by when.\n\n{{notes}}", True),
    ("Reply", "Draft a friendly reply of at most five sentences to this message:\n\n{{message}}", False),
]

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
class Furnished:
    """The ids of what was written, in the order of TALKS."""

    conversations: list[str]
    exchanges: list[str]


async def furnish(data_dir: Path) -> Furnished:
    """Write people and their conversations into a fresh database."""
    file = data_dir / "qdesk.db"
    store, passwords, made = Store(f"sqlite:///{file}"), Passwords(), Furnished([], [])
    store.open()
    people = {}
    for name, role in PEOPLE.items():
        user = await store.users.create(name, await passwords.hash(PASSWORD), role)
        assert user
        people[name] = user.id
    for person, minutes, question, answer in TALKS:
        conversation = await store.conversations.create(people[person], title=split_files(question)[0])
        exchange = _exchange(people[person], conversation.id, minutes, question, answer)
        await store.exchanges.record(exchange)
        await store.conversations.set_head(conversation.id, people[person], exchange.id)
        made.conversations.append(conversation.id)
        made.exchanges.append(exchange.id)
    await store.conversations.pin(made.conversations[0], people["lin"], True)
    for name, text, shared in TEMPLATES:
        await store.templates.create(people["lin"], name, text, shared=shared)
    await _judge(store, people, made.exchanges[RATED])
    for span in _a_day():
        await store.samples.add(span)
    passwords.close()
    store.close()
    _age(file, made.conversations)
    return made


async def _judge(store: Store, people: dict[str, str], exchange_id: str) -> None:
    """What its person and a reviewer think of one answer, and an audit trail."""
    await store.feedback.set(exchange_id, people["ada"], -1, reason="incomplete", comment="Retry-After is missing.")
    await store.reviews.label(exchange_id, "http", people["omar"])
    await store.reviews.add_note(exchange_id, "True, but it should say for how long.", people["omar"])
    await store.audit.add("omar", "review.open", exchange_id)
    await store.audit.add("ada", "user.role", "omar", "staff → reviewer")
    await store.audit.add("ada", "limits.change", "", "running 2 → 3")
    await store.audit.add("ada", "banner.show", "", "info: maintenance at noon")


def _age(file: Path, conversations: list[str]) -> None:
    """Conversations are as old as what was said in them."""
    with closing(sqlite3.connect(file)) as database, database:
        for id, (_, minutes, _, _) in zip(conversations, TALKS, strict=True):
            earlier = "update conversations set updated_at = datetime(updated_at, ?) where id = ?"
            database.execute(earlier, (f"-{minutes} minutes", id))


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
