"""The second step: codes against an own clock, and over HTTP what a browser without scripts sees at sign-in."""

import re
import time
from collections.abc import Iterator

import httpx
import pyotp
import pytest

from tests.databases import password_hash
from tests.server import PASSWORD, RunningServer, form_token, running_server, sign_in
from tests.ui.desks import started_again
from ui.desk import Desk
from ui.people import Visitor
from ui.seal import Seal
from ui.sign_in.door import SignInFailed
from ui.sign_in.second_step import SecondStep, plain
from ui.tries import TooManyTries

NOW = 1_800_000_000.0
HERE = {"agent": "test", "address": "127.0.0.1"}


class Phone:
    """An authenticator app, and the server's clock."""

    def __init__(self, step: SecondStep, user_id: str) -> None:
        self.now, self.nonce = NOW, step.new_nonce()
        step.clock = lambda: self.now
        self._totp = pyotp.TOTP(step.secret(user_id, self.nonce))

    def code(self, offset: int = 0) -> str:
        return self._totp.at(int(self.now), counter_offset=offset)


async def person(desk: Desk, name: str = "ada") -> str:
    await desk.store.users.create_first("root", "no password")
    user = await desk.store.users.create(name, password_hash(), "staff")
    assert user is not None
    return user.id


async def with_phone(desk: Desk) -> tuple[str, Phone, list[str]]:
    """Ada's id, her phone, and her recovery codes."""
    user_id, step = await person(desk), desk.auth.door.second_step
    phone = Phone(step, user_id)
    codes = await step.turn_on(user_id, phone.nonce, phone.code())
    assert codes is not None
    return user_id, phone, codes


async def test_a_code_is_good_once_and_not_before_a_newer_one(desk: Desk) -> None:
    ada, phone, _ = await with_phone(desk)
    step = desk.auth.door.second_step
    assert not await step.fits(ada, phone.code())  # setting it up has used it
    assert await step.fits(ada, phone.code(1))  # the phone's clock is ahead
    assert not await step.fits(ada, phone.code(1))
    assert not await step.fits(ada, phone.code(-1))
    assert not await step.fits(ada, phone.code(2))
    phone.now += 60
    assert await step.fits(ada, f" {phone.code()[:3]} {phone.code()[3:]}")
    assert not await step.fits(ada, "")


async def test_a_recovery_code_is_good_once_however_it_is_typed(desk: Desk) -> None:
    ada, _, codes = await with_phone(desk)
    step = desk.auth.door.second_step
    assert len(set(codes)) == 10
    assert await step.fits(ada, codes[0].upper().replace("-", " "))
    assert not await step.fits(ada, codes[0])
    assert await step.recovery_codes_left(ada) == 9
    renewed = await step.new_recovery_codes(ada)
    assert not await step.fits(ada, codes[1])
    assert await step.fits(ada, renewed[1])


async def test_setting_up_needs_a_code_of_the_new_secret(desk: Desk) -> None:
    ada, step = await person(desk), desk.auth.door.second_step
    phone, other = Phone(step, ada), Phone(step, ada)
    assert await step.turn_on(ada, phone.nonce, other.code()) is None
    assert await step.turn_on(ada, phone.nonce, "") is None
    assert not await step.fits(ada, phone.code())


async def test_the_database_alone_makes_no_code(desk: Desk) -> None:
    ada, phone, codes = await with_phone(desk)
    factor = await desk.store.second_factors.of(ada)
    assert factor is not None
    with_another_secret = SecondStep(desk.store, Seal(b"whoever has copied the database"), lambda: phone.now + 60)
    phone.now += 60
    assert not await with_another_secret.fits(ada, phone.code())
    assert not await with_another_secret.fits(ada, codes[0])


def test_codes_from_any_keyboard() -> None:
    assert plain("１２３ ４５６") == "123456"
    assert plain("ABCDE-fghjk\ud800") == "abcdefghjk"


async def test_whoever_has_the_password_cannot_guess_codes_for_ever(desk: Desk) -> None:
    """The password's fitting gives no new tries."""
    _, phone, _ = await with_phone(desk)
    phone.now += 60

    async def guess() -> None:
        user = await desk.auth.door.by_password("ada", PASSWORD, "127.0.0.1")
        admission = await desk.auth.door.admit(user, "test")
        assert admission.owed == "code"
        with pytest.raises(SignInFailed):
            await desk.auth.door.by_code(admission.token, "000000", **HERE)

    for _ in range(2):
        await guess()
    with pytest.raises(TooManyTries):  # five a minute, passwords and codes together
        await guess()


async def test_a_step_that_is_owed_ends_with_the_account_and_with_its_sessions(desk: Desk) -> None:
    ada, phone, _ = await with_phone(desk)
    door = desk.auth.door
    phone.now += 60
    admission = await door.admit(await door.by_password("ada", PASSWORD, "127.0.0.1"), "test")
    await desk.store.users.set_disabled(ada, True)
    with pytest.raises(SignInFailed):
        await door.by_code(admission.token, phone.code(), **HERE)
    await desk.store.users.set_disabled(ada, False)
    await desk.auth.sign_out_everywhere(ada)
    with pytest.raises(SignInFailed):
        await door.by_code(admission.token, phone.code(), **HERE)


async def test_a_code_is_asked_for_before_the_password_where_both_are(desk: Desk) -> None:
    """Else the password would give new tries for the code."""
    ada, phone, _ = await with_phone(desk)
    door, user = desk.auth.door, await desk.store.users.get(ada)
    assert user is not None
    visitor = Visitor(user, "a session")
    phone.now += 60
    assert await door.knows_code(visitor, phone.code())
    assert not await door.knows_code(visitor, phone.code())
    assert await door.knows_password(visitor, PASSWORD)


# --- over HTTP ---


@pytest.fixture(scope="module")
def careful() -> Iterator[RunningServer]:
    with running_server(accounts={"ada": "staff", "rita": "reviewer"}, require_totp="reviewer") as server:
        yield server


def browser(server: RunningServer) -> httpx.Client:
    return httpx.Client(base_url=server.url, timeout=60)


def secret_on(page: str) -> str:
    found = re.search(r'class="secret">([A-Z2-7 ]+)<', page)
    assert found, page
    return found[1].replace(" ", "")


def send(client: httpx.Client, path: str, code: str, next: str = "/") -> httpx.Response:
    page = client.get(path)
    return client.post(path, data={"form_token": form_token(page.text), "code": code, "next": next})


def test_a_role_that_needs_it_is_led_to_setting_it_up_before_anything_else(careful: RunningServer) -> None:
    with browser(careful) as rita:
        led = sign_in(rita, "rita", PASSWORD, next="/review")
        assert led.headers["location"] == "/login/second-step?next=/review"
        assert "qdesk_session" not in rita.cookies
        assert rita.get("/review").headers["location"].startswith("/login")
        page = rita.get(led.headers["location"])
        assert "<svg" in page.text
        assert rita.get("/login/code").status_code == 403  # that is for who has set it up
        assert send(rita, "/login/second-step", "000000").status_code == 401
        totp = pyotp.TOTP(secret_on(page.text))
        shown = send(rita, "/login/second-step", totp.now(), "/review")
        codes = re.findall(r"<li>([a-z2-9]{5}-[a-z2-9]{5})</li>", shown.text)
        assert len(codes) == 10
        assert 'href="/review"' in shown.text
        assert rita.get("/review").status_code == 200
        stored = str(careful.rows("select * from users")) + str(careful.rows("select * from recovery_codes"))
        assert totp.secret not in stored
        assert codes[0] not in stored
        assert careful.rows("select target from audit where action = 'user.second_step_on'") == [("rita",)]

    with browser(careful) as rita:
        assert sign_in(rita, "rita", "wrong password").status_code == 401  # as for everybody, and no word of a code
        led = sign_in(rita, "rita", PASSWORD, next="/review")
        assert led.headers["location"] == "/login/code?next=/review"
        assert "qdesk_session" not in rita.cookies
        assert "qdesk_step" in rita.cookies
        wrong = send(rita, "/login/code", "000000")
        assert wrong.status_code == 401
        assert "does not fit" in wrong.text
        let_in = send(rita, "/login/code", codes[0], "/review")
        assert (let_in.status_code, let_in.headers["location"]) == (303, "/review")
        assert "qdesk_step" not in rita.cookies
        assert rita.get("/review").status_code == 200

    with browser(careful) as rita:
        sign_in(rita, "rita", PASSWORD)
        assert send(rita, "/login/code", codes[0]).status_code == 401  # it was used
        ahead = totp.at(int(time.time()), counter_offset=1)  # the one of now was used to set it up
        assert send(rita, "/login/code", ahead, "//evil.example").headers["location"] == "/"


def test_who_is_disabled_meanwhile_sets_nothing_up(careful: RunningServer) -> None:
    careful.change("update users set role = 'reviewer' where name = 'ada'")
    with browser(careful) as ada:
        assert sign_in(ada, "ada", PASSWORD).headers["location"] == "/login/second-step"
        page = ada.get("/login/second-step").text
        careful.change("update users set disabled = 1 where name = 'ada'")
        assert ada.get("/login/second-step").status_code == 403
        form = {"form_token": form_token(page), "code": pyotp.TOTP(secret_on(page)).now()}
        assert ada.post("/login/second-step", data=form).status_code == 403
        assert "qdesk_session" not in ada.cookies


def test_a_code_without_the_password_before_it_gets_nowhere(careful: RunningServer) -> None:
    with browser(careful) as stranger:
        for path in ("/login/code", "/login/second-step"):
            assert stranger.get(path).status_code == 403
            stranger.get("/login")
            assert stranger.post(path, data={"code": "000000"}).status_code == 403
            stranger.cookies.set("qdesk_step", "guessed")
            assert stranger.get(path).status_code == 403


async def test_who_becomes_a_reviewer_is_out_until_the_second_step_is_set_up(desk: Desk) -> None:
    ada = await person(desk)
    auth = started_again(desk.settings.model_copy(update={"require_totp": "reviewer, admin"}), desk.store).auth
    admission = await auth.door.admit(await auth.door.by_password("ada", PASSWORD, "127.0.0.1"), "test")
    assert admission.owed == ""
    visitor, told = await auth.visitor(admission.token), []
    assert visitor is not None
    auth.on_revoked(visitor.session_id, lambda: told.append("page"))
    await desk.store.users.set_role(ada, "reviewer")
    await auth.user_changed(ada)
    assert told == ["page"]
    assert not auth.allowed(visitor)
    assert await auth.visitor(admission.token) is None
    assert (await auth.door.admit(visitor.user, "test")).owed == ""  # who was staff
    user = await desk.store.users.get(ada)
    assert user is not None
    assert (await auth.door.admit(user, "test")).owed == "set up"


async def test_sessions_from_before_the_setting_are_over(desk: Desk) -> None:
    await person(desk)
    door = desk.auth.door
    token = (await door.admit(await door.by_password("ada", PASSWORD, "127.0.0.1"), "test")).token
    assert await desk.auth.visitor(token) is not None
    auth = started_again(desk.settings.model_copy(update={"require_totp": "staff"}), desk.store).auth
    assert await auth.visitor(token) is None
