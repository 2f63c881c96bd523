"""How long the console's server takes over many messages: list, every filter, search and trace, as whole pages.

`python -m benchmarks.console` fills one app with 200,000 messages on each engine, asks for each page through
the service as a browser does, and prints the median and the slowest. It judges nothing: the aim is 100 ms.
"""

import argparse
import asyncio
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import Connection, text

from benchmarks.filling import fill, numbers_of_each
from benchmarks.processes import folder
from benchmarks.seeding import connected, seed
from benchmarks.stores import ENGINES, Store, stores_of
from waypost.assembly.console import ConsoleOptions
from waypost.assembly.dev import demo
from waypost.assembly.service import Waypost
from waypost.base.clock import SystemClock
from waypost.base.ids import RandomIds
from waypost.base.telemetry.logs import set_up_logs
from waypost.client.api_client import InProcessTransport
from waypost.config import Settings
from waypost.store.apps.apps import list_apps

ROUNDS = 15
AIM_MS = 100
OLD = "time=custom&from=2020-01-01T00:00"
RARE = 4096
"""One in so many has failed."""


def fill_one_app(store: Store, count: int) -> None:
    """Messages of the oldest app alone, a few of them failed, and one with a word that no other has."""
    with connected(store) as connection:
        apps = connection.execute(text("SELECT id, phone_number, partner_id FROM apps ORDER BY id"))
        [app, *_] = apps.all()
        connection.rollback()
        now_ms = SystemClock().now_ms()
        fill(connection, [(app.id, app.phone_number)], partner_id=app.partner_id, count=count, now_ms=now_ms)
        _vary(connection, count)
        connection.commit()


def _vary(connection: Connection, count: int) -> None:
    failed = "UPDATE messages SET state = 'failed', code = 131049, reason = 'refused' WHERE id LIKE :like"
    connection.execute(text(failed), {"like": f"%-7{RARE - 1:03x}-8000-%"})
    oldest = "UPDATE messages SET state = 'uncertain' WHERE id = (SELECT min(id) FROM messages)"
    connection.execute(text(oldest))
    assert count


def pages(app_id: str, numbers: int, message_id: str, operator_id: str) -> Sequence[tuple[str, str]]:
    """What is asked for, and its address."""
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
        ("words that all say", f"text=ready&{OLD}"),
        ("words that none says", f"text=elephant&{OLD}"),
        ("words with an accent that none says", f"text=%C3%A9%C3%A8&{OLD}"),
        ("words and a state that few have", f"text=tomorrow&state=failed&{OLD}"),
    )
    return (
        *((name, f"{messages}?{query}" if query else messages) for name, query in queries),
        ("our id, to its way", f"{messages}?q={message_id}"),
        ("the operator's id, to its way", f"{messages}?q={operator_id}"),
        ("the way of a message", f"{messages}/{message_id}"),
    )


async def measure(store: Store, count: int) -> None:
    """Ask for every page, and print how long it took."""
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
    ask = InProcessTransport(waypost.application)
    cookie = {"cookie": f"waypost_session={session.token}", "host": "127.0.0.1"}
    [app, *_] = sorted(await waypost.database.read(list_apps, demo.PARTNER.id), key=lambda one: one.id)
    newest = "SELECT id, operator_message_id FROM messages WHERE app_id = :app ORDER BY accepted_on_ms DESC LIMIT 1"

    def look(connection: Connection) -> tuple[str, str]:
        row = connection.execute(text(newest), {"app": app.id}).one()
        return str(row[0]), str(row[1])

    message_id, operator_id = await waypost.database.read(look)
    print(f"\n{engine}, {count:,} messages of one app: whole pages, milliseconds at the server")
    for name, path in pages(app.id, numbers_of_each(1, count), message_id, operator_id):
        took: list[float] = []
        for _ in range(ROUNDS):
            began_s = time.perf_counter()
            reply = await ask("GET", path, cookie, None)
            took.append(1000 * (time.perf_counter() - began_s))
            assert reply.status in (200, 303), (path, reply.status, reply.body[:500])
        median = statistics.median(took)
        verdict = "" if median < AIM_MS else "  over the aim"
        print(f"  {name:<40}{median:>8.1f}{max(took):>8.1f}{verdict}", flush=True)


def main() -> None:
    """Both engines, or the one that is chosen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stored", type=int, default=200_000)
    parser.add_argument("--engines", default=",".join(ENGINES))
    options = parser.parse_args()
    set_up_logs(SystemClock(), as_json=False, level="warning")
    with folder() as at:
        for engine in options.engines.split(","):
            with stores_of(engine, Path(at)) as stores:
                store = stores.new()
                seed(store)
                fill_one_app(store, options.stored)
                asyncio.run(measure(store, options.stored))


if __name__ == "__main__":
    main()
