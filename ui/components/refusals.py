"""Why a question was not taken, in the reader's words. Knows the errors and their figures, nothing of pages."""

from typing import Literal

from engine.errors import ContextOverflow, EngineError, NotReady
from ui.i18n import Language

WaitsFor = Literal["place", "model"]


def refusal(error: EngineError, say: Language) -> str:
    """A friendly sentence. The message itself is still in the box, and the sentence counts on that."""
    if isinstance(error, NotReady) and error.note:  # an administrator's own words
        return say("{note} Your message stays here.", note=error.note)
    wait = say.span(error.retry_after_s) if error.retry_after_s and error.retry_after_s >= 1 else say.span(1)
    match error.code:
        case "queue_full":
            return say("All places are taken at the moment. Your message stays here; try again in {wait}.", wait=wait)
        case "user_limit":
            return say("You have as many questions running as one person may have. Try again when one has ended.")
        case "model_loading":
            return say("The model is still loading. Your message stays here; try again in a moment.")
        case "paused":
            return say("No questions are taken at the moment. Your message stays here; try again in a few minutes.")
        case "draining":
            return say("The server is about to restart. Your message stays here; try again in a minute.")
        case "engine_failed":
            return say("The model cannot answer at present. Please tell the people who run this server.")
        case "log_failed":
            return say("Answers cannot be logged at present, so none are given. Please tell those who run this server.")
        case "storage_unavailable":
            return not_taken(say, trouble=True)
    if isinstance(error, ContextOverflow):
        return say(
            "This message is too long: with what must go with it, it has {tokens} tokens, and the model reads {limit}.",
            tokens=say.number(error.prompt_tokens),
            limit=say.number(error.limit),
        )
    return str(error)


def waits_for(error: EngineError) -> WaitsFor | None:
    """What a question can wait for, where only that stands in its way."""
    if error.code == "model_loading":
        return "model"
    return "place" if error.code in ("queue_full", "user_limit", "paused", "draining") else None


def not_taken(say: Language, trouble: bool) -> str:
    """The same where nobody knows why, or (`trouble`) the database cannot be written."""
    if trouble:
        return say("Nothing can be saved at present. Your message stays here; try again in a moment.")
    return say("That did not work. Your message stays here.")
