"""Updates on their way to webhooks: those of the outbox, and those that faults have judged.

A row of a status holds everything after its time stamp, which is its due time: so a row that is
brought forward needs no new text. All of it is ASCII, because those are the bytes that are signed.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import msgspec

from waypost.simulator.store import Statement, Store, Values
from waypost.simulator.tables.table import Table

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

_ADD: Final = (  # one row for each app that hears of the account
    "INSERT INTO outbox (waba_id, due_ms, id, kind, phone_number_id, subject, rest, app_id) "
    "SELECT :waba_id, :due_ms, :id, :kind, :phone_number_id, :subject, :rest, key "
    f"FROM state WHERE state.kind='{SUBSCRIPTION}' AND owner=:waba_id"
)
_WAITING: Final = """
SELECT waba_id, count(*) AS count FROM (SELECT waba_id FROM outbox UNION ALL SELECT waba_id FROM judged_updates)
GROUP BY waba_id
"""
_DROP_PLANNED: Final = (
    "DELETE FROM outbox WHERE waba_id=:waba_id AND subject=:wamid AND due_ms>:after_ms AND (:kind='' OR kind=:kind)"
)


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
        """What is true of the outlet's updates, with `values`."""
        of_app = "waba_id=:waba_id AND app_id=:app_id"
        if self.phone_number_id:
            return f"{of_app} AND phone_number_id=:phone_number_id"
        return f"{of_app} AND phone_number_id NOT IN (SELECT value FROM json_each(:apart))" if self.apart else of_app

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


OUTBOX: Final = Table("outbox", Update, key=("waba_id", "app_id", "due_ms", "id"), order="due_ms, id")
JUDGED: Final = Table(
    "judged_updates", Parcel, key=("position",), order="position", is_numbered=True,
    indexes=("INDEX IF NOT EXISTS judged_updates_of_account ON judged_updates (waba_id, app_id, position)",),
)  # fmt: skip


def parcel_of(update: Update, *, until_ms: int = 0, together: int = AT_ONCE) -> Parcel:
    """An update on its way."""
    members: dict[str, Any] = msgspec.structs.asdict(update)
    members |= {"until_ms": until_ms, "together": together, "position": 0}
    return Parcel(**members)


def add_update(update: Update) -> Statement:
    """The statement that puts an update into the outbox for each app that hears of the account."""
    return _ADD, msgspec.structs.asdict(update)


def add_updates(connection: sqlite3.Connection, updates: Iterable[Update]) -> None:
    """Put updates into the outbox for each app that hears of the account, within the caller's transaction."""
    connection.executemany(_ADD, map(msgspec.structs.asdict, updates))


def drop_arrivals(wamid: str, waba_id: str, dues_ms: Iterable[int | None]) -> list[Statement]:
    """The statements that take back what is planned to be `delivered` and `read` at these times."""
    return [
        OUTBOX.delete(waba_id=waba_id, due_ms=due_ms, subject=wamid, kind=kind)
        for due_ms in dues_ms
        for kind in ("delivered", "read")
    ]


def drop_planned(wamid: str, waba_id: str, after_ms: int, kind: str) -> Statement:
    """The statement that takes back the planned statuses of a kind; of every kind where it is empty."""
    return _DROP_PLANNED, {"waba_id": waba_id, "wamid": wamid, "after_ms": after_ms, "kind": kind}


async def waiting_counts(store: Store) -> Counter[str]:
    """How many updates wait, by account."""
    return Counter({row["waba_id"]: row["count"] for row in await store.rows(dict[str, Any], _WAITING)})
