"""What an open account page does when its session is over, or its account may do less than before."""

import asyncio

import pytest
from nicegui import Client, core
from nicegui.page import page

from storage.records import UserRole
from tests.databases import PASSWORD, password_hash
from ui.auth import Visitor
from ui.components.account.parts import Owner
from ui.components.account.templates import OwnTemplates
from ui.desk import Desk
from ui.i18n import language


@pytest.fixture(autouse=True)
async def loop_of_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "loop", asyncio.get_running_loop())


async def signed_in(desk: Desk, role: UserRole) -> Visitor:
    """Ada, beside an administrator who stays."""
    await desk.store.users.create("root", "no password", "admin")
    assert await desk.store.users.create("ada", password_hash(), role)
    admission = await desk.auth.door.admit(await desk.auth.door.by_password("ada", PASSWORD, "127.0.0.1"), "test")
    desk.auth.passwords.close()
    visitor = await desk.auth.visitor(admission.token)
    assert visitor is not None
    return visitor


async def test_whose_account_is_disabled_is_told_so(desk: Desk) -> None:
    visitor = await signed_in(desk, "staff")
    client = Client(page("/account"))
    owner = Owner(desk, visitor, language("en"), client)
    assert owner.may()
    await desk.store.users.set_disabled(visitor.user.id, True)
    await desk.auth.recheck()
    assert not owner.may()
    async with asyncio.timeout(60):
        while not client.outbox.messages:  # noqa: ASYNC110  (there is no event)
            await asyncio.sleep(0.01)
    assert "/login?ended=disabled" in str(client.outbox.messages)
    client.delete()


async def test_who_is_no_administrator_any_more_shares_no_templates_and_takes_none_away(desk: Desk) -> None:
    visitor = await signed_in(desk, "admin")

    async def shared() -> list[str]:
        return [template.name for template in await desk.store.templates.list(visitor.user.id) if template.shared]

    async def save(name: str) -> None:
        section._name.value, section._text.value = name, "Translate this."
        await section._save()

    with Client(page("/account")) as client:
        section = OwnTemplates(Owner(desk, visitor, language("en"), client), shared=True)
        await section.build()
        await save("For all")
        assert await shared() == ["For all"]
        (template,) = await section._templates()
        await desk.store.users.set_role(visitor.user.id, "staff")
        await desk.auth.recheck()
        await save("For all, again")
        await section._remove(template)
    assert await shared() == ["For all"]
    client.delete()
