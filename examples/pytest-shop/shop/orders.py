"""The orders, in a SQLite file."""

import sqlite3
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Order:
    """One order.

    `state` is `placed`, `confirmed` or `cancelled`; `show_message` is how far its newest message has come.
    """

    id: int
    customer: str
    phone: str
    goods: str
    state: str
    message_id: str
    message_state: str


class Orders:
    """Keeps orders, and which callbacks have been taken already; threads may share it."""

    def __init__(self, path: Path) -> None:
        self._one_at_a_time = threading.Lock()
        self._database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._database.executescript(
            """
            CREATE TABLE IF NOT EXISTS orders (
                id INTEGER PRIMARY KEY, customer TEXT, phone TEXT, goods TEXT, state TEXT,
                message_id TEXT DEFAULT '', message_state TEXT DEFAULT ''
            );
            CREATE TABLE IF NOT EXISTS taken (callback_id TEXT PRIMARY KEY);
            """
        )

    def close(self) -> None:
        """Close the file."""
        with self._one_at_a_time:
            self._database.close()

    def add(self, customer: str, phone: str, goods: str) -> Order:
        """Keep a new order."""
        columns = "(customer, phone, goods, state)"
        row = (customer, phone, goods, "placed")
        insert = f"INSERT INTO orders {columns} VALUES (?,?,?,?) RETURNING id"
        [(order_id,)] = self._run(insert, *row)
        return self.get(order_id)

    def get(self, order_id: int) -> Order:
        """One order."""
        return self._where("id=?", order_id)[0]

    def by_message(self, message_id: str) -> Order | None:
        """The order whose newest message this is."""
        return next(iter(self._where("message_id=?", message_id)), None)

    def unconfirmed(self) -> list[Order]:
        """Orders whose customer has not been written to."""
        return self._where("state='placed' AND message_id=?", "")

    def set(self, order_id: int, **columns: str) -> None:
        """Change columns of an order."""
        for name, value in columns.items():
            self._run(f"UPDATE orders SET {name}=? WHERE id=?", value, order_id)

    def was_taken(self, callback_id: str) -> bool:
        """Whether a callback has been dealt with already."""
        return bool(self._run("SELECT 1 FROM taken WHERE callback_id=?", callback_id))

    def remember(self, callback_id: str) -> None:
        """Note that a callback has been dealt with."""
        self._run("INSERT INTO taken VALUES (?)", callback_id)

    def _where(self, condition: str, value: object) -> list[Order]:
        names = "id, customer, phone, goods, state, message_id, message_state"
        found = self._run(f"SELECT {names} FROM orders WHERE {condition}", value)
        return [Order(*row) for row in found]

    def _run(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        with self._one_at_a_time:
            return self._database.execute(statement, values).fetchall()
