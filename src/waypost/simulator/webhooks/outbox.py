"""Updates on their way to webhooks: rows with due times, and the envelope that carries them.

A row of a status holds everything after its time stamp, which is its due time: so a row that is
brought forward needs no new text. All of it is ASCII, because those are the bytes that are signed.
"""

import itertools
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from waypost.simulator.accounts.accounts import Accounts, Number, Outlet
from waypost.simulator.store import Row, Store
from waypost.simulator.wakes import Wakes

ADD_UPDATE: Final = (  # one row for each app that hears of the account
    "INSERT INTO outbox (waba_id, due_ms, id, kind, phone_number_id, subject, rest, app_id) "
    "SELECT ?1,?2,?3,?4,?5,?6,?7, app_id FROM subscriptions WHERE waba_id=?1"
)
_DUE: Final = (
    "SELECT waba_id, due_ms, id, kind, phone_number_id, subject, rest, app_id FROM outbox "
    "WHERE {} AND due_ms<=? ORDER BY due_ms, id LIMIT ?"
)
_NEXT: Final = "SELECT min(due_ms) FROM outbox WHERE {}"
_NEXT_OF_EACH: Final = (  # a look into the index for each of them, however long the outbox is
    "SELECT waba_id, app_id, (SELECT min(due_ms) FROM outbox WHERE outbox.waba_id=heard.waba_id "
    "AND outbox.app_id=heard.app_id) AS due_ms FROM subscriptions AS heard WHERE due_ms NOT NULL"
)
_DROP: Final = "DELETE FROM outbox WHERE waba_id=? AND app_id=? AND due_ms=? AND id=?"

MESSAGE: Final = "message"
TEMPLATE: Final = "template"
FIELD: Final = "field:"
"""The kinds of update: a message; a template's status; `field:` and the name of a webhook field
whose whole value is kept; every other kind is the name of a message's status."""

_CONTACT: Final = "\x1f"
"""Stands between what a status says and the contact beside it; no JSON text has this character."""

_WITHOUT_TIME: Final = frozenset({"messages", "user_preferences"})  # Source: facts 7.2


@dataclass(frozen=True)
class Update:
    """One update: a status, a message from a phone, or something about an account.

    Args:
        kind: `sent`, `delivered`, `read`, `failed`, …; `message`; `template`; or `field:…`.
        phone_number_id: the business number it is about; empty for what is about the account.
        subject: the message's or the template's id, or empty.
        rest: JSON text; what belongs into the envelope (see `envelope`).
        app_id: the app that hears it.
    """

    waba_id: str
    due_ms: int
    id: int
    kind: str
    phone_number_id: str
    subject: str
    rest: str
    app_id: str

    @property
    def field(self) -> str:
        """The webhook field of what has an entry of its own; empty for messages and statuses."""
        if self.kind == TEMPLATE:
            return "message_template_status_update"
        return self.kind.removeprefix(FIELD) if self.kind.startswith(FIELD) else ""


class Outbox:
    """Gives out update ids, wakes deliveries, and answers what is due."""

    def __init__(self, store: Store, accounts: Accounts) -> None:
        self._store = store
        self._accounts = accounts
        self._ids = itertools.count(1)
        self._wakes: dict[str, Wakes] = {}

    async def open(self) -> None:
        """Go on after the last id in the file."""
        [(last,)] = await self._store.rows("SELECT coalesce(max(id), 0) FROM outbox")
        self._ids = itertools.count(last + 1)

    def next_id(self) -> int:
        """A higher id than any before; may be called on the writer's thread."""
        return next(self._ids)

    def listens(self, waba_id: str) -> bool:
        """Whether updates of the account or of one of its numbers go anywhere; if not, none is made."""
        return self._accounts.is_heard(waba_id)

    def wake_of(self, waba_id: str) -> Wakes:
        """What the account's deliveries wait for."""
        wakes = self._wakes.get(waba_id)
        if wakes is None:
            wakes = self._wakes[waba_id] = Wakes()
        return wakes

    def template_update(self, waba_id: str, at_ms: int, template_id: str, value: Any) -> Row:
        """The row of a template's change, for `ADD_UPDATE`."""
        rest = ascii_json(value)
        return (waba_id, at_ms, self.next_id(), TEMPLATE, "", template_id, rest)

    def account_update(self, waba_id: str, at_ms: int, field: str, value: Any, *, subject: str = "") -> Row:
        """The row of anything about an account, for `ADD_UPDATE`: the field, and its whole value."""
        kind = FIELD + field
        return (waba_id, at_ms, self.next_id(), kind, "", subject, ascii_json(value))

    async def due(self, outlet: Outlet, *, now_ms: int, at_most: int) -> list[Update]:
        """What is due in an outlet, in the order of due time and id."""
        condition, values = outlet.condition
        rows = await self._store.rows(_DUE.format(condition), (*values, now_ms, at_most))
        return [Update(*row) for row in rows]

    async def next_due_ms(self, outlet: Outlet) -> int | None:
        """When the outlet's next update is due; None when there is none."""
        condition, values = outlet.condition
        [(due_ms,)] = await self._store.rows(_NEXT.format(condition), values)
        return due_ms

    async def next_dues(self) -> list[tuple[str, str, int]]:
        """Account, app, and when the next update is due; those that have none are not there."""
        return [(row[0], row[1], row[2]) for row in await self._store.rows(_NEXT_OF_EACH)]

    async def drop(self, updates: Iterable[Update]) -> None:
        """Take updates out: they were delivered, or nobody will hear them."""
        rows = [(update.waba_id, update.app_id, update.due_ms, update.id) for update in updates]
        if rows:
            await self._store.write(_drop, rows)


def status_rest(recipient: str, callback_data: str | None, more: str = "", *, contact: str = "") -> str:
    """What a status says after its time stamp, closing brace included, and its contact.

    Args:
        recipient: the members that name who it went to, as JSON text without braces; may be empty.
        callback_data: the sender's own text, echoed.
        more: further members, each beginning with a comma.
        contact: who it went to, as JSON text, for the `contacts` beside the statuses; may be empty.

    Source: facts 7.3, 7.5.
    """
    echoed = f',"biz_opaque_callback_data":{ascii_json(callback_data)}' if callback_data is not None else ""
    beside = _CONTACT + contact if contact else ""
    return (recipient + echoed + more).removeprefix(",") + "}" + beside


def ascii_json(value: Any) -> str:
    """Compact JSON with everything beyond ASCII escaped. Source: facts 7.1."""
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))


def envelope(waba_id: str, updates: Sequence[Update], numbers: dict[str, Number]) -> bytes:
    """The body of one webhook POST, updates in the given order.

    Neighbouring statuses of one number share a change; a message has its own, so that its
    contact stands alone; what is about the account has an entry of its own, because only there
    the entry carries a time.

    Source: facts 7.2.
    """
    entries: list[str] = []
    for stands_alone, run in itertools.groupby(updates, lambda update: bool(update.field)):
        if stands_alone:
            entries += [_account_entry(waba_id, update) for update in run]
        else:
            changes = ",".join(_message_changes(run, numbers))
            entries.append(f'{{"id":"{waba_id}","changes":[{changes}]}}')
    return f'{{"object":"whatsapp_business_account","entry":[{",".join(entries)}]}}'.encode("ascii")


def _account_entry(waba_id: str, update: Update) -> str:
    field = update.field
    time = "" if field in _WITHOUT_TIME else f'"time":{update.due_ms // 1000},'
    change = f'{{"field":{ascii_json(field)},"value":{update.rest}}}'
    return f'{{"id":"{waba_id}",{time}"changes":[{change}]}}'


def _message_changes(updates: Iterable[Update], numbers: dict[str, Number]) -> list[str]:
    changes: list[str] = []
    for key, run in itertools.groupby(updates, _change_key):
        number = numbers.get(key[0])
        digits = number.phone_number if number else ""
        value = (
            '{"messaging_product":"whatsapp","metadata":{"display_phone_number":'
            f'"{digits}","phone_number_id":"{key[0]}"}},'
        )
        if key[1]:
            value += ",".join(update.rest for update in run) + "}"
        else:
            value += _statuses(run)
        changes.append(f'{{"field":"messages","value":{value}}}')
    return changes


def _change_key(update: Update) -> tuple[str, int]:
    return update.phone_number_id, update.id if update.kind == MESSAGE else 0


def _statuses(updates: Iterable[Update]) -> str:
    """Statuses of one number and everybody they went to, each once. Source: facts 7.3, 7.5."""
    contacts: dict[str, None] = {}
    statuses: list[str] = []
    for update in updates:
        rest, _, contact = update.rest.partition(_CONTACT)
        if contact:
            contacts[contact] = None
        statuses.append(
            f'{{"id":"{update.subject}","status":"{update.kind}","timestamp":"{update.due_ms // 1000}"{_joined(rest)}'
        )
    beside = f'"contacts":[{",".join(contacts)}],' if contacts else ""
    return f'{beside}"statuses":[{",".join(statuses)}]}}'


def _joined(rest: str) -> str:
    return rest if rest == "}" else "," + rest


def _drop(connection: Any, pieces: Sequence[list[Row]]) -> Sequence[None]:
    connection.executemany(_DROP, [row for rows in pieces for row in rows])
    return [None] * len(pieces)
