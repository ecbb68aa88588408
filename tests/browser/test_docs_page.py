"""The interactive documentation of the API, in a real browser, which is watched for requests to other hosts."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.server import RunningServer

pytestmark = pytest.mark.browser


def test_the_api_can_be_read_and_tried(server: RunningServer, visit: Visit) -> None:
    page = visit(server, "/docs")
    for path in ("/v1/chat/completions", "/v1/models", "/v1/requests", "/readyz", "/metrics"):
        expect(page.locator(f'[data-path="{path}"]').first).to_be_visible()
    expect(page.locator('[data-path*="{path}"]')).to_have_count(0)  # files are no part of the API
    models = page.locator(".opblock").filter(has=page.locator('[data-path="/v1/models"]'))
    models.locator(".opblock-summary-control").click()
    models.get_by_role("button", name="Try it out").click()
    models.get_by_role("button", name="Execute").click()
    expect(models.locator(".live-responses-table").first).to_contain_text("A script plays the model.")
