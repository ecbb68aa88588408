"""What a person's new conversations begin with: system prompt and sampling; an empty field is the server's own."""

from nicegui import ui

from engine.errors import InvalidRequest
from engine.types import Sampling
from ui.components.account.parts import Owner, form, section, submit
from ui.components.preferences import LONGEST_SYSTEM_PROMPT, given_values, read_choice


class Defaults:
    def __init__(self, owner: Owner) -> None:
        self._owner = owner

    async def build(self) -> None:
        say, server = self._owner.say, self._owner.desk.settings
        prompt, sampling = await self._owner.desk.store.users.defaults(self._owner.id)
        given = given_values(sampling)
        about = say(
            "They hold for conversations that you begin from now on. Leave a field empty for the server's setting."
        )
        section(say("New conversations"), about)
        with form(self._save):
            self._prompt = ui.textarea(say("System prompt"), value=prompt or "", placeholder=server.system_prompt)
            self._prompt.props(f'autogrow input-style="min-height: 4.5rem" maxlength={LONGEST_SYSTEM_PROMPT}')
            self._prompt.classes("wide")
            standard = Sampling()
            hints = {
                "temperature": (say("Temperature"), str(standard.temperature)),
                "top_p": (say("Top-p"), str(standard.top_p)),
                "max_tokens": (say("Longest answer"), str(self._owner.desk.service.max_new_tokens)),
            }
            self._numbers = {
                name: ui.input(label, value=given[name], placeholder=hint).props('inputmode="decimal" maxlength=20')
                for name, (label, hint) in hints.items()
            }
            submit(say("Save"))

    async def _save(self) -> None:
        if not self._owner.may():
            return
        fields = {name: field.value for name, field in self._numbers.items()} | {"system_prompt": self._prompt.value}
        try:
            chosen = read_choice(fields, self._owner.say)
        except InvalidRequest as error:
            self._owner.warn(str(error))
            return
        await self._owner.desk.store.users.set_defaults(
            self._owner.id, system_prompt=chosen.system_prompt, sampling=chosen.sampling
        )
        self._owner.tell(self._owner.say("Saved. It holds for new conversations."))
