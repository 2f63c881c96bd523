"""A process that sends messages with idempotency keys until it is killed; it prints the number of each that is committed.

python -m tests.support.keyed_sender PATH-OR-URL HOW-MANY
"""

import asyncio
import sys
from pathlib import Path

from tests.support.builders import PARTNER, message
from waypost.base.clock import SystemClock
from waypost.base.ids import RandomIds
from waypost.base.telemetry.logs import set_up_logs
from waypost.domain.message import Message
from waypost.store.contract import StoreEngine
from waypost.store.database import Database
from waypost.store.engines.postgresql import PostgresEngine
from waypost.store.engines.sqlite import SqliteEngine
from waypost.store.requests.idempotency import EarlierRequest, KeyedRequest, record_keyed_messages

AT_ONCE = 40


async def send(database: Database, number: int) -> tuple[str, EarlierRequest | None]:
    """Record the message of a number under its key; return the new message's id, and the earlier request of the key."""
    clock = SystemClock()
    new: Message = message(id=RandomIds(clock).new())
    request = KeyedRequest(PARTNER.id, "POST /send", f"key {number}", b"body", clock.now_ms())
    item = (request, new, new.id.encode())
    return new.id, await database.join(record_keyed_messages, item)


def engine_at(location: str) -> StoreEngine:
    """Return the engine for a path or a URL."""
    if location.startswith("postgresql://"):
        return PostgresEngine(location)
    return SqliteEngine(Path(location), exclusive=False)


async def main(location: str, count: int) -> None:
    set_up_logs(SystemClock(), as_json=False, level="error", stream=sys.stderr)
    database = Database(engine_at(location))
    await database.open()
    todo = iter(range(count))

    async def work() -> None:
        for number in todo:
            await send(database, number)
            sys.stdout.write(f"{number}\n")
            sys.stdout.flush()

    await asyncio.gather(*(work() for _ in range(AT_ONCE)))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
