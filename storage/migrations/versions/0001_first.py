"""The first schema: accounts, sessions, keys, conversations, exchanges with their search index, audit, options."""

import sqlite3

import sqlalchemy as sa
from alembic import op
from sqlmodel.sql.sqltypes import UTCDateTime

revision = "0001"
down_revision = None


def upgrade() -> None:
    _accounts()
    _conversations()
    _exchanges()
    _audit_and_options()
    if op.get_bind().dialect.name == "sqlite" and _has_trigrams():
        for statement in SEARCH:
            op.execute(statement)


def _has_trigrams() -> bool:
    """Whether this SQLite can build the index; without it, search looks through the rows themselves."""
    options = op.get_bind().exec_driver_sql("PRAGMA compile_options").scalars()
    return "ENABLE_FTS5" in options and sqlite3.sqlite_version_info >= (3, 34)


def _accounts() -> None:
    op.create_table(
        "users",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("name_key", sa.Text(), nullable=False),
        sa.Column("password_hash", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("disabled", sa.Boolean(), nullable=False),
        sa.Column("language", sa.Text(), nullable=False),
        sa.Column("theme", sa.Text(), nullable=False),
        sa.Column("created_at", UTCDateTime(), nullable=False),
        sa.Column("last_seen_at", UTCDateTime()),
        sa.PrimaryKeyConstraint("id", name="pk_users"),
        sa.UniqueConstraint("name_key", name="uq_users_name_key"),
    )
    op.create_table(
        "sessions",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("token_hash", sa.Text(), nullable=False),
        sa.Column("agent", sa.Text(), nullable=False),
        sa.Column("created_at", UTCDateTime(), nullable=False),
        sa.Column("last_seen_at", UTCDateTime(), nullable=False),
        sa.Column("expires_at", UTCDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_sessions"),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_sessions_user_id_users"),
        sa.UniqueConstraint("token_hash", name="uq_sessions_token_hash"),
    )
    op.create_index("ix_sessions_user_id", "sessions", ["user_id"])
    op.create_index("ix_sessions_expires_at", "sessions", ["expires_at"])
    op.create_table(
        "api_keys",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("key_hash", sa.Text(), nullable=False),
        sa.Column("prefix", sa.Text(), nullable=False),
        sa.Column("created_at", UTCDateTime(), nullable=False),
        sa.Column("last_used_at", UTCDateTime()),
        sa.PrimaryKeyConstraint("id", name="pk_api_keys"),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_api_keys_user_id_users"),
        sa.UniqueConstraint("key_hash", name="uq_api_keys_key_hash"),
    )
    op.create_index("ix_api_keys_user_id", "api_keys", ["user_id"])


def _conversations() -> None:
    op.create_table(
        "conversations",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("system_prompt", sa.Text()),
        sa.Column("sampling", sa.Text()),
        sa.Column("head_id", sa.Text()),
        sa.Column("created_at", UTCDateTime(), nullable=False),
        sa.Column("updated_at", UTCDateTime(), nullable=False),
        sa.Column("deleted_at", UTCDateTime()),
        sa.PrimaryKeyConstraint("id", name="pk_conversations"),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_conversations_user_id_users"),
    )
    op.create_index("ix_conversations_user_id_updated_at_id", "conversations", ["user_id", "updated_at", "id"])


def _exchanges() -> None:
    op.create_table(
        "exchanges",
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("person", sa.Text()),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("conversation_id", sa.Text()),
        sa.Column("parent_id", sa.Text()),
        sa.Column("prompt", sa.Text(), nullable=False),
        sa.Column("messages", sa.Text(), nullable=False),
        sa.Column("answer", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("finish_reason", sa.Text()),
        sa.Column("error", sa.Text()),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("quantization", sa.Text(), nullable=False),
        sa.Column("sampling", sa.Text(), nullable=False),
        sa.Column("prompt_tokens", sa.Integer(), nullable=False),
        sa.Column("cached_tokens", sa.Integer(), nullable=False),
        sa.Column("completion_tokens", sa.Integer(), nullable=False),
        sa.Column("queue_depth", sa.Integer(), nullable=False),
        sa.Column("queued_at", UTCDateTime(), nullable=False),
        sa.Column("started_at", UTCDateTime()),
        sa.Column("first_token_at", UTCDateTime()),
        sa.Column("finished_at", UTCDateTime()),
        sa.PrimaryKeyConstraint("number", name="pk_exchanges"),
        sa.UniqueConstraint("id", name="uq_exchanges_id"),
        sa.ForeignKeyConstraint(["person"], ["users.id"], name="fk_exchanges_person_users"),
        sa.ForeignKeyConstraint(
            ["conversation_id"], ["conversations.id"], name="fk_exchanges_conversation_id_conversations"
        ),
        sqlite_autoincrement=True,
    )
    for first in ([], ["person"], ["conversation_id"], ["status"]):
        columns = [*first, "queued_at", "id"]
        op.create_index(f"ix_exchanges_{'_'.join(columns)}", "exchanges", columns)


def _audit_and_options() -> None:
    op.create_table(
        "audit",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("at", UTCDateTime(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audit"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_audit_actor", "audit", ["actor"])
    op.create_index("ix_audit_action", "audit", ["action"])
    op.create_table(
        "options",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_options"),
    )


# The index holds final rows only, so that an answer being written does not index itself again every second. For the
# same reason FTS5's own 'rebuild' must never be used on it: it would take unfinished rows in as well.
_FINAL = "{row}.status NOT IN ('queued', 'running')"
_REMOVE = (
    "INSERT INTO exchanges_search (exchanges_search, rowid, prompt, answer) "
    "SELECT 'delete', old.number, old.prompt, old.answer WHERE " + _FINAL.format(row="old")
)
_ADD = (
    "INSERT INTO exchanges_search (rowid, prompt, answer) "
    "SELECT new.number, new.prompt, new.answer WHERE " + _FINAL.format(row="new")
)
SEARCH = (
    "CREATE VIRTUAL TABLE exchanges_search USING fts5("
    "prompt, answer, content='exchanges', content_rowid='number', tokenize='trigram')",
    f"CREATE TRIGGER exchanges_search_insert AFTER INSERT ON exchanges BEGIN {_ADD}; END",
    f"CREATE TRIGGER exchanges_search_update AFTER UPDATE ON exchanges BEGIN {_REMOVE}; {_ADD}; END",
    f"CREATE TRIGGER exchanges_search_delete AFTER DELETE ON exchanges BEGIN {_REMOVE}; END",
)
