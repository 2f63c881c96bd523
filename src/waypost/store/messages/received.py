"""Lists of an app's inbound messages, newest first, a page at a time.

The index is by kind, so that a page is merged from the newest messages of each kind, about a dozen. Senders and
texts are in no index: they are searched for in a bounded number of rows, as in `search`.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any, Final, cast

import msgspec
from sqlalchemy import ColumnElement, Connection, Select, bindparam, func, or_, select

from waypost.store.encoding import has_part
from waypost.store.messages.lists import FIRST_PAGE, SearchPage, SearchResults, TimeOrder, merge_page
from waypost.store.messages.messages import find_ids_with_codes
from waypost.store.messages.recipients import find_recipients
from waypost.store.messages.search import MAX_SCANNED_TEXTS, MessageFilter, ascii_parts, text_condition
from waypost.store.sql import equals_any, read_dicts, skip_through
from waypost.store.tables import inbound_messages, recipients, webhook_items


def find_inbound_message(connection: Connection, app_id: str, operator_message_id: str) -> Any | None:
    """Return the row of a message that one app has received, or None."""
    return connection.execute(
        select(inbound_messages).where(
            inbound_messages.c.operator_message_id == operator_message_id, inbound_messages.c.app_id == app_id
        )
    ).one_or_none()


def find_inbound_with_sender(connection: Connection, app_id: str, operator_message_id: str) -> Any | None:
    """Like `find_inbound_message`, with `phone_number` and `user_id` of the sender; either may be None."""
    person = recipients.alias("person")
    return connection.execute(
        select(inbound_messages, person.c.phone_number, person.c.user_id)
        .outerjoin(recipients, (recipients.c.id == inbound_messages.c.recipient_id) & (recipients.c.app_id == app_id))
        .outerjoin(person, person.c.id == func.coalesce(recipients.c.same_as, recipients.c.id))
        .where(inbound_messages.c.operator_message_id == operator_message_id, inbound_messages.c.app_id == app_id)
    ).one_or_none()


MAX_INBOUND_KINDS: Final = 40
MAX_SCANNED_INBOUND_TEXTS: Final = 5_000
"""Messages of an app that one request reads for a text: each has its text in another row."""
_INBOUND_BATCH: Final = 250
INBOUND_ORDER: Final = TimeOrder(inbound_messages.c.received_on_ms, inbound_messages.c.operator_message_id)
_TEXT_MEMBERS: Final = ("body", "text", "caption", "title", "emoji", "name", "description", "filename")
_decode_item = msgspec.json.Decoder().decode


def search_inbound(
    connection: Connection, partner_id: int, app_id: str, query: MessageFilter, page: SearchPage = FIRST_PAGE
) -> SearchResults:
    """Return one page of the messages that an app has received, newest first.

    Args:
        partner_id: owner of the app; for another partner the page is empty.
        query: its number, its person, its text, its times and its name, which is the whole id of the sender or of
            the message. A reply to a one-time code is not found by its text.
        page: its cursor holds the operator's id, and its scan limit applies to a search by sender or text.

    Returns:
        Rows with the sender, `kind`, `received_on_ms`, `text`, `replies_to`: the operator's id of the message
        that it replies to, `media_id`: the operator's, and `group_id` if it was sent to a group, whose sender
        is not stored. All four are None once retention has cleared them. `holds_code`: it replies to a message with a
        one-time code.
    """
    page = page.limit_to(query.until_ms)
    if query.text:
        most = MAX_SCANNED_INBOUND_TEXTS if ascii_parts(query.text) else MAX_SCANNED_TEXTS
        page = replace(page, scan_limit=min(page.scan_limit, most))
    kinds = list(islice(skip_through(connection, _NEXT_KIND, "", app_id=app_id), MAX_INBOUND_KINDS))
    horizons = [
        INBOUND_ORDER.find_horizon_ms(
            connection, _kind_conditions(app_id, kind), page.before, page.scan_limit // len(kinds)
        )
        for kind in kinds
        if not query.is_all
    ]
    horizon_ms = max((horizon for horizon in horizons if horizon is not None), default=None)

    def match(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return _matching_rows(connection, partner_id, rows, query) if query.person or query.text else rows

    conditions = [*_conditions(connection, app_id, query), *INBOUND_ORDER.time_conditions(query.from_ms, horizon_ms)]
    matching = select_inbound(partner_id).where(*conditions)
    sources = [
        INBOUND_ORDER.scan(connection, matching.where(*_kind_conditions(app_id, kind)), page, _INBOUND_BATCH, match)
        for kind in kinds
    ]
    results = merge_page(sources, INBOUND_ORDER.position, page, from_ms=query.from_ms, horizon_ms=horizon_ms)
    return replace(results, rows=add_texts(connection, partner_id, results.rows))


def find_inbound_details(
    connection: Connection, partner_id: int, app_id: str, operator_message_id: str
) -> dict[str, Any] | None:
    """Return one inbound message of an app, as `search_inbound` does; None if there is none."""
    query = select_inbound(partner_id).where(
        inbound_messages.c.app_id == app_id, inbound_messages.c.operator_message_id == operator_message_id
    )
    rows = read_dicts(connection, query.limit(1))
    return add_texts(connection, partner_id, rows)[0] if rows else None


def find_inbound_by_ids(
    connection: Connection, partner_id: int, app_id: str, ids: Collection[str]
) -> list[dict[str, Any]]:
    """Return inbound messages of an app by the operator's ids, as `search_inbound` does, unordered."""
    if not ids:
        return []
    query = select_inbound(partner_id).where(
        equals_any(inbound_messages.c.operator_message_id, "ids"), inbound_messages.c.app_id == app_id
    )
    return add_texts(connection, partner_id, read_dicts(connection, query, ids=sorted(ids)))


def add_texts(connection: Connection, partner_id: int, rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows of `select_inbound` with the texts of their items, as `search_inbound` does."""
    rows_with_texts = [{**row, **_read_item_texts(row["item"])} for row in rows]
    codes = find_ids_with_codes(
        connection, partner_id, [row["replies_to"] for row in rows_with_texts if row["replies_to"]]
    )
    return [{**row, "holds_code": row["replies_to"] in codes} for row in rows_with_texts]


_NEXT_KIND: Final = select(func.min(inbound_messages.c.kind)).where(
    inbound_messages.c.app_id == bindparam("app_id"), inbound_messages.c.kind > bindparam("last")
)


def _conditions(connection: Connection, app_id: str, query: MessageFilter) -> Iterator[ColumnElement[bool]]:
    if query.number is not None:
        has_number = recipients.c.phone_number.contains(query.number)
        senders = find_recipients(connection, {(app_id, query.number)}).values()  # who may be known by another number
        yield or_(has_number, *(inbound_messages.c.recipient_id == sender for sender in senders))
    if query.name is not None:
        yield or_(recipients.c.user_id == query.name, inbound_messages.c.operator_message_id == query.name)
    if query.person is not None:
        yield text_condition(connection, recipients.c.name, ascii_parts(query.person))
    if query.text:
        yield text_condition(connection, webhook_items.c.item, ascii_parts(query.text))


def _matching_rows(
    connection: Connection, partner_id: int, rows: Iterable[dict[str, Any]], query: MessageFilter
) -> list[dict[str, Any]]:
    """Return the rows that match in any case, without replies to one-time codes if a text is searched for."""
    if query.person:
        name = query.person.casefold()
        rows = [row for row in rows if name in (row["name"] or "").casefold()]
    if not query.text:
        return list(rows)
    texts = ((row, " · ".join(_message_texts(_read_message(row["item"]) or {}))) for row in rows)
    matches = [row for row, text in texts if has_part(text, query.text, whole_words=query.whole_words)]
    return [row for row in add_texts(connection, partner_id, matches) if not row["holds_code"]]


def select_inbound(partner_id: int) -> Select[Any]:
    """Return the query of a partner's inbound messages with their senders and items."""
    stored = (inbound_messages.c[name] for name in ("operator_message_id", "kind", "received_on_ms"))
    sender = (recipients.c[name] for name in ("phone_number", "user_id", "name"))
    return (
        select(*stored, *sender, webhook_items.c.item)
        .outerjoin(recipients, recipients.c.id == inbound_messages.c.recipient_id)
        .outerjoin(webhook_items, webhook_items.c.id == inbound_messages.c.item_id)
        .where(inbound_messages.c.partner_id == partner_id)
    )


def _kind_conditions(app_id: str, kind: str) -> tuple[ColumnElement[bool], ...]:
    return inbound_messages.c.app_id == app_id, inbound_messages.c.kind == kind


def _read_item_texts(item: bytes | None) -> dict[str, Any]:
    """Return the texts of an inbound message, from the operator's JSON. Source: operator's facts 7.4."""
    message = _read_message(item)
    if message is None:
        return {"text": None, "replies_to": None, "group_id": None, "media_id": None}
    replies_to = _members(message.get("context")).get("id")
    media_id = _members(message.get(str(message.get("type")))).get("id")
    return {
        "text": " · ".join(_message_texts(message))[:300],
        "replies_to": replies_to if isinstance(replies_to, str) else None,
        "group_id": group_id if isinstance(group_id := message.get("group_id"), str) else None,
        "media_id": media_id if isinstance(media_id, str) else None,
    }


def _message_texts(message: Mapping[str, Any]) -> list[str]:
    return [" ".join(text.split()) for text in _texts(message.get(str(message.get("type"))))]


def _read_message(item: bytes | None) -> Mapping[str, Any] | None:
    if not item:
        return None
    try:
        return _members(_members(_decode_item(item)).get("message"))
    except (msgspec.DecodeError, RecursionError):
        return None


def _members(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _texts(value: Any, depth: int = 4) -> Iterator[str]:
    if isinstance(value, list) and depth:
        for member in cast("list[Any]", value)[:10]:
            yield from _texts(member, depth - 1)
    for name, member in _members(value).items():
        if isinstance(member, str) and name in _TEXT_MEMBERS:
            yield member
        elif depth and not isinstance(member, str):
            yield from _texts(member, depth - 1)
