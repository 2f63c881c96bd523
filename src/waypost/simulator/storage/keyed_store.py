"""Structs stored by kind, owner and key in one table; most of them in memory, too."""

import sqlite3
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, Final, Generic, TypeVar, cast

from waypost.base.written_numbers import encode_json, json_decoder
from waypost.simulator.storage.store import Statement, Store

StoredValue = TypeVar("StoredValue")

KINDS_IN_MEMORY: Final[list["StoredKind[Any]"]] = []
"""The kinds that `Store` holds in memory: every one that a module declares."""

_UPSERT_VALUE: Final = (
    "INSERT INTO state (kind, owner, key, body) VALUES (:kind, :owner, :key, :body) "
    "ON CONFLICT (kind, owner, key) DO UPDATE SET body=excluded.body"
)
_INSERT_IF_ABSENT: Final = "INSERT OR IGNORE INTO state (kind, owner, key, body) VALUES (:kind, :owner, :key, :body)"
_APPEND: Final = (
    "INSERT INTO state (kind, owner, key, body) SELECT :kind, :owner, count(*), :body FROM state "
    "WHERE kind=:kind AND owner=:owner"
)
_DELETE: Final = "DELETE FROM state WHERE kind=:kind AND owner=:owner AND key=:key"
_DELETE_OWNER: Final = "DELETE FROM state WHERE kind=:kind AND owner=:owner"
_DELETE_RANGE: Final = (
    "DELETE FROM state WHERE kind=:kind AND key BETWEEN :first AND :last AND length(key)=length(:first)"
)
_SELECT_OWNER_VALUES: Final = "SELECT key, body FROM state WHERE kind=:kind AND owner=:owner ORDER BY position"
_SELECT_BY_MEMBER: Final = (
    "SELECT body FROM state WHERE kind=:kind AND json_extract(body, :path)=:value ORDER BY position"
)
_SELECT_VALUE: Final = "SELECT body FROM state WHERE kind=:kind AND owner=:owner AND key=:key"


class StoredKind(Generic[StoredValue]):
    """A kind of values in the file, and its statements.

    A key is unique within its owner; the owner is empty for values without one.

    Args:
        keys_of: returns further keys of a value, by which it is found in memory.
        in_memory: False for values that are only in the file.
        survives_reset: True for values that a reset keeps.
    """

    def __init__(
        self,
        name: str,
        value_type: type[StoredValue],
        *,
        keys_of: Callable[[StoredValue], Iterable[Hashable]] = lambda _: (),
        in_memory: bool = True,
        survives_reset: bool = False,
    ) -> None:
        self.name = name
        self.keys_of = keys_of
        self.survives_reset = survives_reset
        self.decode: Callable[[str], StoredValue] = json_decoder(value_type).decode
        if in_memory:
            KINDS_IN_MEMORY.append(self)

    def cached_in(self, store: Store) -> "CachedKeyedValues[StoredValue]":
        """Return the values of this kind that a store holds in memory."""
        return cast(CachedKeyedValues[StoredValue], store.cached[self.name])

    def values_on(self, connection: sqlite3.Connection, owner: str = "") -> dict[str, StoredValue]:
        """Return an owner's values by key, in order of creation, on this connection."""
        rows = connection.execute(_SELECT_OWNER_VALUES, {"kind": self.name, "owner": owner})
        return {key: self.decode(body) for key, body in rows}

    def find_by_member_on(self, connection: sqlite3.Connection, name: str, value: str) -> list[StoredValue]:
        """Return the values with this member, in order of creation, on this connection; the others are not decoded."""
        values = {"kind": self.name, "path": f"$.{name}", "value": value}
        return [self.decode(body) for (body,) in connection.execute(_SELECT_BY_MEMBER, values)]

    def find_on(self, connection: sqlite3.Connection, key: str, owner: str = "") -> StoredValue | None:
        """Return a value on this connection; None if there is none."""
        row = connection.execute(_SELECT_VALUE, {"kind": self.name, "owner": owner, "key": key}).fetchone()
        return None if row is None else self.decode(row[0])

    def save_statement(self, value: StoredValue, key: str, owner: str = "") -> Statement:
        """Return the statement that inserts or updates a value."""
        return _UPSERT_VALUE, {"kind": self.name, "owner": owner, "key": key, "body": encode_json(value).decode()}

    def add_statement(self, value: StoredValue, key: str, owner: str = "") -> Statement:
        """Return the statement that inserts a value if the key is not present."""
        return _INSERT_IF_ABSENT, self.save_statement(value, key, owner)[1]

    def append_statement(self, value: StoredValue, owner: str) -> Statement:
        """Return the statement that appends a value to an owner; such values are never deleted one by one."""
        return _APPEND, self.save_statement(value, "", owner)[1]

    def delete_statement(self, key: str, owner: str = "") -> Statement:
        """Return the statement that deletes a value."""
        return _DELETE, {"kind": self.name, "owner": owner, "key": key}

    def delete_owner_statement(self, owner: str) -> Statement:
        """Return the statement that deletes all values of an owner."""
        return _DELETE_OWNER, {"kind": self.name, "owner": owner}

    def delete_range_statement(self, first: str, last: str) -> Statement:
        """Return the statement that deletes the values with keys of one length from the first to the last."""
        return _DELETE_RANGE, {"kind": self.name, "first": first, "last": last}


class CachedKeyedValues(Generic[StoredValue]):
    """The values of one kind, in memory and in the file; loaded when the store opens, cleared at its reset."""

    def __init__(self, store: Store, kind: StoredKind[StoredValue]) -> None:
        self._store = store
        self.kind = kind
        self.survives_reset = kind.survives_reset
        self.all: dict[str, StoredValue] = {}
        """The values without an owner."""
        self.by_further_key: dict[Any, StoredValue] = {}
        """The values by the further keys of their kind."""
        self._by_owner: dict[str, dict[str, StoredValue]] = {"": self.all}
        store.cached[kind.name] = self

    def load(self, body: str, key: str, owner: str) -> None:
        """Put a value of the file in memory."""
        self.put(self.kind.decode(body), key, owner)

    def values_of(self, owner: str) -> Mapping[str, StoredValue]:
        """Return an owner's values by key, in order of creation."""
        return self._by_owner.get(owner, {})

    def items(self) -> list[tuple[str, str, StoredValue]]:
        """Return the owner, key and value of each."""
        return [(owner, key, value) for owner, values in self._by_owner.items() for key, value in values.items()]

    def put(self, value: StoredValue, key: str, owner: str = "") -> None:
        """Insert or update a value in memory."""
        self._drop_further_keys(self.values_of(owner).get(key))
        self._by_owner.setdefault(owner, {})[key] = value
        self.by_further_key.update(dict.fromkeys(self.kind.keys_of(value), value))

    def pop(self, key: str, owner: str = "") -> StoredValue | None:
        """Remove a value from memory."""
        value = self._by_owner.get(owner, {}).pop(key, None)
        self._drop_further_keys(value)
        return value

    def clear(self) -> None:
        """Remove all values from memory."""
        self.all.clear()
        self._by_owner = {"": self.all}
        self.by_further_key.clear()

    def pop_owner(self, owner: str) -> None:
        """Remove all values of an owner from memory."""
        for key in list(self.values_of(owner)):
            self.pop(key, owner)

    def pop_range(self, first: str, last: str) -> None:
        """Remove the values with keys of one length from the first to the last from memory."""
        for owner, values in self._by_owner.items():
            for key in [key for key in values if len(key) == len(first) and first <= key <= last]:
                self.pop(key, owner)

    async def save(self, value: StoredValue, key: str, owner: str = "") -> None:
        """Insert or update a value: on disk, then in memory."""
        await self._store.run([self.kind.save_statement(value, key, owner)])
        self.put(value, key, owner)

    async def delete(self, key: str, owner: str = "") -> None:
        """Delete a value: on disk, then in memory."""
        await self._store.run([self.kind.delete_statement(key, owner)])
        self.pop(key, owner)

    def _drop_further_keys(self, value: StoredValue | None) -> None:
        for key in () if value is None else self.kind.keys_of(value):
            self.by_further_key.pop(key, None)
