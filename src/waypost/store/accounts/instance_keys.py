"""The instance key that a store uses: its record, its use by every process, and its replacement."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from sqlalchemy import Column, Connection, Row, Table, and_, delete, select, tuple_, update

from waypost.base.clock import Clock
from waypost.base.encryption import KeyState, SecretBox, WrongInstanceKey
from waypost.base.loops import Loop
from waypost.base.telemetry.logs import log
from waypost.store.bulk_statements import store_time_ms
from waypost.store.contract import WrongStore
from waypost.store.database import NOTIFICATIONS_MISSED, Database
from waypost.store.requests.idempotency import encryption_context
from waypost.store.sql import upsert
from waypost.store.tables import (
    idempotency_keys,
    operator_accounts,
    process_keys,
    processes,
    store_properties,
    subscriptions,
)

KEY_CHANGED: Final = "instance_key_changed"  # notification between processes: the store uses another instance key
KEY_PROPERTY: Final = "instance_key"
REFRESH_S: Final = 5.0  # how long a process may use the record it has read, if a notification was lost
LIVE_MS: Final = 60_000  # a process that has renewed its leases within this time runs
_ROWS_AT_ONCE: Final = 200


@dataclass(frozen=True, slots=True)
class EncryptedColumn:
    """A column whose values are encrypted with the instance key."""

    table: Table
    column: Column[Any]
    owner: Callable[[Row[Any]], str]  # returns the owner that a row's value was encrypted for


ENCRYPTED_COLUMNS: Final = (
    # table, column, owner
    EncryptedColumn(operator_accounts, operator_accounts.c.encrypted_fields, lambda row: row.id),
    EncryptedColumn(subscriptions, subscriptions.c.encrypted_meta, lambda row: row.app_id),
    EncryptedColumn(
        idempotency_keys,
        column=idempotency_keys.c.response,
        owner=lambda row: encryption_context(row.partner_id, row.route, row.key),
    ),
)


class InstanceKeys:
    """Keeps a process's `SecretBox` in the state that its store records; `holder` names the process in the store."""

    def __init__(self, database: Database, secret_box: SecretBox, clock: Clock, *, holder: str) -> None:
        self._database = database
        self._secret_box = secret_box
        self._clock = clock
        self._holder = holder
        self._changed = asyncio.Event()
        self._reported = ""
        self.loop = Loop("instance key", self.refresh, self._wait, log=log("store"))
        database.add_notification_listener(self._receive_notification)

    async def open(self) -> None:
        """Use the key that the store records; a store without a record gets one.

        Raises:
            WrongStore: it uses a key that is not among the settings.
        """
        state = await self._database.read(read_key_state)
        if state is None:
            await self._database.write(add_key_state, await self._first_state())
        try:
            state = await self.refresh()
        except WrongInstanceKey as error:
            raise WrongStore(
                "this store uses another secret_key than the one that is set; its secrets cannot be decrypted without "
                "it: set WAYPOST_SECRET_KEY to it, or WAYPOST_OLD_SECRET_KEY while you replace it"
            ) from error
        if state.rewriting and len(self._secret_box.keys) == 1:
            raise WrongStore(
                "the replacement of this store's secret_key has not ended: set WAYPOST_OLD_SECRET_KEY to the key "
                "before, and run `waypost secret rotate` again"
            )

    async def close(self) -> None:
        """Stop reading the record."""
        await self.loop.stop()
        if self._reported and not self._database.is_exclusive:
            with suppress(Exception):  # the store is away: the next rotation deletes the row
                await self._database.write(delete_process_key, self._holder)

    async def refresh(self) -> KeyState:
        """Read the record, use it, and report which key this process uses.

        Raises:
            WrongInstanceKey: the store uses a key that is not among the settings.
        """
        self._changed.clear()
        state = await self._database.read(read_key_state)
        if state is None:
            raise WrongInstanceKey(KEY_PROPERTY)
        self._secret_box.use(state, self._clock.now_ms())
        await self._report()
        return state

    async def change(self, state: KeyState) -> None:
        """Store a new record, use it here at once and in every other process soon."""
        await self._database.write(put_key_state, state)
        self._database.notify(KEY_CHANGED, "")
        await self.refresh()
        self._changed.set()  # the loop waits for the time of the new record

    async def other_processes(self) -> list[tuple[str, str]]:
        """Return the fingerprints of each running process: of the key in use, and of all it has, with commas.

        Both are empty for a process that has not reported them.
        """
        return await self._database.read(read_process_keys, self._clock.now_ms())

    async def rewrite(self) -> int:
        """Encrypt every value that was encrypted with another key again; return how many."""
        rewritten = 0
        for encrypted in ENCRYPTED_COLUMNS:
            after: tuple[Any, ...] | None = None
            while True:
                rows = await self._database.read(read_encrypted, encrypted, after)
                if not rows:
                    break
                changes = [
                    (row, resealed)
                    for row in rows
                    if (resealed := self._secret_box.reseal(row.sealed, owner=encrypted.owner(row))) is not None
                ]
                if changes:
                    rewritten += await self._database.write(replace_encrypted, encrypted, changes)
                after = _key_of(encrypted.table, rows[-1])
        return rewritten

    async def _report(self) -> None:
        in_use = self._secret_box.in_use.fingerprint
        if in_use == self._reported or self._database.is_exclusive:
            return
        known = ",".join(key.fingerprint for key in self._secret_box.keys)
        await self._database.write(put_process_key, self._holder, in_use, known)
        self._reported = in_use

    async def _first_state(self) -> KeyState:
        """Return the record of a store that has none: of the key that its secrets are encrypted with."""
        keys = list(reversed(self._secret_box.keys))
        samples = await self._database.read(read_encrypted, ENCRYPTED_COLUMNS[0], None)
        for key in keys:
            if all(key.open(row.sealed, ENCRYPTED_COLUMNS[0].owner(row).encode()) is not None for row in samples):
                return self._secret_box.first_state(key)
        return KeyState("", b"")  # no key of the settings: `refresh` says so

    def _receive_notification(self, subject: str, _content: str) -> None:
        if subject in (KEY_CHANGED, NOTIFICATIONS_MISSED):
            self._changed.set()

    async def _wait(self, state: KeyState) -> None:
        """Return when the record may have changed, or an old root in it may have expired."""
        is_final = self._database.is_exclusive and state.old_root is None  # until `change`
        with suppress(TimeoutError):
            await asyncio.wait_for(self._changed.wait(), None if is_final else REFRESH_S)


_decode: Final = msgspec.json.Decoder(KeyState).decode  # bytes are base64
_KEY_STATE: Final = select(store_properties.c.value).where(store_properties.c.name == KEY_PROPERTY)


def read_key_state(connection: Connection) -> KeyState | None:
    """Return the record; None if the store has none."""
    text = connection.execute(_KEY_STATE).scalar_one_or_none()
    return None if text is None else _decode(text)


def add_key_state(connection: Connection, state: KeyState) -> None:
    """Store the first record, unless another process has."""
    connection.execute(
        upsert(store_properties).on_conflict_do_nothing(),
        {"name": KEY_PROPERTY, "value": msgspec.json.encode(state).decode()},
    )


def put_key_state(connection: Connection, state: KeyState) -> None:
    """Replace the record."""
    connection.execute(
        update(store_properties)
        .where(store_properties.c.name == KEY_PROPERTY)
        .values(value=msgspec.json.encode(state).decode())
    )


def put_process_key(connection: Connection, holder: str, in_use: str, known: str) -> None:
    """Store which key a process uses, and which ones it has."""
    statement = upsert(process_keys)
    connection.execute(
        statement.on_conflict_do_update(
            index_elements=["holder"], set_={"in_use": statement.excluded.in_use, "known": statement.excluded.known}
        ),
        {"holder": holder, "in_use": in_use, "known": known},
    )


def delete_process_key(connection: Connection, holder: str) -> None:
    """Delete what a process has reported, and what those have that run no longer."""
    ended = process_keys.c.holder.not_in(select(processes.c.holder))
    connection.execute(delete(process_keys).where((process_keys.c.holder == holder) | ended))


def read_process_keys(connection: Connection, now_ms: int) -> list[tuple[str, str]]:
    """Return what each running process has reported: the key in use, and all it has; empty texts if nothing."""
    since_ms = store_time_ms(connection, now_ms) - LIVE_MS
    rows = connection.execute(
        select(process_keys.c.in_use, process_keys.c.known)
        .select_from(processes.outerjoin(process_keys, process_keys.c.holder == processes.c.holder))
        .where(processes.c.seen_ms > since_ms)
    )
    return [(row.in_use or "", row.known or "") for row in rows]


def read_encrypted(
    connection: Connection, encrypted: EncryptedColumn, after: tuple[Any, ...] | None
) -> Sequence[Row[Any]]:
    """Return the next rows with an encrypted value, in the order of the table's key, the value as `sealed`."""
    columns = list(encrypted.table.primary_key.columns)
    query = select(encrypted.table, encrypted.column.label("sealed")).where(encrypted.column.is_not(None))
    if after is not None:
        query = query.where(tuple_(*columns) > tuple_(*after))
    return connection.execute(query.order_by(*columns).limit(_ROWS_AT_ONCE)).all()


def replace_encrypted(
    connection: Connection, encrypted: EncryptedColumn, changes: Sequence[tuple[Row[Any], bytes]]
) -> int:
    """Replace values, except those that have changed since they were read; return how many."""
    replaced = 0
    for row, sealed in changes:
        pairs = zip(encrypted.table.primary_key.columns, _key_of(encrypted.table, row), strict=True)
        is_row = and_(*(column == value for column, value in pairs), encrypted.column == row.sealed)
        replaced += connection.execute(
            update(encrypted.table).where(is_row).values({encrypted.column.name: sealed})
        ).rowcount
    return replaced


def _key_of(table: Table, row: Row[Any]) -> tuple[Any, ...]:
    return tuple(getattr(row, column.name) for column in table.primary_key.columns)
