"""What programs say beside their question, and the keys under which they ask once."""

import sqlalchemy as sa
from alembic import op
from sqlmodel.sql.sqltypes import UTCDateTime

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.add_column("exchanges", sa.Column("end_user", sa.Text(), nullable=False, server_default=""))
    op.add_column("exchanges", sa.Column("request_metadata", sa.Text(), nullable=False, server_default="{}"))
    op.create_table(
        "idempotency_keys",
        sa.Column("caller", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("body_hash", sa.Text(), nullable=False),
        sa.Column("exchange_ids", sa.Text(), nullable=False),
        sa.Column("created_at", UTCDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("caller", "key", name="pk_idempotency_keys"),
    )
    op.create_index("ix_idempotency_keys_created_at", "idempotency_keys", ["created_at"])
