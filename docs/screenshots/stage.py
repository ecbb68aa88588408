"""The server of the pictures: `main.py` with a script that plays a larger model, stops in the middle, and breaks off.

    with running_server(program=STAGE) as server: ...

An answer with a CUE in it stands still there until it is stopped; one with a BREAK fails there.
"""

import asyncio
import runpy
from collections.abc import AsyncGenerator

from engine import backends
from engine.backends import Backend
from engine.backends.scripted import ScriptedBackend
from engine.errors import BackendFailed
from engine.settings import Settings
from engine.types import ChatRequest, Delta, Event

STAGE = ("-m", "docs.screenshots.stage")
MODELS = ("Qwen/Qwen2-7B-Instruct", "Qwen/Qwen2-1.5B-Instruct")  # the one that is played, and another one
CUE, BREAK = "…cue…", "…break…"  # each a word of its own

STREAMED = "How do I find duplicate lines in a file?"
NAMED = "Suggest a name for our staff newsletter."
BROKEN = "Which ports does PostgreSQL use?"
TRIED = "Say hello in Chinese."  # which /docs offers to try
ANSWERS = {
    STREAMED: (
        "Two short ways, both without loading more than the lines themselves:\n\n"
        "1. **In the shell**, where order does not matter: `sort file.txt | uniq -d`.\n"
        "2. **In Python**, where it does:\n\n```python\nseen: set[str] = set()\n"
        f'for line in open("file.txt", encoding="utf-8"):\n    if line in seen:\n {CUE}'
    ),
    NAMED: (
        "**Desk Notes** says what it is and where it comes from. Two others that fit on a masthead:\n\n"
        "- *The Wednesday Page*, if it comes out once a week\n- *In Short*, if it stays short"
    ),
    TRIED: "你好！",
    BROKEN: f"It listens on port **5432**, which `listen_addresses` and `port` in {BREAK}",
}


class Player(ScriptedBackend):
    def __init__(self) -> None:
        super().__init__(context_tokens=32_768, pause_s=0.04, model="Qwen2-7B-Instruct")
        self.quantization = "nf4"
        self.answers |= ANSWERS

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Event, None]:
        async for event in super().stream(request):
            if isinstance(event, Delta) and CUE in event.text:
                await asyncio.Event().wait()  # until somebody stops it
            if isinstance(event, Delta) and BREAK in event.text:
                raise BackendFailed("The script says to break off here.")
            yield event


def run() -> None:
    def create(settings: Settings) -> Backend:
        return Player()

    backends.create_backend = create
    runpy.run_path("main.py", run_name="__main__")


if __name__ == "__main__":
    run()
