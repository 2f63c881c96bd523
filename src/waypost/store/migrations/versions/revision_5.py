"""The baseline: every table. On PostgreSQL the tables that grow fastest are partitioned by ranges of ids.

A new store is created by `store/schema.py` instead; tests compare the two.
"""

from typing import Any, Final

import sqlalchemy as sa
from alembic import op

revision = "5"
down_revision = None
works_with = 5

TextColumn: Final = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Number: Final = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


STORAGE_PARAMETERS: Final[dict[str, str]] = {  # of PostgreSQL's tables; as in store/schema.py
    "queue_jobs": (
        "autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=5000, "
        "autovacuum_vacuum_cost_delay=0, autovacuum_analyze_scale_factor=0, autovacuum_analyze_threshold=50000"
    ),
    "leases": (
        "autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=500, autovacuum_vacuum_cost_delay=0, "
        "fillfactor=50"
    ),
    "processes": "autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=100, fillfactor=50",
    "rate_windows": "autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=500, fillfactor=50",
    "sequences": "autovacuum_vacuum_scale_factor=0.05, fillfactor=80",
    "messages": "autovacuum_vacuum_scale_factor=0.01, autovacuum_analyze_scale_factor=0.02, fillfactor=85",
    "webhook_items": "autovacuum_vacuum_scale_factor=0.02",
}


def upgrade() -> None:
    """Create every table."""
    op.create_table(
        "api_keys",
        sa.Column("hash", TextColumn, nullable=False),
        sa.Column("partner_id", sa.BigInteger(), nullable=False),
        sa.Column("name", TextColumn, nullable=False),
        sa.Column("created_on_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("hash"),
    )
    op.create_table(
        "app_keys",
        sa.Column("id", TextColumn, nullable=False),
        sa.Column("hash", TextColumn, nullable=False),
        sa.Column("partner_id", sa.BigInteger(), nullable=False),
        sa.Column("app_id", TextColumn, nullable=False),
        sa.Column("name", TextColumn, nullable=False),
        sa.Column("created_on_ms", sa.BigInteger(), nullable=False),
        sa.Column("expires_on_ms", sa.BigInteger()),
        sa.Column("revoked_on_ms", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("hash"),
    )
    op.create_index(op.f("ix_app_keys_app_id"), "app_keys", ["app_id"])
    op.create_table(
        "app_operator_history",
        sa.Column("app_id", TextColumn, nullable=False),
        sa.Column("operator_account_id", TextColumn, nullable=False),
        sa.Column("partner_id", sa.BigInteger(), nullable=False),
        sa.Column("business_account_id", TextColumn, nullable=False),
        sa.Column("phone_number_id", TextColumn, nullable=False),
        sa.Column("phone_number", TextColumn, nullable=False),
        sa.Column("left_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("app_id", "operator_account_id"),
    )
    op.create_index(
        "app_operator_history_by_number", "app_operator_history", ["operator_account_id", "phone_number_id"]
    )
    op.create_table(
        "apps",
        sa.Column("id", TextColumn, nullable=False),
        sa.Column("partner_id", sa.BigInteger(), nullable=False),
        sa.Column("name", TextColumn, nullable=False),
        sa.Column("phone_number", TextColumn),
        sa.Column("phone_number_id", TextColumn, nullable=False),
        sa.Column("business_account_id", TextColumn, nullable=False),
        sa.Column("live", sa.Boolean(), nullable=False),
        sa.Column("hosting", TextColumn, nullable=False),
        sa.Column("token_serial", sa.Integer(), nullable=False),
        sa.Column("token_hash", TextColumn, nullable=False),
        sa.Column("per_second", sa.Integer()),
        sa.Column("preferences", TextColumn, server_default=sa.text("'{}'"), nullable=False),
        sa.Column("created_on_ms", sa.BigInteger(), nullable=False),
        sa.Column("modified_on_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("partner_id", "name"),
        sa.UniqueConstraint("phone_number"),
    )
    op.create_index("apps_by_phone_number_id", "apps", ["phone_number_id"])
    op.create_index(op.f("ix_apps_token_hash"), "apps", ["token_hash"])
    op.create_table(
        "webhook_items",
        sa.Column("id", Number, nullable=False),
        sa.Column("operator_account_id", TextColumn, nullable=False),
        sa.Column("dedupe_key", TextColumn, nullable=False),
        sa.Column("webhook_id", TextColumn, nullable=False),
        sa.Column("path", TextColumn, nullable=False),
        sa.Column("item", sa.LargeBinary(), nullable=False),
        sa.Column("received_on_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("operator_account_id", "dedupe_key"),
    )
    _create_partitioned(
        "inbound_webhooks",
        "id",
        ("id",),
        sa.Column("id", TextColumn, nullable=False),
        sa.Column("operator_account_id", TextColumn, nullable=False),
        sa.Column("received_on_ms", sa.BigInteger(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
    )
    _create_partitioned(
        "attempts",
        "callback_id",
        ("callback_id", "id"),
        sa.Column("id", Number, nullable=False),
        sa.Column("callback_id", TextColumn, nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.Column("duration_ms", sa.Integer(), nullable=False),
        sa.Column("status", sa.Integer()),
        sa.Column("response_body", sa.LargeBinary(), nullable=False),
        sa.Column("error", TextColumn),
        sa.Column("subscription_id", sa.BigInteger()),
        sa.Column("request_headers", TextColumn),
        sa.Column("response_headers", TextColumn),
    )
    if not _is_postgresql():
        op.create_index(op.f("ix_attempts_callback_id"), "attempts", ["callback_id"])
    op.create_table(
        "business_accounts",
        sa.Column("id", TextColumn, nullable=False),
        sa.Column("partner_id", sa.BigInteger(), nullable=False),
        sa.Column("namespace", TextColumn, nullable=False),
        sa.Column("operator_account_id", TextColumn, nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    _create_partitioned(
        "callbacks",
        "id",
        ("id",),
        sa.Column("id", TextColumn, nullable=False),
        sa.Column("partner_id", sa.BigInteger(), nullable=False),
        sa.Column("app_id", TextColumn, nullable=False),
        sa.Column("subscription_id", sa.BigInteger(), nullable=False),
        sa.Column("subject", TextColumn, nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("message_id", TextColumn),
        sa.Column("event", TextColumn, nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("created_on_ms", sa.BigInteger(), nullable=False),
        sa.Column("ended_on_ms", sa.BigInteger()),
        sa.Column("delivered", sa.Boolean()),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "client_secrets",
        sa.Column("hash", TextColumn, nullable=False),
        sa.Column("partner_id", sa.BigInteger(), nullable=False),
        sa.Column("created_on_ms", sa.BigInteger(), nullable=False),
        sa.Column("expires_on_ms", sa.BigInteger()),
        sa.PrimaryKeyConstraint("hash"),
    )
    op.create_table(
        "inbound_media",
        sa.Column("key", TextColumn, nullable=False),
        sa.Column("partner_id", sa.BigInteger(), nullable=False),
        sa.Column("app_id", TextColumn, nullable=False),
        sa.Column("operator_media_id", TextColumn, nullable=False),
        sa.Column("mime_type", TextColumn, nullable=False),
        sa.Column("file_name", TextColumn, nullable=False),
        sa.Column("expires_on_ms", sa.BigInteger(), nullable=False),
        sa.Column("sha256", TextColumn),
        sa.Column("failure", TextColumn),
        sa.PrimaryKeyConstraint("key"),
    )
    op.create_index("inbound_media_by_operators_id", "inbound_media", ["app_id", "operator_media_id"])
    op.create_index(op.f("ix_inbound_media_expires_on_ms"), "inbound_media", ["expires_on_ms"])
    op.create_index(op.f("ix_inbound_media_sha256"), "inbound_media", ["sha256"])
    op.create_table(
        "inbound_messages",
        sa.Column("operator_message_id", TextColumn, nullable=False),
        sa.Column("partner_id", sa.BigInteger(), nullable=False),
        sa.Column("app_id", TextColumn, nullable=False),
        sa.Column("recipient_id", sa.BigInteger(), nullable=False),
        sa.Column("kind", TextColumn, nullable=False),
        sa.Column("item_id", sa.BigInteger(), nullable=False),
        sa.Column("received_on_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("operator_message_id"),
    )
    op.create_index("inbound_messages_by_kind", "inbound_messages", ["app_id", "kind", "received_on_ms"])
    op.create_table(
        "queue_jobs",
        sa.Column("position", Number, nullable=False),
        sa.Column("queue", sa.SmallInteger(), nullable=False),
        sa.Column("concurrency_group", TextColumn, nullable=False),
        sa.Column("ordering_key", TextColumn, nullable=False),
        sa.Column("ref", TextColumn, nullable=False),
        sa.Column("due_ms", sa.BigInteger(), nullable=False),
        sa.Column("attempt", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("defects", sa.SmallInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("state", sa.SmallInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("note", TextColumn),
        sa.PrimaryKeyConstraint("position"),
        sqlite_autoincrement=True,
    )
    op.create_index("queue_jobs_by_group", "queue_jobs", ["queue", "concurrency_group", "position"])
    op.create_table(
        "leases",
        sa.Column("queue", sa.SmallInteger(), autoincrement=False, nullable=False),
        sa.Column("shard", sa.SmallInteger(), autoincrement=False, nullable=False),
        sa.Column("holder", TextColumn, nullable=False),
        sa.Column("until_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("queue", "shard"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "media",
        sa.Column("id", TextColumn, nullable=False),
        sa.Column("handle", TextColumn),
        sa.Column("partner_id", sa.BigInteger(), nullable=False),
        sa.Column("app_id", TextColumn, nullable=False),
        sa.Column("mime_type", TextColumn, nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("sha256", TextColumn, nullable=False),
        sa.Column("file_name", TextColumn, nullable=False),
        sa.Column("created_on_ms", sa.BigInteger(), nullable=False),
        sa.Column("expires_on_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("handle"),
    )
    op.create_index(op.f("ix_media_expires_on_ms"), "media", ["expires_on_ms"])
    op.create_index(op.f("ix_media_sha256"), "media", ["sha256"])
    op.create_table(
        "media_copies",
        sa.Column("media_id", TextColumn, nullable=False),
        sa.Column("location", TextColumn, nullable=False),
        sa.Column("operator_id", TextColumn, nullable=False),
        sa.Column("expires_on_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("media_id", "location"),
    )
    op.create_index(op.f("ix_media_copies_expires_on_ms"), "media_copies", ["expires_on_ms"])
    _create_partitioned(
        "message_events",
        "message_id",
        ("message_id", "id"),
        sa.Column("id", Number, nullable=False),
        sa.Column("message_id", TextColumn, nullable=False),
        sa.Column("event", TextColumn, nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.Column("applied", sa.Boolean(), nullable=False),
        sa.Column("detail", TextColumn, nullable=False),
    )
    if not _is_postgresql():
        op.create_index(op.f("ix_message_events_message_id"), "message_events", ["message_id"])
    op.create_table(
        "messages",
        sa.Column("id", TextColumn, nullable=False),
        sa.Column("partner_id", sa.BigInteger(), nullable=False),
        sa.Column("app_id", TextColumn, nullable=False),
        sa.Column("source", TextColumn, nullable=False),
        sa.Column("destination", TextColumn, nullable=False),
        sa.Column("recipient_id", sa.BigInteger()),
        sa.Column("kind", TextColumn, nullable=False),
        sa.Column("template_id", TextColumn),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.Column("request", TextColumn, nullable=False),
        sa.Column("sandbox", sa.Boolean(), nullable=False),
        sa.Column("state", TextColumn, nullable=False),
        sa.Column("unconfirmed", sa.Boolean(), nullable=False),
        sa.Column("operator_message_id", TextColumn),
        sa.Column("code", sa.BigInteger()),
        sa.Column("reason", TextColumn),
        sa.Column("accepted_on_ms", sa.BigInteger(), nullable=False),
        sa.Column("changed_on_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sqlite_with_rowid=False,
    )
    op.create_index("messages_by_app", "messages", ["app_id", "accepted_on_ms"])
    op.create_index(
        "messages_by_operator_id",
        "messages",
        ["operator_message_id"],
        sqlite_where=sa.text("operator_message_id IS NOT NULL"),
        postgresql_where=sa.text("operator_message_id IS NOT NULL"),
    )
    op.create_table(
        "operator_accounts",
        sa.Column("id", TextColumn, nullable=False),
        sa.Column("base_url", TextColumn, nullable=False),
        sa.Column("kind", TextColumn, nullable=False),
        sa.Column("encrypted_fields", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "partner_tokens",
        sa.Column("hash", TextColumn, nullable=False),
        sa.Column("partner_id", sa.BigInteger(), nullable=False),
        sa.Column("expires_on_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("hash"),
    )
    op.create_table(
        "partners",
        sa.Column("id", Number, nullable=False),
        sa.Column("email", TextColumn, nullable=False),
        sa.Column("password_hash", TextColumn, nullable=False),
        sa.Column("password_changed", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("profile", TextColumn, nullable=False),
        sa.Column("created_on_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("email"),
    )
    op.create_table(
        "recipients",
        sa.Column("id", Number, nullable=False),
        sa.Column("partner_id", sa.BigInteger(), nullable=False),
        sa.Column("app_id", TextColumn, nullable=False),
        sa.Column("phone_number", TextColumn),
        sa.Column("user_id", TextColumn),
        sa.Column("name", TextColumn, server_default="", nullable=False),
        sa.Column("window_until_ms", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("recipients_by_phone_number", "recipients", ["app_id", "phone_number"], unique=True)
    op.create_index("recipients_by_user_id", "recipients", ["app_id", "user_id"], unique=True)
    op.create_table(
        "sequences",
        sa.Column("subscription_id", sa.BigInteger(), nullable=False),
        sa.Column("subject", TextColumn, nullable=False),
        sa.Column("last", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("subscription_id", "subject"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "store_properties",
        sa.Column("name", TextColumn, nullable=False),
        sa.Column("value", TextColumn, nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "subscriptions",
        sa.Column("id", Number, nullable=False),
        sa.Column("partner_id", sa.BigInteger(), nullable=False),
        sa.Column("app_id", TextColumn, nullable=False),
        sa.Column("tag", TextColumn, nullable=False),
        sa.Column("url", TextColumn, nullable=False),
        sa.Column("version", sa.SmallInteger(), nullable=False),
        sa.Column("modes", TextColumn, nullable=False),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("show_on_ui", sa.Boolean(), nullable=False),
        sa.Column("encrypted_meta", sa.LargeBinary()),
        sa.Column("created_on_ms", sa.BigInteger(), nullable=False),
        sa.Column("modified_on_ms", sa.BigInteger(), nullable=False),
        sa.Column("key_serial", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.Column("old_key_until_ms", sa.BigInteger()),
        sa.Column("failing_since_ms", sa.BigInteger()),
        sa.Column("retry_after_until_ms", sa.BigInteger()),
        sa.Column("paused_on_ms", sa.BigInteger()),
        sa.Column("pause_reason", TextColumn),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("app_id", "tag"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "template_operator_history",
        sa.Column("template_id", TextColumn, nullable=False),
        sa.Column("operator_account_id", TextColumn, nullable=False),
        sa.Column("operator_template_id", TextColumn, nullable=False),
        sa.PrimaryKeyConstraint("template_id", "operator_account_id"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "templates",
        sa.Column("id", TextColumn, nullable=False),
        sa.Column("partner_id", sa.BigInteger(), nullable=False),
        sa.Column("app_id", TextColumn, nullable=False),
        sa.Column("business_account_id", TextColumn, nullable=False),
        sa.Column("namespace", TextColumn, nullable=False),
        sa.Column("element_name", TextColumn, nullable=False),
        sa.Column("language_code", TextColumn, nullable=False),
        sa.Column("template_type", TextColumn, server_default=sa.text("''"), nullable=False),
        sa.Column("category", TextColumn, nullable=False),
        sa.Column("old_category", TextColumn),
        sa.Column("new_category", TextColumn),
        sa.Column("edited", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("status", TextColumn, nullable=False),
        sa.Column("quality", TextColumn, nullable=False),
        sa.Column("stage", TextColumn, nullable=False),
        sa.Column("retry", sa.Integer(), nullable=False),
        sa.Column("reason", TextColumn),
        sa.Column("operator_template_id", TextColumn),
        sa.Column("decided_on_s", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("draft", sa.LargeBinary(), nullable=False),
        sa.Column("created_on_ms", sa.BigInteger(), nullable=False),
        sa.Column("modified_on_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("templates_by_account", "templates", ["business_account_id", "id"])
    op.create_index("templates_by_app", "templates", ["app_id", "id"])
    op.create_index(
        "templates_by_name",
        "templates",
        ["business_account_id", "element_name", "language_code"],
        unique=True,
        sqlite_where=sa.text("status != 'DELETED'"),
        postgresql_where=sa.text("status != 'DELETED'"),
    )
    op.create_index("templates_by_operator_id", "templates", ["operator_template_id"])
    op.create_table(
        "idempotency_keys",
        sa.Column("partner_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("route", TextColumn, nullable=False),
        sa.Column("key", TextColumn, nullable=False),
        sa.Column("body_hash", sa.LargeBinary(), nullable=False),
        sa.Column("app_id", TextColumn),
        sa.Column("holder", TextColumn),
        sa.Column("response", sa.LargeBinary()),
        sa.Column("expires_on_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("partner_id", "route", "key"),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("ix_idempotency_keys_expires_on_ms"), "idempotency_keys", ["expires_on_ms"])
    op.create_table(
        "processes",
        sa.Column("holder", TextColumn, nullable=False),
        sa.Column("queues", TextColumn, nullable=False),
        sa.Column("seen_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("holder"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "rate_windows",
        sa.Column("name", TextColumn, nullable=False),
        sa.Column("subject", TextColumn, nullable=False),
        sa.Column("times_ms", TextColumn, nullable=False),
        sa.Column("expires_on_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", "subject"),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("ix_rate_windows_expires_on_ms"), "rate_windows", ["expires_on_ms"])
    op.create_index("attempts_by_subscription", "attempts", ["subscription_id", "at_ms"])
    op.create_index("callbacks_by_message", "callbacks", ["message_id"])
    op.create_index("callbacks_by_subscription", "callbacks", ["subscription_id", "created_on_ms"])
    op.create_index("inbound_messages_by_time", "inbound_messages", ["received_on_ms"])
    op.create_index(
        "queue_jobs_dead_letters",
        "queue_jobs",
        ["queue", "position"],
        sqlite_where=sa.text("state >= 2"),
        postgresql_where=sa.text("state >= 2"),
    )
    op.create_index(
        "messages_by_recipient",
        "messages",
        ["recipient_id", "accepted_on_ms"],
        sqlite_where=sa.text("recipient_id IS NOT NULL"),
        postgresql_where=sa.text("recipient_id IS NOT NULL"),
    )
    op.create_table(
        "console_sessions",
        sa.Column("hash", TextColumn, nullable=False),
        sa.Column("partner_id", sa.BigInteger(), nullable=False),
        sa.Column("created_on_ms", sa.BigInteger(), nullable=False),
        sa.Column("expires_on_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("hash"),
    )
    for column in ("partner_id", "expires_on_ms"):
        op.create_index(op.f(f"ix_console_sessions_{column}"), "console_sessions", [column])
    op.create_table(
        "template_events",
        sa.Column("id", Number, nullable=False),
        sa.Column("partner_id", sa.BigInteger(), nullable=False),
        sa.Column("template_id", TextColumn, nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.Column("kind", TextColumn, nullable=False),
        sa.Column("detail", TextColumn, nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("template_events_by_template", "template_events", ["template_id", "id"])
    if _is_postgresql():
        for name, parameters in STORAGE_PARAMETERS.items():
            op.execute(f"ALTER TABLE {name} SET ({parameters})")


def _is_postgresql() -> bool:
    return op.get_context().dialect.name == "postgresql"


def _create_partitioned(
    name: str, range_column: str, key: tuple[str, ...], *columns: sa.Column[Any], **options: Any
) -> None:
    if not _is_postgresql():
        op.create_table(name, *columns, sa.PrimaryKeyConstraint("id"), **options)
        return
    for column in columns:
        if column.type is Number and column.name == "id":
            column.autoincrement = True
    op.create_table(name, *columns, sa.PrimaryKeyConstraint(*key), postgresql_partition_by=f"RANGE ({range_column})")
    op.execute(f"CREATE TABLE {name}_default PARTITION OF {name} DEFAULT")
