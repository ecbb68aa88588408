"""What reviewers do: reviews, labels, notes; holds, totals of what is deleted; indexes that make a large log quick.

The search index is made anew: two line feeds now follow every text in it, so that each character begins a trigram and
words of two characters are found among the terms.
"""

import sqlalchemy as sa
from alembic import op
from sqlmodel.sql.sqltypes import UTCDateTime

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    _work()
    _retention()
    _indexes()
    if sa.inspect(op.get_bind()).has_table("exchanges_search"):
        for statement in SEARCH:
            op.execute(statement)


def _work() -> None:
    op.create_table(
        "reviews",
        sa.Column("exchange_id", sa.Text(), nullable=False),
        sa.Column("correction", sa.Text(), nullable=False),
        sa.Column("assignee", sa.Text()),
        sa.Column("done_at", UTCDateTime()),
        sa.Column("done_by", sa.Text()),
        sa.PrimaryKeyConstraint("exchange_id", name="pk_reviews"),
        _of_exchange("reviews"),
        sa.ForeignKeyConstraint(["assignee"], ["users.id"], name="fk_reviews_assignee_users"),
        sa.ForeignKeyConstraint(["done_by"], ["users.id"], name="fk_reviews_done_by_users"),
    )
    op.create_index("ix_reviews_assignee", "reviews", ["assignee"])
    op.create_index("ix_reviews_done_by", "reviews", ["done_by"])
    op.create_table(
        "labels",
        sa.Column("exchange_id", sa.Text(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("by", sa.Text(), nullable=False),
        sa.Column("at", UTCDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("exchange_id", "label", name="pk_labels"),
        _of_exchange("labels"),
        sa.ForeignKeyConstraint(["by"], ["users.id"], name="fk_labels_by_users"),
    )
    op.create_index("ix_labels_label", "labels", ["label"])
    op.create_table(
        "notes",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("exchange_id", sa.Text(), nullable=False),
        sa.Column("by", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("at", UTCDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_notes"),
        _of_exchange("notes"),
        sa.ForeignKeyConstraint(["by"], ["users.id"], name="fk_notes_by_users"),
    )
    op.create_index("ix_notes_exchange_id", "notes", ["exchange_id"])


def _of_exchange(table: str) -> sa.ForeignKeyConstraint:
    name = f"fk_{table}_exchange_id_exchanges"
    return sa.ForeignKeyConstraint(["exchange_id"], ["exchanges.id"], name=name, ondelete="CASCADE")


def _retention() -> None:
    op.create_table(
        "holds",
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("by", sa.Text(), nullable=False),
        sa.Column("at", UTCDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("kind", "target", name="pk_holds"),
    )
    op.create_table(
        "daily_use",
        sa.Column("person", sa.Text(), nullable=False),
        sa.Column("day", sa.Text(), nullable=False),
        sa.Column("requests", sa.Integer(), nullable=False),
        sa.Column("prompt_tokens", sa.Integer(), nullable=False),
        sa.Column("completion_tokens", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("person", "day", name="pk_daily_use"),
    )


def _indexes() -> None:
    op.drop_index("ix_exchanges_queued_at_id", "exchanges")
    listed = ["queued_at", "id", "person", "source", "status", "finish_reason", "model"]
    op.create_index("ix_exchanges_log", "exchanges", listed)
    op.create_index(
        "ix_exchanges_long_wait",
        "exchanges",
        ["queued_at", "id"],
        sqlite_where=sa.text("julianday(coalesce(started_at, finished_at)) - julianday(queued_at) >= 10 / 86400.0"),
        postgresql_where=sa.text("coalesce(started_at, finished_at) - queued_at >= interval '10 seconds'"),
    )
    rerun = sa.text("source = 'review'")
    op.create_index("ix_exchanges_rerun", "exchanges", ["parent_id"], sqlite_where=rerun, postgresql_where=rerun)


# As in the first version, the index holds final rows only; FTS5's own 'rebuild' must never be used on it.
_FINAL = "{row}.status NOT IN ('queued', 'running')"
_TEXTS = "{row}.number, {row}.prompt || char(10, 10), {row}.answer || char(10, 10)"


def _change(first: str, columns: str, row: str, source: str = "") -> str:
    values = _TEXTS.format(row=row)
    return f"INSERT INTO exchanges_search ({columns}) SELECT {first}{values} {source} WHERE {_FINAL.format(row=row)}"


_REMOVE = _change("'delete', ", "exchanges_search, rowid, prompt, answer", "old")
_ADD = _change("", "rowid, prompt, answer", "new")
SEARCH = (
    "DROP TRIGGER exchanges_search_insert",
    "DROP TRIGGER exchanges_search_update",
    "DROP TRIGGER exchanges_search_delete",
    "DROP TABLE exchanges_search",
    "CREATE VIRTUAL TABLE exchanges_search USING fts5("
    "prompt, answer, content='exchanges', content_rowid='number', tokenize='trigram')",
    _change("", "rowid, prompt, answer", "exchanges", "FROM exchanges"),
    "CREATE VIRTUAL TABLE exchanges_search_terms USING fts5vocab(exchanges_search, row)",
    f"CREATE TRIGGER exchanges_search_insert AFTER INSERT ON exchanges BEGIN {_ADD}; END",
    f"CREATE TRIGGER exchanges_search_update AFTER UPDATE ON exchanges BEGIN {_REMOVE}; {_ADD}; END",
    f"CREATE TRIGGER exchanges_search_delete AFTER DELETE ON exchanges BEGIN {_REMOVE}; END",
)
