"""Columns for an edit of a template that the operator has not accepted, and for the responses of logged requests."""

import sqlalchemy as sa
from alembic import op

revision = "10"
down_revision = "9"
works_with = 8

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the columns."""
    op.add_column("templates", sa.Column("edit", sa.LargeBinary()))
    op.add_column("request_log", sa.Column("response", TEXT, server_default=sa.text("''"), nullable=False))
