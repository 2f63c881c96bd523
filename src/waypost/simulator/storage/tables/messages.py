"""The tables of messages, in both directions, and of messages to groups on the phones of their participants."""

import sqlite3
from typing import Any, Final

import msgspec

from waypost.base.json_values import object_of, objects_in
from waypost.simulator.storage.store import Statement, Store
from waypost.simulator.storage.tables.table import Table

PHONE_RANGE: Final = "phone BETWEEN :first AND :last AND length(phone)=length(:first)"
"""The condition for the phones from the first to the last; only numbers with as many digits are in the range."""

IS_NAMED: Final = "(wamid=:message_id OR substr(callback_data || ' ', 1, length(:message_id) + 1)=:message_id || ' ')"
"""The condition for what `SimulatedMessage.is_named` finds."""

_COUNT_OUTCOMES: Final = f"""
SELECT count(*) FILTER (WHERE is_inbound=0) AS received,
    count(*) FILTER (WHERE is_inbound=0 AND (delivered_ms<=:now_ms OR read_ms<=:now_ms)) AS delivered,
    count(*) FILTER (WHERE is_inbound=0 AND read_ms<=:now_ms) AS read,
    count(*) FILTER (WHERE failed_ms<=:now_ms) AS failed,
    count(*) FILTER (WHERE type='button' OR type='interactive' AND is_inbound=1
        AND json_extract(content, '$.interactive.type') IN ('button_reply', 'list_reply')) AS taps,
    count(*) FILTER (WHERE is_inbound=1 AND type='text') AS replies,
    count(*) FILTER (WHERE is_inbound=1 AND type='reaction') AS reactions,
    count(*) FILTER (WHERE is_inbound=1 AND type='interactive'
        AND json_extract(content, '$.interactive.type') NOT IN ('button_reply', 'list_reply')) AS forms
FROM messages WHERE {PHONE_RANGE}
"""
# fmt: off
_STATUS_ASSIGNMENTS: Final = {  # what a reported status changes in its message; other statuses change nothing
    "delivered": "delivered_ms=:at_ms, failed_ms=NULL, failed_code=NULL",
    "read":      "read_ms=:at_ms, delivered_ms=min(coalesce(delivered_ms, :at_ms), :at_ms), "
                 "failed_ms=NULL, failed_code=NULL",
    "failed":    "failed_ms=:at_ms, failed_code=:code, delivered_ms=NULL, read_ms=NULL",
}
# fmt: on


class DeliveryPlan(msgspec.Struct, frozen=True):
    """The times at which a message is delivered and read, or fails. Times may be in the future."""

    delivered_ms: int | None = None
    read_ms: int | None = None  # for a message from a phone: when the business read it
    failed_ms: int | None = None
    failed_code: int | None = None  # a row of `FAILURE_TEXTS`; then `failed_ms` is set and the other times are not

    def state_at(self, now_ms: int) -> str:
        """Return the state of a message at a time: `sent`, `delivered`, `read` or `failed`."""
        times = {"failed": self.failed_ms, "read": self.read_ms, "delivered": self.delivered_ms}
        return next((name for name, at_ms in times.items() if at_ms is not None and at_ms <= now_ms), "sent")


class SimulatedMessage(DeliveryPlan, frozen=True, kw_only=True):
    """One message."""

    position: int  # the order among the messages of all phones
    wamid: str
    phone: str  # digits, or a group
    phone_number_id: str
    is_inbound: int  # 1 for one from a phone, else 0
    type: str
    at_ms: int
    content: dict[str, Any] = {}  # what the phone shows: `text`, and if present `header`, `footer`, `buttons` and more
    callback_data: str | None = None
    context_id: str | None = None

    @property
    def cards(self) -> list[dict[str, Any]]:
        """The cards of a carousel, each with its `index` and optionally `buttons`."""
        return objects_in(self.content.get("cards"))

    @property
    def template(self) -> dict[str, Any]:
        """The `name`, `language` and `category` of its template; empty for a session message."""
        return object_of(self.content.get("template"))

    def is_named(self, message_id: str) -> bool:
        """Return whether this is its wamid, or the id that its sender gave it: the first word of the callback data."""
        return message_id == self.wamid or f"{self.callback_data} ".startswith(f"{message_id} ")

    @property
    def has_buttons(self) -> bool:
        """True if the message or one of its cards has a button."""
        return bool(self.buttons) or any(card.get("buttons") for card in self.cards)

    @property
    def buttons(self) -> list[dict[str, Any]]:
        """The buttons that a person sees under the message."""
        return objects_in(self.content.get("buttons"))


_REFERENCE: Final = "json_extract(content, '$.buttons[0].reference_id')"
_IS_ORDER: Final = "type='interactive' AND is_inbound=0"

MESSAGES: Final = Table(
    "messages", SimulatedMessage, key=("position",), order="position",
    indexes=(
        "UNIQUE INDEX IF NOT EXISTS messages_by_wamid ON messages (wamid)",
        "INDEX IF NOT EXISTS messages_by_phone ON messages (phone, position)",
        f"INDEX IF NOT EXISTS messages_by_reference ON messages ({_REFERENCE}, position) WHERE {_IS_ORDER}",
    ),
)  # fmt: skip


def set_status(wamid: str, status: str, at_ms: int, code: int) -> list[Statement]:
    """Return the statements that apply a reported status to its message."""
    if status not in _STATUS_ASSIGNMENTS:
        return []
    values = {"wamid": wamid, "at_ms": at_ms, "code": code}
    return [(f"UPDATE messages SET {_STATUS_ASSIGNMENTS[status]} WHERE wamid=:wamid", values)]


IS_FROM_APP: Final = "json_extract(content, '$.sent_by')='business_app'"
"""The condition for messages that a business has sent with its own app, not by the API."""
WITH_WAMIDS: Final = "wamid IN (SELECT value FROM json_each(:wamids))"
"""The condition for the messages with these ids, a JSON text."""


async def find_by_wamids(store: Store, wamids: list[str]) -> list[SimulatedMessage]:
    """Return the messages with these ids, in no order."""
    return await MESSAGES.rows(store, WITH_WAMIDS, wamids=msgspec.json.encode(wamids).decode())


def find_orders(connection: sqlite3.Connection, phone_number_id: str, reference_id: str) -> list[SimulatedMessage]:
    """Return the orders that a number has sent under a reference, newest first, on this connection."""
    condition = (
        f"{_REFERENCE}=:reference_id AND {_IS_ORDER} AND phone_number_id=:phone_number_id ORDER BY position DESC"
    )
    values = {"reference_id": reference_id, "phone_number_id": phone_number_id}
    return MESSAGES.select(connection, condition, **values)


def find_scheduled(connection: sqlite3.Connection, phone: str, now_ms: int) -> list[SimulatedMessage]:
    """Return the messages that will be delivered to a phone or read on it by schedule."""
    condition = "phone=:phone AND is_inbound=0 AND (delivered_ms>:now_ms OR read_ms>:now_ms) ORDER BY position"
    return MESSAGES.select(connection, condition, phone=phone, now_ms=now_ms)


async def count_received(store: Store, first: str, last: str) -> dict[str, int]:
    """Return how many messages were sent to each phone of a range."""
    condition = f"is_inbound=0 AND {PHONE_RANGE}"
    return await _count_by(store, "phone", condition, first=first, last=last)


async def count_failures(store: Store, first: str, last: str, now_ms: int) -> dict[str, int]:
    """Return how many messages to a range of phones failed, by error code."""
    condition = f"{PHONE_RANGE} AND failed_ms<=:now_ms"
    return await _count_by(store, "failed_code", condition, first=first, last=last, now_ms=now_ms)


async def _count_by(store: Store, column: str, condition: str, **values: Any) -> dict[str, int]:
    statement = f"SELECT {column}, count(*) FROM messages WHERE {condition} GROUP BY {column}"
    rows = await store.read(lambda connection: connection.execute(statement, values).fetchall())
    return {str(value): count for value, count in rows}


async def count_outcomes(store: Store, first: str, last: str, now_ms: int) -> dict[str, int]:
    """Count the messages to a range of phones by outcome, and the messages from them by type."""
    [counts] = await store.rows(dict[str, int], _COUNT_OUTCOMES, first=first, last=last, now_ms=now_ms)
    return counts


async def find_template_messages(store: Store, from_ms: int, until_ms: int) -> list[SimulatedMessage]:
    """Return the template messages sent in this time."""
    condition = "is_inbound=0 AND type='template' AND at_ms>=:from_ms AND at_ms<:until_ms"
    return await MESSAGES.rows(store, condition, from_ms=from_ms, until_ms=until_ms)


class GroupDelivery(msgspec.Struct, frozen=True):
    """One message of a business to a group, on the phone of one participant. Times may be in the future."""

    phone: str  # digits of the participant's phone
    position: int  # of the message
    wamid: str
    waba_id: str
    phone_number_id: str
    at_ms: int
    delivered_ms: int | None  # None while the phone is offline
    read_ms: int | None  # None if nobody has read it there
    read_after_ms: int | None  # delay from delivery to reading; None: it is not read automatically
    delivered_status: dict[str, Any] | None  # content of its status `delivered`; None if no app is subscribed
    read_status: dict[str, Any] | None  # the same of `read`; None also if the phone sends no read receipts


GROUP_DELIVERIES: Table[GroupDelivery] = Table(
    "group_deliveries", GroupDelivery, key=("phone", "position"), order="position"
)


def find_scheduled_group_deliveries(connection: sqlite3.Connection, phone: str, now_ms: int) -> list[GroupDelivery]:
    """Return the messages to groups that will be delivered to a phone or read on it by schedule."""
    condition = "phone=:phone AND (delivered_ms>:now_ms OR read_ms>:now_ms) ORDER BY position"
    return GROUP_DELIVERIES.select(connection, condition, phone=phone, now_ms=now_ms)
