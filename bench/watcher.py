"""Somebody who looks at a loaded server again and again, from a process of its own: is it alive, and is one refused?

Knows nothing of the load, and imports next to nothing, so that it is there at once.
"""

import time
from collections.abc import Mapping

import httpx

CHAT = "/v1/chat/completions"
EVERY_S = 0.25  # between a look with its question and the next


def watch(
    url: str, headers: Mapping[str, str], seconds: float, every_s: float = EVERY_S
) -> tuple[list[float], list[float]]:
    """How long /livez took, and how long each refusal took, in seconds."""
    alive, refused = [], []
    until = time.monotonic() + seconds
    with httpx.Client(base_url=url, timeout=60) as http:
        while time.monotonic() < until:
            began = time.monotonic()
            http.get("/livez").raise_for_status()
            alive.append(time.monotonic() - began)
            began = time.monotonic()
            asked = http.post(CHAT, json={"messages": [{"role": "user", "content": "x"}]}, headers=headers)
            if is_refusal(asked):
                refused.append(time.monotonic() - began)
            time.sleep(every_s)
    return alive, refused


def is_refusal(response: httpx.Response) -> bool:
    """Whether every place is taken."""
    return response.status_code == 503 and response.json()["error"]["code"] == "queue_full"
