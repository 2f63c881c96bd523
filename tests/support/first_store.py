"""An SQLite store of the baseline: revision 5, the first from which a store can be upgraded."""

import sqlite3
from pathlib import Path
from typing import Final

FIRST: Final = Path(__file__).with_name("first_store.sql")


def make_first_store(path: Path, *, receiver: str | None = None) -> None:
    """Lay it down, with rows in it that a pipeline of that version has written.

    Args:
        path: of the file.
        receiver: where the partner's subscription points to now.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path)
    try:
        connection.executescript(FIRST.read_text(encoding="utf-8"))
        if receiver is not None:
            connection.execute("UPDATE subscriptions SET url = ?", (receiver,))
            connection.commit()
    finally:
        connection.close()


WAITING: Final = ("01a2031b-eb92-728a-a224-153e58670f9f", "01a2031b-eb9d-749a-b7ba-21175794bcdb")
"""Two texts to Ann that the operator has not got yet."""
LAST_MS: Final = 1_795_348_495_000
"""When that pipeline stopped."""
