"""Attacks over the pages' socket by somebody who is signed in: other people's ids on one's own page, events that no
browser sends, a page that is still open when its account has lost the right to it.
"""

import asyncio
import json
import re
from collections.abc import Container, Iterable, Iterator
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import ClientConnection, connect

from storage.records import UserRole
from tests.server import PASSWORD, RunningServer, bearer, eventually, key_of, running_server
from tests.ui.test_signing_out import packets_until_silence
from tests.ui.test_sockets import handshake, heard, page_of, socket

SECRET = "what Ada alone may read"
TABLES = ("conversations", "exchanges", "feedback", "templates", "api_keys", "sessions", "notes", "labels", "users")
NAMES = ("id", "conversation", "exchange", "key", "session", "regenerate", "name", "label", "note", "to", "mark")
ABOUT = {"rating": 1, "on": True, "title": "taken", "folder": "taken", "text": "taken", "open": True, "nonce": "m"}
ABOUT |= {"reason": "taken"}


@pytest.fixture(scope="module")
def office() -> Iterator[RunningServer]:
    accounts: dict[str, UserRole] = {"ada": "staff", "bob": "staff", "rita": "reviewer", "chief": "admin"}
    with running_server(accounts={**accounts, "dean": "admin"}, abandon_after_s=600) as server:
        yield server


def elements(page: str) -> dict[str, Any]:
    """What a page is built of, by number."""
    found = re.search(r"parseElements\(String\.raw`(.*?)`\)", page, re.DOTALL)
    assert found
    built: dict[str, Any] = json.loads(re.sub(r"&(#\d+|\w+);", "?", found[1]))
    return built


def listeners(page: str) -> list[tuple[int, str, str]]:
    """Every event that a page takes: element, listener, and the event's name."""
    return [
        (int(id), event["listener_id"], event["type"])
        for id, element in elements(page).items()
        for event in element.get("events") or []
    ]


def packet_of(page: str, element: int, listener: str, *args: object) -> str:
    """An event as a browser sends it that has this page open."""
    told = {"client_id": client_id_of(page), "id": element, "listener_id": listener, "args": [*map(json.dumps, args)]}
    return "42" + json.dumps(["event", told])


def client_id_of(page: str) -> str:
    found = re.search(r"'client_id': '([\w-]+)'", page)
    assert found
    return found[1]


def rows_of(server: RunningServer, user_id: str) -> dict[str, list[Any]]:
    """All that the database holds of one person, but for the times of their sessions, and what others made of it."""
    known = {name for (name,) in server.rows("select name from sqlite_master where type = 'table'")}
    held: dict[str, list[Any]] = {}
    for table in known & set(TABLES):
        columns = [str(row[1]) for row in server.rows(f"pragma table_info({table})")]
        owner = next((name for name in ("user_id", "person", "exchange_id", "id") if name in columns), None)
        kept = ", ".join(name for name in columns if "seen" not in name and "used" not in name)
        whose = "(select id from exchanges where person = ?)" if owner == "exchange_id" else "(?)"
        if owner:
            held[table] = server.rows(f"select {kept} from {table} where {owner} in {whose} order by 1", user_id)
    return held


async def ask(server: RunningServer, name: str, text: str, status: str = "done") -> None:
    """Ask on the chat page, as the composer does, and wait until it has come to this."""
    with server.sign_in(name) as browser:
        page = browser.get("/").text
        element, listener, _ = next(one for one in listeners(page) if one[2] == "ask")
        async with socket(server, browser, client_id_of(page)) as connection:
            await packets_until_silence(connection, 1)
            await connection.send(packet_of(page, element, listener, {"text": text, "nonce": text, "conversation": ""}))
            reached = "select 1 from exchanges where prompt = ? and status = ?"
            await asyncio.to_thread(eventually, lambda: bool(server.rows(reached, text, status)))


async def send_all(
    server: RunningServer, browser: httpx.Client, path: str, ids: Iterable[str], only: Container[str] = (), **more: str
) -> str:
    """Send every event of this page, or `only` these, with each id under every name that a handler knows.

    Returns what the page and its socket told.
    """
    page = (await asyncio.to_thread(browser.get, path)).text
    async with socket(server, browser, client_id_of(page)) as connection:
        await packets_until_silence(connection, 0.5)
        for element, listener, event in listeners(page):
            for id in ids if not only or event in only else ():
                await connection.send(packet_of(page, element, listener, {**ABOUT, **dict.fromkeys(NAMES, id), **more}))
        await handshake(connection, client_id_of(page))  # refused, since it was done; all before it has been heard
        return page + "".join(await packets_until_silence(connection, 1.5))


async def test_other_peoples_ids_do_nothing_on_ones_own_page(office: RunningServer) -> None:
    """Every event of a colleague's and a reviewer's chat pages, with each id of Ada's: of an answer that runs, one that
    is done, its rating, and the note and label that reviewers gave it. On the reviewers' page, what is not for them.

    The account page takes no ids: what its buttons mean is kept on the server, made from the person's own rows.
    """
    await ask(office, "ada", SECRET)
    await ask(office, "ada", "stand still", "running")
    ((ada,), (dean,)) = office.rows("select id from users where name in ('ada', 'dean') order by name")
    ((exchange, conversation),) = office.rows("select id, conversation_id from exchanges where prompt = ?", SECRET)
    ((running, second),) = office.rows("select id, conversation_id from exchanges where prompt = 'stand still'")
    it, whose = "from exchanges where id = ?", "(exchange_id, at,"
    office.change(
        f"insert into feedback {whose} user_id, rating, reason, comment) select id, queued_at, person, 1, '', 'x' {it}",
        exchange,
    )
    office.change(
        f"insert into notes {whose} by, id, text) select id, queued_at, ?, 'a-note', 'between us' {it}", dean, exchange
    )
    office.change(f"insert into labels {whose} by, label) select id, queued_at, ?, 'taken' {it}", dean, exchange)
    (session,) = office.rows("select id from sessions where user_id = ?", ada)[0]
    (key,) = office.rows("select id from api_keys where user_id = ?", ada)[0]
    before = rows_of(office, ada)
    assert all(before[table] for table in set(TABLES) - {"templates"})
    ids = (conversation, second, exchange, running, "a-note", session, key, ada)
    for name in ("bob", "rita"):
        with office.sign_in(name) as attacker:
            for path in ("/", f"/c/{second}"):
                assert SECRET not in await send_all(office, attacker, path, ids)
            if name == "rita":
                for kind in ("exchange", "person"):
                    await send_all(office, attacker, "/review", ids, ("hold", "release", "unnote"), kind=kind)
            for path in (f"/conversations/{conversation}/export", f"/conversations/{exchange}/export"):
                assert attacker.get(path).status_code == 404
            assert SECRET not in attacker.get("/conversations/export").text + attacker.get("/account/export").text
    assert rows_of(office, ada) == before
    assert office.rows("select * from holds") == []
    with office.sign_in("dean") as dean_himself:  # whose events they are: the same ones do it here
        await send_all(office, dean_himself, "/review", (exchange,), ("hold",), kind="exchange")
    assert len(office.rows("select * from holds")) == 1
    cancel = f"{office.url}/v1/requests/{running}/cancel"
    assert (await asyncio.to_thread(httpx.post, cancel, headers=bearer(key_of("ada")))).status_code == 200
    await asyncio.to_thread(eventually, lambda: office.status_of(running) in ("stopped", "cancelled"))


async def test_a_page_is_deaf_and_dumb_when_its_account_has_lost_the_right_to_it(office: RunningServer) -> None:
    """The chief looks at the people's page, and is made staff by an operator; the page is led away and ended.

    The account page is everybody's and stays; its form of templates for all is heard no more.
    """
    with office.sign_in("chief") as chief:
        page, account = chief.get("/admin/people").text, chief.get("/account").text
        async with (
            socket(office, chief, client_id_of(page)) as connection,
            socket(office, chief, client_id_of(account)) as other,
        ):
            await heard(connection, "40")
            await heard(other, "40")
            await make_templates(other, account, "before")
            made = "select name from templates where shared"
            await asyncio.to_thread(eventually, lambda: office.rows(made) == [("before",)])
            office.change("update users set role = 'staff' where name = 'chief'")
            while (event := await heard(connection, "42"))[0] != "open":
                pass
            assert event[1]["path"] == "/"
            refused = "a socket spoke for a page that is not its own, or no longer"
            before = office.output().count(refused)
            for element, listener, _ in listeners(page):
                await connection.send(packet_of(page, element, listener, "ada"))
            eventually(lambda: office.output().count(refused) == before + len(listeners(page)))
            assert "rita" not in "".join(await packets_until_silence(connection, 2))
            await make_templates(other, account, "after")
            own = "select name from templates where not shared order by name"
            await asyncio.to_thread(eventually, lambda: office.rows(own) == [("after",), ("before",)])
            await packets_until_silence(other, 1)
            assert office.rows(made) == [("before",)]
        assert chief.get("/admin/people").status_code == 403
        assert chief.get("/account/export").status_code == 200
        assert chief.get("/metrics", headers=bearer(key_of("chief"))).status_code == 403


async def make_templates(connection: ClientConnection, page: str, name: str) -> None:
    """Fill in every form of templates on an account page, and send all of its forms."""
    for id, element in elements(page).items():
        if element.get("props", {}).get("label") in ("Name of the template", "Text"):
            for event in element["events"]:
                if event["type"].startswith("update:"):
                    await connection.send(packet_of(page, int(id), event["listener_id"], name))
    for form, listener, event in listeners(page):
        if event.startswith("submit"):
            await connection.send(packet_of(page, form, listener))


async def test_what_no_browser_sends_costs_one_line_and_no_stack_trace(office: RunningServer) -> None:
    traces = office.output().count("Traceback")
    with office.sign_in("ada") as ada, office.sign_in("bob") as bob:
        page = page_of(ada)
        forged = {"QUERY_STRING": f"client_id={page}&implicit_handshake=true&tab_id=t&document_id=d&next_message_id=0"}
        forged["asgi.scope"] = {"state": {"visitor": {"session_id": "x"}}}  # type: ignore[assignment]  # as JSON has it
        async with socket(office, bob, page_of(bob)) as connection:
            await heard(connection, "40")
            for event in (["connect", forged], ["connect", 1], ["connect"], ["disconnect"], ["handshake", forged]):
                await connection.send("42" + json.dumps(event))
            line = "A\nline of its own \x1b[31m"
            await connection.send("42" + json.dumps(["log", {"client_id": page, "level": "error", "message": line}]))
            for packet in ("42" + "[" * 5000, "42{", "43", "451-", "49", "4" + "9" * 5000 + "[", "4²"):
                await connection.send(packet)
            assert SECRET not in "".join(await packets_until_silence(connection, 1))
    output = office.output()
    assert "a socket sent a connection of its own making" in output
    assert "line of its own" not in output
    assert output.count("Traceback") == traces


async def test_a_polling_socket_is_of_the_session_that_began_it(office: RunningServer) -> None:
    """Where WebSocket does not pass, the sid is part of the address; knowing it is not enough."""
    path = "/_nicegui_ws/socket.io/?EIO=4&transport=polling"
    with office.sign_in("ada") as ada, office.sign_in("bob") as bob:
        sid = json.loads(ada.get(path).text.removeprefix("0"))["sid"]
        assert bob.get(f"{path}&sid={sid}").status_code == 403
        assert bob.post(f"{path}&sid={sid}", content="40").status_code == 403
        assert ada.post(f"{path}&sid={sid}", content="40").status_code == 200


async def test_a_frame_larger_than_any_request_is_refused_and_the_socket_stays(office: RunningServer) -> None:
    address = office.url.replace("http", "ws") + "/v1/chat/ws"
    async with connect(address, additional_headers=bearer(key_of("bob"))) as program:
        await program.send(json.dumps({"messages": [{"role": "user", "content": "a" * 5_000_000}]}))
        assert json.loads(await program.recv())["error"]["code"] == "request_too_large"
        await program.send("[" * 100_000)
        assert json.loads(await program.recv())["error"]["type"] == "invalid_request_error"
        await program.send(json.dumps({"messages": [{"role": "user", "content": "Hello"}]}))
        assert "chat.completion.chunk" in str(await program.recv())


def test_a_name_in_another_spelling_is_the_same_account_to_the_limit(office: RunningServer) -> None:
    """Full-width letters and capitals open the same account, so they count for it; and the wait is told."""
    spellings = ("rita", "RITA", "ｒｉｔａ", "ｒITA", "rｉta", " rita ")
    with httpx.Client(base_url=office.url) as browser:
        token = re.search(r'name="form_token" value="(\w+)"', browser.get("/login").text)
        assert token
        form = {"form_token": token[1], "password": "not the password"}
        answers = [browser.post("/login", data={**form, "name": name}) for name in spellings]
        assert [answer.status_code for answer in answers] == [401] * 5 + [429]
        assert 1 <= int(answers[-1].headers["retry-after"]) <= 60
        assert browser.post("/login", data={**form, "name": "rita", "password": PASSWORD}).status_code == 429
