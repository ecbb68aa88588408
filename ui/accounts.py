"""What names and passwords may be, in words for the person who chooses them."""

from ui.i18n import Language
from ui.passwords import MAX_LENGTH, MIN_LENGTH

MAX_NAME = 64


def name_trouble(say: Language, name: str) -> str:
    """What is wrong with this account name, in one sentence; "" when nothing is."""
    if not name.strip():
        return say("Please choose a name.")
    if len(name) > MAX_NAME or not name.isprintable():
        return say("A name has at most {n} characters, all of them visible.", n=MAX_NAME)
    return ""


def password_trouble(say: Language, password: str, again: str) -> str:
    """What is wrong with this new password, in one sentence; "" when nothing is."""
    if not MIN_LENGTH <= len(password) <= MAX_LENGTH:
        return say("A password has {least} to {most} characters.", least=MIN_LENGTH, most=MAX_LENGTH)
    if password != again:
        return say("The two passwords differ.")
    return ""
