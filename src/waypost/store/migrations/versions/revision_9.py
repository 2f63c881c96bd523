"""Tables for the replacement of the instance key: which key each process uses, and app tokens of before.

Columns for the further ids of a recipient, for quotas and retention periods of partners, for rates of apps, for conversations, and for the id of the request of a message.
The log of requests.
"""

import sqlalchemy as sa
from alembic import op

revision = "9"
down_revision = "8"
works_with = 8  # until the instance key is replaced: an older process would not know which one is used

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the tables and the columns."""
    op.add_column("messages", sa.Column("request_id", TEXT, nullable=True))
    op.create_table(
        "process_keys",
        sa.Column("holder", TEXT, primary_key=True),
        sa.Column("in_use", TEXT, nullable=False),
        sa.Column("known", TEXT, nullable=False),
    )
    op.create_table(
        "old_app_tokens",
        sa.Column("hash", TEXT, primary_key=True),
        sa.Column("partner_id", sa.BigInteger(), nullable=False),
        sa.Column("app_id", TEXT, nullable=False, index=True),
        sa.Column("expires_on_ms", sa.BigInteger(), nullable=False),
    )
    op.add_column("partners", sa.Column("message_quota", sa.BigInteger()))
    op.add_column("partners", sa.Column("callback_quota", sa.BigInteger()))
    op.add_column("partners", sa.Column("keep_bodies_days", sa.Integer()))
    op.add_column("partners", sa.Column("keep_messages_days", sa.Integer()))
    op.create_table(
        "universal_tokens",
        sa.Column("hash", TEXT, primary_key=True),
        sa.Column("partner_id", sa.BigInteger(), nullable=False, index=True),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("created_on_ms", sa.BigInteger(), nullable=False),
        sa.Column("expires_on_ms", sa.BigInteger(), nullable=False),
    )
    op.add_column("app_keys", sa.Column("ending", TEXT, server_default=sa.text("''"), nullable=False))
    op.add_column("partners", sa.Column("block_enabled", sa.Boolean()))
    op.add_column("recipients", sa.Column("same_as", sa.BigInteger()))
    op.create_index(
        "recipients_by_same_as",
        "recipients",
        ["same_as"],
        sqlite_where=sa.text("same_as IS NOT NULL"),
        postgresql_where=sa.text("same_as IS NOT NULL"),
    )
    op.add_column("apps", sa.Column("limit_event", TEXT, nullable=True))
    op.add_column("recipients", sa.Column("read_until_ms", sa.BigInteger()))
    op.create_index(
        "recipients_by_window",
        "recipients",
        ["app_id", "window_until_ms"],
        sqlite_where=sa.text("window_until_ms IS NOT NULL"),
        postgresql_where=sa.text("window_until_ms IS NOT NULL"),
    )
    op.create_index("inbound_messages_by_recipient", "inbound_messages", ["recipient_id", "received_on_ms"])
    op.add_column("apps", sa.Column("rates", TEXT, server_default=sa.text("'{}'"), nullable=False))
    _add_request_log()


def _add_request_log() -> None:
    texts_before = ("app_id", "route", "credential")
    texts_after = ("error", "message", "explanation", "field", "accepted", "request", "recipient")
    op.create_table(
        "request_log",
        sa.Column("id", TEXT, primary_key=True),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.Column("partner_id", sa.BigInteger()),
        *(sa.Column(name, TEXT, nullable=False) for name in texts_before),
        sa.Column("status", sa.Integer(), nullable=False),
        *(sa.Column(name, TEXT, nullable=False) for name in texts_after),
        sa.Column("size_bytes", sa.Integer(), nullable=False),
        sa.Column("took_us", sa.BigInteger(), nullable=False),
        sa.Column("request_id", TEXT, nullable=False, index=True),
    )
    op.create_index("request_log_by_partner", "request_log", ["partner_id", "id"])
