"""What axe finds on a page as it stands: all of its rules, best practices and the size of targets (WCAG 2.2) too."""

import re

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page, ViewportSize, expect

PHONE = ViewportSize(width=360, height=740)
OPTIONS = {
    "resultTypes": ["violations"],
    "rules": {"target-size": {"enabled": True}},
    "preload": {"assets": ["media"]},  # else it fetches and reads all style sheets, for a rule that is off
}


def passes(page: Page) -> None:
    found = barriers(page)
    assert not found, "\n".join([page.url, *found])
    assert fits(page), page.url


def passes_in_the_dark_on_a_phone_too(page: Page) -> None:
    """As it stands, and then as it is seen there; the window is as it was in the end."""
    passes(page)
    size = page.viewport_size
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size(PHONE)
    passes(page)
    page.emulate_media(color_scheme="light")
    if size:
        page.set_viewport_size(size)


def barriers(page: Page) -> list[str]:
    """What axe finds, one line a place. It is put into a document once."""
    if page.locator("#app").count():  # one of NiceGUI's pages, whose colours come with its first element
        expect(page.locator("body")).to_have_attribute("style", re.compile("--q-primary"))
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    found = page.evaluate("(options) => axe.run(document, options).then((all) => all.violations)", OPTIONS)
    return [f"{one['id']}: {node['html'][:200]} {node.get('failureSummary')}" for one in found for node in one["nodes"]]


def fits(page: Page) -> bool:
    """Whether nothing but boxes with scroll bars of their own is wider than the window."""
    return bool(page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"))
