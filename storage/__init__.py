"""What is kept: accounts, sessions, keys, conversations, exchanges and the audit trail, in SQLite or PostgreSQL.

Imports engine.types and nothing else of ours. `Store` is the whole of it; each subject is a file of its own.
"""

from storage.errors import SearchTooSlow as SearchTooSlow
from storage.errors import StorageError as StorageError
from storage.errors import StorageUnavailable as StorageUnavailable
from storage.store import Store as Store
