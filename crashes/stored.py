"""What the service's store says, read past the service, with statements that both engines understand."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, Engine, create_engine, func, select, text
from sqlalchemy.pool import NullPool

from waypost.store.queue.jobs import JobState, QueueName
from waypost.store.tables import attempts, message_events, messages, queue_jobs

_ON_ITS_WAY: Final = (QueueName.OUTBOUND, QueueName.WEBHOOKS, QueueName.CALLBACKS, QueueName.MEDIA)
"""The queues that run empty; doubts wait, and do not count."""


class Stored:
    """The store; every question opens a connection of its own that cannot write, and closes it again."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def in_flight(self) -> list[str]:
        """The ids of the messages that were being sent, or are."""
        refs = self._column(
            select(queue_jobs.c.ref).where(
                queue_jobs.c.queue == QueueName.OUTBOUND, queue_jobs.c.state == JobState.IN_FLIGHT
            )
        )
        return [ref.removeprefix("message ") for ref in refs]

    def depths(self) -> dict[str, int]:
        """How many entries each queue holds."""
        with self._open() as connection:
            rows = connection.execute(select(queue_jobs.c.queue, func.count()).group_by(queue_jobs.c.queue))
            return {QueueName(queue_name).name.lower(): count for queue_name, count in rows}

    def newest_position(self) -> int:
        """The last position of any entry that is still there."""
        return self._column(select(func.coalesce(func.max(queue_jobs.c.position), 0)))[0]

    def open_up_to(self, position: int) -> int:
        """How many entries up to a position are still to be worked; doubts wait and do not count."""
        return self._column(
            select(func.count()).where(queue_jobs.c.position <= position, queue_jobs.c.queue.in_(_ON_ITS_WAY))
        )[0]

    def states(self) -> dict[str, tuple[str, int | None]]:
        """Of every message its state, and its code when it has failed."""
        with self._open() as connection:
            rows = connection.execute(select(messages.c.id, messages.c.state, messages.c.code))
            return {message_id: (state, code) for message_id, state, code in rows}

    def ever_uncertain(self) -> set[str]:
        """The messages that were uncertain at any time."""
        return set(self._column(select(message_events.c.message_id).where(message_events.c.news == "uncertain")))

    def failed_attempts(self) -> list[str]:
        """Why callbacks were not taken at a try."""
        with self._open() as connection:
            rows = connection.execute(
                select(attempts.c.error, attempts.c.status).where(attempts.c.status.is_distinct_from(200))
            )
            return [error or f"status {status}" for error, status in rows]

    def is_sound(self) -> str:
        """What the engine's own check says: `ok`."""
        if self._engine.dialect.name == "sqlite":
            return self._column(text("PRAGMA integrity_check"))[0]
        failures = self._column(text("SELECT sum(coalesce(checksum_failures, 0)) FROM pg_stat_database"))
        return "ok" if failures == [0] else f"{failures[0]} pages with a wrong checksum"

    def _column(self, question: Any) -> list[Any]:
        with self._open() as connection:
            return list(connection.execute(question).scalars())

    @contextmanager
    def _open(self) -> Generator[Connection]:
        with self._engine.connect() as connection:
            yield connection


def stored_in_file(path: Path) -> Stored:
    """Of an SQLite file, which is opened so that it cannot be written."""
    return Stored(create_engine(f"sqlite:///file:{path}?mode=ro&uri=true", poolclass=NullPool))


def stored_at(url: str) -> Stored:
    """Of a PostgreSQL database, by its address as libpq takes it."""
    driven = url.replace("postgresql://", "postgresql+psycopg://", 1)
    return Stored(create_engine(driven, poolclass=NullPool, connect_args={"connect_timeout": 5}))
