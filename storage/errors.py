"""What can go wrong with the store, each with a sentence that may be shown to people."""

from engine.errors import EngineError


class StorageError(Exception):
    """The database cannot be opened or used. `str(error)` says why and what to do."""


class StorageUnavailable(StorageError, EngineError):
    """The database is in trouble (full disk, foreign lock, server away). A change was not made and will not be.

    One of the engine's errors too, so that faces tell it like any other reason why a request cannot be answered.
    """

    code = "storage_unavailable"


class SearchTooSlow(StorageError):
    """A search was given up because it looked through too many rows."""
