"""Indexes for what few exchanges have: another model, another source, an end that was none."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    for column in ("source", "model"):
        op.create_index(f"ix_exchanges_{column}_queued_at_id", "exchanges", [column, "queued_at", "id"])
    cut_off = sa.text(
        "(coalesce(status, '') NOT IN ('queued', 'running', 'done') OR coalesce(finish_reason, '') = 'length')"
    )
    op.create_index(
        "ix_exchanges_cut_off", "exchanges", ["queued_at", "id"], sqlite_where=cut_off, postgresql_where=cut_off
    )
