"""Killed at any moment, a process leaves no message without its key and no key without its message."""

import asyncio
import subprocess
import sys
from pathlib import Path

from sqlalchemy import Connection, select

from tests.support.keyed_sender import send
from tests.support.stores import Place
from waypost.store.database import Database
from waypost.store.tables import idempotency_keys, messages

MANY = 20_000
"""More than are sent before the kill."""
ENOUGH = 200
"""So many are acknowledged before it."""


def stored(connection: Connection) -> tuple[set[str], set[str]]:
    """The ids of messages, and those that keys name."""
    answers = connection.execute(select(idempotency_keys.c.answer)).scalars()
    ids = connection.execute(select(messages.c.id)).scalars()
    return set(ids), {answer.decode() for answer in answers}


def sent_until_killed(where: str) -> set[int]:
    """Have a process send, and kill it; the numbers that it has acknowledged."""
    command = [sys.executable, "-m", "tests.support.keyed_sender", where, str(MANY)]
    told: set[int] = set()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            told.add(int(line))
            if len(told) >= ENOUGH:
                break
        process.kill()
        told |= {int(line) for line in process.stdout if line.endswith("\n")}
    return told


async def test_messages_and_keys_are_the_same_after_a_kill_and_all_can_be_sent_again(
    place: Place, tmp_path: Path
) -> None:
    database = Database(place.engine(sole=False))
    await database.open()
    where = str(place.settings.get("database_url", tmp_path / "waypost.db"))
    told = await asyncio.to_thread(sent_until_killed, where)

    before, named = await database.read(stored)
    again = await asyncio.gather(*(send(database, number) for number in range(max(told) + 100)))
    after, named_after = await database.read(stored)
    await database.close()

    assert before == named
    assert len(before) >= len(told) >= ENOUGH
    assert after == named_after
    assert len(after) == len(again)  # one message for each key, whichever of the two sent it
    held = {found.response.decode() for _, found in again if found is not None and found.response}
    assert held == before & held
    assert all(again[number][1] is not None for number in told)
    assert after - before == {new for new, found in again if found is None}
