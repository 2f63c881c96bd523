"""For several processes, callbacks that are paused, signed and replayed, and requests that may come twice."""

from typing import Final

import sqlalchemy as sa
from alembic import op

revision = "4"
down_revision = "3"
works_with = 4  # a store of revision 3 was one process's alone

Words: Final = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")

# fmt: off
STORAGE: Final[dict[str, str]] = {  # of PostgreSQL's tables; as in store/schema.py at that time
    "journal": "autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=5000, autovacuum_vacuum_cost_delay=0, autovacuum_analyze_scale_factor=0, autovacuum_analyze_threshold=50000",
    "leases": "autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=500, autovacuum_vacuum_cost_delay=0, fillfactor=50",
    "processes": "autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=100, fillfactor=50",
    "rate_windows": "autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=500, fillfactor=50",
    "sequences": "autovacuum_vacuum_scale_factor=0.05, fillfactor=80",
    "messages": "autovacuum_vacuum_scale_factor=0.01, autovacuum_analyze_scale_factor=0.02, fillfactor=85",
    "arrival_items": "autovacuum_vacuum_scale_factor=0.02",
}
# fmt: on


def upgrade() -> None:
    """Add what revision 4 has more."""
    op.create_table(
        "idempotency_keys",
        sa.Column("partner_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("route", Words, nullable=False),
        sa.Column("key", Words, nullable=False),
        sa.Column("body_hash", sa.LargeBinary(), nullable=False),
        sa.Column("app_id", Words, nullable=True),
        sa.Column("holder", Words, nullable=True),
        sa.Column("answer", sa.LargeBinary(), nullable=True),
        sa.Column("expires_on_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("partner_id", "route", "key"),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("ix_idempotency_keys_expires_on_ms"), "idempotency_keys", ["expires_on_ms"], unique=False)
    op.create_table(
        "processes",
        sa.Column("holder", Words, nullable=False),
        sa.Column("lanes", Words, nullable=False),
        sa.Column("seen_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("holder"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "rate_windows",
        sa.Column("name", Words, nullable=False),
        sa.Column("whose", Words, nullable=False),
        sa.Column("spent_ms", Words, nullable=False),
        sa.Column("expires_on_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", "whose"),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("ix_rate_windows_expires_on_ms"), "rate_windows", ["expires_on_ms"], unique=False)
    op.add_column("attempts", sa.Column("subscription_id", sa.BigInteger(), nullable=True))
    op.add_column("attempts", sa.Column("request_headers", Words, nullable=True))
    op.add_column("attempts", sa.Column("answer_headers", Words, nullable=True))
    op.create_index("attempts_by_subscription", "attempts", ["subscription_id", "at_ms"], unique=False)
    op.create_index("callbacks_by_message", "callbacks", ["message_id"], unique=False)
    op.create_index("callbacks_by_subscription", "callbacks", ["subscription_id", "created_on_ms"], unique=False)
    op.create_index("inbound_messages_by_time", "inbound_messages", ["received_on_ms"], unique=False)
    op.create_index(
        "journal_set_aside",
        "journal",
        ["lane", "position"],
        unique=False,
        sqlite_where=sa.text("state >= 2"),
        postgresql_where=sa.text("state >= 2"),
    )
    op.create_index(
        "messages_by_recipient",
        "messages",
        ["recipient_id", "accepted_on_ms"],
        unique=False,
        sqlite_where=sa.text("recipient_id IS NOT NULL"),
        postgresql_where=sa.text("recipient_id IS NOT NULL"),
    )
    op.add_column("subscriptions", sa.Column("key_serial", sa.Integer(), server_default=sa.text("1"), nullable=False))
    op.add_column("subscriptions", sa.Column("old_key_until_ms", sa.BigInteger(), nullable=True))
    op.add_column("subscriptions", sa.Column("failing_since_ms", sa.BigInteger(), nullable=True))
    op.add_column("subscriptions", sa.Column("asked_until_ms", sa.BigInteger(), nullable=True))
    op.add_column("subscriptions", sa.Column("paused_on_ms", sa.BigInteger(), nullable=True))
    op.add_column("subscriptions", sa.Column("pause_reason", Words, nullable=True))

    if op.get_context().dialect.name == "postgresql":
        for name, parameters in STORAGE.items():
            op.execute(f"ALTER TABLE {name} SET ({parameters})")
