"""The audit log, app users, and the history of deliveries."""

from typing import Final

import sqlalchemy as sa
from alembic import op

revision = "6"
down_revision = "5"
works_with = 6  # an older process detects replays by their group, and detached jobs by their ordering key

TextColumn: Final = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Number: Final = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add the tables, columns and indexes of revision 6."""
    _add_audit_log()
    _add_origins_of_access()
    _add_app_users()
    _add_delivery_history()
    _add_media_by_partner()
    _add_job_flags()


def _add_audit_log() -> None:
    op.create_table(
        "audit_log",
        sa.Column("id", Number, nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.Column("partner_id", sa.BigInteger(), nullable=True),
        sa.Column("actor", TextColumn, nullable=False),
        sa.Column("remote_address", TextColumn, nullable=False),
        sa.Column("action", TextColumn, nullable=False),
        sa.Column("subject", TextColumn, nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("detail", TextColumn, nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_audit_log_at_ms"), "audit_log", ["at_ms"], unique=False)
    op.create_index("audit_log_by_partner", "audit_log", ["partner_id", "id"], unique=False)


def _add_origins_of_access() -> None:
    """Add the client secret that issued a token, and the administrator's rights of a session."""
    op.add_column("partner_tokens", sa.Column("secret_hash", TextColumn, nullable=True))
    op.add_column("console_sessions", sa.Column("admin_until_ms", sa.BigInteger(), nullable=True))


def _add_app_users() -> None:
    op.create_table(
        "app_users",
        sa.Column("app_id", TextColumn, nullable=False),
        sa.Column("phone_number", TextColumn, nullable=False),
        sa.Column("partner_id", sa.BigInteger(), nullable=False),
        sa.Column("opted_in", sa.Boolean(), nullable=True),
        sa.Column("source", TextColumn, server_default="", nullable=False),
        sa.Column("opted_on_ms", sa.BigInteger(), nullable=True),
        sa.Column("blocked", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.PrimaryKeyConstraint("app_id", "phone_number"),
    )
    op.create_index("app_users_by_time", "app_users", ["app_id", "opted_on_ms"], unique=False)


def _add_delivery_history() -> None:
    """Add the reason of each attempt, and when the next one of an open circuit is due."""
    op.add_column("attempts", sa.Column("kind", TextColumn, server_default=sa.text("''"), nullable=False))
    op.add_column("subscriptions", sa.Column("next_attempt_ms", sa.BigInteger(), nullable=True))


def _add_media_by_partner() -> None:
    """Add an index for the storage quota of a partner."""
    op.create_index("media_by_partner", "media", ["partner_id", "sha256", "expires_on_ms", "size_bytes"])


def _add_job_flags() -> None:
    """Add flags for jobs that others of their ordering key no longer wait for, and for replays."""
    for name in ("detached", "replay"):
        op.add_column("queue_jobs", sa.Column(name, sa.Boolean(), server_default=sa.false(), nullable=False))
    op.execute("UPDATE queue_jobs SET replay = true WHERE queue = 3 AND concurrency_group LIKE 'replay %'")
