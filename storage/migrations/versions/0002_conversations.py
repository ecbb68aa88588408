"""Conversations that are pinned, archived, in folders, named by the model or forked; turns that were removed."""

import sqlalchemy as sa
from alembic import op
from sqlmodel.sql.sqltypes import UTCDateTime

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    for column in (
        # Titles that people gave before cannot be told from first words, so all of them stay as they are.
        sa.Column("titled", sa.Boolean(), nullable=False, server_default=sa.true()),
        sa.Column("pinned", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.Column("folder", sa.Text(), nullable=False, server_default=""),
        sa.Column("archived_at", UTCDateTime()),
        sa.Column("forked_from", sa.Text()),
    ):
        op.add_column("conversations", column)
    op.create_table(
        "removed_turns",
        sa.Column("conversation_id", sa.Text(), nullable=False),
        sa.Column("exchange_id", sa.Text(), nullable=False),
        sa.Column("removed_at", UTCDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("conversation_id", "exchange_id", name="pk_removed_turns"),
        sa.ForeignKeyConstraint(
            ["conversation_id"], ["conversations.id"], name="fk_removed_turns_conversation_id_conversations"
        ),
    )
    op.create_index("ix_removed_turns_exchange_id", "removed_turns", ["exchange_id"])
