"""What one more token of an answer costs, on the server and in the browser: long answers beside short ones.

    python -m bench.streaming            # both, about three minutes; the browser part needs Chromium
    python -m bench.streaming --server   # processor time of rendering alone

A ratio of 1 means that a token of the long answer costs what one of the short answer does.
"""

import argparse
import itertools
import re
import time
from dataclasses import dataclass

from playwright.sync_api import CDPSession, Page

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


def compare(name: str, short: Cost, long: Cost) -> None:
    print(f"{name:<18}", _beside("µs/token", short.microseconds_a_token, long.microseconds_a_token), end="   ")
    print(_beside("bytes/token", short.bytes_a_token, long.bytes_a_token))


def compare_updates(short: Cost, long: Cost) -> None:
    """The same for one update: on a busy machine fewer of them come, of more tokens each."""
    print(f"{short.updates:>8} {long.updates:>8} ", end=" ")
    print(_beside("µs/update", 1e6 * short.seconds / short.updates, 1e6 * long.seconds / long.updates), end="   ")
    print(_beside("bytes/update", 1e3 * short.kilobytes / short.updates, 1e3 * long.kilobytes / long.updates))


def _beside(unit: str, short: float, long: float) -> str:
    return f"{short:6.0f} {long:6.0f} {unit}, ratio {long / short:4.2f}"


def measure_server() -> None:
    print(f"Rendering on the server, {SHORT} and {LONG} tokens, a look every {TOKENS_A_LOOK}")
    rendering(mixed(SHORT))  # what is loaded at first use is no part of it
    compare("everything mixed", rendering(mixed(SHORT)), rendering(mixed(LONG)))
    print(f"A single block that never ends, {SHORT} and {ONE_BLOCK_TOKENS} tokens")
    for name, (opener, line) in ONE_BLOCK.items():
        short, long = (rendering(one_block(opener, line, tokens)) for tokens in (SHORT, ONE_BLOCK_TOKENS))
        compare(name, short, long)


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


def measure_browser(server: RunningServer) -> None:
    print(f"In the browser, {SHORT} and {LONG} tokens at fifty a second")
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
        compare("everything mixed", *costs)
        compare_updates(*costs)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--server", action="store_true", help="only what the server computes")
    only_server = options.parse_args().server
    measure_server()
    if not only_server:
        with running_server(max_context_tokens=32_768, max_new_tokens=2 * LONG) as server:
            measure_browser(server)


if __name__ == "__main__":
    main()
