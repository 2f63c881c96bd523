"""Updates on their way to webhooks: those of the outbox, and those that faults have judged.

A row of a status holds everything after its time stamp, which is its due time: so a row that is
brought forward needs no new text. All of it is ASCII, because those are the bytes that are signed.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import msgspec

from waypost.simulator.store import Statement, Store, Values

MESSAGE: Final = "message"
TEMPLATE: Final = "template"
FIELD: Final = "field:"
"""The kinds of update: a message; a template's status; `field:` and the name of a webhook field
whose whole value is kept; every other kind is the name of a message's status."""

SUBSCRIPTION: Final = "subscription"
RETRY: Final = "retry"
"""Kinds in the table of what is found by its key: an app that hears of an account (the owner); how an
address (its number is the key) of an account and app (the owner, with a space between) is doing."""

AT_ONCE: Final = 0
AFTER_NEXT: Final = 1
"""How a judged update goes: by itself, or after the outlet's next one; more is with so many together."""

_COLUMNS: Final = "waba_id, due_ms, id, kind, phone_number_id, subject, rest, app_id"
_ADD: Final = (  # one row for each app that hears of the account
    f"INSERT INTO outbox ({_COLUMNS}) SELECT :waba_id, :due_ms, :id, :kind, :phone_number_id, :subject, :rest, key "
    f"FROM state WHERE state.kind='{SUBSCRIPTION}' AND owner=:waba_id"
)
_NEXT_OF_EACH: Final = (  # a look into the index for each of them, however long the outbox is
    "SELECT owner AS waba_id, key AS app_id, (SELECT min(due_ms) FROM outbox WHERE waba_id=state.owner "
    f"AND app_id=state.key) AS due_ms FROM state WHERE state.kind='{SUBSCRIPTION}' AND due_ms NOT NULL"
)
_DROP: Final = "DELETE FROM outbox WHERE waba_id=:waba_id AND app_id=:app_id AND due_ms=:due_ms AND id=:id"
_NEXT_JUDGED_OF_EACH: Final = (
    "SELECT waba_id, app_id, min(until_ms) AS due_ms FROM judged_updates GROUP BY waba_id, app_id"
)
_WAITING: Final = "SELECT waba_id, count(*) AS times FROM {} GROUP BY waba_id"
_TABLES: Final = ("outbox", "judged_updates")
_OF_APP: Final = " WHERE waba_id=:waba_id AND app_id=:app_id"
_STATUS: Final = "waba_id=:waba_id AND due_ms=:due_ms AND subject=:wamid"


class Update(msgspec.Struct, frozen=True):
    """One update: a status, a message from a phone, or something about an account.

    Args:
        kind: `sent`, `delivered`, `read`, `failed`, …; `message`; `template`; or `field:…`.
        phone_number_id: the business number it is about; empty for what is about the account.
        subject: the message's or the template's id, or empty.
        rest: JSON text; what belongs into the envelope.
        app_id: the app that hears it; empty until it is in the outbox, once for each app.
    """

    waba_id: str
    due_ms: int
    id: int
    kind: str
    phone_number_id: str
    subject: str
    rest: str
    app_id: str = ""

    @property
    def field(self) -> str:
        """The webhook field of what has an entry of its own; empty for messages and statuses."""
        if self.kind == TEMPLATE:
            return "message_template_status_update"
        return self.kind.removeprefix(FIELD) if self.kind.startswith(FIELD) else ""


class Parcel(Update, frozen=True):
    """An update on its way.

    Args:
        until_ms: when it goes whatever else happens.
        together: `AT_ONCE`, `AFTER_NEXT`, or with how many it goes.
        position: among the judged; 0 where it was not judged, and is in the outbox still.
    """

    until_ms: int = 0
    together: int = AT_ONCE
    position: int = 0


@dataclass(frozen=True)
class Outlet:
    """What of an account goes to one address: in order, and held up by no other outlet.

    Args:
        waba_id: the account.
        app_id: the app that hears it.
        phone_number_id: the number that has an address of its own with the app; empty: all the rest.
        apart: the numbers that are not among the rest.
    """

    waba_id: str
    app_id: str
    phone_number_id: str = ""
    apart: tuple[str, ...] = field(default=(), compare=False)

    @property
    def condition(self) -> str:
        """What is true of the outlet's updates, as the end of a statement with `values`."""
        if self.phone_number_id:
            return f"{_OF_APP} AND phone_number_id=:phone_number_id"
        return _OF_APP + " AND phone_number_id NOT IN (SELECT value FROM json_each(:apart))" if self.apart else _OF_APP

    @property
    def values(self) -> Values:
        """The values that belong into `condition`."""
        apart = msgspec.json.encode(self.apart).decode()
        return {
            "waba_id": self.waba_id, "app_id": self.app_id, "phone_number_id": self.phone_number_id, "apart": apart,
        }  # fmt: skip


class NextDue(NamedTuple):
    """When the next update of an account for an app is due."""

    waba_id: str
    app_id: str
    due_ms: int


class _Count(NamedTuple):
    waba_id: str
    times: int


def parcel_of(update: Update, *, until_ms: int = 0, together: int = AT_ONCE) -> Parcel:
    """An update on its way."""
    members: dict[str, Any] = {**msgspec.structs.asdict(update), "until_ms": until_ms, "together": together}
    members["position"] = 0
    return Parcel(**members)


def add_update(update: Update) -> Statement:
    """The statement that puts an update into the outbox for each app that hears of the account."""
    return _ADD, msgspec.structs.asdict(update)


def add_updates(connection: sqlite3.Connection, updates: Iterable[Update]) -> None:
    """Put updates into the outbox, within the caller's transaction."""
    connection.executemany(_ADD, map(msgspec.structs.asdict, updates))


def bring_read_forward(wamid: str, waba_id: str, due_ms: int, at_ms: int) -> Statement:
    """The statement that makes a planned `read` due earlier."""
    statement = f"UPDATE outbox SET due_ms=:at_ms WHERE {_STATUS} AND kind='read'"
    return statement, {"waba_id": waba_id, "due_ms": due_ms, "wamid": wamid, "at_ms": at_ms}


def drop_read(wamid: str, waba_id: str, due_ms: int | None) -> Statement:
    """The statement that takes back a planned `read`."""
    statement = f"DELETE FROM outbox WHERE {_STATUS} AND kind='read'"
    return statement, {"waba_id": waba_id, "due_ms": due_ms, "wamid": wamid}


def drop_arrivals(wamid: str, waba_id: str, dues_ms: Iterable[int | None]) -> list[Statement]:
    """The statements that take back what is planned to be `delivered` and `read` at these times."""
    statement = f"DELETE FROM outbox WHERE {_STATUS} AND kind IN ('delivered', 'read')"
    return [(statement, {"waba_id": waba_id, "due_ms": due_ms, "wamid": wamid}) for due_ms in dues_ms]


def drop_statuses(wamid: str, waba_id: str, after_ms: int, kind: str) -> Statement:
    """The statement that takes back the planned statuses of a kind; of every kind where it is empty."""
    return (
        "DELETE FROM outbox WHERE waba_id=:waba_id AND subject=:wamid AND due_ms>:after_ms AND (:kind='' OR kind=:kind)",
        {"waba_id": waba_id, "wamid": wamid, "after_ms": after_ms, "kind": kind},
    )


def drop_app_statements(waba_id: str, app_id: str) -> list[Statement]:
    """The statements that drop all that an app has not heard yet of an account."""
    values: Values = {"waba_id": waba_id, "app_id": app_id}
    retries = f"DELETE FROM state WHERE kind='{RETRY}' AND owner=:waba_id || ' ' || :app_id"
    return [*((f"DELETE FROM {table}{_OF_APP}", values) for table in _TABLES), (retries, values)]


def move_app_statements(waba_id: str, app_id: str, other_app_id: str) -> list[Statement]:
    """The statements that let another app hear what one has not heard yet of an account."""
    values = {"waba_id": waba_id, "app_id": app_id, "other_app_id": other_app_id}
    return [(f"UPDATE OR REPLACE {table} SET app_id=:other_app_id{_OF_APP}", values) for table in _TABLES]


async def arrival_rest(store: Store, wamid: str, waba_id: str, due_ms: int | None) -> str:
    """The rest of the status that was planned for this time; empty where none was."""
    statement = (
        f"SELECT coalesce((SELECT rest FROM outbox WHERE {_STATUS} AND kind IN ('delivered', 'read') "
        "ORDER BY id LIMIT 1), '')"
    )
    rest: str = await store.value(statement, waba_id=waba_id, due_ms=due_ms, wamid=wamid)
    return rest


async def last_id(store: Store) -> int:
    """The highest id in the outbox."""
    found: int = await store.value("SELECT coalesce(max(id), 0) FROM outbox")
    return found


async def count(store: Store) -> int:
    """How many updates are in the outbox."""
    found: int = await store.value("SELECT count(*) FROM outbox")
    return found


async def counts(store: Store) -> Counter[str]:
    """How many updates wait, by account."""
    found: Counter[str] = Counter()
    for table in _TABLES:
        found.update(dict(await store.rows(_Count, _WAITING.format(table))))
    return found


async def due(store: Store, outlet: Outlet, *, now_ms: int, at_most: int) -> list[Update]:
    """What is due in an outlet, in the order of due time and id."""
    statement = (
        f"SELECT {_COLUMNS} FROM outbox{outlet.condition} AND due_ms<=:now_ms ORDER BY due_ms, id LIMIT :at_most"
    )
    return await store.rows(Update, statement, **outlet.values, now_ms=now_ms, at_most=at_most)


async def next_due_ms(store: Store, outlet: Outlet) -> int | None:
    """When the outlet's next update is due; None when there is none."""
    found: int | None = await store.value(f"SELECT min(due_ms) FROM outbox{outlet.condition}", **outlet.values)
    return found


async def next_dues(store: Store) -> list[NextDue]:
    """When the next update is due, by account and app; those that have none are not there."""
    return await store.rows(NextDue, _NEXT_OF_EACH)


def drop(connection: sqlite3.Connection, pieces: Sequence[Sequence[Update]]) -> Sequence[None]:
    """Take updates out of the outbox, within the caller's transaction."""
    connection.executemany(_DROP, [msgspec.structs.asdict(update) for updates in pieces for update in updates])
    return [None] * len(pieces)


def add_judged(parcel: Parcel) -> Statement:
    """The statement that adds a judged update behind all others."""
    return (
        f"INSERT INTO judged_updates ({_COLUMNS}, until_ms, together) VALUES "
        "(:waba_id, :due_ms, :id, :kind, :phone_number_id, :subject, :rest, :app_id, :until_ms, :together)",
        msgspec.structs.asdict(parcel),
    )


def drop_from_outbox(update: Update) -> Statement:
    """The statement that takes an update out of the outbox."""
    return _DROP, msgspec.structs.asdict(update)


def drop_judged(parcel: Parcel) -> Statement:
    """The statement that takes a judged update out."""
    return "DELETE FROM judged_updates WHERE position=:position", {"position": parcel.position}


async def gathered(store: Store, outlet: Outlet, *, at_most: int) -> list[Parcel]:
    """The judged updates of an outlet that wait for others, in their order."""
    return await _judged(store, outlet, "together>1", at_most=at_most)


async def ready(store: Store, outlet: Outlet, *, now_ms: int, at_most: int) -> list[Parcel]:
    """The judged updates of an outlet that go by themselves now, in their order."""
    return await _judged(store, outlet, "together<=1 AND until_ms<=:now_ms", now_ms=now_ms, at_most=at_most)


async def before_next(store: Store, outlet: Outlet) -> Parcel | None:
    """The first judged update of an outlet that is to change places with the next one."""
    return next(iter(await _judged(store, outlet, "together=1", at_most=1)), None)


async def _judged(store: Store, outlet: Outlet, condition: str, **values: int) -> list[Parcel]:
    statement = (
        f"SELECT {_COLUMNS}, until_ms, together, position FROM judged_updates{outlet.condition} "
        f"AND {condition} ORDER BY position LIMIT :at_most"
    )
    return await store.rows(Parcel, statement, **outlet.values, **values)


async def next_judged_ms(store: Store, outlet: Outlet) -> int | None:
    """When the outlet's next judged update goes, if nothing else happens before."""
    found: int | None = await store.value(
        f"SELECT min(until_ms) FROM judged_updates{outlet.condition}", **outlet.values
    )
    return found


async def next_judged(store: Store) -> list[NextDue]:
    """When the next judged update goes, by account and app."""
    return await store.rows(NextDue, _NEXT_JUDGED_OF_EACH)


async def has_judged(store: Store, waba_id: str) -> bool:
    """Return whether an account has any judged update."""
    return bool(
        await store.value("SELECT EXISTS (SELECT 1 FROM judged_updates WHERE waba_id=:waba_id)", waba_id=waba_id)
    )
