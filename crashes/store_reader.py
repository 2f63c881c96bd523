"""Reads the service's store directly, with statements that both engines understand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, Engine, create_engine, func, select, text
from sqlalchemy.pool import NullPool

from waypost.store.queue.job_subjects import JobState, QueueName
from waypost.store.queue.jobs import open_callbacks
from waypost.store.tables import attempts, message_events, messages, queue_jobs

_DRAINED_QUEUES: Final = (QueueName.OUTBOUND, QueueName.WEBHOOKS, QueueName.CALLBACKS, QueueName.MEDIA)
"""The queues that become empty; unconfirmed jobs wait and do not count."""
_JOBS: Final = (queue_jobs, open_callbacks)
"""Jobs that are rows of their own, and callbacks that are their own jobs: their positions are of one sequence."""


class StoreReader:
    """Reads the store; every query opens its own connection and closes it again."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def in_flight(self) -> list[str]:
        """Return the ids of the messages that are, or were, in flight."""
        refs = self._column(
            select(queue_jobs.c.ref).where(
                queue_jobs.c.queue == QueueName.OUTBOUND, queue_jobs.c.state == JobState.IN_FLIGHT
            )
        )
        return [ref.removeprefix("message ") for ref in refs]

    def depths(self) -> dict[str, int]:
        """Return the number of jobs of each queue."""
        depths: Counter[str] = Counter()
        with self._open() as connection:
            for jobs in _JOBS:
                rows = connection.execute(select(jobs.c.queue, func.count()).group_by(jobs.c.queue))
                depths.update({QueueName(queue_name).name.lower(): count for queue_name, count in rows})
        return dict(depths)

    def last_position(self) -> int:
        """Return the highest position of a stored job."""
        return max(self._column(select(func.coalesce(func.max(jobs.c.position), 0)))[0] for jobs in _JOBS)

    def count_open_up_to(self, position: int) -> int:
        """Return the number of jobs up to a position that are not complete, without unconfirmed ones."""
        return sum(
            self._column(select(func.count()).where(jobs.c.position <= position, jobs.c.queue.in_(_DRAINED_QUEUES)))[0]
            for jobs in _JOBS
        )

    def states(self) -> dict[str, tuple[str, int | None]]:
        """Return the state of every message, with its code if it has failed."""
        with self._open() as connection:
            rows = connection.execute(select(messages.c.id, messages.c.state, messages.c.code))
            return {message_id: (state, code) for message_id, state, code in rows}

    def ever_uncertain(self) -> set[str]:
        """Return the ids of the messages that were uncertain at any time."""
        return set(self._column(select(message_events.c.message_id).where(message_events.c.event == "uncertain")))

    def failed_attempts(self) -> list[str]:
        """Return the errors of the callback attempts that failed."""
        with self._open() as connection:
            rows = connection.execute(
                select(attempts.c.error, attempts.c.status).where(attempts.c.status.is_distinct_from(200))
            )
            return [error or f"status {status}" for error, status in rows]

    def check_integrity(self) -> str:
        """Return the result of the engine's own integrity check: `ok` if it passed."""
        if self._engine.dialect.name == "sqlite":
            return self._column(text("PRAGMA integrity_check"))[0]
        failures = self._column(text("SELECT sum(coalesce(checksum_failures, 0)) FROM pg_stat_database"))
        return "ok" if failures == [0] else f"{failures[0]} pages with a wrong checksum"

    def _column(self, statement: Any) -> list[Any]:
        with self._open() as connection:
            return list(connection.execute(statement).scalars())

    @contextmanager
    def _open(self) -> Generator[Connection]:
        with self._engine.connect() as connection:
            yield connection


def create_sqlite_reader(path: Path) -> StoreReader:
    """Return a reader of an SQLite file, which is opened read-only."""
    return StoreReader(create_engine(f"sqlite:///file:{path}?mode=ro&uri=true", poolclass=NullPool))


def create_postgresql_reader(url: str) -> StoreReader:
    """Return a reader of a PostgreSQL database, from its libpq URL."""
    driver_url = url.replace("postgresql://", "postgresql+psycopg://", 1)
    return StoreReader(create_engine(driver_url, poolclass=NullPool, connect_args={"connect_timeout": 5}))
