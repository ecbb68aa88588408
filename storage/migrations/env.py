"""What Alembic runs to migrate. The connection is handed in by storage/migrate.py; there is no alembic.ini."""

from typing import Any

from alembic import context

from storage.models import Base


def is_ours(_: Any, name: str | None, kind: str, *__: Any) -> bool:
    """Leave the search index out of comparisons: SQLite's tables of its own, and PostgreSQL's, which may be missing."""
    return not (kind in ("table", "index") and name is not None and name.startswith("exchanges_search"))


context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    include_object=is_ours,
    render_as_batch=True,  # SQLite alters tables by copying them
    transactional_ddl=True,  # all migrations together or none
    on_version_apply=context.config.attributes.get("applied", []),
)
context.run_migrations()
