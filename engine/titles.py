"""Titles of conversations, asked of the model as one more message of the first turn, and what is made of its answer.

As a further turn, because the engine has that conversation in its prefix cache. Pure; knows no pages and no store.
"""

import re

from engine.types import ChatRequest, Exchange, Message, Sampling

WISH = (
    "Write a title for this conversation: at most eight words, in the language that I have used, without quotation "
    "marks. Answer with the title alone."
)
LONGEST = 60  # characters
MAX_TOKENS = 32

_BEFORE = re.compile(r"^(title|标题|題目|题目)\s*[:：]\s*", re.IGNORECASE)
_AROUND = " \t*_#`\"'“”‘’«»《》「」『』【】"


def title_request(exchange: Exchange) -> ChatRequest:
    """What asks for the title of a conversation that begins with this exchange."""
    told = exchange.messages[:-1] if exchange.opening else exchange.messages
    return ChatRequest(
        messages=(*told, Message("assistant", exchange.whole_answer), Message("user", WISH)),
        sampling=Sampling(temperature=0.3, max_tokens=MAX_TOKENS),
        person=exchange.person,
        source="page",
    )


def clean_title(answer: str) -> str:
    """The title in what the model said; "" where there is none."""
    line = next((line for line in answer.splitlines() if line.strip(_AROUND)), "").strip(_AROUND)
    title = _BEFORE.sub("", line).strip(_AROUND).rstrip(".。")
    return title if len(title) <= LONGEST else title[: LONGEST - 1].rstrip() + "…"
