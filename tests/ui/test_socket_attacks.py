"""Attacks over the pages' socket by somebody who is signed in: other people's ids on one's own page, events that no
browser sends, a page that is still open when its account has lost the right to it.
"""

import asyncio
import json
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import connect

from storage.records import UserRole
from tests.server import PASSWORD, RunningServer, bearer, eventually, key_of, running_server
from tests.ui.test_signing_out import packets_until_silence
from tests.ui.test_sockets import handshake, heard, page_of, socket

SECRET = "what Ada alone may read"
TABLES = ("conversations", "exchanges", "feedback", "templates", "api_keys", "sessions", "notes", "users")


@pytest.fixture(scope="module")
def office() -> Iterator[RunningServer]:
    accounts: dict[str, UserRole] = {"ada": "staff", "bob": "staff", "rita": "reviewer", "chief": "admin"}
    with running_server(accounts=accounts) as server:
        yield server


def listeners(page: str) -> list[tuple[int, str, str]]:
    """Every event that a page takes: element, listener, and the event's name."""
    elements = re.search(r"parseElements\(String\.raw`(.*?)`\)", page, re.DOTALL)
    assert elements
    found = json.loads(re.sub(r"&(#\d+|\w+);", "?", elements[1]))
    return [
        (int(id), event["listener_id"], event["type"])
        for id, element in found.items()
        for event in element.get("events") or []
    ]


def client_id_of(page: str) -> str:
    found = re.search(r"'client_id': '([\w-]+)'", page)
    assert found
    return found[1]


def rows_of(server: RunningServer, user_id: str) -> dict[str, list[Any]]:
    """All that the database holds of one person, but for the times of their sessions."""
    known = {name for (name,) in server.rows("select name from sqlite_master where type = 'table'")}
    held: dict[str, list[Any]] = {}
    for table in known & set(TABLES):
        columns = [str(row[1]) for row in server.rows(f"pragma table_info({table})")]
        owner = next((name for name in ("user_id", "person", "id") if name in columns), None)
        kept = ", ".join(name for name in columns if "seen" not in name and "used" not in name)
        if owner:
            held[table] = server.rows(f"select {kept} from {table} where {owner} = ? order by 1", user_id)
    return held


async def ask(server: RunningServer, name: str, text: str) -> None:
    """Ask on the chat page, as the composer does, and wait for the end."""
    with server.sign_in(name) as browser:
        page = browser.get("/").text
        element, listener, _ = next(one for one in listeners(page) if one[2] == "ask")
        async with socket(server, browser, client_id_of(page)) as connection:
            await packets_until_silence(connection, 1)
            args = [json.dumps({"text": text, "nonce": "n", "conversation": ""})]
            event = {"client_id": client_id_of(page), "id": element, "listener_id": listener, "args": args}
            await connection.send("42" + json.dumps(["event", event]))
            done = "select 1 from exchanges where prompt = ? and status = 'done'"
            await asyncio.to_thread(eventually, lambda: bool(server.rows(done, text)))


async def test_other_peoples_ids_do_nothing_on_ones_own_page(office: RunningServer) -> None:
    """Every event of Bob's chat pages, with each of Ada's ids under every name that a handler knows.

    The account page takes no ids: what its buttons mean is kept on the server, made from the person's own rows.
    """
    await ask(office, "ada", SECRET)
    ((ada,),) = office.rows("select id from users where name = 'ada'")
    ((conversation,),) = office.rows("select id from conversations where user_id = ?", ada)
    ((exchange,),) = office.rows("select id from exchanges where prompt = ?", SECRET)
    (session,) = office.rows("select id from sessions where user_id = ?", ada)[0]
    (key,) = office.rows("select id from api_keys where user_id = ?", ada)[0]
    before = rows_of(office, ada)
    assert before["conversations"]
    assert before["api_keys"]
    names = ("id", "conversation", "exchange", "key", "session", "regenerate", "name", "label", "note", "to", "mark")
    about = {"rating": 1, "on": True, "title": "taken", "folder": "taken", "text": "taken", "open": True, "nonce": "m"}
    with office.sign_in("bob") as bob:
        for path in ("/", f"/c/{conversation}"):
            page = bob.get(path).text
            assert SECRET not in page
            async with socket(office, bob, client_id_of(page)) as connection:
                await packets_until_silence(connection, 1)
                for element, listener, _ in listeners(page):
                    for id in (conversation, exchange, session, key, ada):
                        args = [json.dumps({**about, **dict.fromkeys(names, id)})]
                        event = {"client_id": client_id_of(page), "id": element, "listener_id": listener, "args": args}
                        await connection.send("42" + json.dumps(["event", event]))
                await handshake(
                    connection, client_id_of(page)
                )  # refused, since it was done; all before it has been heard
                assert SECRET not in "".join(await packets_until_silence(connection, 2))
        for path in (f"/conversations/{conversation}/export", f"/conversations/{exchange}/export"):
            assert bob.get(path).status_code == 404
        assert SECRET not in bob.get("/conversations/export").text + bob.get("/account/export").text
    assert rows_of(office, ada) == before


async def test_a_page_is_deaf_and_dumb_when_its_account_has_lost_the_right_to_it(office: RunningServer) -> None:
    """The chief looks at the people's page, and is made staff by an operator; the page is led away and ended."""
    with office.sign_in("chief") as chief:
        page = chief.get("/admin/people").text
        client_id = client_id_of(page)
        async with socket(office, chief, client_id) as connection:
            await heard(connection, "40")
            office.change("update users set role = 'staff' where name = 'chief'")
            while (event := await heard(connection, "42"))[0] != "open":
                pass
            assert event[1]["path"] == "/"
            refused = "a socket spoke for a page that is not its own, or no longer"
            before = office.output().count(refused)
            for element, listener, _ in listeners(page):
                told = {"client_id": client_id, "id": element, "listener_id": listener, "args": [json.dumps("ada")]}
                await connection.send("42" + json.dumps(["event", told]))
            eventually(lambda: office.output().count(refused) == before + len(listeners(page)))
            assert "rita" not in "".join(await packets_until_silence(connection, 2))
        assert chief.get("/admin/people").status_code == 403
        assert chief.get("/account/export").status_code == 200
        assert chief.get("/metrics", headers=bearer(key_of("chief"))).status_code == 403


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
