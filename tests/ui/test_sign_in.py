"""Signing in and out, the first account, cookies, forms: with a browser that runs no scripts."""

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.server import PASSWORD, RunningServer, form_token, running_server, sign_in
from ui.seal import keep_first


def browser(server: RunningServer, **headers: str) -> httpx.Client:
    return httpx.Client(base_url=server.url, headers=headers, timeout=60)


def test_signing_in_leads_to_the_page_that_was_wanted(server: RunningServer) -> None:
    with browser(server) as visitor:
        sent_away = visitor.get("/account")
        assert sent_away.status_code == 303
        assert sent_away.headers["location"] == "/login?next=/account"
        welcome = sign_in(visitor, "ada", PASSWORD, next="/account")
        assert (welcome.status_code, welcome.headers["location"]) == (303, "/account")
        assert "Sign out" in visitor.get("/account").text


def test_names_are_the_same_in_capitals(server: RunningServer) -> None:
    with browser(server) as visitor:
        assert sign_in(visitor, " ADA ", PASSWORD).status_code == 303


@pytest.mark.parametrize(("name", "password"), [("ada", "wrong password"), ("nobody", PASSWORD), ("", ""), ("bob", "")])
def test_a_wrong_name_or_password_says_the_same(server: RunningServer, name: str, password: str) -> None:
    with browser(server) as visitor:
        refused = sign_in(visitor, name, password)
        assert refused.status_code == 401
        assert "do not belong together" in refused.text
        assert "qdesk_session" not in visitor.cookies


def test_cookies_are_for_the_server_alone(server: RunningServer) -> None:
    with browser(server) as visitor:
        cookie = sign_in(visitor, "ada", PASSWORD).headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=lax" in cookie
        assert "Path=/" in cookie
        assert "Secure" not in cookie  # plain http: the browser would never send it back
        assert len(visitor.cookies["qdesk_session"]) >= 43


def test_behind_https_cookies_are_secure_and_its_origin_is_ours() -> None:
    with running_server(public_url="https://chat.example.org") as server, browser(server) as visitor:
        page = visitor.get("/login")
        assert "Secure" in page.headers["set-cookie"]
        assert page.headers["set-cookie"].startswith("__Host-qdesk_form=")
        form = {"form_token": form_token(page.text), "name": "admin", "password": PASSWORD}
        cookies = {"Cookie": page.headers["set-cookie"].split(";")[0]}
        answer = visitor.post("/login", data=form, headers=cookies)
        assert "Secure" in answer.headers["set-cookie"]
        assert answer.headers["set-cookie"].startswith("__Host-qdesk_session=")
        assert "Domain" not in answer.headers["set-cookie"]
        session = answer.headers["set-cookie"].split(";")[0]
        for origin, status in (("https://chat.example.org", 303), ("https://elsewhere.example", 403)):
            logout = visitor.post("/logout", headers={"Cookie": session, "Origin": origin})
            assert logout.status_code == status


def test_each_sign_in_makes_a_new_token(server: RunningServer) -> None:
    with browser(server) as visitor:
        sign_in(visitor, "ada", PASSWORD)
        first = visitor.cookies["qdesk_session"]
        visitor.cookies.delete("qdesk_session")
        sign_in(visitor, "ada", PASSWORD)
        assert visitor.cookies["qdesk_session"] != first


def test_the_token_is_not_in_the_database(server: RunningServer) -> None:
    with server.sign_in("ada") as visitor:
        token = visitor.cookies["qdesk_session"]
        assert token not in str(server.rows("select * from sessions"))


@pytest.mark.parametrize(
    "target",
    [
        "//evil.example",
        "https://evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "evil",
        "",
        "/\tx",
        "javascript:x",
    ],
)
def test_next_never_leads_to_another_site(server: RunningServer, target: str) -> None:
    with browser(server) as visitor:
        assert sign_in(visitor, "ada", PASSWORD, next=target).headers["location"] == "/"


def test_a_path_that_looks_like_a_host_is_not_followed(server: RunningServer) -> None:
    with browser(server) as visitor:
        assert visitor.get("//evil.example/x").headers.get("location", "/login").startswith("/login")


def test_forms_need_their_token(server: RunningServer) -> None:
    with browser(server) as visitor:
        visitor.get("/login")
        forged = visitor.post("/login", data={"form_token": "0" * 64, "name": "ada", "password": PASSWORD})
        assert forged.status_code == 400
        assert "qdesk_session" not in visitor.cookies
        sign_in(visitor, "ada", PASSWORD)
        visitor.post("/logout", data={"form_token": "0" * 64})
        assert visitor.get("/account").status_code == 200


def test_a_form_of_another_browser_is_not_taken(server: RunningServer) -> None:
    with browser(server) as attacker, browser(server) as visitor:
        token = form_token(attacker.get("/login").text)
        visitor.get("/login")
        assert (
            visitor.post("/login", data={"form_token": token, "name": "ada", "password": PASSWORD}).status_code == 400
        )


def test_signing_out_ends_the_session_also_for_a_copied_cookie(server: RunningServer) -> None:
    with server.sign_in("ada") as visitor, browser(server) as thief:
        thief.cookies.set("qdesk_session", visitor.cookies["qdesk_session"])
        assert thief.get("/account").status_code == 200
        visitor.post("/logout", data={"form_token": form_token(visitor.get("/account").text)})
        assert thief.get("/account").status_code == 303
        assert thief.get("/v1/models").status_code == 401


def test_too_many_wrong_passwords_have_to_wait() -> None:
    with running_server(accounts={"ada": "staff"}) as server, browser(server) as visitor:
        tries = [sign_in(visitor, "ada", "wrong password").status_code for _ in range(6)]
        assert tries == [401] * 5 + [429]
        refused = sign_in(visitor, "ada", PASSWORD)
        assert refused.status_code == 429
        assert "Too many tries" in refused.text
        assert sign_in(visitor, "admin", PASSWORD).status_code == 303  # others are not held up
        assert PASSWORD not in server.output()
        assert "wrong password" not in server.output()


def test_the_page_speaks_the_browsers_language_and_can_be_switched(server: RunningServer) -> None:
    with browser(server, **{"Accept-Language": "zh-CN,zh;q=0.9"}) as visitor:
        assert "登录" in visitor.get("/login").text
        assert "Sign in" in visitor.get("/login?lang=en").text


def test_the_first_start_prints_one_link_that_makes_one_administrator() -> None:
    with running_server(admin_password="") as server:
        link = re.search(r"http://\S+/setup\?token=\S+", server.output())
        assert link
        path = link[0].removeprefix(server.url)
        statuses = asyncio.run(race(server, path, 20))
        assert statuses.count(303) == 1
        assert server.rows("select count(*), min(role) from users") == [(1, "admin")]
        assert server.rows("select password_hash from users")[0][0].startswith("$argon2id$")
        assert httpx.get(server.url + path).status_code == 403  # the link is used up


async def race(server: RunningServer, path: str, people: int) -> list[int]:
    """Everybody opens the link, then everybody sends the form at once."""
    clients = [browser(server) for _ in range(people)]
    token = path.partition("token=")[2]

    def send(number: int, form: str) -> int:
        fields = {"form_token": form, "token": token, "name": f"first{number}", "password": PASSWORD, "again": PASSWORD}
        return clients[number].post("/setup", data=fields).status_code

    forms = [form_token(client.get(path).text) for client in clients]
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(people) as threads:
        sending = [loop.run_in_executor(threads, send, number, form) for number, form in enumerate(forms)]
        statuses = await asyncio.gather(*sending)
    for client in clients:
        client.close()
    return statuses


def test_setup_says_what_is_wrong_with_a_name_or_password() -> None:
    with running_server(admin_password="") as server, browser(server) as visitor:
        link = re.search(r"/setup\?token=(\S+)", server.output())
        assert link
        for path in ("/", "/login", "/setup", "/setup?token=guess", "/livez", "/readyz", "/health", "/metrics"):
            assert link[1] not in visitor.get(path, follow_redirects=True).text, "only the console tells it"
        fields = {"token": link[1], "name": "first", "password": PASSWORD, "again": PASSWORD}
        for change, sentence in (
            ({"name": " "}, "choose a name"),
            ({"name": "x" * 65}, "at most 64"),
            ({"password": "short", "again": "short"}, "8 to 200"),
            ({"again": "something else"}, "differ"),
        ):
            form = form_token(visitor.get(link[0]).text)
            answer = visitor.post("/setup", data={**fields, **change, "form_token": form})
            assert answer.status_code == 400
            assert sentence in answer.text
        assert visitor.get("/setup?token=guess").status_code == 403
        form = form_token(visitor.get(link[0]).text)
        assert visitor.post("/setup", data={**fields, "form_token": form}).headers["location"] == "/"
        assert visitor.get("/account").status_code == 200


def test_the_session_secret_is_made_once_and_only_the_owner_reads_it() -> None:
    with running_server(session_secret="") as server:
        secret = server.data_dir / "session.secret"
        assert secret.stat().st_mode & 0o777 == 0o600
        assert len(secret.read_bytes()) == 32


def test_of_processes_that_start_at_once_on_one_folder_the_first_makes_the_secret(tmp_path: Path) -> None:
    secret = tmp_path / "session.secret"
    keep_first(secret, b"first")
    keep_first(secret, b"second")
    assert secret.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [secret]
