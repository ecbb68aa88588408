"""Feedback, prompt templates, defaults for new conversations, requests for erasure."""

import sqlalchemy as sa
from alembic import op
from sqlmodel.sql.sqltypes import UTCDateTime

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.add_column("users", sa.Column("system_prompt", sa.Text()))
    op.add_column("users", sa.Column("sampling", sa.Text()))
    _feedback()
    _templates()
    op.create_table(
        "erasures",
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("at", UTCDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("user_id", name="pk_erasures"),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_erasures_user_id_users"),
    )


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


def _templates() -> None:
    op.create_table(
        "templates",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("shared", sa.Boolean(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("updated_at", UTCDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_templates"),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_templates_user_id_users"),
    )
    op.create_index("ix_templates_user_id", "templates", ["user_id"])
    op.create_index("ix_templates_shared", "templates", ["shared"])
