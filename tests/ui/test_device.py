import pytest

from ui.components.account.sessions import device
from ui.i18n import language

AGENTS = [
    ("Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox on Windows"),
    (
        "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Safari/537.36 "
        "Edg/140.0",
        "Edge on Windows",
    ),
    (
        "Mozilla/5.0 (Linux; Android 15; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Mobile Safari/537.36",
        "Chrome on Android",
    ),
    (
        "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1 (KHTML, like Gecko) Version/18.0 "
        "Mobile/15E148 Safari/604.1",
        "Safari on iOS",
    ),
    (
        "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1 (KHTML, like Gecko) Version/18 Safari/605",
        "Safari on macOS",
    ),
    (
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/140.0 Safari/537.36",
        "Chrome on Linux",
    ),
    ("python-httpx/0.28.1", "python-httpx"),
    ("the forgotten <b>tablet</b>", "the forgotten <b>tablet</b>"),
    ("", "A program"),
]


@pytest.mark.parametrize(("agent", "name"), AGENTS)
def test_a_device_is_told_by_browser_and_system_where_it_can_be(agent: str, name: str) -> None:
    assert device(agent, language("en")) == name


def test_a_device_is_told_in_the_readers_language() -> None:
    assert device(AGENTS[0][0], language("zh")) == "Windows 上的 Firefox"
