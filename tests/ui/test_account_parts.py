"""What the account page does when its session is over."""

import asyncio

import pytest
from nicegui import Client, core
from nicegui.page import page

from tests.databases import PASSWORD, password_hash
from ui.components.account.parts import Owner
from ui.desk import Desk
from ui.i18n import language


async def test_whose_account_is_disabled_is_told_so(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "loop", asyncio.get_running_loop())
    await desk.store.users.create("root", "no password", "admin")
    user = await desk.store.users.create("ada", password_hash(), "staff")
    assert user is not None
    admission = await desk.auth.door.admit(await desk.auth.door.by_password("ada", PASSWORD, "127.0.0.1"), "test")
    visitor = await desk.auth.visitor(admission.token)
    assert visitor is not None
    client = Client(page("/account"))
    owner = Owner(desk, visitor, language("en"), client)
    assert owner.may()
    await desk.store.users.set_disabled(user.id, True)
    await desk.auth.recheck()
    assert not owner.may()
    async with asyncio.timeout(60):
        while not client.outbox.messages:  # noqa: ASYNC110  (there is no event)
            await asyncio.sleep(0.01)
    assert "/login?ended=disabled" in str(client.outbox.messages)
    client.delete()
    desk.auth.passwords.close()
