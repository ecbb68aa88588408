"""Everybody's API keys: whose, what for, when last used; and taking one away, which is felt at once."""

from typing import TYPE_CHECKING

from ui.components.data_table import Action, Column, DataTable, Row
from ui.pages.admin.administrator import Administrator
from ui.pages.admin.question import ReasonDialog
from ui.theme import heading

if TYPE_CHECKING:
    from storage.records import ApiKey, User


class Keys:
    def __init__(self, admin: Administrator) -> None:
        self.admin, self.desk, self.say = admin, admin.desk, admin.say
        self.keys: dict[str, tuple[ApiKey, User]] = {}

    async def build(self) -> None:
        say = self.say
        heading(say("API keys"), 2)
        columns = [
            Column("person", say("Person"), "main"),
            Column("name", say("What it is for")),
            Column("prefix", say("Begins with")),
            Column("created", say("Made")),
            Column("used", say("Last used")),
            Column("actions", say("Actions"), "actions"),
        ]
        self.table = DataTable(columns, caption=say("API keys"), empty=say("No keys yet."), on_act=self._act)
        self.reason = ReasonDialog(self.admin)
        await self._show()

    async def _show(self) -> None:
        found = await self.desk.store.api_keys.everybodys()
        self.keys = {key.id: (key, owner) for key, owner in found}
        self.table.show([self._row(key, owner) for key, owner in found])

    def _row(self, key: "ApiKey", owner: "User") -> Row:
        say = self.say
        revoke = (Action("revoke", say("Revoke"), "danger"),)
        cells = (owner.name, key.name, f"{key.prefix}…", key.created_at, key.last_used_at or say("never"), revoke)
        return Row(key.id, cells, tone="soft" if owner.disabled else "")

    async def _act(self, name: str, id: str, value: str | None) -> None:
        if not self.admin.may() or name != "revoke" or id not in self.keys:
            return
        key, owner = self.keys[id]
        title = self.say("Revoke {key} of {name}?", key=key.name, name=owner.name)
        about = self.say("Programs that use it are refused from now on.")
        self.reason.ask(title, about, self.say("Revoke the key"), lambda reason: self._revoke(key, owner, reason))

    async def _revoke(self, key: "ApiKey", owner: "User", reason: str) -> None:
        if await self.admin.noted("key.revoke", owner.name, f"{key.name} ({key.prefix}…): {reason}"):
            await self.desk.store.api_keys.revoke(key.id, owner.id)
            await self._show()
