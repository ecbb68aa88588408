"""Sessions in memory against the real store: what ends one, how fast it is felt, and who hears of it."""

import asyncio
import threading
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from argon2 import Parameters, PasswordHasher, extract_parameters
from pydantic import SecretStr

from engine.settings import Settings
from storage.database import READERS
from storage.records import User
from tests.databases import PASSWORD, new_store, password_hash
from ui.access import Right
from ui.auth import IDLE, Auth, Caller, Visitor
from ui.bus import Bus
from ui.setup import LASTS_S
from ui.sign_in.door import SignInFailed
from ui.tries import LEAVING_ADDRESS, TRIES_ADDRESS, TRIES_HERE, TooManyTries, Tries


@pytest.fixture
async def auth(tmp_path: Path) -> AsyncIterator[Auth]:
    settings = Settings(data_dir=tmp_path, api_key=SecretStr("the-operators-key"))
    store = new_store(tmp_path / "qdesk.db")
    auth = Auth(store, settings)
    yield auth
    auth.passwords.close()
    store.close()


@pytest.fixture
async def ada(auth: Auth) -> User:
    await auth.store.users.create("root", "no password", "admin")
    user = await auth.store.users.create("Ada", password_hash(), "staff")
    assert user is not None
    return user


async def sign_in(auth: Auth, name: str = "ada", address: str = "127.0.0.1") -> str:
    """Return the token of the new session."""
    return (await auth.door.admit(await auth.door.by_password(name, PASSWORD, address), "test")).token


async def visit(auth: Auth, name: str = "ada") -> Visitor:
    """Sign in and come back with the cookie."""
    visitor = await auth.visitor(await sign_in(auth, name))
    assert visitor is not None
    return visitor


async def test_a_visitor_is_allowed_by_role(auth: Auth, ada: User) -> None:
    visitor = await visit(auth)
    assert visitor.user.name == "Ada"
    assert auth.allowed(visitor)
    assert not auth.allowed(visitor, Right.REVIEW)
    assert not auth.allowed(visitor, Right.ADMINISTER)


async def test_a_new_role_counts_at_once(auth: Auth, ada: User) -> None:
    visitor = await visit(auth)
    await auth.store.users.set_role(ada.id, "reviewer")
    await auth.user_changed(ada.id)
    assert auth.allowed(visitor, Right.REVIEW)


@pytest.mark.parametrize("past_this_process", [False, True])
async def test_a_page_hears_when_its_account_loses_the_right_to_it(
    auth: Auth, ada: User, past_this_process: bool
) -> None:
    await auth.store.users.set_role(ada.id, "admin")
    visitor, told = await visit(auth), []
    auth.on_revoked(visitor.session_id, lambda: told.append("chat"))
    auth.on_revoked(visitor.session_id, lambda: told.append("review"), Right.REVIEW)
    auth.on_revoked(visitor.session_id, lambda: told.append("admin"), Right.ADMINISTER)
    for role, heard in (("reviewer", ["admin"]), ("staff", ["admin", "review"])):
        await auth.store.users.set_role(ada.id, role)  # type: ignore[arg-type]  # the roles above
        await (auth.recheck() if past_this_process else auth.user_changed(ada.id))
        assert told == heard
    assert auth.allowed(visitor)


async def test_a_page_that_cannot_be_told_keeps_nobody_else_from_it(auth: Auth, ada: User) -> None:
    broken, whole = await visit(auth), await visit(auth)
    told: list[str] = []

    def fail() -> None:
        told.append("broken")
        raise RuntimeError("the page is gone")

    auth.on_revoked(broken.session_id, fail)
    auth.on_revoked(whole.session_id, lambda: told.append("whole"))
    await auth.sign_out_everywhere(ada.id)
    assert told == ["broken", "whole"]
    assert not auth.allowed(broken)
    assert not auth.allowed(whole)


async def test_the_set_up_link_opens_once_and_for_a_day(auth: Auth) -> None:
    await auth.setup.open("")
    token = auth.setup.token or ""
    assert auth.setup.opens(token)
    assert not auth.setup.opens(token + "x")
    auth.setup._until -= LASTS_S
    assert not auth.setup.opens(token)
    await auth.setup.open("")
    made = await asyncio.gather(*(auth.setup.make(name, PASSWORD) for name in ("first", "second", "third")))
    assert sum(user is not None for user in made) == 1
    assert not auth.setup.opens(auth.setup.token or "")


async def test_strangers_elsewhere_lock_nobody_out_of_where_they_sign_in(auth: Auth, ada: User) -> None:
    await visit(auth)
    for number in range(60):
        auth.door.tries.failed(ada.id, f"10.0.0.{number}")
    assert await visit(auth)
    with pytest.raises(TooManyTries) as wait:
        await sign_in(auth, "ada", "10.0.1.1")
    assert 60 < wait.value.wait_s <= 3600


def test_an_address_has_its_own_limit_whatever_names_it_tries() -> None:
    tries = Tries(Bus())
    for number in range(TRIES_ADDRESS.amount):
        tries.begin(f"name {number}", "10.0.0.1")
        tries.failed(f"name {number}", "10.0.0.1")
    for _ in range(LEAVING_ADDRESS.amount):
        tries.leave("10.0.0.2")
    with pytest.raises(TooManyTries) as after_wrong_ones:
        tries.begin("another", "10.0.0.1")
    with pytest.raises(TooManyTries) as after_leaving:
        tries.leave("10.0.0.2")
    assert 60 < after_wrong_ones.value.wait_s <= 300
    assert 60 < after_leaving.value.wait_s <= 300
    tries.begin("another", "10.0.0.2")
    tries.leave("10.0.0.1")


def test_who_tries_on_waits_longer_and_longer() -> None:
    tries, waits = Tries(Bus()), []
    for _ in range(2):
        for _ in range(5):
            tries.begin("ada", "10.0.0.1")
        with pytest.raises(TooManyTries) as wait:
            tries.begin("ada", "10.0.0.1")
        waits.append(wait.value.wait_s)
        tries._limiter.clear(TRIES_HERE[0], "ada", "10.0.0.1")  # as if a minute had passed
    assert waits[0] <= 60 < waits[1] <= 600


async def test_disabling_an_account_ends_its_sessions_and_tells_open_pages(auth: Auth, ada: User) -> None:
    visitor, told = await visit(auth), []
    auth.on_revoked(visitor.session_id, lambda: told.append("page"))
    await auth.store.users.set_disabled(ada.id, True)
    await auth.user_changed(ada.id)
    assert not auth.allowed(visitor)
    assert told == ["page"]
    with pytest.raises(SignInFailed):
        await visit(auth)


async def test_signing_out_ends_one_session_and_everywhere_ends_all(auth: Auth, ada: User) -> None:
    first, second, third = await visit(auth), await visit(auth), await visit(auth)
    await auth.sign_out(first.session_id)
    assert [auth.allowed(visitor) for visitor in (first, second, third)] == [False, True, True]
    await auth.sign_out_everywhere(ada.id)
    assert [auth.allowed(visitor) for visitor in (first, second, third)] == [False, False, False]


async def test_a_closed_page_hears_no_more(auth: Auth, ada: User) -> None:
    visitor, told = await visit(auth), []
    forget = auth.on_revoked(visitor.session_id, lambda: told.append("page"))
    forget()
    await auth.sign_out(visitor.session_id)
    assert told == []


async def test_a_session_that_nobody_used_for_long_is_over(auth: Auth, ada: User) -> None:
    token = await sign_in(auth)
    visitor = await auth.visitor(token)
    assert visitor is not None
    auth._live[visitor.session_id].seen_at = datetime.now(UTC) - IDLE - timedelta(seconds=1)
    assert not auth.allowed(visitor)
    assert await auth.visitor(token) is None
    assert await auth.store.sessions.list(ada.id) == []


async def test_what_was_changed_past_this_process_is_noticed(auth: Auth, ada: User) -> None:
    disabled, ended = await visit(auth), await visit(auth)
    await auth.store.sessions.end(ended.session_id)
    await auth.recheck()
    assert [auth.allowed(visitor) for visitor in (disabled, ended)] == [True, False]
    await auth.store.users.set_disabled(ada.id, True)
    await auth.recheck()
    assert not auth.allowed(disabled)


async def test_why_a_session_has_ended_is_not_waited_for(
    auth: Auth, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ui.auth.TELLS_WITHIN_S", 0.01)
    visitor, answers = await visit(auth), threading.Event()
    await auth.store.users.set_disabled(ada.id, True)
    reads = [asyncio.create_task(auth.store._database.read(lambda _: answers.wait(60))) for _ in range(READERS)]
    await asyncio.sleep(0)  # the database answers nobody now
    try:
        assert await asyncio.wait_for(auth.why_ended(visitor), 30) == "signed-out"
    finally:
        answers.set()
        await asyncio.gather(*reads)


async def test_a_key_calls_for_its_account_until_it_is_revoked(auth: Auth, ada: User) -> None:
    key = await auth.keys.make(ada.id, "script")
    assert key.startswith("sk-qdesk-")
    caller = await auth.keys.caller(key)
    assert caller is not None
    assert (caller.person, caller.may(Right.USE), caller.may(Right.ADMINISTER)) == (ada.id, True, False)
    (kept,) = await auth.store.api_keys.list(ada.id)
    assert key not in str(kept)
    assert await auth.store.api_keys.revoke(kept.id, ada.id)
    assert await auth.keys.caller(key) is None


async def test_a_key_of_a_disabled_account_is_refused(auth: Auth, ada: User) -> None:
    key = await auth.keys.make(ada.id, "script")
    await auth.store.users.set_disabled(ada.id, True)
    assert await auth.keys.caller(key) is None


async def test_the_operators_key_belongs_to_nobody(auth: Auth) -> None:
    assert await auth.keys.caller("the-operators-key") == Caller(None)
    assert await auth.keys.caller("the-operators-kez") is None
    assert await auth.keys.caller("") is None


async def test_a_new_password_ends_the_other_sessions(auth: Auth, ada: User) -> None:
    here, elsewhere = await visit(auth), await visit(auth)
    assert not await auth.door.change_password(here, "not the password", "a new password")
    assert await auth.door.change_password(here, PASSWORD, "a new password")
    assert [auth.allowed(visitor) for visitor in (here, elsewhere)] == [True, False]
    with pytest.raises(SignInFailed):
        await visit(auth)


async def test_an_unknown_name_costs_what_a_known_one_does(
    auth: Auth, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted, not timed: every refusal verifies one hash, made as those that are stored."""
    verified, verify = list[Parameters](), PasswordHasher.verify

    def counted(hasher: PasswordHasher, stored: str, password: str) -> bool:
        verified.append(extract_parameters(stored))
        return verify(hasher, stored, password)

    monkeypatch.setattr(PasswordHasher, "verify", counted)
    dora = await auth.store.users.create("Dora", await auth.passwords.hash(PASSWORD), "staff")
    assert dora is not None
    await auth.store.users.set_disabled(dora.id, True)
    for name, password in (("nobody", PASSWORD), ("ada", "not the password"), ("dora", PASSWORD)):
        with pytest.raises(SignInFailed):
            await auth.door.by_password(name, password, "127.0.0.1")
    unknown, wrong, disabled = verified
    assert unknown == wrong == disabled


async def test_who_watches_a_key_is_told_once_when_it_is_revoked(auth: Auth, ada: User) -> None:
    told: list[str] = []
    caller = await auth.keys.caller(await auth.keys.make(ada.id, "script"))
    assert caller is not None
    auth.keys.on_revoked(caller.key_id, ada.id, lambda: told.append("watching"))
    auth.keys.on_revoked(caller.key_id, ada.id, lambda: told.append("forgotten"))()
    await auth.keys.revoke(caller.key_id, "somebody else")
    assert told == []
    await auth.keys.revoke(caller.key_id, ada.id)
    assert told == ["watching"]
    auth.keys.on_revoked(caller.key_id, ada.id, lambda: told.append("too late"))  # it was asked while it was revoked
    assert told == ["watching", "too late"]


async def test_a_key_that_is_revoked_past_this_process_is_noticed(auth: Auth, ada: User) -> None:
    told: list[str] = []
    caller = await auth.keys.caller(await auth.keys.make(ada.id, "script"))
    assert caller is not None
    auth.keys.on_revoked(caller.key_id, ada.id, lambda: told.append("revoked"))
    await auth.recheck()
    assert told == []
    await auth.store.api_keys.revoke(caller.key_id, ada.id)
    await auth.recheck()
    assert told == ["revoked"]
