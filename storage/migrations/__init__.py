"""Alembic's scripts: one file a version of the schema."""
