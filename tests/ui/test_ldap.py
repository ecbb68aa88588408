"""Signing in with names and passwords of a real directory, and what must not work there."""

import asyncio
import re
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import httpx
import pytest

from engine.settings import Settings
from tests.databases import PASSWORD, new_store, password_hash
from tests.server import running_server, sign_in
from tests.slapd import BASE, GROUPS, MISSING, PEOPLE, SERVICE, SERVICE_PASSWORD, SLAPD, RunningDirectory, running_slapd
from tests.ui.desks import started_again
from ui.desk import Desk
from ui.people import Visitor
from ui.sign_in.directory import Directory
from ui.sign_in.failing import DirectoryAway, SignInFailed
from ui.sign_in.outside import NoAccount

pytestmark = pytest.mark.skipif(SLAPD is None, reason=MISSING)

LOOKING = {"ldap_bind_dn": SERVICE, "ldap_bind_password": SERVICE_PASSWORD, "ldap_base": PEOPLE}
ROLES = {"ldap_group_base": GROUPS, "ldap_roles": f"reviewer: CN=audit, {GROUPS.upper()}"}


@pytest.fixture(scope="module")
def slapd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDirectory]:
    with running_slapd(tmp_path_factory.mktemp("slapd")) as running:
        yield running


@pytest.fixture
async def desk_with(tmp_path: Path) -> AsyncIterator[Callable[..., Desk]]:
    """Make a desk with these settings, on a store with Ada, who has a password of her own here."""
    store = new_store(tmp_path / "qdesk.db")
    opened: list[Desk] = []

    def make(**settings: object) -> Desk:
        chosen = Settings.model_validate({"backend": "scripted", "data_dir": tmp_path, **settings})
        opened.append(started_again(chosen, store))
        return opened[-1]

    yield make
    for desk in opened:
        desk.auth.close()
    store.close()


def directory(slapd: RunningDirectory, **settings: object) -> Directory:
    return Directory(Settings.model_validate({"ldap_url": slapd.url, **LOOKING, **settings}))


async def test_a_person_of_the_directory_gets_an_account_with_the_role_of_their_group(
    slapd: RunningDirectory, desk_with: Callable[..., Desk]
) -> None:
    desk = desk_with(ldap_url=slapd.url, **LOOKING, **ROLES)
    for name, called, role in (
        ("RITA", "rita", "reviewer"),
        ("lin", "lin", "staff"),
        ("smith, j", "smith, j", "staff"),
    ):
        user = await desk.auth.door.by_password(name, PASSWORD, "10.0.0.1")
        assert (user.name, user.role) == (called, role)
        assert await desk.auth.door.by_password(called, PASSWORD, "10.0.0.1") == user
        visitor = Visitor(user, "a session")
        assert not await desk.auth.door.has_password(visitor)
        assert await desk.auth.door.asks_password(visitor)
        assert await desk.auth.door.knows_password(visitor, PASSWORD)
        assert not await desk.auth.door.knows_password(visitor, "wrong")


WRONG = {
    "a wrong password": ("lin", "wrong password"),
    "nobody": ("nobody", PASSWORD),
    "an empty password": ("lin", ""),
    "a password of nothing": ("lin", "\0"),
    "everybody": ("*", PASSWORD),
    "a longer filter": ("lin)(uid=*", PASSWORD),
    "another filter": ("*)(|(uid=lin", PASSWORD),
    "an escape": ("\\6cin", PASSWORD),
    "a longer DN": (f"lin,{PEOPLE}", PASSWORD),
    "two values": ("lin+cn=lin", PASSWORD),
    "a NUL": ("lin\0", PASSWORD),
    "a line more": ("lin\nx", PASSWORD),
    "no name": ("", PASSWORD),
    "a name without end": ("l" * 10_000, PASSWORD),
}
WAYS = {
    "looking": LOOKING,
    "own DN": {"ldap_dn_template": f"uid={{name}},{PEOPLE}"},
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", WRONG)
async def test_what_belongs_to_nobody_opens_nothing(slapd: RunningDirectory, way: str, kind: str) -> None:
    asked = Directory(Settings.model_validate({"ldap_url": slapd.url, **WAYS[way]}))
    assert await asked.look_up(*WRONG[kind]) is None
    known = await asked.look_up("lin", PASSWORD)
    assert known is not None
    assert known.name == "lin"
    assert known == await directory(slapd).look_up("lin", PASSWORD)  # the same subject by either way
    asked.close()


async def test_several_people_of_one_name_are_nobody(slapd: RunningDirectory) -> None:
    asked = directory(slapd, ldap_filter="(|(uid={name})(objectClass=inetOrgPerson))")
    assert await asked.look_up("lin", PASSWORD) is None


@pytest.mark.parametrize("start_tls", [False, True])
async def test_encrypted_only_with_a_certificate_that_is_trusted(slapd: RunningDirectory, start_tls: bool) -> None:
    url = slapd.url if start_tls else slapd.secure_url
    trusting = directory(slapd, ldap_url=url, ldap_start_tls=start_tls, ldap_ca_file=str(slapd.ca_file))
    assert await trusting.look_up("lin", PASSWORD) is not None
    with pytest.raises(DirectoryAway, match="CERTIFICATE_VERIFY_FAILED"):
        await directory(slapd, ldap_url=url, ldap_start_tls=start_tls).look_up("lin", PASSWORD)
    elsewhere = url.replace("127.0.0.1", "localhost")  # for which the certificate is not
    wrong_name = directory(slapd, ldap_url=elsewhere, ldap_start_tls=start_tls, ldap_ca_file=str(slapd.ca_file))
    with pytest.raises(DirectoryAway, match="not valid for"):
        await wrong_name.look_up("lin", PASSWORD)


async def test_the_account_that_looks_people_up_must_be_let_in(slapd: RunningDirectory) -> None:
    with pytest.raises(DirectoryAway, match="looks people up"):
        await directory(slapd, ldap_bind_password="wrong").look_up("lin", PASSWORD)
    with pytest.raises(DirectoryAway, match="noSuchObject"):
        await directory(slapd, ldap_base=f"ou=nowhere,{BASE}").look_up("lin", PASSWORD)


async def test_accounts_of_this_server_are_opened_by_their_own_password_alone(
    slapd: RunningDirectory, desk_with: Callable[..., Desk]
) -> None:
    """Whoever makes an `ada` in the directory does not become Ada here; and Ada's password is not shown to it."""
    desk = desk_with(ldap_url=slapd.url, **LOOKING)
    own = await desk.auth.passwords.hash("a password of her own")
    await desk.store.users.create("ada", own, "admin")
    assert (await desk.auth.door.by_password("ada", "a password of her own", "10.0.0.1")).role == "admin"
    with pytest.raises(SignInFailed) as refused:
        await desk.auth.door.by_password("ada", PASSWORD, "10.0.0.1")
    assert type(refused.value) is SignInFailed
    await desk.store.identities.create_user("eve", "staff", "https://provider.example", "1")
    with pytest.raises(NoAccount, match="taken"):
        await desk.auth.door.by_password("eve", PASSWORD, "10.0.0.1")


async def test_a_disabled_person_stays_out_and_hears_what_everybody_hears(
    slapd: RunningDirectory, desk_with: Callable[..., Desk]
) -> None:
    desk = desk_with(ldap_url=slapd.url, **LOOKING)
    await desk.store.users.create_first("root", "no password")
    lin = await desk.auth.door.by_password("lin", PASSWORD, "10.0.0.1")
    await desk.store.users.set_disabled(lin.id, True)
    with pytest.raises(NoAccount, match="disabled"):
        await desk.auth.door.by_password("lin", PASSWORD, "10.0.0.1")


async def test_every_refusal_asks_the_directory_the_same(
    slapd: RunningDirectory, desk_with: Callable[..., Desk]
) -> None:
    """Known here, known there, known nowhere: as many questions and binds, so that none is answered sooner."""
    desk = desk_with(ldap_url=slapd.url, **LOOKING)
    await desk.store.users.create("ada", password_hash(), "staff")
    asked = []
    for name in ("ada", "lin", "nobody"):
        before = slapd.asked()
        with pytest.raises(SignInFailed):
            await desk.auth.door.by_password(name, "wrong password", "10.0.0.1")
        asked.append([question.partition("=")[0] for question in slapd.asked()[len(before) :]])
    assert asked[0] == asked[1] == asked[2] == ["BIND", "SRCH", "BIND"]
    assert not [question for question in slapd.asked() if "uid=ada" in question]


async def test_a_directory_that_says_nothing_holds_nobody_up_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ui.sign_in.directory.TIMEOUT_S", 1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings = {"ldap_url": f"ldap://127.0.0.1:{silent.getsockname()[1]}", **LOOKING}
        asked = Directory(Settings.model_validate(settings))
        looking = asyncio.create_task(asked.look_up("lin", PASSWORD))
        turns = 0
        while not looking.done():
            await asyncio.sleep(0)
            turns += 1
        assert turns > 100  # the event loop went on meanwhile
        with pytest.raises(DirectoryAway):
            looking.result()


def test_a_directory_that_is_away_keeps_accounts_of_this_server_going() -> None:
    with running_server(accounts={"ada": "staff"}, ldap_url="ldap://127.0.0.1:9", ldap_base=PEOPLE) as server:
        with httpx.Client(base_url=server.url, timeout=60) as browser:
            sentences = set()
            for name in ("ada", "lin", "nobody"):
                refused = sign_in(browser, name, "wrong password")
                assert refused.status_code == 503
                sentences.add(re.findall(r'role="alert">(.*?)<', refused.text)[0])
            assert sentences == {"That did not work. The directory of accounts cannot be reached just now."}
            assert sign_in(browser, "ada", PASSWORD).status_code == 303
        assert "wrong password" not in server.output()
