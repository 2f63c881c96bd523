"""SQLite files that are damaged in several ways."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Final


def truncate(file: Path) -> None:
    """Cut a file to a third."""
    with file.open("r+b") as opened:
        opened.truncate(file.stat().st_size // 3)


def overwrite_head(file: Path) -> None:
    """Overwrite the first page."""
    with file.open("r+b") as opened:
        opened.write(b"\xa5" * 4096)


def overwrite_schema(file: Path) -> None:
    """Overwrite all of the first page but the file's header."""
    with file.open("r+b") as opened:
        opened.seek(100)
        opened.write(b"\xa5" * 3996)


def replace_by_text(file: Path) -> None:
    """Replace a file by a text."""
    file.write_text("this is no database\n" * 100)


def overwrite_table(file: Path, table: str) -> None:
    """Overwrite the first page of a table and of each of its indexes, in a file that nobody has open."""
    connection = sqlite3.connect(file)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    pages = [row[0] for row in connection.execute("SELECT rootpage FROM sqlite_schema WHERE tbl_name = ?", (table,))]
    [[page_bytes]] = connection.execute("PRAGMA page_size").fetchall()
    connection.close()
    with file.open("r+b") as opened:
        for page in pages:
            opened.seek((page - 1) * page_bytes)
            opened.write(b"\xa5" * page_bytes)


DAMAGES: Final[dict[str, Callable[[Path], None]]] = {
    "truncated": truncate,
    "head": overwrite_head,
    "schema": overwrite_schema,
    "text": replace_by_text,
}
