"""Three processes behind Debian's nginx, before one engine and one PostgreSQL: they act as one Qdesk.

The engine is a second Qdesk with the scripted backend. Signs of life come often here, so that nothing takes long.
"""

import contextlib
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from playwright.sync_api import Browser, Page, expect

from tests import postgresql
from tests.browser.admin import ask, button, cancel, move_to_front, row
from tests.databases import add_accounts_at
from tests.nginx import nginx, site_of
from tests.server import (
    API_KEY,
    PASSWORD,
    RunningServer,
    bearer,
    eventually,
    form_token,
    free_port,
    key_of,
    running_server,
    sign_in,
)

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not postgresql.there_is_one(), reason=postgresql.MISSING),
]


Session = tuple[str, str]  # the name and the value of its cookie


@dataclass(frozen=True)
class House:
    url: str  # at nginx
    servers: list[RunningServer]
    engine: sa.Engine

    def status_of(self, id: str) -> str:
        with self.engine.connect() as connection:
            return str(connection.execute(sa.text("select status from exchanges where id = :id"), {"id": id}).scalar())

    def connections(self) -> int:
        """How many the servers have to the database, with what listens there."""
        others = "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
        with self.engine.connect() as connection:
            return int(connection.execute(sa.text(others)).scalar_one())

    def process_of(self, id: str) -> RunningServer:
        """The server that answers this exchange."""
        asked = sa.text("select name from processes join exchanges on process = processes.id where exchanges.id = :id")
        with self.engine.connect() as connection:
            port = str(connection.execute(asked, {"id": id}).scalar_one()).rpartition(":")[2]
        return next(server for server in self.servers if server.url.endswith(f":{port}"))


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    folder, port, database = tmp_path_factory.mktemp("house"), free_port(), postgresql.migrated()
    url = f"https://127.0.0.1:{port}"
    add_accounts_at(database, {"admin": "admin", "ada": "staff", "bob": "staff", "eve": "staff"})
    with contextlib.ExitStack() as stack:
        upstream = stack.enter_context(running_server(max_concurrent_requests=50))
        servers = [
            stack.enter_context(
                running_server(
                    folder / "data",  # nothing but a secret would be there
                    backend="remote",
                    openai_base_url=f"{upstream.url}/v1",
                    openai_api_key=API_KEY,
                    database_url=database,
                    public_url=url,
                    heartbeat_s=0.5,
                    max_concurrent_requests=3,
                    max_requests_per_user=2,
                    drain_s=0,
                )
            )
            for _ in range(3)
        ]
        stack.enter_context(nginx(folder, site_of(*servers, folder=folder, port=port), f"{url}/livez"))
        engine = sa.create_engine(database, poolclass=sa.NullPool)
        yield House(url, servers, engine)


@contextlib.contextmanager
def asking(server: RunningServer, name: str, question: str = "long") -> Iterator[httpx.Response]:
    """A question that is being answered while the block runs."""
    body = {"messages": [{"role": "user", "content": question}], "stream": True}
    with (
        httpx.Client(base_url=server.url, headers=bearer(key_of(name)), timeout=60) as program,
        program.stream("POST", "/v1/chat/completions", json=body) as answer,
    ):
        yield answer


def code_of(server: RunningServer, name: str) -> str:
    """How a question is refused there; "" if it is answered."""
    body = {"messages": [{"role": "user", "content": "hello"}]}
    answer = httpx.post(f"{server.url}/v1/chat/completions", json=body, headers=bearer(key_of(name)), timeout=60)
    return "" if answer.status_code == 200 else str(answer.json()["error"]["code"])


def test_a_persons_limit_is_kept_over_all_of_them(house: House) -> None:
    one, two, three = house.servers
    with asking(one, "ada") as first:
        with asking(two, "ada") as second:
            assert (first.status_code, second.status_code) == (200, 200)
            assert code_of(three, "ada") == "user_limit"
            assert code_of(three, "bob") == ""
        eventually(lambda: code_of(three, "ada") == "")
    told = [httpx.get(f"{server.url}/readyz").json() for server in house.servers]
    assert [one["status"] for one in told] == ["ready"] * 3
    assert 3 <= house.connections() <= 3 * 9, "as docs/scaling.md says"


def test_a_request_is_cancelled_by_whichever_process_is_asked(house: House) -> None:
    one, two, _ = house.servers
    with asking(one, "ada") as answer:
        id = answer.headers["x-request-id"]
        eventually(lambda: house.status_of(id) == "running")
        listed = httpx.get(f"{two.url}/v1/requests", headers=bearer(key_of("ada"))).json()["data"]
        assert [(request["id"], request["status"]) for request in listed] == [(id, "running")]
        url = f"{two.url}/v1/requests/{id}/cancel"
        assert httpx.post(url, headers=bearer(key_of("bob"))).status_code == 404
        told = httpx.post(url, headers=bearer(key_of("ada")), timeout=60).json()
    assert (told["status"], house.status_of(id)) == ("cancelled", "cancelled")


def test_signing_out_and_wrong_passwords_hold_everywhere(house: House) -> None:
    one, two, three = house.servers
    cookie = {"Cookie": cookies_of(signed_in(one, "ada"))}
    page = httpx.get(f"{one.url}/account", headers=cookie)
    statuses = [httpx.get(f"{server.url}/account", headers=cookie).status_code for server in house.servers]
    assert statuses == [200, 200, 200]
    httpx.post(f"{one.url}/logout", data={"form_token": form_token(page.text)}, headers=cookie)
    for server in (two, three):
        eventually(partial(led_away, server, cookie))

    tries = [signed_in(house.servers[number % 2], "bob", "wrong").status_code for number in range(5)]
    assert tries == [401] * 5
    eventually(lambda: signed_in(three, "bob").status_code == 429)


def led_away(server: RunningServer, cookie: dict[str, str]) -> bool:
    return httpx.get(f"{server.url}/account", headers=cookie).status_code == 303


def signed_in(server: RunningServer, name: str, password: str = PASSWORD) -> httpx.Response:
    """Sign in past nginx; the cookies are for https alone, so they are carried by hand."""
    page = httpx.get(f"{server.url}/login")
    form = {"form_token": form_token(page.text), "name": name, "password": password, "next": "/"}
    return httpx.post(f"{server.url}/login", data=form, headers={"Cookie": cookies_of(page)}, timeout=60)


def cookies_of(answer: httpx.Response) -> str:
    return "; ".join(cookie.partition(";")[0] for cookie in answer.headers.get_list("set-cookie"))


def test_an_idempotency_key_gives_one_exchange_over_all_of_them(house: House) -> None:
    body = {"messages": [{"role": "user", "content": "hello"}]}
    headers = bearer(key_of("bob")) | {"Idempotency-Key": "once-in-the-house"}

    def ask(server: RunningServer) -> dict[str, Any]:
        answer = httpx.post(f"{server.url}/v1/chat/completions", json=body, headers=headers, timeout=60)
        return dict(answer.json())

    with ThreadPoolExecutor() as at_once:
        answers = list(at_once.map(ask, house.servers))
    assert len({answer["id"] for answer in answers}) == 1
    assert {answer["choices"][0]["message"]["content"] for answer in answers} == {"You said: hello"}


def test_administrators_see_all_processes_and_which_one_their_page_shows(house: House, page: Page) -> None:
    page.goto(f"{house.url}/admin")
    expect(page.get_by_role("heading", name="Processes")).to_be_visible()
    names = [f":{server.url.rpartition(':')[2]}" for server in house.servers]
    with asking(house.servers[0], "ada"):
        expect(page.locator(".figure", has_text="Running now")).to_contain_text("1of 3")  # whichever has made the page
        tile = page.locator(".figure", has_text=names[0])
        expect(tile).to_contain_text("1running")
        for name in names[1:]:
            expect(page.locator(".figure", has_text=name)).to_contain_text("0running")
    expect(page.get_by_text("(this page)")).to_have_count(1)


def test_administrators_see_cancel_and_move_what_another_process_has(house: House, page: Page) -> None:
    page.goto(f"{house.url}/admin")
    there = next(server for server in house.servers if server is not serving(house, page.content()))
    with asking(there, "ada") as its:
        expect(row(page, "ada")).to_contain_text("answering, in another process")
        for number in (4, 5):  # tokens so far, and a second
            expect(row(page, "ada").locator("td").nth(number)).to_have_text(re.compile(r"^[1-9][\d,.]*$"))
        button(page, "Prompt: ada").click()
        expect(page.get_by_role("dialog", name="Prompt of ada")).to_contain_text("long")
        button(page, "Close").click()
        cancel(page, "ada")
        id = its.headers["x-request-id"]
        eventually(lambda: house.status_of(id) == "cancelled")
        expect(row(page, "ada")).to_have_count(0)
    with contextlib.ExitStack() as others:
        with asking(there, "ada", "stand still"):
            for name in ("bob", "bob", "admin", "eve"):
                others.enter_context(asking(there, name, "stand still"))
            expect(row(page, "admin")).to_contain_text("waiting, place 1, in another process")
            expect(row(page, "eve")).to_contain_text("waiting, place 2, in another process")
            move_to_front(page, "eve")
            expect(row(page, "eve")).to_contain_text("waiting, place 1, in another process")
            expect(row(page, "admin")).to_contain_text("waiting, place 2, in another process")
        expect(row(page, "eve")).to_contain_text("reading the prompt, in another process")
        expect(row(page, "admin")).to_contain_text("waiting, place 1, in another process")
    with house.engine.connect() as connection:
        audited = sa.text("select actor, action from audit where target = :id order by id")
        assert [tuple(line) for line in connection.execute(audited, {"id": id})] == [
            ("admin", "request.open"),
            ("admin", "request.cancel"),
        ]
        moved = sa.text("select actor, detail from audit where action = 'request.front'")
        assert [tuple(line) for line in connection.execute(moved)] == [("admin", "eve: because")]


def test_a_window_at_another_process_follows_an_answer_and_stops_it(
    house: House, page: Page, chromium: Browser
) -> None:
    page.goto(house.url)
    ask(page, "long story")
    expect(page.locator(".turn .answer-text")).to_contain_text("word5")
    id = page.locator('.turn[data-status="running"]').get_attribute("data-id") or ""
    with opened(chromium, house, new_session(house, avoided=house.process_of(id))) as other:
        other.goto(page.url)
        answer = other.locator(f'.turn[data-id="{id}"] .answer-text')
        expect(answer).to_contain_text("word5")
        so_far = len(answer.inner_text())
        expect(answer).to_have_text(re.compile(f"^.{{{so_far + 100},}}", re.DOTALL))  # it grows
        other.get_by_role("button", name="Stop").click()
        for window in (other, page):
            expect(window.locator(f'.turn[data-id="{id}"][data-status="stopped"]')).to_be_visible()
        ask(other, "and now?")
        for window in (other, page):
            expect(window.locator(".turn .answer-text").last).to_have_text("You said: and now?")


def serving(house: House, page: str) -> RunningServer:
    """Which of them has made this page of the administrators'."""
    found = re.search(r":(\d+) \(this page\)", page)
    assert found, page
    return next(server for server in house.servers if server.url.endswith(f":{found[1]}"))


@pytest.fixture(scope="module")
def session(house: House) -> Session:
    return new_session(house)


@pytest.fixture
def page(house: House, session: Session, chromium: Browser) -> Iterator[Page]:
    """A window of the administrator's, at nginx, that shows nothing yet."""
    with opened(chromium, house, session) as page:
        yield page


@contextlib.contextmanager
def opened(chromium: Browser, house: House, session: Session) -> Iterator[Page]:
    with chromium.new_context(locale="en-GB", ignore_https_errors=True) as context:
        name, value = session
        context.add_cookies([{"name": name, "value": value, "url": house.url, "secure": True}])
        yield context.new_page()


def new_session(house: House, avoided: RunningServer | None = None) -> Session:
    """One of the administrator's, which nginx takes to another process than this one."""
    while True:
        with httpx.Client(base_url=house.url, verify=False, timeout=60) as browser:
            sign_in(browser, "admin", PASSWORD)
            if avoided is None or serving(house, browser.get("/admin").text) is not avoided:
                return next((name, value) for name, value in browser.cookies.items() if "session" in name)


def test_limits_that_are_set_at_one_hold_at_all(house: House, page: Page) -> None:
    page.goto(f"{house.url}/admin/steer")
    page.get_by_label("Of one person", exact=True).fill("1")
    page.get_by_role("button", name="Change the limits…").click()
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_text("The limits are changed.")).to_be_visible()
    with asking(house.servers[0], "ada") as answer:
        assert answer.status_code == 200
        eventually(lambda: {code_of(server, "ada") for server in house.servers} == {"user_limit"})
    page.get_by_role("button", name="As in the settings…").click()
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_text("The limits are changed.").last).to_be_visible()


def test_a_killed_ones_answers_are_interrupted_and_its_pages_go_on_with_another(house: House, page: Page) -> None:
    page.goto(house.url)
    ask(page, "long story")
    answer = page.locator(".turn .answer-text")
    expect(answer).to_contain_text("word5")
    turn = page.locator('.turn[data-status="running"]')
    id = turn.get_attribute("data-id") or ""
    eventually(lambda: "word5" in saved_answer(house, id))
    killed = house.process_of(id)
    others = [server for server in house.servers if server is not killed]
    with asking(others[0], "ada") as theirs:
        other_id = theirs.headers["x-request-id"]
        killed.process.kill()
        killed.process.wait()
        eventually(lambda: house.status_of(id) == "interrupted")
        expect(page.locator('.turn[data-status="interrupted"]')).to_be_visible()
        expect(answer).to_contain_text("word5")
        assert house.status_of(other_id) == "running"
    ask(page, "and now?")
    expect(answer.last).to_have_text("You said: and now?")
    assert re.search(r"/c/\w+$", page.url)


def saved_answer(house: House, id: str) -> str:
    with house.engine.connect() as connection:
        return str(connection.execute(sa.text("select answer from exchanges where id = :id"), {"id": id}).scalar())
