"""What axe finds on a page as it stands: all of its rules, best practices and the size of targets (WCAG 2.2) too."""

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page


def passes(page: Page) -> None:
    assert barriers(page) == [], page.url
    assert fits(page), page.url


def barriers(page: Page) -> list[str]:
    """What axe finds, one line a place."""
    options = {"resultTypes": ["violations"], "rules": {"target-size": {"enabled": True}}}
    found = Axe().run(page, options=options).response["violations"]
    return [f"{one['id']}: {node['html'][:200]} {node.get('failureSummary')}" for one in found for node in one["nodes"]]


def fits(page: Page) -> bool:
    """Whether nothing but boxes with scroll bars of their own is wider than the window."""
    return bool(page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"))
