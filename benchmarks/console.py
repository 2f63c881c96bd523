"""Response times of the console's server with many messages: lists, every filter, search and trace, as whole pages.

`python -m benchmarks.console` fills one app with 200,000 messages on each engine, requests each page from
the service like a browser, and prints the median and the slowest. There is no target; the aim is 100 ms.
"""

import argparse
import asyncio
import json
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import Connection, insert, text

from benchmarks.bulk_fill import fill_store, numbers_per_app
from benchmarks.processes import temporary_folder
from benchmarks.seeding import connect_store, seed_store
from benchmarks.stores import ENGINES, Store, open_stores
from waypost.assembly.console import ConsoleOptions
from waypost.assembly.dev import demo
from waypost.assembly.service import Waypost
from waypost.base.clock import SystemClock
from waypost.base.ids import RandomIds
from waypost.base.telemetry.logs import set_up_logs
from waypost.client.api_client import InProcessTransport
from waypost.config import Settings
from waypost.store.apps.apps import list_apps
from waypost.store.tables import inbound_messages, webhook_items

ROUNDS = 15
AIM_MS = 100
OLD = "time=custom&from=2020-01-01T00:00"
RARE = 4096
"""One in this many messages has failed."""
RECEIVED_ONE_IN = 10
"""For this many messages sent, one was received."""
CHUNK = 5_000
KINDS = ("text", "image", "button")


def fill_one_app(store: Store, count: int) -> None:
    """Insert messages of the oldest app only: a few have failed, and the oldest is uncertain."""
    with connect_store(store) as connection:
        apps = connection.execute(text("SELECT id, phone_number, partner_id FROM apps ORDER BY id"))
        [app, *_] = apps.all()
        connection.rollback()
        now_ms = SystemClock().now_ms()
        fill_store(connection, [(app.id, app.phone_number)], partner_id=app.partner_id, count=count, now_ms=now_ms)
        _vary(connection, count)
        connection.commit()
        _receive(connection, app.id, app.partner_id, count // RECEIVED_ONE_IN, now_ms)
        connection.exec_driver_sql("ANALYZE")
        connection.commit()


def _vary(connection: Connection, count: int) -> None:
    failed = "UPDATE messages SET state = 'failed', code = 131049, reason = 'refused' WHERE id LIKE :like"
    connection.execute(text(failed), {"like": f"%-7{RARE - 1:03x}-8000-%"})
    wrote = "UPDATE recipients SET name = 'Ann ' || id, window_until_ms = 1760000000000 + id WHERE id % 2 = 0"
    connection.execute(text(wrote))
    oldest = "UPDATE messages SET state = 'uncertain' WHERE id = (SELECT min(id) FROM messages)"
    connection.execute(text(oldest))
    assert count


def _receive(connection: Connection, app_id: str, partner_id: int, count: int, now_ms: int) -> None:
    """Insert messages received from the recipients with a name: texts, and a few kinds more."""
    named = list(connection.execute(text("SELECT id FROM recipients WHERE name != '' ORDER BY id")).scalars())
    for begin in range(0, count, CHUNK):
        rows = [
            (n, now_ms - (count - n) * 20_000, KINDS[n % 8 if n % 8 < len(KINDS) else 0], named[n % len(named)])
            for n in range(begin + 1, min(begin + CHUNK, count) + 1)
        ]
        connection.execute(
            insert(webhook_items),
            [
                {
                    "id": n, "operator_account_id": "main", "dedupe_key": f"message {n}", "webhook_id": "a", "path": "0",
                    "item": _inbound_item(n, kind), "received_on_ms": at_ms,
                }
                for n, at_ms, kind, _ in rows
            ],
        )  # fmt: skip
        connection.execute(
            insert(inbound_messages),
            [
                {
                    "operator_message_id": f"wamid.in.{n}", "partner_id": partner_id, "app_id": app_id,
                    "recipient_id": recipient_id, "kind": kind, "item_id": n, "received_on_ms": at_ms,
                }
                for n, at_ms, kind, recipient_id in rows
            ],
        )  # fmt: skip
        connection.commit()


def _inbound_item(n: int, kind: str) -> bytes:
    content = {"text": {"body": f"Where is my order {n}?"}, "button": {"text": "Another day", "payload": "later"}}
    message = {"id": f"wamid.in.{n}", "type": kind, kind: content.get(kind, {"id": str(n), "caption": "Look at this"})}
    context = {"metadata": {"phone_number_id": "1"}, "contacts": [{"profile": {"name": f"Ann {n}"}, "wa_id": "1"}]}
    return json.dumps({**context, "message": message}).encode()


def pages(app_id: str, numbers: int, message_id: str, operator_id: str, recipient_id: int) -> Sequence[tuple[str, str]]:
    """Return the name and the path of each page."""
    messages = f"/apps/{app_id}/messages"
    number = 15_560_000_000 + numbers // 2
    queries = (
        ("list", ""),
        ("state that all have", "state=read"),
        ("state that few have", "state=failed"),
        ("state that the oldest has", "state=uncertain"),
        ("state that none has", "state=enqueued"),
        ("error that few have", "code=131049"),
        ("kind that none has", "kind=media"),
        ("template that none was sent", f"template={demo.TEMPLATE_ID}"),
        ("last 7 days", "time=week"),
        ("a number", f"q={number}"),
        ("the last four digits of numbers", f"q={str(number)[-4:]}"),
        ("digits that all numbers have", "q=1556"),
        ("a number that there is not", "q=4915112345678"),
        ("a number and a state", f"q={number}&state=failed"),
        ("text in all messages", f"text=ready&{OLD}"),
        ("text in no message", f"text=elephant&{OLD}"),
        ("text with an accent in no message", f"text=%C3%A9%C3%A8&{OLD}"),
        ("text and a state that few have", f"text=tomorrow&state=failed&{OLD}"),
        ("text in no message, at any time", "text=elephant"),
        ("a name that half of the recipients have", "q=ann"),
        ("a name that one recipient has", "q=ann+77"),
        ("a name that none has", "q=elephant"),
        ("a name and a text", "q=ann&text=tomorrow"),
    )
    received = (
        ("received", ""),
        ("received from a number", f"q={number}"),
        ("received from a name that one has", "q=ann+77"),
        ("received from a name that none has", "q=elephant"),
        ("received by the operator's id", "q=wamid.in.77"),
        ("received text that most have", "text=order"),
        ("received text that one has", "text=order+77%3F"),
        ("received text that none has", "text=elephant"),
        ("received text with an accent", "text=%C3%A9%C3%A8"),
    )
    palette = (
        ("palette: a name", "ann+77"),
        ("palette: a text that all messages have", "order"),
        ("palette: nothing", "elephant"),
        ("palette: an accent", "%C3%A9%C3%A8"),
        ("palette: a number", str(number)),
    )
    conversations = f"/apps/{app_id}/conversations"
    searches = (
        ("conversations", ""),
        ("conversations of a name", "q=ann+77"),
        ("conversations of a name that none has", "q=elephant"),
        ("conversations of a number", f"q={number}"),
        ("conversations of four digits", f"q={str(number)[-4:]}"),
        ("conversations by the operator's id", f"q={operator_id}"),
        ("conversations with unread messages", "state=unread"),
        ("conversations with an open window", "state=open"),
        ("conversations that failed", "state=failed"),
    )
    return (
        *((name, f"{conversations}?{query}" if query else conversations) for name, query in searches),
        ("one conversation", f"{conversations}/{recipient_id}"),
        ("text in one conversation", f"{conversations}/{recipient_id}?text=ready"),
        ("text that one conversation does not have", f"{conversations}/{recipient_id}?text=elephant"),
        *((name, f"{messages}?{query}" if query else messages) for name, query in queries),
        *((name, f"{messages}/received?{query}" if query else f"{messages}/received") for name, query in received),
        *((name, f"/commands/search?q={query}") for name, query in palette),
        ("our id, to its trace", f"{messages}?q={message_id}"),
        ("the operator's id, to its trace", f"{messages}?q={operator_id}"),
        ("the trace of a message", f"{messages}/{message_id}"),
    )


async def measure(store: Store, count: int) -> None:
    """Request every page, and print the response times."""
    settings = Settings(
        data=store.folder, database_url=store.url, secret_key="benchmarks only, known to everybody", rates=False
    )
    clock = SystemClock()
    waypost = Waypost(
        settings, clock, RandomIds(clock), console_options=ConsoleOptions(demo_partner_id=demo.PARTNER.id)
    )
    await waypost.open()
    try:
        await _measure(waypost, store.engine, count)
    finally:
        await waypost.close()


async def _measure(waypost: Waypost, engine: str, count: int) -> None:
    session = await waypost.console.services.sessions.start(demo.PARTNER)
    transport = InProcessTransport(waypost.application)
    cookie = {"cookie": f"waypost_session={session.token}", "host": "127.0.0.1"}
    [app, *_] = sorted(await waypost.database.read(list_apps, demo.PARTNER.id), key=lambda app: app.id)
    newest = "SELECT id, operator_message_id, recipient_id FROM messages WHERE app_id = :app ORDER BY accepted_on_ms DESC LIMIT 1"

    def read_newest(connection: Connection) -> tuple[str, str, int]:
        row = connection.execute(text(newest), {"app": app.id}).one()
        return str(row[0]), str(row[1]), int(row[2])

    message_id, operator_id, recipient_id = await waypost.database.read(read_newest)
    print(f"\n{engine}, {count:,} messages of one app: whole pages, milliseconds at the server")
    for name, path in pages(app.id, numbers_per_app(1, count), message_id, operator_id, recipient_id):
        took_ms: list[float] = []
        for _ in range(ROUNDS):
            began_s = time.perf_counter()
            reply = await transport("GET", path, cookie, None)
            took_ms.append(1000 * (time.perf_counter() - began_s))
            assert reply.status in (200, 303), (path, reply.status, reply.body[:500])
        median = statistics.median(took_ms)
        verdict = "" if median < AIM_MS else "  over the aim"
        print(f"  {name:<40}{median:>8.1f}{max(took_ms):>8.1f}{verdict}", flush=True)


def main() -> None:
    """Measure both engines, or the selected one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stored", type=int, default=200_000)
    parser.add_argument("--engines", default=",".join(ENGINES))
    options = parser.parse_args()
    set_up_logs(SystemClock(), as_json=False, level="warning")
    with temporary_folder() as at:
        for engine in options.engines.split(","):
            with open_stores(engine, Path(at)) as stores:
                store = stores.new()
                seed_store(store)
                fill_one_app(store, options.stored)
                asyncio.run(measure(store, options.stored))


if __name__ == "__main__":
    main()
