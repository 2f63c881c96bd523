"""Orders and processed callbacks, stored in a SQLite file."""

import sqlite3
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Order:
    """One order.

    `state` is `placed`, `confirmed` or `cancelled`; `message_state` is the state of its newest message.
    """

    id: int
    customer: str
    phone: str
    goods: str
    state: str
    message_id: str
    message_state: str


class Orders:
    """Stores orders, and the ids of processed callbacks. Safe for threads."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._database.executescript(
            """
            CREATE TABLE IF NOT EXISTS orders (
                id INTEGER PRIMARY KEY, customer TEXT, phone TEXT, goods TEXT, state TEXT,
                message_id TEXT DEFAULT '', message_state TEXT DEFAULT ''
            );
            CREATE TABLE IF NOT EXISTS processed (callback_id TEXT PRIMARY KEY);
            """
        )

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._database.close()

    def add(self, customer: str, phone: str, goods: str) -> Order:
        """Store a new order."""
        columns = "(customer, phone, goods, state)"
        row = (customer, phone, goods, "placed")
        insert = f"INSERT INTO orders {columns} VALUES (?,?,?,?) RETURNING id"
        [(order_id,)] = self._run(insert, *row)
        return self.get(order_id)

    def get(self, order_id: int) -> Order:
        """Return an order."""
        return self._select("id=?", order_id)[0]

    def find_by_message(self, message_id: str) -> Order | None:
        """Return the order with this newest message; None if there is none."""
        return next(iter(self._select("message_id=?", message_id)), None)

    def list_unconfirmed(self) -> list[Order]:
        """Return the orders without a message."""
        return self._select("state='placed' AND message_id=?", "")

    def set(self, order_id: int, **columns: str) -> None:
        """Change columns of an order."""
        for name, value in columns.items():
            self._run(f"UPDATE orders SET {name}=? WHERE id=?", value, order_id)

    def is_processed(self, callback_id: str) -> bool:
        """True if the callback has been processed."""
        return bool(self._run("SELECT 1 FROM processed WHERE callback_id=?", callback_id))

    def mark_processed(self, callback_id: str) -> None:
        """Store that the callback has been processed."""
        self._run("INSERT INTO processed VALUES (?)", callback_id)

    def _select(self, condition: str, value: object) -> list[Order]:
        names = "id, customer, phone, goods, state, message_id, message_state"
        rows = self._run(f"SELECT {names} FROM orders WHERE {condition}", value)
        return [Order(*row) for row in rows]

    def _run(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._database.execute(statement, values).fetchall()
