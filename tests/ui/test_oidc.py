"""Signing in with an OpenID provider, and everything that must not: a real one, a browser without scripts."""

import json
import re
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from html import escape, unescape
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx
import pytest
from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey

from engine.settings import Settings
from tests.databases import SECRET
from tests.openid import CLIENT_ID, CLIENT_SECRET, Claims, Provider, running_provider
from tests.server import PASSWORD, RunningServer, form_token, running_server, sign_in
from ui.seal import Seal
from ui.sign_in.documents import Documents
from ui.sign_in.oidc import Provider as OpenId
from ui.sign_in.trips import ProviderAway

BACK = "/login/oidc/callback"


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with running_provider() as running:
        yield running


@pytest.fixture(autouse=True)
def _as_it_should_be(provider: Provider) -> None:
    provider.person, provider.userinfo, provider.about = {"sub": "1", "preferred_username": "dora"}, {}, {}
    provider.declines, provider.alter, provider.sign = False, lambda claims: claims, provider.signed
    provider.ended.clear()


def settings(provider: Provider) -> dict[str, Any]:
    return {"oidc_issuer": provider.url, "oidc_client_id": CLIENT_ID, "oidc_client_secret": CLIENT_SECRET}


@pytest.fixture(scope="module")
def server(provider: Provider) -> Iterator[RunningServer]:
    roles = {"oidc_role_claim": "realm.roles", "oidc_roles": "admin: it; reviewer: audit"}
    people = {"accounts": {"ada": "staff", "eve": "staff"}, "oidc_name": "the office"}
    with running_server(**people, **roles, **settings(provider)) as running:  # type: ignore[arg-type]  # by name
        yield running


@pytest.fixture(scope="module")
def closed(provider: Provider) -> Iterator[RunningServer]:
    """Nobody gets an account by themselves, e-mail addresses count, and passwords do not."""
    domains = "example.org, example.com"
    with running_server(
        accounts={"ada": "staff"},
        oidc_create=False,
        oidc_email_domains=domains,
        password_sign_in=False,
        oidc_logout=True,
        **settings(provider),
    ) as running:
        yield running


def browser(server: RunningServer) -> httpx.Client:
    return httpx.Client(base_url=server.url, timeout=60)


def way_back(client: httpx.Client, next: str = "/") -> str:
    """Go to the provider, and return the address that it sends the browser back to."""
    there = client.get("/login/oidc", params={"next": next})
    assert there.status_code == 303, there.text
    return httpx.get(there.headers["location"]).headers["location"]


def come_in(client: httpx.Client, next: str = "/") -> httpx.Response:
    return client.get(way_back(client, next))


def sign_out(client: httpx.Client) -> httpx.Response:
    return client.post("/logout", data={"form_token": form_token(client.get("/account").text)})


def led_to(page: httpx.Response) -> str:
    """Where a browser goes on to from this page by itself."""
    found = re.search(r'<meta http-equiv="refresh" content="0; url=([^"]+)">', page.text)
    assert found, page.text
    return unescape(found[1])


def name_of(client: httpx.Client) -> str:
    """Who is signed in; "" where nobody is."""
    answer = client.get("/account/export")
    return str(json.loads(answer.text.splitlines()[0])["name"]) if answer.is_success else ""


def test_a_person_of_the_provider_gets_an_account_and_comes_back_to_it(
    provider: Provider, server: RunningServer
) -> None:
    with browser(server) as dora:
        page = dora.get("/login?next=/account").text
        assert "Sign in with the office" in page
        assert 'href="/login/oidc?next=/account"' in page
        there = dora.get("/login/oidc?next=/account").headers["location"]
        asked = dict(parse_qsl(urlsplit(there).query))
        assert there.startswith(provider.url + "/authorize?")
        assert asked["redirect_uri"] == server.url + BACK
        assert (asked["scope"], asked["code_challenge_method"]) == ("openid profile email", "S256")
        welcome = dora.get(httpx.get(there).headers["location"])
        assert (welcome.status_code, welcome.headers["location"]) == (303, "/account")
        assert name_of(dora) == "dora"
        logout = sign_out(dora)
        assert logout.headers["location"] == "/login"
        assert name_of(dora) == ""
        assert come_in(dora).status_code == 303
    assert server.rows("select count(*), min(password_hash) from users where name = 'dora'") == [(1, "")]
    assert server.rows("select distinct id_token from sessions") == [("",)]  # which nobody needs, so it is not kept
    assert server.rows("select target, detail from audit where action = 'user.create'") == [
        ("dora", f"staff, by {provider.url}")
    ]


def test_each_sign_in_makes_a_new_session_and_ends_the_browsers_old_one(server: RunningServer) -> None:
    with browser(server) as dora:
        come_in(dora)
        before = dora.cookies["qdesk_session"]
        come_in(dora)
        assert dora.cookies["qdesk_session"] != before
        dora.cookies.set("qdesk_session", before)
        assert name_of(dora) == ""


def test_roles_follow_the_provider_at_each_sign_in(provider: Provider, server: RunningServer) -> None:
    provider.person = {"sub": "2", "preferred_username": "rolf", "realm": {"roles": ["audit", "other"]}}
    with browser(server) as rolf:
        come_in(rolf)
        assert rolf.get("/review").status_code == 200
        assert rolf.get("/admin").status_code == 403
        provider.person["realm"] = {"roles": ["it", "audit"]}
        come_in(rolf)
        assert rolf.get("/admin").status_code == 200
        provider.person["realm"] = {"roles": "nothing"}
        come_in(rolf)
        assert rolf.get("/review").status_code == 403
    assert server.rows("select count(*) from audit where action = 'user.role' and target = 'rolf'") == [(2,)]


def test_what_the_token_lacks_is_asked_for(provider: Provider, server: RunningServer) -> None:
    provider.person, provider.userinfo = {"sub": "3"}, {"preferred_username": "uma", "realm": {"roles": ["audit"]}}
    with browser(server) as uma:
        come_in(uma)
        assert name_of(uma) == "uma"
        assert uma.get("/review").status_code == 200
    provider.person, provider.userinfo = {"sub": "4"}, {"sub": "3", "preferred_username": "uma the second"}
    with browser(server) as other:
        assert come_in(other).status_code == 403  # somebody else's, so nobody's name


FORGERY = RSAKey.generate_key(2048, {"kid": "first"})


def _unsigned(claims: Claims) -> str:
    parts = (json.dumps(part).encode() for part in ({"alg": "none", "kid": "first"}, claims))
    return ".".join(urlsafe_b64encode(part).decode().rstrip("=") for part in parts) + "."


def _by_client_secret(claims: Claims) -> str:
    return jwt.encode({"alg": "HS256", "kid": "first"}, claims, OctKey.import_key(CLIENT_SECRET))


def _by_foreign_key(claims: Claims) -> str:
    return jwt.encode({"alg": "RS256", "kid": "first"}, claims, FORGERY)


def _by_key_in_header(claims: Claims) -> str:
    header = {"alg": "RS256", "kid": "mine", "jwk": FORGERY.as_dict(private=False)}
    return jwt.encode(header, claims, FORGERY)


BAD_CLAIMS: dict[str, Callable[[Claims], Claims]] = {
    "another nonce": lambda claims: claims | {"nonce": "another"},
    "no nonce": lambda claims: {name: value for name, value in claims.items() if name != "nonce"},
    "for somebody else": lambda claims: claims | {"aud": "another-client"},
    "for us too, given to somebody else": lambda claims: claims | {"aud": [CLIENT_ID, "x"], "azp": "x"},
    "for nobody": lambda claims: {name: value for name, value in claims.items() if name != "aud"},
    "of another issuer": lambda claims: claims | {"iss": "https://elsewhere.example"},
    "expired": lambda claims: claims | {"iat": int(time.time()) - 900, "exp": int(time.time()) - 120},
    "for ever": lambda claims: {name: value for name, value in claims.items() if name != "exp"},
    "not yet": lambda claims: claims | {"nbf": int(time.time()) + 600},
    "of nobody": lambda claims: {name: value for name, value in claims.items() if name != "sub"},
    "of an empty subject": lambda claims: claims | {"sub": ""},
    "of several": lambda claims: claims | {"sub": ["1", "2"]},
}
BAD_SIGNATURES: dict[str, Callable[[Claims], str]] = {
    "alg none": _unsigned,
    "by the client's secret": _by_client_secret,
    "by a foreign key": _by_foreign_key,
    "by a key of its own header": _by_key_in_header,
    "no token": lambda claims: "not a token",
    "cut off": lambda claims: _by_foreign_key(claims).rpartition(".")[0] + ".",
}


@pytest.mark.parametrize("kind", [*BAD_CLAIMS, *BAD_SIGNATURES])
def test_a_token_that_is_not_the_providers_word_for_this_way_opens_nothing(
    provider: Provider, server: RunningServer, kind: str
) -> None:
    provider.alter = BAD_CLAIMS.get(kind, provider.alter)
    provider.sign = BAD_SIGNATURES.get(kind, provider.sign)
    with browser(server) as dora:
        refused = come_in(dora)
        assert refused.status_code == 403
        assert "Signing in with the office did not work." in refused.text
        assert "qdesk_session" not in dora.cookies


def test_a_way_that_this_browser_did_not_begin_leads_nowhere(server: RunningServer) -> None:
    with browser(server) as attacker, browser(server) as dora:
        back = way_back(attacker)
        dora.get("/login")
        assert dora.get(back).status_code == 403  # nobody is signed in as somebody else by following a link
        assert attacker.get(back).status_code == 403  # and it was used up by that
        own = dict(parse_qsl(urlsplit(way_back(dora)).query))
        for forged in ({"state": "guessed"}, {"state": ""}, {"code": "guessed"}):
            assert dora.get(BACK, params=own | forged).status_code == 403
        assert dora.get(BACK).status_code == 403
        assert "qdesk_session" not in dora.cookies


def test_an_answer_is_good_once(server: RunningServer) -> None:
    with browser(server) as dora:
        back = way_back(dora)
        assert dora.get(back).status_code == 303
        assert dora.get(back).status_code == 403
        code = dict(parse_qsl(urlsplit(back).query))["code"]
        fresh = dict(parse_qsl(urlsplit(way_back(dora)).query))
        assert dora.get(BACK, params=fresh | {"code": code}).status_code == 403  # an old code on a new way


def test_a_code_of_another_persons_way_fits_no_other(server: RunningServer) -> None:
    """PKCE: a stolen code is worth nothing without what the way began with."""
    with browser(server) as victim, browser(server) as attacker:
        stolen = dict(parse_qsl(urlsplit(way_back(victim)).query))["code"]
        own = dict(parse_qsl(urlsplit(way_back(attacker)).query))
        assert attacker.get(BACK, params=own | {"code": stolen}).status_code == 403


def test_an_answer_by_another_provider_is_not_taken(provider: Provider, server: RunningServer) -> None:
    with browser(server) as dora:
        assert dora.get(way_back(dora) + "&" + urlencode({"iss": "https://elsewhere.example"})).status_code == 403
        assert dora.get(way_back(dora) + "&" + urlencode({"iss": provider.url})).status_code == 303


@pytest.mark.parametrize("next", ["//evil.example", "https://evil.example", "/\\evil.example"])
def test_the_way_back_never_leads_to_another_site(server: RunningServer, next: str) -> None:
    with browser(server) as dora:
        assert come_in(dora, next).headers["location"] == "/"


def test_who_turns_back_at_the_provider_is_told_so(provider: Provider, server: RunningServer) -> None:
    provider.declines = True
    with browser(server) as dora:
        refused = come_in(dora)
        assert refused.status_code == 403
        assert "the office did not let you in." in refused.text


def test_nobody_comes_into_an_account_by_being_called_the_same(provider: Provider, server: RunningServer) -> None:
    provider.person = {"sub": "thief", "preferred_username": "ADA", "email": "ada@example.org", "email_verified": True}
    with browser(server) as thief:
        refused = come_in(thief)
        assert refused.status_code == 403
        assert "There is an account ADA here already." in refused.text
        assert "qdesk_session" not in thief.cookies
    for name in ("", "x" * 65, "a\u202eb", 7):
        provider.person = {"sub": f"named {name}", "preferred_username": name}
        with browser(server) as nameless:
            assert "cannot be the name of an account" in come_in(nameless).text


def test_a_disabled_person_stays_out_whatever_the_provider_says(provider: Provider, server: RunningServer) -> None:
    provider.person = {"sub": "5", "preferred_username": "hal", "realm": {"roles": ["it"]}}
    with browser(server) as hal:
        come_in(hal)
        server.change("update users set disabled = 1 where name = 'hal'")
        refused = come_in(hal)
        assert refused.status_code == 403
        assert "disabled" in refused.text


def test_the_second_step_is_asked_for_after_the_provider_too(provider: Provider, server: RunningServer) -> None:
    provider.person = {"sub": "6", "preferred_username": "tom"}
    with browser(server) as tom:
        come_in(tom)
        server.change("update users set totp_nonce = 'some nonce' where name = 'tom'")
        tom.cookies.clear()
        assert come_in(tom, "/account").headers["location"] == "/login/code?next=/account"
        assert "qdesk_session" not in tom.cookies


def test_keys_that_the_provider_changes_are_learnt(provider: Provider, server: RunningServer) -> None:
    """Within half a minute of the last look they are not asked for again, or forged tokens would make us a nuisance."""
    with browser(server) as dora:
        come_in(dora)
        looks = provider.asked.count("/jwks")
        provider.sign = _by_foreign_key
        for _ in range(3):
            come_in(dora)
        assert provider.asked.count("/jwks") <= looks + 1


def test_only_people_with_an_account_and_a_verified_address(provider: Provider, closed: RunningServer) -> None:
    with browser(closed) as ada:
        page = ada.get("/login").text
        assert "Sign in with 127.0.0.1" in page
        assert 'type="password"' not in page
        for email in ({}, {"email": "ada@example.org"}, {"email": "ada@example.org", "email_verified": "false"}):
            provider.person = {"sub": "ada there", "preferred_username": "ada", **email}
            assert "no verified e-mail address" in come_in(ada).text
        for address in ("ada@elsewhere.example", "example.org", "ada@example.org@elsewhere.example"):
            provider.person |= {"email": address, "email_verified": True}
            assert "no verified e-mail address" in come_in(ada).text
        provider.person |= {"email": "ada@EXAMPLE.org"}
        assert "There is no account for you here yet." in come_in(ada).text  # a verified address opens none either
        ((ada_id,),) = closed.rows("select id from users where name = 'ada'")
        connect = "insert into identities values (?, 'ada there', ?, '2026-01-01 00:00:00.000000')"
        closed.change(connect, provider.url, ada_id)
        assert come_in(ada).headers["location"] == "/"
        assert name_of(ada) == "ada"


def test_signing_out_ends_the_session_at_the_provider_too(provider: Provider, closed: RunningServer) -> None:
    many_groups = {"groups": "a group, " * 400}  # they make the token about 5000 characters long
    provider.person = {"sub": "root there", "email": "root@example.org", "email_verified": True, **many_groups}
    ((admin_id,),) = closed.rows("select id from users where name = 'admin'")
    connect = "insert into identities values (?, 'root there', ?, '2026-01-01 00:00:00.000000')"
    closed.change(connect, provider.url, admin_id)
    with browser(closed) as admin:
        come_in(admin)
        cookie = admin.cookies["qdesk_session"]
        page = sign_out(admin)
        there = led_to(page)
        assert page.status_code == 200
        assert there.startswith(provider.url + "/logout?theme=plain&")
        assert f'href="{escape(there)}"' in page.text  # for whoever is not led on
        assert 4096 < len(there) < 8192
        assert sum(len(name) + len(value) + 4 for name, value in page.headers.raw) < 4096  # as much as nginx takes
        assert httpx.get(there).headers["location"] == closed.url + "/login"
        assert [claims["sub"] for claims in provider.ended] == ["root there"]
        admin.cookies.set("qdesk_session", cookie)
        assert name_of(admin) == ""
    assert closed.rows("select count(*) from sessions where user_id = ?", admin_id) == [(0,)]


@pytest.mark.parametrize("about", [{"end_session_endpoint": None}, {"end_session_endpoint": "ftp://x"}])
async def test_a_provider_that_offers_no_way_out_is_asked_for_none(provider: Provider, about: Claims) -> None:
    provider.about = about
    chosen = Settings.model_validate({**settings(provider), "oidc_logout": True})
    assert await OpenId(chosen).way_out("a token", "http://127.0.0.1/login") == ""
    away = chosen.model_copy(update={"oidc_issuer": "http://127.0.0.1:9"})
    assert await OpenId(away).way_out("a token", "http://127.0.0.1/login") == ""


async def test_a_token_too_long_for_an_address_is_left_out(provider: Provider) -> None:
    address = await OpenId(Settings.model_validate(settings(provider))).way_out("x" * 9000, "http://127.0.0.1/login")
    assert "id_token_hint" not in address
    assert f"client_id={CLIENT_ID}" in address


def test_passwords_that_are_turned_off_open_nothing(closed: RunningServer) -> None:
    with browser(closed) as admin:
        admin.get("/login/oidc")  # for the cookie of forms; the page itself has none
        token = Seal(SECRET.encode())("form", str(admin.cookies["qdesk_form"]))
        refused = admin.post("/login", data={"form_token": token, "name": "admin", "password": PASSWORD})
        assert refused.status_code == 401
        assert "qdesk_session" not in admin.cookies


def test_a_provider_that_is_away_keeps_nobody_else_out(provider: Provider) -> None:
    away = settings(provider) | {"oidc_issuer": "http://127.0.0.1:9", "oidc_name": "the office"}
    with running_server(accounts={"ada": "staff"}, **away) as server, browser(server) as ada:
        refused = ada.get("/login/oidc")
        assert refused.status_code == 503
        assert "the office cannot be reached just now. Accounts of this server can still sign in." in refused.text
        assert sign_in(ada, "ada", PASSWORD).status_code == 303


@pytest.mark.parametrize(
    "about",
    [
        {"issuer": "https://elsewhere.example"},
        {"token_endpoint": "ftp://x"},
        {"jwks_uri": None},
        {"authorization_endpoint": 7},
    ],
)
async def test_a_provider_that_describes_another_is_not_asked(provider: Provider, about: Claims) -> None:
    provider.about = about
    documents = Documents(provider.url, 5)
    with pytest.raises(ProviderAway):
        await documents.about()
