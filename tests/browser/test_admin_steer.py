"""Steering in a real browser: pause, drain, banner, stalls, people's own limits, keys and invitations."""

import re

import httpx
import pytest
from playwright.sync_api import expect

from tests.browser.admin import ask, audit, button, cancel, confirm, one_answers_and_one_waits, row
from tests.browser.conftest import Chat, Visit
from tests.server import PASSWORD, RunningServer, bearer, key_of

pytestmark = pytest.mark.browser

TIME = r"[A-Z][a-z]+ \d+, \d+, \d+:\d\d\s[AP]M"  # as the browser's language has it


def asked(server: RunningServer, name: str = "eve") -> httpx.Response:
    """What a program of this person is answered."""
    question = {"messages": [{"role": "user", "content": "hi"}]}
    return httpx.post(f"{server.url}/v1/chat/completions", json=question, headers=bearer(key_of(name)), timeout=60)


def test_a_pause_tells_people_why_keeps_what_runs_and_ends(office: RunningServer, visit: Visit, chat: Chat) -> None:
    admin, steer = visit(office, "/admin"), visit(office, "/admin/steer")
    ada, bob = chat(office, name="ada"), chat(office, name="bob")
    ask(ada, "long")
    expect(row(admin, "ada")).to_contain_text("answering")
    steer.get_by_label("What people read meanwhile").fill("系统维护 <i>一小时</i>。")
    button(steer, "Pause").click()
    expect(steer.get_by_text("New requests are refused; 1 are still inside.")).to_be_visible()
    expect(steer.locator(".state.warn")).to_contain_text("Paused")
    expect(row(admin, "ada")).to_contain_text("answering")  # what runs goes on
    cancel(admin, "ada")
    expect(steer.get_by_text("New requests are refused.")).to_be_visible()
    ask(bob, "hello")
    expect(bob.get_by_text("系统维护 <i>一小时</i>。 Your message stays here.")).to_be_visible()
    expect(bob.get_by_label("Write a message")).to_have_value("hello")
    refused = asked(office)
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "paused")
    assert refused.json()["error"]["message"] == "系统维护 <i>一小时</i>。"
    assert int(refused.headers["retry-after"]) > 0
    ready = httpx.get(office.url + "/readyz")
    assert (ready.status_code, ready.json()["status"]) == (503, "paused")

    button(steer, "Resume").click()
    expect(steer.get_by_text("Requests are taken.")).to_be_visible()
    assert asked(office).status_code == 200
    assert len(audit(office, "intake.pause")) == len(audit(office, "intake.resume")) == 1


def test_a_drain_says_when_nothing_is_left(office: RunningServer, visit: Visit, chat: Chat) -> None:
    admin, steer, ada = visit(office, "/admin"), visit(office, "/admin/steer"), chat(office, name="ada")
    ask(ada, "long")
    expect(row(admin, "ada")).to_contain_text("answering")
    button(steer, "Drain").click()
    expect(steer.locator(".state")).to_contain_text("The server finishes what it has")
    assert asked(office).json()["error"]["code"] == "draining"
    cancel(admin, "ada")
    expect(steer.locator(".state")).to_contain_text("The server is drained: nothing runs or waits.")
    button(steer, "Resume").click()
    expect(steer.locator(".state")).to_contain_text("Answering")


def test_a_stall_turns_the_header_red_and_readiness_to_no(office: RunningServer, visit: Visit, chat: Chat) -> None:
    admin, history, ada = visit(office, "/admin"), visit(office, "/admin/history"), chat(office, name="ada")
    ask(ada, "stand still")
    expect(admin.locator(".state.bad")).to_contain_text(
        "Requests run, and nothing has come from the engine", timeout=90_000
    )
    requests = history.locator(".timeline-chart").filter(has_text="Requests")
    expect(requests.locator(".keys")).to_contain_text("running 1")  # drawn since the page was opened
    ready = httpx.get(office.url + "/readyz")
    assert (ready.status_code, ready.json()["status"]) == (503, "stalled")
    assert "nothing has come from the engine" in ready.json()["reason"]
    cancel(admin, "ada")
    expect(admin.locator(".state.good")).to_contain_text("Answering")
    assert httpx.get(office.url + "/readyz").status_code == 200


def test_another_model_is_loaded_or_the_earlier_one_again(office: RunningServer, visit: Visit, chat: Chat) -> None:
    admin, models = visit(office, "/admin"), visit(office, "/admin/model")
    ada, bob = chat(office, name="ada"), chat(office, name="bob")
    one_answers_and_one_waits(admin, ada, bob, "hello from bob")

    button(models, "Load…: second").click()
    for effect in ("Running: 1. They get 1 s to finish", "Waiting: 1. They go on waiting", "auto is loaded again"):
        expect(models.get_by_role("dialog")).to_contain_text(effect)
    expect(row(admin, "bob")).to_contain_text("waiting")  # a preview changes nothing
    button(models, "Load it").click()
    stopped = "Another model was loaded before this answer was finished."
    expect(ada.get_by_text(stopped, exact=True)).to_be_visible()
    expect(bob.locator(".turn").last).to_contain_text("You said: hello from bob")
    expect(row(models, "second")).to_contain_text("answers")
    assert asked(office).json()["model"] == "second"
    assert office.rows("select model from exchanges where prompt = 'hello from bob'") == [("second",)]

    button(models, "Load…: missing").click()
    button(models, "Load it").click()
    expect(row(models, "missing")).to_contain_text("could not be loaded: There is no such script.")
    expect(row(models, "second")).to_contain_text("answers")
    assert asked(office).json()["model"] == "second"
    assert audit(office, "model.load") == [("admin", "second"), ("admin", "missing")]


def test_a_banner_comes_to_every_open_page_as_text_and_goes(office: RunningServer, visit: Visit) -> None:
    steer = visit(office, "/admin/steer")
    pages = [visit(office, path, name="rita") for path in ("/", "/account", "/review")]
    steer.get_by_label("Text").fill("今晚 22:00 <script>alert(1)</script> 维护")
    steer.get_by_label("Level").click()
    steer.get_by_role("option", name="Warning").click()
    steer.get_by_label("For how long").click()
    steer.get_by_role("option", name="4 hours").click()
    button(steer, "Show it").click()
    for page in (*pages, steer):
        banner = page.locator(".site-banner.warn")
        expect(banner).to_contain_text("今晚 22:00 <script>alert(1)</script> 维护")
        expect(banner).to_contain_text("until")
    plain = httpx.get(office.url + "/login").text  # has no script that knows the reader's time zone
    assert "今晚 22:00 &lt;script&gt;" in plain
    assert " UTC<" in plain
    button(steer, "Take it down").click()
    for page in (*pages, steer):
        expect(page.locator(".site-banner")).to_be_hidden()
    assert [len(audit(office, action)) for action in ("banner.show", "banner.hide")] == [1, 1]


def test_a_person_may_have_a_limit_of_their_own(office: RunningServer, visit: Visit) -> None:
    people = visit(office, "/admin/people")
    button(people, "Limit: bob").click()
    people.get_by_role("dialog", name="Limit of bob").get_by_label("Requests at once").fill("0")
    button(people, "Set the limit").click()
    expect(row(people.get_by_role("table", name="People"), "bob").locator("td").nth(9)).to_have_text("0")
    refused = asked(office, "bob")
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "user_limit")
    assert asked(office, "eve").status_code == 200
    button(people, "Limit: bob").click()
    people.get_by_role("dialog").get_by_label("Requests at once").fill("")
    button(people, "Set the limit").click()
    expect(row(people.get_by_role("table", name="People"), "bob").locator("td").nth(9)).to_have_text("")
    assert asked(office, "bob").status_code == 200
    people.reload()
    cells = row(people.get_by_role("table", name="People"), "eve").locator("td")
    expect(cells.nth(5)).not_to_have_text("–")  # what was asked and answered is counted beside the page
    today, today_tokens, month, month_tokens = (int(text) for text in cells.all_text_contents()[5:9])
    assert 0 < today <= month < month_tokens
    assert today < today_tokens <= month_tokens
    me = row(people.get_by_role("table", name="People"), "admin").locator("td")
    expect(me.nth(2)).to_have_text("active")
    expect(me.nth(3)).to_have_text(re.compile(f"^{TIME}$"))  # last seen
    expect(me.nth(4)).to_have_text("1")  # session
    people.get_by_label("Search").fill("RITA")
    expect(people.get_by_role("table", name="People").locator("tbody tr")).to_have_count(1)


def test_a_key_of_somebody_is_revoked_at_once(office: RunningServer, visit: Visit) -> None:
    assert asked(office, "rita").status_code == 200
    people = visit(office, "/admin/people")
    cells = row(people.get_by_role("table", name="API keys"), "rita").locator("td")
    expect(cells.nth(1)).to_have_text("tests")
    expect(cells.nth(2)).to_have_text(f"{key_of('rita')[:13]}…")
    for place in (3, 4):  # made, last used
        expect(cells.nth(place)).to_have_text(re.compile(f"^{TIME}$"))
    button(people, "Revoke: rita").click()
    confirm(people, "Revoke the key", "left the team")
    expect(people.get_by_role("button", name="Revoke: rita")).to_have_count(0)
    assert asked(office, "rita").status_code == 401
    assert audit(office, "key.revoke") == [("admin", "rita")]


def test_an_invitation_opens_once(office: RunningServer, visit: Visit) -> None:
    people = visit(office, "/admin/people")
    people.get_by_label("Name", exact=True).fill("nora")
    button(people, "Invite by link").click()
    link = people.locator(".fresh .key").inner_text()
    expect(people.get_by_role("row").filter(has_text="nora")).to_contain_text("admin")
    token = link.split("token=")[1]
    assert token not in str(office.rows("select * from invites"))
    guest = people.context.browser
    assert guest is not None
    page = guest.new_page()
    page.goto(link)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_label("Password again").fill(PASSWORD)
    page.get_by_role("button", name="Make the account").click()
    expect(page.get_by_label("Write a message")).to_be_visible()
    page.goto(link)
    expect(page.get_by_text("This invitation was used already")).to_be_visible()
    page.context.close()
    people.reload()
    expect(people.get_by_role("button", name="Disable: nora")).to_be_visible()
    assert audit(office, "invite.create") == [("admin", "nora")]


def test_the_charts_are_drawn_for_every_range(office: RunningServer, visit: Visit) -> None:
    page = visit(office, "/admin/history")
    expect(page.locator(".timeline-chart")).to_have_count(8)
    for name, key in (("Hour", "hour"), ("Day", "day"), ("Week", "week"), ("15 minutes", "live")):
        page.get_by_role("button", name=name, exact=True).click()
        expect(page.get_by_role("link", name="CSV")).to_have_attribute("href", f"/admin/history.csv?range={key}")
        expect(page.locator(".timeline-chart")).to_have_count(8)
    page.locator(".timeline-chart .plot").first.hover()
    expect(page.locator(".timeline-chart .moment").first).to_be_visible()
