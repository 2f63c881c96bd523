"""Fills a store as years of traffic would: set by set within the engine, in proportion to what is kept how long.

Message rows are kept for 400 days and what hangs on them for 30 (decision 0051), so that one message in ten has its
trace, its arrivals, its callbacks and their attempts still. Each number has 50 messages, in random order of numbers; what a
random key costs is therefore in it. Indexes are there when it is measured, and are built after the rows.
"""

import time
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, text

EACH = 50
"""Messages that one number got from one app, however many are stored: so that a list of them is as long."""
KEPT_DAYS = 400
ONE_IN = 10
CHUNK = 250_000
NEWS = ("enqueued", "sent", "delivered", "read")

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


def fill(connection: Connection, apps: Sequence[tuple[str, str]], *, partner_id: int, count: int, now_ms: int) -> float:
    """Add so many messages of these apps, and what hangs on the newest; give how many seconds it took.

    Args:
        connection: not in a transaction.
        apps: id and number of each.
        partner_id: whose they are.
        count: of messages.
        now_ms: the newest is from then.
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


def numbers_of_each(apps: int, count: int) -> int:
    """How many numbers each app sends to."""
    return max(1, count // (EACH * apps))


def _drop_indexes(connection: Connection) -> list[str]:
    """Drop what can be built afterwards; give the statements that build it."""
    filled = ("messages", "message_events", "webhook_items", "callbacks", "attempts", "recipients")
    if connection.dialect.name == "sqlite":
        rows = connection.exec_driver_sql(
            "SELECT name, sql, tbl_name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
        ).all()
    else:
        rows = connection.exec_driver_sql(
            "SELECT i.indexname, i.indexdef, i.tablename FROM pg_indexes i LEFT JOIN pg_constraint c "
            "ON c.conname = i.indexname WHERE c.oid IS NULL AND i.schemaname = current_schema()"
        ).all()
    chosen = [(name, made) for name, made, table in rows if table in filled]
    for name, _ in chosen:
        connection.exec_driver_sql(f'DROP INDEX "{name}"')
    connection.commit()
    return [made for _, made in chosen]


def _inserts(dialect: str, apps: Sequence[tuple[str, str]], partner_id: int, count: int, now_ms: int) -> list[str]:
    words = _SQLITE if dialect == "sqlite" else _POSTGRESQL
    step_ms = KEPT_DAYS * 86_400_000 // count or 1
    at_ms = f"(CAST({now_ms - step_ms * count} AS BIGINT) + {step_ms} * n)"
    apps_of = " ".join(f"WHEN {nth} THEN '{app}'" for nth, (app, _) in enumerate(apps))
    sources = " ".join(f"WHEN {nth} THEN '{source}'" for nth, (_, source) in enumerate(apps))
    app = f"CASE n % {len(apps)} {apps_of} END"
    source = f"CASE n % {len(apps)} {sources} END"
    each_app = numbers_of_each(len(apps), count)
    who = f"(n / {len(apps)} * 7919 % {each_app} * {len(apps)} + n % {len(apps)})"
    number = f"CAST(15560000000 + {who} AS TEXT)"
    message_id = words["uuid"].format(ms=at_ms, kind="0")
    content = words["blob"].format(
        """('{"text":"Your order ' || n || ' is ready. Shall we bring it today, or would tomorrow suit you better?"}')"""
    )
    request = (
        f"'channel=whatsapp&source=' || {source} || '&destination=' || {number} || "
        "'&src.name=BenchApp&message=%7B%22type%22%3A%22text%22%2C%22text%22%3A%22Your+order+is+ready%22%7D'"
    )
    recent = f"{words['series']} WHERE n % {ONE_IN} = 0"
    made = [
        "INSERT INTO recipients (id, partner_id, app_id, phone_number, name) SELECT "
        f"1 + {who}, {partner_id}, {app}, {number}, '' FROM {words['series']} WHERE n <= {each_app * len(apps)}",
        "INSERT INTO messages (id, partner_id, app_id, source, destination, recipient_id, kind, content, request, sandbox, state, "
        "unconfirmed, operator_message_id, accepted_on_ms, changed_on_ms) SELECT "
        f"{message_id}, {partner_id}, {app}, {source}, {number}, 1 + {who}, 'text', {content}, {request}, {words['no']}, 'read', "
        f"{words['no']}, 'wamid.' || {words['word']}, {at_ms}, {at_ms} + 900 FROM {words['series']}",
        "INSERT INTO webhook_items (operator_account_id, dedupe_key, webhook_id, place, item, received_on_ms) SELECT "
        f"'demo', 'status ' || {words['word']}, {words['uuid'].format(ms=at_ms, kind='5')}, '0.0.statuses.0', "
        + words["blob"].format("""('{"status":{"id":"wamid.' || n || '","status":"read"},"phone_number_id":"1"}')""")
        + f", {at_ms} FROM {recent}",
    ]
    for nth, news in enumerate(NEWS):
        callback_id = words["uuid"].format(ms=at_ms, kind=str(16 + nth))
        body = words["blob"].format(
            '(\'{"app":"BenchApp","timestamp":\' || n || \',"version": 2,"type":"message-event","payload":{'
            f'"id":"\' || n || \'","type":"{news}","destination":"\' || {number} || \'"}}}}\')'
        )
        made += [
            "INSERT INTO message_events (message_id, news, at_ms, moved, detail) SELECT "
            f"{message_id}, '{news}', {at_ms} + {100 * nth}, {words['yes']}, '' FROM {recent}",
            "INSERT INTO callbacks (id, partner_id, app_id, subscription_id, about, sequence, message_id, news, body, "
            f"created_on_ms, ended_on_ms, delivered) SELECT {callback_id}, {partner_id}, {app}, 1 + n % {len(apps)}, "
            f"CAST({who} AS TEXT), n, {message_id}, '{news}', {body}, {at_ms} + {100 * nth}, {at_ms} + 1000, {words['yes']} "
            f"FROM {recent}",
            "INSERT INTO attempts (callback_id, at_ms, duration_ms, status, answer) SELECT "
            f"{callback_id}, {at_ms} + 500, 4, 200, {words['blob'].format(chr(39) * 2)} FROM {recent}",
        ]
    return made
