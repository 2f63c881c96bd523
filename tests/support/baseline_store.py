"""An SQLite store with rows that a pipeline of an early version has written."""

import sqlite3
from pathlib import Path
from typing import Final

from waypost.store.engines.sqlite import SqliteEngine

ROWS: Final = Path(__file__).with_name("first_store.sql")


def create_baseline_store(path: Path, *, receiver: str | None = None) -> None:
    """Create the store, of the revision of this version.

    Args:
        path: of the file.
        receiver: replaces the URL of the partner's subscription.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    engine = SqliteEngine(path)
    engine.open()
    engine.close()
    path.with_name(f"{path.name}.lock").unlink()
    connection = sqlite3.connect(path)
    try:
        connection.executescript(ROWS.read_text(encoding="utf-8"))
        if receiver is not None:
            connection.execute("UPDATE subscriptions SET url = ?", (receiver,))
        connection.commit()
    finally:
        connection.close()


def set_revision(path: Path, revision: int) -> None:
    """Make a store one of another revision."""
    connection = sqlite3.connect(path)
    try:
        change = "UPDATE store_properties SET value = ? WHERE name IN ('revision', 'works_with')"
        connection.execute(change, (str(revision),))
        connection.commit()
    finally:
        connection.close()


QUEUED_MESSAGE_IDS: Final = ("01a2031b-eb92-728a-a224-153e58670f9f", "01a2031b-eb9d-749a-b7ba-21175794bcdb")
"""Our ids of two texts to Ann that are not yet sent to the operator."""
STOPPED_ON_MS: Final = 1_795_348_495_000
"""The time at which that pipeline stopped."""
