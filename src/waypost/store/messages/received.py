"""Lists of what an app's recipients have written, newest first, a page at a time.

The index is by kind, so that a page is put together from the newest of each kind; there are a dozen. Who
wrote is in no index: a number is looked for over a bounded part, as in `message_search`.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, cast

import msgspec
from sqlalchemy import ColumnElement, Connection, Select, func, select

from waypost.store.messages.one_time_codes import codes_named
from waypost.store.messages.search import Wanted
from waypost.store.messages.search_pages import FIRST, ByTime, Found, Page
from waypost.store.tables import inbound_messages, recipients, webhook_items


def inbound_message(connection: Connection, app_id: str, operator_message_id: str) -> Any | None:
    """The row of a message that one app has received, or None."""
    return connection.execute(
        select(inbound_messages).where(
            inbound_messages.c.operator_message_id == operator_message_id, inbound_messages.c.app_id == app_id
        )
    ).one_or_none()


def inbound_with_sender(connection: Connection, app_id: str, operator_message_id: str) -> Any | None:
    """As `inbound_message`, with `phone_number` and `user_id` of who wrote it; either may be None."""
    return connection.execute(
        select(inbound_messages, recipients.c.phone_number, recipients.c.user_id)
        .outerjoin(recipients, (recipients.c.id == inbound_messages.c.recipient_id) & (recipients.c.app_id == app_id))
        .where(inbound_messages.c.operator_message_id == operator_message_id, inbound_messages.c.app_id == app_id)
    ).one_or_none()


MOST_KINDS: Final = 40
_ORDER: Final = ByTime(inbound_messages.c.received_on_ms, inbound_messages.c.operator_message_id)
_TEXTS: Final = ("body", "text", "caption", "title", "emoji", "name", "description", "filename")
_decode = msgspec.json.Decoder().decode


def search_inbound(connection: Connection, partner_id: int, app_id: str, wanted: Wanted, page: Page = FIRST) -> Found:
    """One page of what was written to an app, newest first.

    Args:
        connection: any.
        partner_id: whose app it must be; another's has nothing.
        app_id: which.
        wanted: of it number and times count.
        page: which; the id of its place is the operator's, and what it looks at counts for a number.

    Returns:
        Rows with who wrote, `kind`, `received_on_ms`, `text`, `answers`: the operator's id of the
        message it answers, and `group_id` where a group was written to, of which no sender is kept. All
        three are None once retention has cleared them. `holds_code`: it answers a message that was sent
        with a one-time code.
    """
    page = page.until(wanted.until_ms)
    kinds = list(_kinds(connection, app_id))
    horizons = [
        _ORDER.horizon_ms(connection, _of(app_id, kind), page.before, page.look_at // len(kinds))
        for kind in kinds
        if wanted.number is not None
    ]
    horizon_ms = max((one for one in horizons if one is not None), default=None)
    of_kinds = [_of_kind(connection, partner_id, app_id, kind, wanted, page, horizon_ms) for kind in kinds]
    found = _ORDER.found(of_kinds, page, from_ms=wanted.from_ms, horizon_ms=horizon_ms)
    return replace(found, rows=_with_words(connection, partner_id, found.rows))


def inbound_by_id(
    connection: Connection, partner_id: int, app_id: str, operator_message_id: str
) -> dict[str, Any] | None:
    """One of what was written to an app, as `search_inbound` gives it; None where there is none."""
    asked = _asked(partner_id).where(
        inbound_messages.c.app_id == app_id, inbound_messages.c.operator_message_id == operator_message_id
    )
    rows = [dict(row) for row in connection.execute(asked.limit(1)).mappings()]
    return _with_words(connection, partner_id, rows)[0] if rows else None


def _with_words(connection: Connection, partner_id: int, rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    read = [{**row, **_words(row["item"])} for row in rows]
    codes = codes_named(connection, partner_id, [row["answers"] for row in read if row["answers"]])
    return [{**row, "holds_code": row["answers"] in codes} for row in read]


def _kinds(connection: Connection, app_id: str) -> Iterator[str]:
    """The kinds that an app has received, found by skipping through the index."""
    last = ""
    for _ in range(MOST_KINDS):
        asked = select(func.min(inbound_messages.c.kind)).where(
            inbound_messages.c.app_id == app_id, inbound_messages.c.kind > last
        )
        kind = connection.execute(asked).scalar_one()
        if kind is None:
            return
        yield kind
        last = kind


def _of_kind(
    connection: Connection, partner_id: int, app_id: str, kind: str, wanted: Wanted, page: Page, horizon_ms: int | None
) -> list[dict[str, Any]]:
    asked = _asked(partner_id).where(*_of(app_id, kind))
    if wanted.number is not None:
        asked = asked.where(recipients.c.phone_number.contains(wanted.number))
    asked = asked.where(*_ORDER.since(wanted.from_ms, horizon_ms))
    newest = _ORDER.newest(asked, page.before).limit(page.at_most + 1)
    return [dict(row) for row in connection.execute(newest).mappings()]


def _asked(partner_id: int) -> Select[Any, Any, Any, Any, Any, Any, Any]:
    return (
        select(
            inbound_messages.c.operator_message_id,
            inbound_messages.c.kind,
            inbound_messages.c.received_on_ms,
            recipients.c.phone_number,
            recipients.c.user_id,
            recipients.c.name,
            webhook_items.c.item,
        )
        .outerjoin(recipients, recipients.c.id == inbound_messages.c.recipient_id)
        .outerjoin(webhook_items, webhook_items.c.id == inbound_messages.c.item_id)
        .where(inbound_messages.c.partner_id == partner_id)
    )


def _of(app_id: str, kind: str) -> tuple[ColumnElement[bool], ...]:
    return inbound_messages.c.app_id == app_id, inbound_messages.c.kind == kind


def _words(item: bytes | None) -> dict[str, Any]:
    """What somebody wrote, from the operator's own words. Source: operator's facts 7.4."""
    if not item:
        return {"text": None, "answers": None, "group_id": None}
    try:
        message = _members(_members(_decode(item)).get("message"))
    except (msgspec.DecodeError, RecursionError):
        return {"text": None, "answers": None, "group_id": None}
    said = list(_texts(message.get(str(message.get("type")))))
    answers = _members(message.get("context")).get("id")
    return {
        "text": " · ".join(" ".join(one.split()) for one in said)[:300],
        "answers": answers if isinstance(answers, str) else None,
        "group_id": group_id if isinstance(group_id := message.get("group_id"), str) else None,
    }


def _members(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _texts(value: Any, depth: int = 4) -> Iterator[str]:
    if isinstance(value, list) and depth:
        for one in cast("list[Any]", value)[:10]:
            yield from _texts(one, depth - 1)
    for name, one in _members(value).items():
        if isinstance(one, str) and name in _TEXTS:
            yield one
        elif depth and not isinstance(one, str):
            yield from _texts(one, depth - 1)
