"""Which Chromium the tests drive, the pictures are taken with and the pages are measured in, and how it is started.

The headless shell comes first: it is the same engine without the browser's own windows and tabs, which a page in the
whole Chromium costs a second of processor time to open.
"""

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM = next((path for path in map(shutil.which, NAMES) if path), None)
MISSING = "No Chromium is found; on Debian: apt-get install chromium-headless-shell fonts-noto-cjk"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",  # there is none, and Debian's own flags would have one played by the processor
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # whoever asks another host is not answered
]


@contextmanager
def running_chromium() -> Iterator[Browser]:
    """Ends a program with MISSING where there is no Chromium."""
    if CHROMIUM is None:
        sys.exit(MISSING)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()
