"""A process killed at any moment leaves no message without its key and no key without its message."""

import asyncio
import subprocess
import sys
from pathlib import Path

from sqlalchemy import Connection, select

from tests.support.keyed_sender import send
from tests.support.store_locations import StoreLocation
from waypost.store.database import Database
from waypost.store.tables import idempotency_keys, messages

MANY = 20_000
"""More than are sent before the kill."""
ENOUGH = 200
"""Acknowledged messages before the kill."""


def stored(connection: Connection) -> tuple[set[str], set[str]]:
    """Return the ids of messages, and those that keys name."""
    answers = connection.execute(select(idempotency_keys.c.response)).scalars()
    ids = connection.execute(select(messages.c.id)).scalars()
    return set(ids), {answer.decode() for answer in answers}


def sent_until_killed(location: str) -> set[int]:
    """Run a sending process and kill it; return the numbers that it acknowledged."""
    command = [sys.executable, "-m", "tests.support.keyed_sender", location, str(MANY)]
    acknowledged: set[int] = set()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            acknowledged.add(int(line))
            if len(acknowledged) >= ENOUGH:
                break
        process.kill()
        acknowledged |= {int(line) for line in process.stdout if line.endswith("\n")}
    return acknowledged


async def test_messages_and_keys_match_after_a_kill_and_all_can_be_sent_again(
    store_location: StoreLocation, tmp_path: Path
) -> None:
    database = Database(store_location.engine(sole=False))
    await database.open()
    location = str(store_location.settings.get("database_url", tmp_path / "waypost.db"))
    acknowledged = await asyncio.to_thread(sent_until_killed, location)

    before, keyed = await database.read(stored)
    resent = await asyncio.gather(*(send(database, number) for number in range(max(acknowledged) + 100)))
    after, keyed_after = await database.read(stored)
    await database.close()

    assert before == keyed
    assert len(before) >= len(acknowledged) >= ENOUGH
    assert after == keyed_after
    assert len(after) == len(resent)  # one message for each key, whichever of the two sent it
    known_ids = {earlier.response.decode() for _, earlier in resent if earlier is not None and earlier.response}
    assert known_ids == before & known_ids
    assert all(resent[number][1] is not None for number in acknowledged)
    assert after - before == {new for new, earlier in resent if earlier is None}
