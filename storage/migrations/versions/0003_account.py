"""What people think of answers."""

import sqlalchemy as sa
from alembic import op
from sqlmodel.sql.sqltypes import UTCDateTime

revision = "0003"
down_revision = "0001"


def upgrade() -> None:
    _feedback()


def _feedback() -> None:
    op.create_table(
        "feedback",
        sa.Column("exchange_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("rating", sa.Integer(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("comment", sa.Text(), nullable=False),
        sa.Column("at", UTCDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("exchange_id", name="pk_feedback"),
        sa.ForeignKeyConstraint(
            ["exchange_id"], ["exchanges.id"], name="fk_feedback_exchange_id_exchanges", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_feedback_user_id_users"),
    )
    op.create_index("ix_feedback_user_id", "feedback", ["user_id"])
    op.create_index("ix_feedback_rating", "feedback", ["rating"])
