"""What can go wrong with the store, each with a sentence that may be shown to people."""


class StorageError(Exception):
    """The database cannot be opened or used. `str(error)` says why and what to do."""


class StorageUnavailable(StorageError):
    """The database is in trouble (full disk, foreign lock, server away). A change was not made and will not be."""


class SearchTooSlow(StorageError):
    """A search was given up because it looked through too many rows."""
