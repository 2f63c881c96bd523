"""A sample of a next migration, for tests: it adds columns, an index and a table, and drops nothing."""

import sqlalchemy as sa
from alembic import op

revision = "12"
down_revision = "11"
works_with = 8


def upgrade() -> None:
    """Add them."""
    op.add_column("messages", sa.Column("next", sa.BigInteger()))
    op.add_column("callbacks", sa.Column("next", sa.Text(), nullable=False, server_default=""))
    op.create_index("messages_by_next", "messages", ["next"])
    op.create_table("next_things", sa.Column("id", sa.Text(), primary_key=True))
