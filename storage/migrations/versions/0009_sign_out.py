"""Signing out at the OpenID provider: by which of its tokens a session began."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.add_column("sessions", sa.Column("id_token", sa.Text(), nullable=False, server_default=""))
