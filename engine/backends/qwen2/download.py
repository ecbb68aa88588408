"""One large file over HTTP that is continued where it broke: within a call, and from one start to the next.

Knows nothing of models and of digests: who calls checks what has come.
"""

import time
from collections.abc import Callable
from pathlib import Path

import httpx2  # what huggingface_hub speaks HTTP with
from huggingface_hub import get_session, get_token, hf_raise_for_status

ATTEMPTS = 5  # in a row that bring no byte
PAUSE_S = 2.0  # before another attempt, and so much more with each
SILENCE_S = 20.0  # a connection that brings nothing for so long counts as broken


def download(url: str, partial: Path, size: int, report: Callable[[int], None]) -> None:
    """Fill `partial` up to `size` bytes; what is in it already is kept. `report` is told how many bytes there are.

    Raises HfHubHTTPError for an answer that is an error, httpx2.HTTPError after ATTEMPTS broken connections.
    """
    partial.parent.mkdir(parents=True, exist_ok=True)
    partial.touch()
    failures = 0
    while (have := partial.stat().st_size) < size:
        try:
            _continue(url, partial, have, report)
            if partial.stat().st_size <= have:
                raise httpx2.RemoteProtocolError("the file ends too early")
        except httpx2.TransportError:
            failures = 0 if partial.stat().st_size > have else failures + 1
            if failures >= ATTEMPTS:
                raise
            time.sleep(PAUSE_S * failures)


def _continue(url: str, partial: Path, have: int, report: Callable[[int], None]) -> None:
    """Ask for what is missing and append it."""
    headers = {"Accept-Encoding": "identity", "Range": f"bytes={have}-"}
    if token := get_token():
        headers["Authorization"] = f"Bearer {token}"  # the client keeps it from other hosts that it is sent on to
    with get_session().stream("GET", url, headers=headers, timeout=SILENCE_S) as response:
        hf_raise_for_status(response)
        if response.status_code != 206:
            have = 0  # the server sends the whole file
        with partial.open("r+b") as file:
            file.truncate(have)
            file.seek(have)
            for chunk in response.iter_raw():
                file.write(chunk)
                have += len(chunk)
                report(have)
