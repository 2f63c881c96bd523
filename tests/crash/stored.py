"""What the service's store says, read from its file without a word to the service."""

import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from waypost.store.journal import EntryState, Lane


class Stored:
    """The SQLite file; every question opens it read-only and closes it again."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def in_hand(self) -> list[str]:
        """The ids of the messages that were being sent, or are."""
        refs = self._column(
            "SELECT ref FROM journal WHERE lane=? AND state=?",
            Lane.SUBMISSIONS,
            EntryState.IN_HAND,
        )
        return [ref.removeprefix("message ") for ref in refs]

    def depths(self) -> dict[str, int]:
        """How many entries each lane holds."""
        with self._open() as connection:
            rows = connection.execute("SELECT lane, count(*) FROM journal GROUP BY lane")
            return {Lane(lane).name.lower(): count for lane, count in rows}

    def newest_position(self) -> int:
        """The last position that the journal gave."""
        return self._column(
            "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name='journal'"
        )[0]

    def open_up_to(self, position: int) -> int:
        """How many entries up to a position are still to be worked; doubts wait and do not count."""
        return self._column(
            "SELECT count(*) FROM journal WHERE position<=? AND lane<>?", position, Lane.DOUBTS
        )[0]

    def states(self) -> dict[str, tuple[str, int | None]]:
        """Of every message its state, and its code when it has failed."""
        with self._open() as connection:
            rows = connection.execute("SELECT id, state, code FROM messages")
            return {message_id: (state, code) for message_id, state, code in rows}

    def ever_uncertain(self) -> set[str]:
        """The messages that were uncertain at any time."""
        return set(self._column("SELECT message_id FROM message_events WHERE news='uncertain'"))

    def failed_attempts(self) -> list[str]:
        """Why callbacks were not taken at a try."""
        return self._column(
            "SELECT coalesce(error, 'status ' || status) FROM attempts WHERE status IS NOT 200"
        )

    def is_sound(self) -> str:
        """What SQLite's own check says: `ok`."""
        return self._column("PRAGMA integrity_check")[0]

    def _column(self, question: str, *values: int) -> list[Any]:
        with self._open() as connection:
            return [row[0] for row in connection.execute(question, values)]

    @contextmanager
    def _open(self) -> Generator[sqlite3.Connection]:
        with closing(sqlite3.connect(f"file:{self._path}?mode=ro", uri=True)) as connection:
            yield connection
