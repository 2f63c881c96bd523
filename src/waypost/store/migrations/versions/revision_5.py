"""For the console: who is signed in, and what happened to each template."""

from typing import Final

import sqlalchemy as sa
from alembic import op

revision = "5"
down_revision = "4"
works_with = 4  # an older process neither reads nor owes these tables anything

Words: Final = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Number: Final = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add what revision 5 has more."""
    op.create_table(
        "console_sessions",
        sa.Column("hash", Words, nullable=False),
        sa.Column("partner_id", sa.BigInteger(), nullable=False),
        sa.Column("began_ms", sa.BigInteger(), nullable=False),
        sa.Column("expires_on_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("hash"),
    )
    for column in ("partner_id", "expires_on_ms"):
        op.create_index(op.f(f"ix_console_sessions_{column}"), "console_sessions", [column], unique=False)
    op.create_table(
        "template_events",
        sa.Column("id", Number, nullable=False),
        sa.Column("partner_id", sa.BigInteger(), nullable=False),
        sa.Column("template_id", Words, nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.Column("what", Words, nullable=False),
        sa.Column("detail", Words, nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("template_events_by_template", "template_events", ["template_id", "id"], unique=False)
