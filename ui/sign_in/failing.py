"""What every way to sign in raises where it leads to no session."""


class SignInFailed(Exception):
    """What was given opens no account (or the account is disabled; one cannot tell)."""


class DirectoryAway(SignInFailed):
    """The directory cannot be asked, and no account of this server was opened either. The text is for the log."""
