"""The dialog of one conversation's settings: system prompt and how tokens are drawn."""

from dataclasses import dataclass, replace
from typing import Any

from nicegui.element import Element

from engine.errors import InvalidRequest
from engine.types import Sampling
from ui.i18n import Language

LONGEST_SYSTEM_PROMPT = 20_000  # characters

_NUMBERS = {"temperature": float, "top_p": float, "max_tokens": int}


@dataclass(frozen=True, slots=True)
class Chosen:
    """What one conversation uses instead of the server's settings; None is the server's."""

    system_prompt: str | None = None
    sampling: Sampling | None = None


class Preferences(Element, component="preferences.js"):
    """Emits save with what is in the fields, all of it text, and the turn to `regenerate` with it ("" for none)."""

    def __init__(self, say: Language) -> None:
        super().__init__()
        self._props["texts"] = _texts(say)

    def values(self, chosen: Chosen, system_prompt: str, max_tokens: int) -> None:
        """Show what was chosen, and as hints what holds where nothing was."""
        given, standard = given_values(chosen.sampling), Sampling()
        defaults = {name: str(getattr(standard, name)) for name in ("temperature", "top_p")}
        self.run_method(
            "values",
            {
                "given": {"system_prompt": chosen.system_prompt or "", **given},
                "defaults": {"system_prompt": system_prompt, "max_tokens": str(max_tokens), **defaults},
            },
        )

    def rejected(self, sentence: str) -> None:
        self.run_method("rejected", sentence)

    def saved(self) -> None:
        self.run_method("saved")


def given_values(sampling: Sampling | None) -> dict[str, str]:
    """What stands in the fields of these values: "" where it is the standard one."""
    own, standard = sampling or Sampling(), Sampling()
    return {name: "" if getattr(own, name) == getattr(standard, name) else str(getattr(own, name)) for name in _NUMBERS}


def read_choice(fields: dict[str, Any], say: Language) -> Chosen:
    """What the dialog's fields say. Raises InvalidRequest with a sentence in the reader's language."""
    given = {name: _text(fields.get(name)) for name in ("system_prompt", *_NUMBERS)}
    prompt = given.pop("system_prompt")
    if len(prompt) > LONGEST_SYSTEM_PROMPT:
        raise InvalidRequest(say("The system prompt may have {limit} characters.", limit=LONGEST_SYSTEM_PROMPT))
    try:
        numbers: dict[str, Any] = {name: _NUMBERS[name](text) for name, text in given.items() if text}
        sampling = replace(Sampling(), **numbers) if numbers else None
    except (ValueError, InvalidRequest) as error:
        raise InvalidRequest(
            say("Temperature goes from 0 to 2, top-p from above 0 to 1, and tokens are 1 or more.")
        ) from error
    return Chosen(prompt or None, sampling)


def _text(value: object) -> str:
    """What stands in a field; a field of numbers may send a number, of which 0 is one."""
    return "" if value is None else str(value).strip()


def _texts(say: Language) -> dict[str, str]:
    return {
        "title": say("Settings of this conversation"),
        "about": say(
            "They hold for this conversation's next answers. Leave a field empty to use the server's setting."
        ),
        "systemPrompt": say("System prompt"),
        "temperature": say("Temperature"),
        "temperatureHint": say("0 is the most predictable"),
        "topP": say("Top-p"),
        "topPHint": say("Lower keeps to likely words"),
        "maxTokens": say("Longest answer"),
        "maxTokensHint": say("In tokens"),
        "reset": say("Reset"),
        "cancel": say("Cancel"),
        "save": say("Save"),
        "regenerate": say("Save and regenerate"),
    }
