"""What stands in the audit trail, in the reader's language: kinds, what was done, and the details. Pure functions.

The trail itself keeps codes: a program that reads an export finds the same names in every language.
"""

import re
from urllib.parse import parse_qsl

from ui.i18n import Language
from ui.pages.admin.roles import roles


def details(say: Language, action: str, detail: str) -> str:
    """What was searched, changed or given, as a person would write it; whatever is not known stays as it is."""
    match action:
        case "review.search" | "review.export":
            fields = _fields(say)
            asked = parse_qsl(detail)
            return " · ".join(f"{fields.get(name, name)}: {value}" for name, value in asked) or detail
        case "limits.change" | "limits.reset":
            labels = limits(say)
            return re.sub(r"\b[a-z_]+\b", lambda name: labels.get(name[0], name[0]), detail)
        case "user.create" | "user.role" | "invite.create" | "invite.accept":
            called = roles(say)
            return re.sub(r"\b[a-z]+\b", lambda role: called.get(role[0], role[0]), detail)
        case "review.hold" | "review.release":
            kind, colon, reason = detail.partition(": ")
            return f"{_holds(say).get(kind, kind)}{colon}{reason}"
    return detail


def limits(say: Language) -> dict[str, str]:
    """By field of LiveLimits."""
    return {
        "concurrent": say("Running at once"),
        "waiting": say("Waiting at most"),
        "per_person": say("Of one person"),
        "max_new_tokens": say("Tokens of one answer"),
    }


def _fields(say: Language) -> dict[str, str]:
    """By parameter of the review page's address."""
    return {
        "format": say("File"),
        "list": say("List"),
        "person": say("Person"),
        "time": say("Time"),
        "from": say("From"),
        "to": say("To"),
        "status": say("Status"),
        "source": say("Source"),
        "model": say("Model"),
        "rating": say("Rating"),
        "label": say("Label"),
        "text": say("Text"),
        "like": say("Like an exchange"),
    }


def _holds(say: Language) -> dict[str, str]:
    return {
        "exchange": say("this exchange"),
        "conversation": say("this conversation"),
        "person": say("all of this person"),
    }


def kinds(say: Language) -> dict[str, str]:
    """By the beginning of the action's name."""
    return {
        "": say("Everything"),
        "request.": say("Requests"),
        "review.": say("Review"),
        "user.": say("Accounts"),
        "erasure.": say("Erasing"),
        "invite.": say("Invitations"),
        "key.": say("API keys"),
        "limits.": say("Limits"),
        "intake.": say("Pause and drain"),
        "model.": say("Model"),
        "banner.": say("Banner"),
        "retention.": say("Retention"),
        "template.": say("Templates"),
        "audit.": say("Audit trail"),
    }


def names(say: Language) -> dict[str, str]:
    """What was done; actions that are not named here stand as they are."""
    return {
        "request.open": say("opened a prompt"),
        "request.cancel": say("cancelled a request"),
        "request.front": say("moved a request to the front"),
        "review.search": say("searched the log"),
        "review.open": say("opened an exchange"),
        "review.export": say("exported the log"),
        "review.beside": say("looked at what ran beside an exchange"),
        "review.label": say("gave a label"),
        "review.unlabel": say("took a label away"),
        "review.note": say("wrote a note"),
        "review.unnote": say("took a note back"),
        "review.correct": say("corrected an answer"),
        "review.assign": say("assigned an exchange"),
        "review.done": say("finished with an exchange"),
        "review.undone": say("took an exchange up again"),
        "review.rerun": say("ran an exchange again"),
        "review.hold": say("put a hold on"),
        "review.release": say("released a hold"),
        "user.create": say("made an account"),
        "user.role": say("changed a role"),
        "user.disable": say("disabled an account"),
        "user.enable": say("enabled an account"),
        "user.password": say("set a password"),
        "user.second_step_on": say("turned their second step on"),
        "user.second_step_off": say("turned their second step off"),
        "user.second_step_reset": say("reset a second step"),
        "user.recovery_codes": say("made new recovery codes"),
        "user.connect": say("connected their account with a provider"),
        "user.disconnect": say("disconnected their account from a provider"),
        "user.sign_in_link": say("made a link that signs in once"),
        "user.limit": say("set a person's limit"),
        "user.erase": say("erased a person's data"),
        "user.export": say("exported a person's data"),
        "erasure.request": say("asked for their data to be erased"),
        "erasure.withdraw": say("took that wish back"),
        "erasure.done": say("erased what they wrote"),
        "invite.create": say("invited somebody"),
        "invite.take_back": say("took an invitation back"),
        "invite.accept": say("accepted an invitation"),
        "key.revoke": say("revoked an API key"),
        "limits.change": say("changed the limits"),
        "limits.reset": say("put the limits back"),
        "intake.pause": say("paused the server"),
        "intake.drain": say("drained the server"),
        "intake.resume": say("resumed the server"),
        "model.load": say("had a model loaded"),
        "retention.change": say("changed the retention"),
        "retention.run": say("deleted what was too old"),
        "banner.show": say("put up a banner"),
        "banner.hide": say("took the banner down"),
        "template.share": say("wrote a shared template"),
        "template.unshare": say("deleted a shared template"),
        "audit.export": say("exported the audit trail"),
    }
