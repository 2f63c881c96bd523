"""Columns for template edits that are not accepted, responses of logged requests, revoked tokens, requested retries."""

import sqlalchemy as sa
from alembic import op

revision = "10"
down_revision = "9"
works_with = 8  # an older process finds no revoked token: its hash is cut

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the columns."""
    op.add_column("templates", sa.Column("edit", sa.LargeBinary()))
    op.add_column("request_log", sa.Column("response", TEXT, server_default=sa.text("''"), nullable=False))
    op.add_column("universal_tokens", sa.Column("revoked_on_ms", sa.BigInteger()))
    op.add_column(
        "subscriptions", sa.Column("retry_requests", sa.Integer(), server_default=sa.text("0"), nullable=False)
    )
