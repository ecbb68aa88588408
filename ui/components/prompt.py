"""What the model is told: system prompt, the conversation's turns, and the new question, as far as they fit.

Knows nothing of pages or of the store. `count` is the backend's own count of tokens.
"""

import asyncio
from collections.abc import Callable, Sequence

from engine.types import Exchange, Message

RESERVED = 0.25  # share of the context that is kept for the answer, where there is something to leave out
Count = Callable[[Sequence[Message]], int]


async def messages_for(
    question: str, past: Sequence[Exchange], system_prompt: str, *, count: Count, room: int, opening: str = ""
) -> tuple[Message, ...]:
    """The messages to send. The oldest turns are left out until the rest fits `room` tokens; a question that does not
    fit alone is left for the service to refuse, which knows both numbers.

    `opening` is the beginning of the answer, to go on with. Spaces at its end go: the next word's token brings its own.
    """
    head = (Message("system", system_prompt),) if system_prompt.strip() else ()
    last = (Message("assistant", opening.rstrip(" \t")),) if opening else ()
    limit = room - int(room * RESERVED)

    def told(left_out: int) -> tuple[Message, ...]:
        turns = [message for exchange in past[left_out:] for message in _turn(exchange)]
        return (*head, *turns, Message("user", question), *last)

    too_few, enough = -1, len(past)  # how many are left out: bisected
    attempt = 0  # most conversations fit as they are
    while enough - too_few > 1:
        if await asyncio.to_thread(count, told(attempt)) <= limit:
            enough = attempt
        else:
            too_few = attempt
        attempt = (too_few + enough) // 2
    return told(enough)


def _turn(exchange: Exchange) -> tuple[Message, Message]:
    return Message("user", exchange.prompt), Message("assistant", exchange.whole_answer)
