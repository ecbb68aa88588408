"""Files for administrators, and accounts by invitation, over plain HTTP to the real server."""

import csv
import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import psutil
import pytest

from engine.spans import Span
from engine.types import Message
from storage import Store
from tests.databases import PASSWORD, SECRET, in_a_thread, new_database
from tests.server import RunningServer, bearer, form_token, key_of, running_server
from tests.storage.making import an_exchange, fill
from tests.ui.exchanges import exchange
from ui.pages.admin.ranges import RANGES
from ui.seal import Seal

BANNER = '<p class="notice bad" role="status">&lt;b&gt;今晚维护&lt;/b&gt;</p>'  # of a text that would be bold


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("files")
    new_database(folder / "qdesk.db", {"admin": "admin", "rita": "reviewer", "ada": "staff"})
    in_a_thread(furnish(folder))
    with running_server(folder) as running:
        yield running


async def furnish(folder: Path) -> None:
    """Invitations whose tokens the tests know, an audit trail, and what a reviewer ran again."""
    store = Store(f"sqlite:///{folder / 'qdesk.db'}")
    store.open()
    for token, name, lasts in (("open", "", 1), ("named", "Dora", 1), ("over", "", -1)):
        sealed = Seal(SECRET.encode())("invite", token)
        expires_at = datetime.now(UTC) + timedelta(hours=lasts)
        await store.invites.create(sealed, name=name, role="reviewer", invited_by="chief", expires_at=expires_at)
    ada, rita = await store.users.by_name("ada"), await store.users.by_name("rita")
    assert ada
    assert rita
    await store.identities.link(ada.id, "https://provider.example", "ada's subject")
    others = (Message("user", "what somebody else asked"),)
    await store.exchanges.record(
        exchange("rerun", "1", person=rita.id, source="review", conversation_id=None, messages=others)
    )
    for minutes, tokens in ((30, 1000), (20, 234)):
        await store.samples.add(Span(at=datetime.now(UTC) - timedelta(minutes=minutes), seconds=60, tokens=tokens))
    await store.options.set("banner", json.dumps({"text": "<b>今晚维护</b>", "level": "bad", "until": None}))
    await store.audit.add("chief", "banner.show", "", "=HYPERLINK(1)，维护")
    for number in range(1200):
        await store.audit.add("bulk", "review.open", f"exchange {number}")
    store.close()


def rows_of(answer: httpx.Response) -> list[dict[str, str]]:
    assert answer.status_code == 200
    assert answer.headers["content-disposition"].startswith("attachment; ")
    assert answer.text.startswith("\ufeff")
    return list(csv.DictReader(io.StringIO(answer.text.removeprefix("\ufeff"))))


@pytest.mark.parametrize("range", RANGES)
def test_the_charts_numbers_come_as_csv(server: RunningServer, range: str) -> None:
    """Of the minutes that are stored, but for the live quarter of an hour."""
    with server.sign_in() as admin:
        rows = rows_of(admin.get("/admin/history.csv", params={"range": range}))
    assert len(rows) == RANGES[range].length_s / RANGES[range].step_s
    if RANGES[range].stored:
        assert sum(int(row["tokens"] or 0) for row in rows) == 1234


def test_the_audit_trail_comes_whole_and_as_filtered(server: RunningServer) -> None:
    with server.sign_in() as admin:
        answer = admin.get("/admin/audit/export", params={"format": "jsonl", "actor": "bulk"})
        lines = [json.loads(line) for line in answer.text.splitlines()]
        assert [line["target"] for line in lines] == [f"exchange {number}" for number in range(1199, -1, -1)]
        tomorrow = f"{datetime.now(UTC) + timedelta(days=1):%Y-%m-%d}"
        nothing = admin.get("/admin/audit/export", params={"format": "csv", "first": tomorrow})
        assert rows_of(nothing) == []
        chief = rows_of(admin.get("/admin/audit/export", params={"format": "csv", "actor": "chief"}))
        assert [(row["action"], row["detail"]) for row in chief] == [("banner.show", "'=HYPERLINK(1)，维护")]
    taken = server.rows("select actor, target, detail from audit where action = 'audit.export' order by id")
    assert taken[0] == ("admin", "jsonl", "actor=bulk")


@pytest.mark.parametrize(
    "address",
    [
        "/admin/history.csv?range=year",
        "/admin/history.csv",
        "/admin/audit/export",
        "/admin/audit/export?format=exe",
        "/admin/audit/export?format=csv&first=yesterday",
    ],
)
def test_what_is_not_offered_is_refused_with_a_sentence(server: RunningServer, address: str) -> None:
    with server.sign_in() as admin:
        assert admin.get(address).status_code == 400


@pytest.mark.parametrize(
    "address",
    [
        "/login", "/login/code", "/login/second-step", "/login/link?token=x", "/setup?token=x", "/invite?token=x",
        "/invite?token=open",
    ],
)  # fmt: skip
def test_the_banner_hangs_on_the_pages_before_a_session_too(server: RunningServer, address: str) -> None:
    assert BANNER in httpx.get(server.url + address).text


def test_the_banner_hangs_where_there_is_nothing_for_somebody(server: RunningServer) -> None:
    with server.sign_in("ada") as ada:
        for address, status in (("/no/such/page", 404), ("/admin", 403)):
            page = ada.get(address)
            assert (page.status_code, BANNER in page.text) == (status, True), address


def accept(browser: httpx.Client, token: str, **fields: str) -> httpx.Response:
    shown = browser.get("/invite", params={"token": token})
    known = form_token(shown.text) if shown.status_code == 200 else ""
    filled = {"name": "", "password": PASSWORD, "again": PASSWORD, **fields}
    return browser.post("/invite", data={"form_token": known, "token": token, **filled})


def test_an_invited_person_makes_one_account_and_is_signed_in(server: RunningServer) -> None:
    with httpx.Client(base_url=server.url, timeout=60) as browser:
        assert accept(browser, "open", name="ada").status_code == 409
        assert "The two passwords differ." in accept(browser, "open", name="zoe", again="something else").text
        assert accept(browser, "open", name="<i>Zoe</i>").status_code == 303
        assert "<i>Zoe" not in browser.get("/account").text
        assert browser.get("/review").status_code == 200  # a reviewer, as the invitation says
    with httpx.Client(base_url=server.url, timeout=60) as another:
        answer = accept(another, "open", name="mallory")
        assert (answer.status_code, "was used already" in answer.text) == (403, True)
    assert server.rows("select actor, detail from audit where action = 'invite.accept'")[0] == (
        "<i>Zoe</i>",
        "invited by chief",
    )


def test_the_name_of_the_invitation_stays(server: RunningServer) -> None:
    with httpx.Client(base_url=server.url, timeout=60) as browser:
        assert 'value="Dora"' in browser.get("/invite", params={"token": "named"}).text
        assert accept(browser, "named", name="mallory").status_code == 303
    assert server.rows("select role from users where name = 'Dora'") == [("reviewer",)]
    assert server.rows("select name from users where name = 'mallory'") == []


def test_what_a_person_has_here_comes_as_one_file_and_is_audited(server: RunningServer) -> None:
    for name in ("ada", "rita"):
        asked = {"messages": [{"role": "user", "content": f"asked by {name}"}]}
        answer = httpx.post(server.url + "/v1/chat/completions", json=asked, headers=bearer(key_of(name)), timeout=60)
        assert answer.status_code == 200
    ((ada, secret),) = server.rows("select id, password_hash from users where name = 'ada'")
    with server.sign_in("ada") as browser:
        talk = {
            "format": "qdesk.conversation",
            "version": 1,
            "title": "Hers",
            "exchanges": [{"id": "1", "question": "x"}],
        }
        headers = {"x-form-token": form_token(browser.get("/account").text), "Origin": server.url}
        assert browser.post("/conversations/import", json=talk, headers=headers).status_code == 200
        server.change("update conversations set deleted_at = updated_at where title = 'Hers'")
        assert browser.get("/admin/people/export", params={"person": ada}).status_code == 403
    with server.sign_in() as admin:
        file = admin.get("/admin/people/export", params={"person": ada})
        ((rita,),) = server.rows("select id from users where name = 'rita'")
        reviewers = admin.get("/admin/people/export", params={"person": rita}).text
        assert admin.get("/admin/people/export", params={"person": "nobody"}).status_code == 404
    lines = [json.loads(line) for line in file.text.splitlines()]
    assert lines[0] | {"type": "account", "name": "ada"} == lines[0]
    requests = {one["messages"][-1]["content"] for one in lines if one["type"] == "request"}
    assert requests == {"asked by ada", "x"}, "what stood in a deleted conversation too"
    by_type = {one["type"]: one for one in lines}
    assert set(by_type) == {"account", "identity", "session", "api_key", "conversation", "request"}
    assert by_type["identity"]["subject"] == "ada's subject"
    assert (by_type["conversation"]["title"], by_type["conversation"]["deleted"]) == ("Hers", True)
    assert secret not in file.text
    assert "asked by rita" not in file.text
    assert "asked by rita" in reviewers
    assert "what somebody else asked" not in reviewers, "ran again by a reviewer"
    exported = "select actor, target from audit where action = 'user.export'"
    assert server.rows(exported) == [("admin", "ada"), ("admin", "rita")]


@pytest.mark.parametrize("token", ["", "over", "guessed", "open' --"])
def test_a_link_that_is_none_opens_nothing(server: RunningServer, token: str) -> None:
    with httpx.Client(base_url=server.url, timeout=60) as browser:
        assert browser.get("/invite", params={"token": token}).status_code == 403
        assert accept(browser, token, name="mallory").status_code == 403


def test_another_sites_form_makes_no_account(server: RunningServer) -> None:
    with httpx.Client(base_url=server.url, timeout=60) as browser:
        form = {"form_token": "forged", "token": "named", "name": "m", "password": PASSWORD, "again": PASSWORD}
        assert browser.post("/invite", data=form).status_code == 403


def test_tokens_are_stored_as_seals_alone(server: RunningServer) -> None:
    assert all(len(str(row[0])) >= 40 for row in server.rows("select token_hash from invites"))


def test_an_export_of_the_log_holds_a_piece_of_it_at_a_time(server: RunningServer) -> None:
    """Eighty megabytes go by, most of them after the first look at the server's memory."""
    long = (Message("system", "x" * 40_000), Message("user", "hello"))
    fill(f"sqlite:///{server.data_dir / 'qdesk.db'}", [an_exchange(messages=long) for _ in range(2000)])
    memory = psutil.Process(server.process.pid).memory_info
    with server.sign_in("rita") as rita, rita.stream("GET", "/review/export", params={"format": "jsonl"}) as answer:
        lines = answer.iter_lines()
        for _ in range(400):
            next(lines)
        early = memory().rss
        assert sum(len(line) > 40_000 for line in lines) >= 1600
        assert memory().rss - early < 40 << 20
