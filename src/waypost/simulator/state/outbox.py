"""The outbox: the content of statuses, the updates that are due, and the envelope of a webhook."""

import asyncio
import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from msgspec.structs import replace

from waypost.base.written_numbers import ascii_json, encode_json
from waypost.simulator.state.accounts import Number
from waypost.simulator.state.phone import SimulatedPhone
from waypost.simulator.state.settings import SimulatorSettings
from waypost.simulator.storage.store import Statement, Store
from waypost.simulator.storage.tables.updates import MESSAGE_UPDATE, OUTBOX, SUBSCRIPTION_KIND, NextDue, Outlet, Update


class WakeEvents:
    """The events of all waiters."""

    def __init__(self) -> None:
        self._events: list[asyncio.Event] = []

    def add_event(self) -> asyncio.Event:
        """Return a new event, which `set` sets from now on."""
        event = asyncio.Event()
        self._events.append(event)
        return event

    def set(self) -> None:
        """Wake all waiters."""
        for event in self._events:
            event.set()


_SELECT_NEXT_UPDATE: Final = (  # one index lookup for each of them, however long the outbox is
    "SELECT owner AS waba_id, key AS app_id, (SELECT min(due_ms) FROM outbox WHERE waba_id=state.owner "
    "AND app_id=state.key) AS due_ms FROM state WHERE kind=:kind AND due_ms NOT NULL"
)
_FIELDS_WITHOUT_TIME: Final = frozenset(
    {"messages", "user_preferences", "calls", "history", "smb_app_state_sync", "smb_message_echoes"}
)  # Source: facts 7.2; the operator's pages "Calling API", "Onboard WhatsApp Business app users"


class Outbox:
    """Assigns update ids, wakes deliveries, and returns due updates."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.ids = itertools.count(1)
        """Of updates, in the order in which they are sent; drawn on the writer's thread."""
        self.wake_events: defaultdict[str, WakeEvents] = defaultdict(WakeEvents)
        """Of an account's deliveries."""

    async def open(self) -> None:
        """Continue after the last id in the file."""
        self.ids = itertools.count(await OUTBOX.highest(self._store, "id") + 1)

    async def due_updates(self, outlet: Outlet, *, now_ms: int, limit: int) -> list[Update]:
        """Return the updates of an outlet that are due, in the order of due time and id."""
        condition = f"{outlet.condition} AND due_ms<=:now_ms ORDER BY due_ms, id LIMIT :limit"
        return await OUTBOX.rows(self._store, condition, **outlet.values, now_ms=now_ms, limit=limit)

    async def next_due_ms(self, outlet: Outlet) -> int | None:
        """Return when the outlet's next update is due; None if there is none."""
        statement = f"SELECT min(due_ms) FROM outbox WHERE {outlet.condition}"  # noqa: S608
        due_ms: int | None = await self._store.value(statement, **outlet.values)
        return due_ms

    async def next_due_times(self) -> list[NextDue]:
        """Return when the next update is due, by account and app, for those that have any."""
        return await self._store.rows(NextDue, _SELECT_NEXT_UPDATE, kind=SUBSCRIPTION_KIND)


def delete_update(update: Update) -> Statement:
    """Return the statement that deletes an update from the outbox."""
    return OUTBOX.delete(waba_id=update.waba_id, app_id=update.app_id, due_ms=update.due_ms, id=update.id)


def envelope(waba_id: str, updates: Sequence[Update], numbers: Mapping[str, Number]) -> bytes:
    """Return the body of one webhook POST, with the updates in the given order.

    Adjacent statuses of one number share a change. A message has a change of its own, so that `contacts` has only
    its sender. An update about the account has an entry of its own, because only such entries have a time.

    Source: facts 7.2.
    """
    if updates[0].is_bare:
        return ascii_json(updates[0].content).encode("ascii")
    entries: list[dict[str, Any]] = []
    for has_own_entry, run in itertools.groupby(updates, lambda update: bool(update.field)):
        if has_own_entry:
            for update in run:
                time = {} if update.field in _FIELDS_WITHOUT_TIME else {"time": update.due_ms // 1000}
                change = {"field": update.field, "value": update.content}
                entries.append({"id": waba_id, **time, "changes": [change]})
            continue
        changes: list[dict[str, Any]] = []
        for (number_id, message), same in itertools.groupby(run, _change_key):
            digits = numbers[number_id].phone_number if number_id in numbers else ""
            metadata = {"display_phone_number": digits, "phone_number_id": number_id}
            content = _build_statuses(same) if message is None else message.content
            value = {"messaging_product": "whatsapp", "metadata": metadata, **content}
            changes.append({"field": "messages", "value": value})
        entries.append({"id": waba_id, "changes": changes})
    return ascii_json({"object": "whatsapp_business_account", "entry": entries}).encode("ascii")


def _change_key(update: Update) -> tuple[str, Update | None]:
    return update.phone_number_id, update if update.kind == MESSAGE_UPDATE else None


def _build_statuses(updates: Iterable[Update]) -> dict[str, Any]:
    """Return statuses of one number and their recipients, each once. Source: facts 7.3, 7.5."""
    contacts: dict[bytes, dict[str, Any]] = {}
    statuses: list[dict[str, Any]] = []
    for update in updates:
        status, contact = update.content["status"], update.content.get("contact")
        if contact is not None:
            contacts[encode_json(contact)] = contact
        named = {"id": update.subject, "status": update.kind, "timestamp": str(update.due_ms // 1000)}
        statuses.append(named | status)
    return {**({"contacts": list(contacts.values())} if contacts else {}), "statuses": statuses}


def phone_status(
    settings: SimulatorSettings,
    phone: SimulatedPhone,
    callback_data: str | None,
    members: Mapping[str, Any] = MappingProxyType({}),
) -> dict[str, Any]:
    """Return the content of an update with the status of a message to a phone. Source: facts 7.3, 7.5."""
    recipient = {"recipient_id": phone.whatsapp_id}
    if phone.user_id:
        recipient = phone.identity_members("recipient_id", "recipient_user_id")
    contact = phone if settings.statuses_contacts else None
    return status_content(recipient, callback_data, members, contact=contact)


def status_content(
    recipient: Mapping[str, Any],
    callback_data: str | None,
    members: Mapping[str, Any] = MappingProxyType({}),
    *,
    contact: SimulatedPhone | None = None,
) -> dict[str, Any]:
    """Return the content of an update with a status.

    Args:
        callback_data: the sender's own text, echoed.
        contact: the recipient, for the `contacts` of the webhook; None: not named there.

    Source: facts 7.3, 7.5.
    """
    echoed = {} if callback_data is None else {"biz_opaque_callback_data": callback_data}
    status = {**recipient, **echoed, **members}
    return {"status": status} if contact is None else {"status": status, "contact": contact.contact()}


def failed_status_phone(phone: SimulatedPhone) -> SimulatedPhone:
    """Return the phone as a `failed` status names it: without a user id, unless that is its only identity."""
    return replace(phone, user_id="") if phone.user_id and phone.shows_number else phone
