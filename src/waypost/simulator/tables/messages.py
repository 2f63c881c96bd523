"""Messages, in both directions; a time of theirs may lie ahead: then it is planned."""

import sqlite3
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from waypost.simulator.store import Statement, Store, select

_BEYOND: Final = 2**62
_COLUMNS: Final = (
    "position, wamid, phone, phone_number_id, is_inbound, type, at_ms, shown, body, callback_data, context_id, "
    "delivered_ms, read_ms, failed_ms, failed_code"
)
_WHOLE: Final = f"SELECT {_COLUMNS} FROM messages "
_SELECT: Final = _WHOLE.replace(" body,", " '' AS body,")
_BARE: Final = _SELECT.replace(" shown,", " '' AS shown,")
_RANGE: Final = "phone BETWEEN :first AND :last AND length(phone)=length(:first)"
_CHATS: Final = """
SELECT phone_number_id, max(position) AS position, sum(is_inbound=0 AND (read_ms IS NULL OR read_ms>:now_ms)) AS unread
FROM (
    SELECT phone_number_id, position, is_inbound, read_ms FROM messages
    WHERE phone=:phone AND failed_ms IS NULL AND (is_inbound=1 OR delivered_ms<=:now_ms)
    ORDER BY position DESC LIMIT :at_most
) GROUP BY phone_number_id ORDER BY max(position) DESC
"""
_ACTIVE: Final = """
SELECT phone FROM (
    SELECT phone, position FROM messages
    WHERE phone_number_id IN (SELECT value FROM json_each(:number_ids)) AND failed_ms IS NULL
    AND phone NOT LIKE 'group:%'
    ORDER BY position DESC LIMIT :newest
) GROUP BY phone ORDER BY max(position) DESC LIMIT :at_most
"""
_WITHOUT: Final = """
SELECT key FROM state WHERE kind=:kind AND owner='' AND key>:after
AND NOT EXISTS (SELECT 1 FROM messages WHERE messages.phone=state.key) ORDER BY key LIMIT :at_most
"""
_OUTCOMES: Final = f"""
SELECT count(*) FILTER (WHERE is_inbound=0) AS received,
    count(*) FILTER (WHERE is_inbound=0 AND (delivered_ms<=:now_ms OR read_ms<=:now_ms)) AS delivered,
    count(*) FILTER (WHERE is_inbound=0 AND read_ms<=:now_ms) AS read,
    count(*) FILTER (WHERE failed_ms<=:now_ms) AS failed,
    count(*) FILTER (WHERE type='button' OR type='interactive' AND is_inbound=1
        AND json_extract(shown, '$.interactive.type') IN ('button_reply', 'list_reply')) AS taps,
    count(*) FILTER (WHERE is_inbound=1 AND type='text') AS answers,
    count(*) FILTER (WHERE is_inbound=1 AND type='reaction') AS reactions,
    count(*) FILTER (WHERE is_inbound=1 AND type='interactive'
        AND json_extract(shown, '$.interactive.type') NOT IN ('button_reply', 'list_reply')) AS forms
FROM messages WHERE {_RANGE}
"""
_DELIVERIES: Final = f"""
{_BARE} WHERE is_inbound=0 AND position>:after AND (:callback_data='' OR callback_data=:callback_data)
AND (:phone='' OR phone=:phone) ORDER BY position LIMIT :at_most
"""
# fmt: off
_SET: Final = {  # what a status that is told of a message changes of it; all others change nothing
    "delivered": "delivered_ms=:at_ms, failed_ms=NULL, failed_code=NULL",
    "read":      "read_ms=:at_ms, delivered_ms=min(coalesce(delivered_ms, :at_ms), :at_ms), "
                 "failed_ms=NULL, failed_code=NULL",
    "failed":    "failed_ms=:at_ms, failed_code=:code, delivered_ms=NULL, read_ms=NULL",
}
# fmt: on


class MessageRow(msgspec.Struct, frozen=True):
    """One message.

    Args:
        position: orders the messages of all phones.
        phone: digits, or a group.
        is_inbound: 1 for one from a phone, else 0.
        shown: what the phone shows, as JSON; empty where it is read back without.
        body: as it was sent; empty where it is read back without.
        read_ms: of a message from a phone, when the business has read it.
    """

    position: int
    wamid: str
    phone: str
    phone_number_id: str
    is_inbound: int
    type: str
    at_ms: int
    shown: str
    body: str
    callback_data: str | None = None
    context_id: str | None = None
    delivered_ms: int | None = None
    read_ms: int | None = None
    failed_ms: int | None = None
    failed_code: int | None = None


class ChatRow(NamedTuple):
    """What a phone has with one business number: where the newest message is, and how many are unread."""

    phone_number_id: str
    position: int
    unread: int


class PlannedRow(NamedTuple):
    """A message that is on its way to a phone, or will be read on it; perhaps made of a template."""

    position: int
    wamid: str
    phone_number_id: str
    at_ms: int
    delivered_ms: int
    read_ms: int | None
    template: str | None
    language: str | None


class _Count(NamedTuple):
    name: str | int
    times: int


def add(connection: sqlite3.Connection, rows: Iterable[MessageRow]) -> None:
    """Add messages, within the caller's transaction."""
    marks = ", ".join(f":{name}" for name in MessageRow.__struct_fields__)
    connection.executemany(f"INSERT INTO messages ({_COLUMNS}) VALUES ({marks})", map(msgspec.structs.asdict, rows))


def set_delivered(position: int, delivered_ms: int | None, read_ms: int | None) -> Statement:
    """The statement that plans when a message arrives and is read."""
    return (
        "UPDATE messages SET delivered_ms=:delivered_ms, read_ms=:read_ms WHERE position=:position",
        {"position": position, "delivered_ms": delivered_ms, "read_ms": read_ms},
    )


def set_read(position: int, read_ms: int | None) -> Statement:
    """The statement that sets when a message is read."""
    statement = "UPDATE messages SET read_ms=:read_ms WHERE position=:position"
    return statement, {"position": position, "read_ms": read_ms}


def set_read_first(position: int, read_ms: int | None) -> Statement:
    """The statement that sets when a message is read, unless that is known."""
    statement, values = set_read(position, read_ms)
    return f"{statement} AND read_ms IS NULL", values


def set_fate(
    wamid: str, delivered_ms: int | None, read_ms: int | None, failed_ms: int | None, failed_code: int | None
) -> Statement:
    """The statement that sets all times of a message."""
    return (
        "UPDATE messages SET delivered_ms=:delivered_ms, read_ms=:read_ms, failed_ms=:failed_ms, "
        "failed_code=:failed_code WHERE wamid=:wamid",
        {
            "wamid": wamid, "delivered_ms": delivered_ms, "read_ms": read_ms, "failed_ms": failed_ms,
            "failed_code": failed_code,
        },
    )  # fmt: skip


def set_status(wamid: str, status: str, at_ms: int, code: int) -> list[Statement]:
    """The statements that change a message as a status says that is told of it."""
    if status not in _SET:
        return []
    values = {"wamid": wamid, "at_ms": at_ms, "code": code}
    return [(f"UPDATE messages SET {_SET[status]} WHERE wamid=:wamid", values)]


def set_shown(wamid: str, shown: str) -> Statement:
    """The statement that sets what the phone shows of a message."""
    return "UPDATE messages SET shown=:shown WHERE wamid=:wamid", {"wamid": wamid, "shown": shown}


def unread(connection: sqlite3.Connection, phone: str, phone_number_id: str, now_ms: int) -> list[MessageRow]:
    """What has arrived on a phone from a number and is not read yet."""
    statement = (
        f"{_SELECT} WHERE phone=:phone AND phone_number_id=:phone_number_id AND is_inbound=0 "
        "AND delivered_ms<=:now_ms AND (read_ms IS NULL OR read_ms>:now_ms) ORDER BY position"
    )
    values = {"phone": phone, "phone_number_id": phone_number_id, "now_ms": now_ms}
    return select(connection, MessageRow, statement, values)


def of_wamid(connection: sqlite3.Connection, wamid: str) -> MessageRow | None:
    """The message of an id."""
    return next(iter(select(connection, MessageRow, f"{_SELECT} WHERE wamid=:wamid", {"wamid": wamid})), None)


async def find(store: Store, wamid: str) -> MessageRow | None:
    """The message of an id."""
    return await store.read(lambda connection: of_wamid(connection, wamid))


async def of_wamids(store: Store, wamids: Collection[str], phone: str = "") -> list[MessageRow]:
    """The messages of these ids, in no order; with a phone only those on it."""
    statement = f"{_WHOLE} WHERE wamid IN (SELECT value FROM json_each(:wamids)) AND (:phone='' OR phone=:phone)"
    return await store.rows(MessageRow, statement, wamids=_json(wamids), phone=phone)


async def at(store: Store, positions: Sequence[int]) -> list[MessageRow]:
    """The messages at these positions, in no order."""
    statement = f"{_SELECT} WHERE position IN (SELECT value FROM json_each(:positions))"
    return await store.rows(MessageRow, statement, positions=_json(positions))


async def last_position(store: Store) -> int:
    """The highest position."""
    found: int = await store.value("SELECT coalesce(max(position), 0) FROM messages")
    return found


async def count(store: Store) -> int:
    """How many there are."""
    found: int = await store.value("SELECT count(*) FROM messages")
    return found


async def inbox(
    store: Store, phone: str, *, now_ms: int, after: int, before: int | None, number_ids: Collection[str], at_most: int
) -> list[MessageRow]:
    """What a phone shows: what has arrived and what it wrote itself, newest first.

    Args:
        store: has them.
        phone: its digits.
        now_ms: what has arrived by then.
        after: only messages beyond this position.
        before: only messages below this position.
        number_ids: only the chats with these business numbers; none: all.
        at_most: the newest so many.
    """
    only = "AND phone_number_id IN (SELECT value FROM json_each(:number_ids)) " if number_ids else ""
    return await store.rows(
        MessageRow,
        f"{_SELECT} WHERE phone=:phone AND position>:after AND position<:before AND failed_ms IS NULL "
        f"AND (is_inbound=1 OR delivered_ms<=:now_ms) {only}ORDER BY position DESC LIMIT :at_most",
        phone=phone,
        now_ms=now_ms,
        after=after,
        before=_BEYOND if before is None else before,
        number_ids=_json(number_ids),
        at_most=at_most,
    )


async def next_arrival_ms(store: Store, phone: str, now_ms: int) -> int | None:
    """When the next message will arrive on a phone."""
    found: int | None = await store.value(
        "SELECT min(delivered_ms) FROM messages WHERE phone=:phone AND is_inbound=0 AND delivered_ms>:now_ms",
        phone=phone,
        now_ms=now_ms,
    )
    return found


async def planned(store: Store, phone: str, now_ms: int) -> list[PlannedRow]:
    """What is on its way to a phone, or will be read on it by itself."""
    return await store.rows(
        PlannedRow,
        "SELECT position, wamid, phone_number_id, at_ms, delivered_ms, read_ms, "
        "json_extract(shown, '$.template.name') AS template, json_extract(shown, '$.template.language') AS language "
        "FROM messages WHERE phone=:phone AND is_inbound=0 AND (delivered_ms>:now_ms OR read_ms>:now_ms) "
        "ORDER BY position",
        phone=phone,
        now_ms=now_ms,
    )


async def chats(store: Store, phone: str, *, now_ms: int, at_most: int) -> list[ChatRow]:
    """A phone's chats as far as its newest messages go, the one with the newest first."""
    return await store.rows(ChatRow, _CHATS, phone=phone, now_ms=now_ms, at_most=at_most)


async def numbers_of(store: Store, phone: str) -> set[str]:
    """The ids of the business numbers that a phone has a chat with."""
    return set(await store.column("SELECT DISTINCT phone_number_id FROM messages WHERE phone=:phone", phone=phone))


async def active_phones(store: Store, number_ids: Sequence[str], *, newest: int, at_most: int) -> list[str]:
    """The phones with a chat with one of these numbers among the newest messages, the most active of late first."""
    return await store.column(_ACTIVE, number_ids=_json(number_ids), newest=newest, at_most=at_most)


async def phones_without(store: Store, kind: str, *, after: str, at_most: int) -> list[str]:
    """The phones that are kept under a kind, and have no message."""
    return await store.column(_WITHOUT, kind=kind, after=after, at_most=at_most)


async def received_counts(store: Store, first: str, last: str) -> dict[str, int]:
    """How many messages each phone of a range was sent."""
    statement = f"SELECT phone AS name, count(*) AS times FROM messages WHERE is_inbound=0 AND {_RANGE} GROUP BY phone"
    return {str(row.name): row.times for row in await store.rows(_Count, statement, first=first, last=last)}


async def outcomes(store: Store, first: str, last: str, now_ms: int) -> dict[str, int]:
    """What became of the messages to a range of phones, and what these sent."""
    [found] = await store.rows(dict[str, int], _OUTCOMES, first=first, last=last, now_ms=now_ms)
    return found


async def failures(store: Store, first: str, last: str, now_ms: int) -> dict[str, int]:
    """How many messages to a range of phones failed with which code."""
    statement = (
        f"SELECT failed_code AS name, count(*) AS times FROM messages WHERE {_RANGE} AND failed_ms<=:now_ms "
        "GROUP BY failed_code"
    )
    rows = await store.rows(_Count, statement, first=first, last=last, now_ms=now_ms)
    return {str(row.name): row.times for row in rows}


async def deliveries(store: Store, *, after: int, callback_data: str, phone: str, at_most: int) -> list[MessageRow]:
    """Messages of businesses, oldest first; an empty text leaves a filter out."""
    return await store.rows(
        MessageRow, _DELIVERIES, after=after, callback_data=callback_data, phone=phone, at_most=at_most
    )


async def template_messages(store: Store, from_ms: int, until_ms: int) -> list[MessageRow]:
    """The messages made of templates that were sent in this time."""
    statement = f"{_WHOLE} WHERE is_inbound=0 AND type='template' AND at_ms>=:from_ms AND at_ms<:until_ms"
    return await store.rows(MessageRow, statement, from_ms=from_ms, until_ms=until_ms)


async def taps(store: Store, from_ms: int) -> list[MessageRow]:
    """The messages that a tap on a template's button has sent since then."""
    statement = f"{_SELECT} WHERE is_inbound=1 AND type='button' AND context_id IS NOT NULL AND at_ms>=:from_ms"
    return await store.rows(MessageRow, statement, from_ms=from_ms)


def _json(values: Iterable[Any]) -> str:
    return msgspec.json.encode(list(values)).decode()
