"""The server's system prompt, for whoever asks without one of their own. Pages and API both put it in here."""

from collections.abc import Iterable

from engine.types import Message


def with_system_prompt(messages: Iterable[Message], system_prompt: str) -> tuple[Message, ...]:
    """The messages, led by `system_prompt` where they bring no system message and it is not empty."""
    given = tuple(messages)
    if not system_prompt.strip() or any(message.role == "system" for message in given):
        return given
    return (Message("system", system_prompt), *given)
