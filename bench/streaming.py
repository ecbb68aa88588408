"""What one more token of an answer costs, on the server and in the browser: long answers beside short ones.

    python -m bench.streaming            # both, about three minutes; the browser part needs Chromium
    python -m bench.streaming --server   # processor time of rendering alone

A ratio of 1 means that a token of the long answer costs what one of the short answer does.
"""

import argparse
import itertools
import re
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from playwright.sync_api import CDPSession, Page

from bench.report import save
from tests.chromium import running_chromium
from tests.server import PASSWORD, RunningServer, running_server
from ui.components.markdown import MarkdownStream

SHORT, LONG = 200, 4_000  # tokens
TOKENS_A_LOOK = 5  # fifty tokens a second, ten looks a second: what the scripted backend and the page do
ONE_BLOCK_TOKENS = 12_000  # of a single block that never ends: code of some two thousand lines

SECTION = """## Section {n}

A paragraph of running text with **bold**, *slanted* and `code` words in it, an address https://example.org/{n} and
a formula $x_{n}^2 + y_{n}^2 = r^2$ that goes on over a second line.

| name | value | note |
|------|------:|------|
| one  | {n}   | a cell with some words |
| two  | 2     | another cell |

```python
def section_{n}(values: list[int]) -> int:
    return sum(value * {n} for value in values)  # and so on
```

$$
\\sum_{{i=1}}^{{n}} x_i = \\frac{{{n}}}{{2}}
$$

1. first item of a list
2. second item, somewhat longer than the first
"""

ONE_BLOCK = {  # shapes that never end: opener, and a line that comes again and again
    "code": ("```python\n", "value = compute(value, 17)  # and so on\n"),
    "table": ("| a | b |\n|---|---|\n", "| one cell | another cell |\n"),
    "list": ("", "- an item with some words in it\n"),
    "code in a list": ("1. Do this:\n   ```sh\n", "   echo one line of many\n"),
    "one line": ("", "words that never see the end of their line "),
    "log": ("", "2026-01-01 12:00:00 [info] something happened again\n"),
    "quote": ("", "> quoted words that go on\n"),
}


@dataclass(frozen=True)
class Cost:
    """Of one answer."""

    tokens: int
    seconds: float
    kilobytes: float
    updates: int  # messages in which it came

    @property
    def microseconds_a_token(self) -> float:
        return 1e6 * self.seconds / self.tokens

    @property
    def bytes_a_token(self) -> float:
        return 1e3 * self.kilobytes / self.tokens


def words(text: str) -> list[str]:
    return re.findall(r"\s*\S+", text)


def mixed(tokens: int) -> list[str]:
    sections = (words("\n" + SECTION.format(n=n)) for n in itertools.count(1))
    return list(itertools.islice(itertools.chain.from_iterable(sections), tokens))


def one_block(opener: str, line: str, tokens: int) -> list[str]:
    return words(opener + line * tokens)[:tokens]


def rendering(pieces: list[str]) -> Cost:
    """Rendering on the server while the pieces come: processor time, and what is sent."""
    stream, sent, began = MarkdownStream(), 0, time.process_time()
    for at in range(0, len(pieces), TOKENS_A_LOOK):
        stream.feed("".join(pieces[at : at + TOKENS_A_LOOK]))
        part = stream.take()
        sent += len(part.finished) + len(part.piece) + len(part.tail)
    sent += len(stream.finish().finished)
    return Cost(len(pieces), time.process_time() - began, sent / 1e3, 1 + len(pieces) // TOKENS_A_LOOK)


@dataclass(frozen=True)
class Beside:
    """One unit of the short answer beside one of the long one."""

    what: str
    unit: str
    short: float
    long: float

    def row(self) -> str:
        return f"| {self.what} | {self.unit} | {self.short:.0f} | {self.long:.0f} | {self.long / self.short:.2f} |"


def a_token(what: str, short: Cost, long: Cost) -> list[Beside]:
    return [
        Beside(what, "µs/token", short.microseconds_a_token, long.microseconds_a_token),
        Beside(what, "bytes/token", short.bytes_a_token, long.bytes_a_token),
    ]


def an_update(what: str, short: Cost, long: Cost) -> list[Beside]:
    """On a busy machine fewer of them come, of more tokens each."""
    return [
        Beside(what, "µs/update", 1e6 * short.seconds / short.updates, 1e6 * long.seconds / long.updates),
        Beside(what, "bytes/update", 1e3 * short.kilobytes / short.updates, 1e3 * long.kilobytes / long.updates),
    ]


def measure_server() -> list[Beside]:
    rendering(mixed(SHORT))  # what is loaded at first use is no part of it
    found = a_token(f"server, everything mixed, {LONG} tokens", rendering(mixed(SHORT)), rendering(mixed(LONG)))
    for name, (opener, line) in ONE_BLOCK.items():
        short, long = (rendering(one_block(opener, line, tokens)) for tokens in (SHORT, ONE_BLOCK_TOKENS))
        found += a_token(f"server, one block of {name}, {ONE_BLOCK_TOKENS} tokens", short, long)
    return found


# --- in the browser ---

WORK = ("ScriptDuration", "LayoutDuration", "RecalcStyleDuration")


def in_the_browser(page: Page, devtools: CDPSession, pieces: list[str]) -> Cost:
    """Ask the script to say these pieces; what the page receives and computes from the first of them to the last."""
    page.goto(page.url)
    page.get_by_label("Write a message").fill("".join(pieces))
    received: list[int] = []
    devtools.on("Network.webSocketFrameReceived", lambda frame: received.append(len(frame["response"]["payloadData"])))
    page.get_by_role("button", name="Send").click()
    page.wait_for_selector(".answer-text p")
    received.clear()
    before = _work(devtools)
    page.wait_for_selector(".answer-actions", timeout=600_000)
    return Cost(len(pieces), _work(devtools) - before, sum(received) / 1e3, len(received))


def _work(devtools: CDPSession) -> float:
    """Seconds of scripting, style and layout so far."""
    metrics = {one["name"]: one["value"] for one in devtools.send("Performance.getMetrics")["metrics"]}
    return float(sum(metrics[name] for name in WORK))


def measure_browser(server: RunningServer) -> list[Beside]:
    with running_chromium() as browser:
        page = browser.new_page(base_url=server.url)
        page.goto("/login")
        page.fill("input[name=name]", "admin")
        page.fill("input[name=password]", PASSWORD)
        page.click("button[type=submit]")
        page.wait_for_url("**/")
        devtools = page.context.new_cdp_session(page)
        for domain in ("Network", "Performance"):
            devtools.send(f"{domain}.enable")
        in_the_browser(page, devtools, mixed(50))
        costs = []
        for tokens in (SHORT, LONG):
            page.goto("/")
            costs.append(in_the_browser(page, devtools, mixed(tokens)))
        what = f"browser, everything mixed, {LONG} tokens at fifty a second"
        return a_token(what, *costs) + an_update(f"the same, {costs[0].updates} and {costs[1].updates} updates", *costs)


def table(found: list[Beside]) -> str:
    head = [f"| | | of {SHORT} tokens | of the long one | ratio |", "|---|---|---:|---:|---:|"]
    return "\n".join([*head, *(one.row() for one in found)])


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--server", action="store_true", help="only what the server computes")
    only_server, began = options.parse_args().server, datetime.now(UTC)
    found = measure_server()
    if not only_server:
        with running_server(max_context_tokens=32_768, max_new_tokens=2 * LONG) as server:
            found += measure_browser(server)
    save(began, table(found), {"beside": [asdict(one) for one in found]})


if __name__ == "__main__":
    main()
