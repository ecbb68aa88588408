"""Who may do what: the table against the real routes, and then every route of it asked by everybody.

Two staff, a reviewer, an administrator, a disabled person and a stranger; with a session, with a key, from another
site's page, under another name of the server. The ids are Ada's: of her conversation, exchange and account. What she
wrote is looked for in every answer: it must be in hers, and in none to somebody who has no right to it.
"""

import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from nicegui import __version__ as nicegui_version
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from storage.records import UserRole
from tests.databases import SECRET as SESSION_SECRET
from tests.server import API_KEY, PASSWORD, RunningServer, bearer, form_token, key_of, run_to_its_end, running_server
from ui.access import HOLDERS, OPEN, PEOPLE, ROUTES, Right, Rule, page_right, rule_of, without_rule

Ids = dict[str, str]  # by what they are of, as QUERIES names them

LIST_NAMES = """
import json, main
from engine.settings import load
from nicegui import app
from ui.access import names_of
main.build(load())
print(json.dumps([name for route in app.routes for name in names_of(route)]))
"""
ROLES: dict[str, UserRole] = {"ada": "staff", "bob": "staff", "rita": "reviewer", "chief": "admin"}
SECRET = "what only Ada and her reviewers know"
NOBODYS: Ids = dict.fromkeys(("conversation", "exchange", "user"), "0" * 32)
QUERIES = {  # what it takes to be shown what Ada wrote
    "GET /conversations/{id}/export": "format=json",
    "GET /review/export": "format=jsonl",
    "GET /admin/people/export": "person={user}",
    "GET /review": "open={exchange}",
}
SECRETS = {  # the operator's, by the setting
    "oidc_client_secret": "what the provider asks of this server",
    "ldap_bind_password": "what the directory asks of it",
    "openai_api_key": "sk-of-the-other-engine",
}
OPERATORS = (*SECRETS.values(), SESSION_SECRET, API_KEY, PASSWORD)
PROVIDER_AND_DIRECTORY = {  # neither is there, and nobody here needs one
    "oidc_issuer": "http://127.0.0.1:9",
    "oidc_client_id": "qdesk",
    "ldap_url": "ldap://127.0.0.1:9",
    "ldap_base": "dc=example,dc=org",
    "ldap_bind_dn": "cn=reader,dc=example,dc=org",
}
SHOWN = {  # where it is shown in the answer itself, and to whom: so it would be seen, were it shown to others
    "GET /conversations/export": {"ada"},
    "GET /conversations/{id}/export": {"ada"},
    "GET /account/export": {"ada"},
    "GET /review/export": {"rita", "chief"},
    "GET /admin/people/export": {"chief"},
}


def test_every_route_has_a_rule_and_every_rule_a_route(tmp_path: Path) -> None:
    settings = {"QDESK_DATA_DIR": str(tmp_path), "QDESK_BACKEND": "scripted"}
    code, listing = run_to_its_end(("-c", LIST_NAMES), {**os.environ, **settings})
    assert code == 0, listing
    names = set(json.loads(listing.splitlines()[-1]))
    assert names | {"GET /favicon.ico"} == set(ROUTES)  # NiceGUI adds that one when it starts


def test_a_route_without_a_rule_is_found_and_answers_nobody() -> None:
    """Such a server does not start; should it run all the same, the guard finds no rule, and lets nobody through."""
    forgotten = Route("/forgotten/{id}", lambda request: PlainTextResponse("open"))
    app = Starlette(routes=[forgotten])
    assert without_rule(app.routes) == ["GET /forgotten/{id}"]
    scope = {"type": "http", "app": app, "method": "GET", "path": "/forgotten/1", "headers": [], "root_path": ""}
    assert rule_of(scope, PEOPLE) is None
    assert rule_of({**scope, "path": "/nothing"}, PEOPLE) == PEOPLE


def test_rights_grow_with_the_role() -> None:
    held = {role: {right for right in Right if role in HOLDERS[right]} for role in ("staff", "reviewer", "admin")}
    assert held["staff"] < held["reviewer"] < held["admin"] == set(Right)
    assert page_right("/admin/people") is Right.ADMINISTER


@pytest.fixture(scope="module")
def office() -> Iterator[RunningServer]:
    """Ada has a conversation, and her program has asked; Dora is disabled, and has a session and a key from before."""
    accounts: dict[str, UserRole] = {**ROLES, "dora": "admin"}
    settings: dict[str, Any] = {**SECRETS, **PROVIDER_AND_DIRECTORY, "max_requests_per_user": 200, "api_rate_limit": ""}
    with running_server(accounts=accounts, **settings) as server:
        with httpx.Client(base_url=server.url, timeout=60) as program:
            asked = {"messages": [{"role": "user", "content": SECRET}]}
            assert program.post("/v1/chat/completions", json=asked, headers=bearer(key_of("ada"))).status_code == 200
        with server.sign_in("ada") as ada:
            exchange = {"id": "1", "question": SECRET, "answer": SECRET}
            talk = {"format": "qdesk.conversation", "version": 1, "title": SECRET, "exchanges": [exchange]}
            headers = {"x-form-token": form_token(ada.get("/account").text), "Origin": server.url}
            assert ada.post("/conversations/import", json=talk, headers=headers).json()["imported"] == 1
        yield server


@pytest.fixture(scope="module")
def hers(office: RunningServer) -> Ids:
    ((conversation, user),) = office.rows("select id, user_id from conversations")
    ((exchange,),) = office.rows("select id from exchanges where source = 'api'")
    return {"conversation": str(conversation), "exchange": str(exchange), "user": str(user)}


@pytest.fixture(scope="module")
def cookies(office: RunningServer) -> dict[str, str]:
    """A session of each, by name; Dora's ended when she was disabled."""
    found = {}
    for name in (*ROLES, "dora"):
        with office.sign_in(name) as browser:
            found[name] = str(browser.cookies["qdesk_session"])
    office.change("update users set disabled = 1 where name = 'dora'")
    wait_until_out(office, found["dora"])
    return found


def wait_until_out(server: RunningServer, cookie: str) -> None:
    """The server looks at the accounts every ten seconds."""
    with httpx.Client(base_url=server.url, cookies={"qdesk_session": cookie}) as browser:
        while browser.get("/account/export").status_code != 303:
            time.sleep(0.2)


def address(name: str, ids: Ids = NOBODYS) -> str:
    """The route's path and query with these ids, or with something that is there."""
    path = name.split(" ", 1)[1].removesuffix("/*")
    path = re.sub(r"\{(name|key):path\}", "scripted", path).replace("{path:path}", "tokens.css")
    path = re.sub(r"\{\w+\}", ids["exchange" if path.startswith("/v1/requests") else "conversation"], path)
    return f"{path}?{QUERIES[name].format(**ids)}" if name in QUERIES else path


PAGES = [name for name, rule in ROUTES.items() if rule.way == "session" and not name.startswith("MOUNT")]
CALLS = [name for name, rule in ROUTES.items() if rule.way == "key" and not name.startswith("WS")]


@pytest.mark.parametrize("name", PAGES)
def test_a_session_opens_what_its_role_may_and_nothing_else(
    office: RunningServer, cookies: dict[str, str], hers: Ids, name: str
) -> None:
    method, rule, path = name.split(" ")[0], ROUTES[name], address(name, hers)
    with httpx.Client(base_url=office.url, timeout=60) as client:
        for person, role in ROLES.items():
            answer = client.request(method, path, headers={"Cookie": f"qdesk_session={cookies[person]}"})
            assert not operators_secrets(answer.text)
            if person in SHOWN.get(name, ()):
                assert SECRET in answer.text
            elif person != "ada" and (rule.right is Right.USE or role not in HOLDERS[rule.right]):
                assert SECRET not in answer.text
            if role in HOLDERS[rule.right]:
                assert answer.status_code != 403 or name == "POST /conversations/import"  # it has no form token here
                assert not answer.headers.get("location", "").startswith("/login") or name == "POST /logout"
            else:
                assert answer.status_code == 403
            if name == "POST /logout":
                assert answer.status_code == 303  # and nobody is signed out: the form's token is missing
        for cookie in (f"qdesk_session={cookies['dora']}", "qdesk_session=guessed", ""):
            answer = client.request(method, path, headers={"Cookie": cookie})
            assert answer.status_code == 303
            assert SECRET not in answer.text
            assert answer.headers["location"].startswith("/login")
        answer = client.request(method, path, headers=bearer(key_of("chief")))
        assert answer.status_code == 303, "a key is for programs"


@pytest.mark.parametrize("name", CALLS)
def test_a_key_opens_what_its_role_may_and_nothing_else(
    office: RunningServer, cookies: dict[str, str], hers: Ids, name: str
) -> None:
    method, rule, path = name.split(" ")[0], ROUTES[name], address(name, hers)
    with httpx.Client(base_url=office.url, timeout=60) as client:
        for person, role in ROLES.items():
            answer = client.request(method, path, headers=bearer(key_of(person)))
            assert not operators_secrets(answer.text)
            assert (answer.status_code in (401, 403)) == (role not in HOLDERS[rule.right])
            if person != "chief":
                assert SECRET not in answer.text
        for header in (bearer(key_of("dora")), bearer("sk-qdesk-guessed"), {"x-api-key": key_of("chief")}, {}):
            assert client.request(method, path, headers=header).status_code == 401
        if method == "POST":  # a person's session is no key where something changes, wherever the call comes from
            for origin in ({}, {"Origin": office.url}):
                answer = client.request(method, path, headers={"Cookie": f"qdesk_session={cookies['chief']}", **origin})
                assert answer.status_code == 401


def test_the_operators_secrets_are_on_no_open_page_and_in_no_line_of_the_log(
    office: RunningServer, cookies: dict[str, str]
) -> None:
    """The tests above look for them in everything else that a session or a key opens."""
    for name in (name for name, rule in ROUTES.items() if rule == OPEN and name.startswith("GET")):
        assert not operators_secrets(httpx.get(office.url + address(name)).text), name
    assert "POST /v1/chat/completions 200" in office.output()
    assert not operators_secrets(office.output())


def operators_secrets(text: str) -> list[str]:
    return [secret for secret in OPERATORS if secret in text]


FOREIGN = ["https://elsewhere.example", "null", "", "http://127.0.0.1:1", "http://localhost.elsewhere.example", "x"]


@pytest.mark.parametrize("origin", FOREIGN)
def test_another_sites_page_changes_nothing_with_a_persons_cookie(
    office: RunningServer, cookies: dict[str, str], origin: str
) -> None:
    headers = {"Cookie": f"qdesk_session={cookies['ada']}", "Origin": origin}
    with httpx.Client(base_url=office.url, headers=headers) as client:
        for name in [name for name in ROUTES if name.startswith("POST")]:
            assert client.post(address(name)).status_code == 403, name
        assert client.get("/account/export", headers={"Origin": office.url}).status_code == 200


@pytest.mark.parametrize("host", ["elsewhere.example", "localhost.elsewhere.example", "", "a b", "127.0.0.1@x", "[x"])
def test_under_another_name_the_server_says_nothing(office: RunningServer, cookies: dict[str, str], host: str) -> None:
    headers = {"Host": host, "Cookie": f"qdesk_session={cookies['chief']}", **bearer()}
    with httpx.Client(base_url=office.url, headers=headers) as client:
        for name in [name for name in ROUTES if name.startswith("GET")]:
            probe = name in ("GET /livez", "GET /readyz", "GET /health")
            assert client.get(address(name)).status_code == (200 if probe else 421), name


TRICKS = ["/admin%0A", "/admin/", "//admin", "/./admin", "/%61dmin", "/admin/people%0a", "/review%0a"]
TRICKS += ["/admin%3f", "/ADMIN", "/admin;x", "/admin%00", "/static/../admin", "/login/../admin", "/metrics%0a"]


@pytest.mark.parametrize("path", TRICKS)
def test_no_spelling_of_a_path_opens_more(office: RunningServer, cookies: dict[str, str], path: str) -> None:
    request = httpx.Request("GET", office.url, headers={"Cookie": f"qdesk_session={cookies['bob']}"})
    request.url = httpx.URL(office.url, raw_path=path.encode())
    with httpx.Client() as client:
        answer = client.send(request)
    assert answer.status_code in (303, 307, 400, 401, 403, 404)
    assert "'client_id'" not in answer.text
    assert "qdesk_num_requests" not in answer.text


def test_open_is_only_what_must_be() -> None:
    opened = {address(name) for name, rule in ROUTES.items() if rule == OPEN}
    files = {path for path in opened if path.startswith(("/static/", f"/_nicegui/{nicegui_version}/"))}
    ways_in = {"/login", "/login/code", "/login/second-step", "/login/oidc", "/login/oidc/callback", "/login/link"}
    assert opened - files == {*ways_in, "/setup", "/invite", "/livez", "/readyz", "/health"}
    assert all(isinstance(rule, Rule) for rule in ROUTES.values())


def test_signing_in_ends_the_session_that_the_browser_had(office: RunningServer) -> None:
    with office.sign_in("bob") as browser:
        before = browser.cookies["qdesk_session"]
        form = httpx.Cookies({"qdesk_form": browser.cookies["qdesk_form"]})
        token = form_token(httpx.get(office.url + "/login", cookies=form).text)
        again = {"form_token": token, "name": "bob", "password": "correct horse battery", "next": "/"}
        assert browser.post("/login", data=again).status_code == 303
        assert browser.cookies["qdesk_session"] != before
        assert browser.get("/account/export").status_code == 200
        browser.cookies["qdesk_session"] = before
        assert browser.get("/account/export").status_code == 303
