"""Callbacks become their own jobs, and the times of a message's states move into its row."""

from typing import Final

import sqlalchemy as sa
from alembic import op

revision = "7"
down_revision = "6"
moved = {"queue_jobs": "callbacks"}
works_with = 7  # an older process does not find the jobs of callbacks, nor the times of messages

TEXT: Final = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the columns and indexes of revision 7, and move the jobs of callbacks into their rows."""
    for name in ("enqueued_on_ms", "sent_on_ms", "delivered_on_ms", "read_on_ms"):
        op.add_column("messages", sa.Column(name, sa.BigInteger(), nullable=True))
    is_compressed = sa.Column("compressed", sa.Boolean(), server_default=sa.false(), nullable=False)
    op.add_column("inbound_webhooks", is_compressed)
    _add_callback_columns()
    _move_callback_jobs()


def _add_callback_columns() -> None:
    op.add_column("callbacks", sa.Column("position", sa.BigInteger(), nullable=True))
    op.add_column("callbacks", sa.Column("due_ms", sa.BigInteger(), server_default=sa.text("0"), nullable=False))
    op.add_column("callbacks", sa.Column("attempt", sa.Integer(), server_default=sa.text("0"), nullable=False))
    for name in ("defects", "state"):
        op.add_column("callbacks", sa.Column(name, sa.SmallInteger(), server_default=sa.text("0"), nullable=False))
    op.add_column("callbacks", sa.Column("note", TEXT, nullable=True))
    op.add_column("callbacks", sa.Column("detached", sa.Boolean(), server_default=sa.false(), nullable=False))
    op.add_column("callbacks", sa.Column("attempted_on_ms", sa.BigInteger(), nullable=True))
    for name in ("duration_ms", "status"):
        op.add_column("callbacks", sa.Column(name, sa.Integer(), nullable=True))
    op.add_column("callbacks", sa.Column("response_body", sa.LargeBinary(), nullable=True))
    for name in ("request_headers", "response_headers"):
        op.add_column("callbacks", sa.Column(name, TEXT, nullable=True))
    has_attempt = sa.text("attempted_on_ms IS NOT NULL")
    op.create_index(
        "callbacks_by_attempt", "callbacks", ["subscription_id", "attempted_on_ms"],
        sqlite_where=has_attempt, postgresql_where=has_attempt,
    )  # fmt: skip
    is_open = sa.text("ended_on_ms IS NULL")
    op.create_index(
        "callbacks_open", "callbacks", ["subscription_id", "position"], sqlite_where=is_open, postgresql_where=is_open
    )
    is_dead_letter = sa.text("ended_on_ms IS NULL AND state >= 2")
    op.create_index(
        "callbacks_dead_letters", "callbacks", ["position"],
        sqlite_where=is_dead_letter, postgresql_where=is_dead_letter,
    )  # fmt: skip
    if op.get_context().dialect.name == "postgresql":
        op.execute("ALTER TABLE callbacks ALTER COLUMN position SET DEFAULT nextval('queue_jobs_position_seq')")


def _move_callback_jobs() -> None:
    columns = ("position", "due_ms", "attempt", "defects", "state", "note", "detached")
    assigned = ", ".join(f"{name} = j.{name}" for name in columns)
    is_live = "queue = 3 AND replay = false"
    op.execute(
        f"UPDATE callbacks SET {assigned} FROM queue_jobs AS j "  # noqa: S608
        "WHERE j.queue = 3 AND j.replay = false AND callbacks.id = j.ref AND callbacks.ended_on_ms IS NULL"
    )
    op.execute(f"DELETE FROM queue_jobs WHERE {is_live}")  # noqa: S608
