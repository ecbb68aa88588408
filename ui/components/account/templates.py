"""A person's prompt templates, or, for administrators, the ones that everybody has: list, make, change, delete."""

from typing import TYPE_CHECKING

from nicegui import ui

from ui.access import ACTIONS
from ui.components.account.parts import Owner, button, form, section, submit

if TYPE_CHECKING:
    from storage.records import Template

LONGEST_NAME, LONGEST_TEXT, MOST = 64, 20_000, 200  # characters, characters, templates


class OwnTemplates:
    def __init__(self, owner: Owner, *, shared: bool) -> None:
        self._owner, self._shared = owner, shared
        self._changing = ""  # the id of the template in the form; "" for a new one

    async def build(self) -> None:
        say = self._owner.say
        if self._shared:
            section(say("Shared prompt templates"), say("Everybody finds them in the chat by typing /."))
        else:
            about = say(
                "Type / in an empty message to use one. What stands in {{double braces}} is selected to be filled in."
            )
            section(say("Prompt templates"), about)
        self._list = ui.element("div").classes("list")
        with form(self._save):
            self._name = ui.input(say("Name of the template")).props(f'maxlength={LONGEST_NAME} autocomplete="off"')
            self._text = ui.textarea(say("Text")).classes("wide")
            self._text.props(f'autogrow input-style="min-height: 4.5rem" maxlength={LONGEST_TEXT}')
            submit(say("Save the template"))
        await self._show()

    def _may(self) -> bool:
        """Shared ones are the administrators'."""
        if not self._owner.may():
            return False
        return not self._shared or self._owner.desk.auth.allowed(self._owner.visitor, ACTIONS["template.share"])

    async def _templates(self) -> "list[Template]":
        listed = await self._owner.desk.store.templates.list(self._owner.id)
        return [template for template in listed if template.shared == self._shared]

    async def _show(self) -> None:
        templates = await self._templates()
        self._list.clear()
        with self._list:
            if not templates:
                ui.label(self._owner.say("No templates yet.")).classes("soft")
            for template in templates:
                self._row(template)

    def _row(self, template: "Template") -> None:
        say = self._owner.say
        with ui.element("div").classes("row"):
            with ui.element("div").classes("main"):
                ui.label(template.name)
                ui.label(template.text).classes("soft beginning")
            button(say("Change"), lambda: self._change(template), of=template.name)
            button(say("Delete"), lambda: self._remove(template), of=template.name)

    async def _change(self, template: "Template") -> None:
        self._changing, self._name.value, self._text.value = template.id, template.name, template.text
        self._name.run_method("focus")

    async def _remove(self, template: "Template") -> None:
        if self._may():
            await self._noted("template.unshare", template.name)
            await self._owner.desk.store.templates.remove(template.id, None if self._shared else self._owner.id)
            await self._show()

    async def _save(self) -> None:
        if not self._may():
            return
        say, name, text = self._owner.say, str(self._name.value or "").strip(), str(self._text.value or "").strip()
        if not name or not text or len(name) > LONGEST_NAME or len(text) > LONGEST_TEXT:
            self._owner.warn(say("A template needs a name and a text."))
            return
        if not await self._keep(name, text):
            self._owner.warn(say("There are {n} templates; delete one first.", n=MOST))
            return
        await self._noted("template.share", name)
        self._changing = self._name.value = self._text.value = ""
        await self._show()

    async def _noted(self, action: str, name: str) -> None:
        """Write down what is done to what everybody finds in the chat; one's own are one's own business."""
        if self._shared:
            await self._owner.desk.store.audit.add(self._owner.visitor.user.name, action, name)

    async def _keep(self, name: str, text: str) -> bool:
        """Change the one in the form, or make a new one (also where it was deleted). False: there are too many."""
        store, owner = self._owner.desk.store.templates, self._owner.id
        if self._changing and await store.change(self._changing, None if self._shared else owner, name, text):
            return True
        if len(await self._templates()) >= MOST:
            return False
        await store.create(owner, name, text, shared=self._shared)
        return True
