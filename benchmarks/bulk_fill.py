"""Fills a store with the rows of years of traffic, by set-based statements, in proportion to their retention.

Message rows are retained for 400 days and dependent rows for 30 (decision 0051), so that one message in ten still has
its trace, webhook items, callbacks and attempts. Each number has 50 messages, in random order of numbers, so that the
cost of random keys is included. Indexes exist when it is measured; they are built after the rows.
"""

import time
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, text

MESSAGES_PER_NUMBER = 50
"""Messages from one app to one number, however many are stored, so that a list of them has the same length."""
RETAINED_DAYS = 400
RECENT_ONE_IN = 10
CHUNK = 250_000
EVENTS = ("enqueued", "sent", "delivered", "read")

_SQLITE = {
    "series": "(WITH RECURSIVE s(n) AS (VALUES(:low) UNION ALL SELECT n + 1 FROM s WHERE n < :high) SELECT n FROM s)",
    "uuid": "printf('%08x-%04x-7%03x-8%03x-%012x', ({ms}) >> 16, ({ms}) & 65535, n % 4096, {kind}, n)",
    "word": "hex(randomblob(24))",
    "blob": "CAST({0} AS BLOB)",
    "mod": "%",
    "no": "0",
    "yes": "1",
}
_POSTGRESQL = {
    "series": "(SELECT generate_series(CAST(:low AS bigint), CAST(:high AS bigint)) AS n) AS s",
    "uuid": "lpad(to_hex(({ms}) >> 16), 8, '0') || '-' || lpad(to_hex(({ms}) & 65535), 4, '0') || '-7' || "
    "lpad(to_hex(n % 4096), 3, '0') || '-8' || lpad(to_hex({kind}), 3, '0') || '-' || lpad(to_hex(n), 12, '0')",
    "word": "upper(md5(random()::text) || left(md5(n::text), 16))",
    "blob": "convert_to({0}, 'UTF8')",
    "mod": "%",
    "no": "false",
    "yes": "true",
}


def fill_store(
    connection: Connection, apps: Sequence[tuple[str, str]], *, partner_id: int, count: int, now_ms: int
) -> float:
    """Insert messages of these apps, with the dependent rows of the newest; return the seconds.

    Args:
        connection: a connection without an open transaction.
        apps: id and number of each app.
        partner_id: the partner of the apps.
        count: number of messages.
        now_ms: the time of the newest message.
    """
    began_s = time.monotonic()
    is_sqlite = connection.dialect.name == "sqlite"
    if is_sqlite:
        for pragma in ("synchronous = OFF", "cache_size = -800000", "temp_store = FILE"):
            connection.exec_driver_sql(f"PRAGMA {pragma}")
    rebuild = _drop_indexes(connection)
    for statement in _inserts(connection.dialect.name, apps, partner_id, count, now_ms):
        for low in range(1, count + 1, CHUNK):
            connection.execute(text(statement), {"low": low, "high": min(low + CHUNK - 1, count)})
            connection.commit()
    for statement in rebuild:
        connection.exec_driver_sql(statement)
        connection.commit()
    connection.exec_driver_sql("ANALYZE")
    connection.commit()
    if is_sqlite:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.exec_driver_sql("PRAGMA synchronous = FULL")
    else:
        driver: Any = connection.connection.driver_connection
        driver.autocommit = True
        driver.execute("SELECT setval(pg_get_serial_sequence('recipients', 'id'), max(id)) FROM recipients")
        driver.execute("VACUUM (ANALYZE)")
        driver.execute("CHECKPOINT")
        driver.autocommit = False
    return time.monotonic() - began_s


def numbers_per_app(apps: int, count: int) -> int:
    """Return how many numbers each app sends to."""
    return max(1, count // (MESSAGES_PER_NUMBER * apps))


def _drop_indexes(connection: Connection) -> list[str]:
    """Drop the indexes that can be rebuilt afterwards; return the statements that rebuild them."""
    filled = ("messages", "callbacks", "recipients")
    if connection.dialect.name == "sqlite":
        rows = connection.exec_driver_sql(
            "SELECT name, sql, tbl_name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
        ).all()
    else:
        rows = connection.exec_driver_sql(
            "SELECT i.indexname, i.indexdef, i.tablename FROM pg_indexes i LEFT JOIN pg_constraint c "
            "ON c.conname = i.indexname WHERE c.oid IS NULL AND i.schemaname = current_schema()"
        ).all()
    indexes = [(name, statement) for name, statement, table in rows if table in filled]
    for name, _ in indexes:
        connection.exec_driver_sql(f'DROP INDEX "{name}"')
    connection.commit()
    # PostgreSQL describes an index of a partitioned table without those of its partitions.
    return [statement.replace(" ON ONLY ", " ON ") for _, statement in indexes]


def _inserts(dialect: str, apps: Sequence[tuple[str, str]], partner_id: int, count: int, now_ms: int) -> list[str]:
    sql = _SQLITE if dialect == "sqlite" else _POSTGRESQL
    step_ms = RETAINED_DAYS * 86_400_000 // count or 1
    at_ms = f"(CAST({now_ms - step_ms * count} AS BIGINT) + {step_ms} * n)"
    apps_of = " ".join(f"WHEN {nth} THEN '{app}'" for nth, (app, _) in enumerate(apps))
    sources = " ".join(f"WHEN {nth} THEN '{source}'" for nth, (_, source) in enumerate(apps))
    app = f"CASE n % {len(apps)} {apps_of} END"
    source = f"CASE n % {len(apps)} {sources} END"
    each_app = numbers_per_app(len(apps), count)
    recipient = f"(n / {len(apps)} * 7919 % {each_app} * {len(apps)} + n % {len(apps)})"
    number = f"CAST(15560000000 + {recipient} AS TEXT)"
    message_id = sql["uuid"].format(ms=at_ms, kind="0")
    content = sql["blob"].format(
        """('{"text":"Your order ' || n || ' is ready. Shall we bring it today, or would tomorrow suit you better?"}')"""
    )
    request = (
        f"'channel=whatsapp&source=' || {source} || '&destination=' || {number} || "
        "'&src.name=BenchApp&message=%7B%22type%22%3A%22text%22%2C%22text%22%3A%22Your+order+is+ready%22%7D'"
    )
    recent = f"{sql['series']} WHERE n % {RECENT_ONE_IN} = 0"
    statements = [
        "INSERT INTO recipients (id, partner_id, app_id, phone_number, name) SELECT "
        f"1 + {recipient}, {partner_id}, {app}, {number}, '' FROM {sql['series']} WHERE n <= {each_app * len(apps)}",
        "INSERT INTO messages (id, partner_id, app_id, source, destination, recipient_id, kind, content, request, sandbox, state, "
        "unconfirmed, operator_message_id, accepted_on_ms, changed_on_ms, enqueued_on_ms, sent_on_ms, delivered_on_ms, "
        "read_on_ms) SELECT "
        f"{message_id}, {partner_id}, {app}, {source}, {number}, 1 + {recipient}, 'text', {content}, {request}, {sql['no']}, 'read', "
        f"{sql['no']}, 'wamid.' || {sql['word']}, {at_ms}, {at_ms} + 900, {at_ms} + 100, {at_ms} + 200, {at_ms} + 400, {at_ms} + 900 FROM {sql['series']}",
    ]
    for nth, event in enumerate(EVENTS):
        callback_id = sql["uuid"].format(ms=at_ms, kind=str(16 + nth))
        body = sql["blob"].format(
            '(\'{"app":"BenchApp","timestamp":\' || n || \',"version": 2,"type":"message-event","payload":{'
            f'"id":"\' || n || \'","type":"{event}","destination":"\' || {number} || \'"}}}}\')'
        )
        statements += [
            "INSERT INTO callbacks (id, partner_id, app_id, subscription_id, subject, sequence, message_id, event, body, "
            "created_on_ms, ended_on_ms, delivered, position, due_ms, attempted_on_ms, duration_ms, status, "
            f"request_headers, response_headers) SELECT {callback_id}, {partner_id}, {app}, 1 + n % {len(apps)}, "
            f"CAST({recipient} AS TEXT), n, {message_id}, '{event}', {body}, {at_ms} + {100 * nth}, {at_ms} + 1000, {sql['yes']}, n, "
            f"{at_ms}, {at_ms} + 500, 4, 200, '{{}}', '{{}}' FROM {recent}"
        ]
    return statements
