"""What is found by its key: structs under a kind, an owner and a key, in one table; most of them in memory, too."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar

import msgspec

from waypost.simulator.store import Statement, StateRow, Store

Value = TypeVar("Value")
Key = TypeVar("Key", bound=Hashable)

_SAVE: Final = (
    "INSERT INTO state (kind, owner, key, body) VALUES (:kind, :owner, :key, :body) "
    "ON CONFLICT (kind, owner, key) DO UPDATE SET body=excluded.body"
)
_ADD: Final = "INSERT OR IGNORE INTO state (kind, owner, key, body) VALUES (:kind, :owner, :key, :body)"
_APPEND: Final = (
    "INSERT INTO state (kind, owner, key, body) SELECT :kind, :owner, count(*), :body FROM state "
    "WHERE kind=:kind AND owner=:owner"
)
_DELETE: Final = "DELETE FROM state WHERE kind=:kind AND owner=:owner AND key=:key"
_DELETE_OWNER: Final = "DELETE FROM state WHERE kind=:kind AND owner=:owner"
_DELETE_RANGE: Final = (
    "DELETE FROM state WHERE kind=:kind AND key BETWEEN :first AND :last AND length(key)=length(:first)"
)
_OF_OWNER: Final = "SELECT kind, owner, key, body FROM state WHERE kind=:kind AND owner=:owner ORDER BY position"
_OWNERS: Final = "SELECT DISTINCT owner FROM state WHERE kind=:kind"
_encode: Final = msgspec.json.Encoder().encode


class StoredKind(Generic[Value]):
    """The values of one kind, in the file alone.

    A value may have an owner, under which its key is looked for; the owner is empty where there is none.

    Args:
        kind: names them in the file.
        value_type: what they are read as.
    """

    def __init__(self, store: Store, kind: str, value_type: type[Value]) -> None:
        self._store = store
        self._kind = kind
        self._decode = msgspec.json.Decoder(value_type).decode

    async def read(self, owner: str) -> dict[str, Value]:
        """An owner's values by key, in the order in which they were made."""
        rows = await self._store.rows(StateRow, _OF_OWNER, kind=self._kind, owner=owner)
        return {row.key: self._decode(row.body) for row in rows}

    async def owners(self) -> set[str]:
        """Who has any."""
        return set(await self._store.column(_OWNERS, kind=self._kind))

    def save_statement(self, value: Value, key: str, owner: str = "") -> Statement:
        """The statement that makes or changes a value."""
        return _SAVE, {"kind": self._kind, "owner": owner, "key": key, "body": _encode(value).decode()}

    def add_statement(self, value: Value, key: str, owner: str = "") -> Statement:
        """The statement that makes a value unless there is one already."""
        return _ADD, self.save_statement(value, key, owner)[1]

    def append_statement(self, value: Value, owner: str) -> Statement:
        """The statement that adds a value to an owner; such values are never deleted one by one."""
        return _APPEND, self.save_statement(value, "", owner)[1]

    def delete_statement(self, key: str, owner: str = "") -> Statement:
        """The statement that deletes a value."""
        return _DELETE, {"kind": self._kind, "owner": owner, "key": key}

    def delete_owner_statement(self, owner: str) -> Statement:
        """The statement that deletes all that an owner has."""
        return _DELETE_OWNER, {"kind": self._kind, "owner": owner}

    def delete_range_statement(self, first: str, last: str) -> Statement:
        """The statement that deletes the values under keys of one length from the first to the last."""
        return _DELETE_RANGE, {"kind": self._kind, "first": first, "last": last}


class LoadedKind(StoredKind[Value]):
    """The values of one kind, in memory and in the file; loaded when the store opens, emptied at its reset.

    Args:
        stays: a reset leaves them alone.
    """

    def __init__(self, store: Store, kind: str, value_type: type[Value], *, stays: bool = False) -> None:
        super().__init__(store, kind, value_type)
        self.all: dict[str, Value] = {}
        """Those without an owner."""
        self._by_owner: dict[str, dict[str, Value]] = {"": self.all}
        self._indexes: list[tuple[Callable[[Value], Iterable[Any]], dict[Any, Value]]] = []
        store.load_kind(kind, lambda row: self.put(self._decode(row.body), row.key, row.owner))
        if stays:
            store.keep_kind(kind)
        else:
            store.at_reset(self.clear)

    def index(self, keys_of: Callable[[Value], Iterable[Key]]) -> dict[Key, Value]:
        """A dictionary of the values by other keys of theirs, which follows every change."""
        found: dict[Key, Value] = {}
        self._indexes.append((keys_of, found))
        return found

    def of(self, owner: str) -> Mapping[str, Value]:
        """An owner's values by key, in the order in which they were made."""
        return self._by_owner.get(owner, {})

    def items(self) -> list[tuple[str, str, Value]]:
        """Owner, key and value of each."""
        return [(owner, key, value) for owner, values in self._by_owner.items() for key, value in values.items()]

    def put(self, value: Value, key: str, owner: str = "") -> None:
        """Make or change a value in memory."""
        values = self._by_owner.setdefault(owner, {})
        self._unindex(values.get(key))
        values[key] = value
        for keys_of, found in self._indexes:
            found.update(dict.fromkeys(keys_of(value), value))

    def pop(self, key: str, owner: str = "") -> Value | None:
        """Take a value out of memory."""
        value = self._by_owner.get(owner, {}).pop(key, None)
        self._unindex(value)
        return value

    def clear(self) -> None:
        """Empty the memory."""
        self.all.clear()
        self._by_owner = {"": self.all}
        for _, found in self._indexes:
            found.clear()

    def pop_owner(self, owner: str) -> None:
        """Take all that an owner has out of memory."""
        for key in list(self.of(owner)):
            self.pop(key, owner)

    def pop_range(self, first: str, last: str) -> None:
        """Take the values under keys of one length from the first to the last out of memory."""
        for owner, values in self._by_owner.items():
            for key in [key for key in values if len(key) == len(first) and first <= key <= last]:
                self.pop(key, owner)

    async def save(self, value: Value, key: str, owner: str = "", *, also: Sequence[Statement] = ()) -> None:
        """Make or change a value: on disk, together with further statements, then in memory."""
        await self._store.run([self.save_statement(value, key, owner), *also])
        self.put(value, key, owner)

    async def delete(self, key: str, owner: str = "", *, also: Sequence[Statement] = ()) -> None:
        """Delete a value: on disk, together with further statements, then in memory."""
        await self._store.run([self.delete_statement(key, owner), *also])
        self.pop(key, owner)

    def _unindex(self, value: Value | None) -> None:
        if value is not None:
            for keys_of, found in self._indexes:
                for key in keys_of(value):
                    found.pop(key, None)
