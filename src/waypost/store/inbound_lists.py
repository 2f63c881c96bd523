"""Lists of what an app's recipients have written, newest first, a page at a time.

The index is by kind, so that a page is put together from the newest of each kind; there are a dozen. Who
wrote is in no index: a number is looked for over a bounded part, as in `message_search`.
"""

import heapq
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

import msgspec
from sqlalchemy import ColumnElement, Connection, func, select, tuple_

from waypost.store.message_lists import MOST, Place
from waypost.store.message_search import LOOKED_AT, Found, Wanted
from waypost.store.tables import arrival_items, inbound_messages, recipients

MOST_KINDS: Final = 40
_TEXTS: Final = ("body", "text", "caption", "title", "emoji", "name", "description", "filename")
_decode = msgspec.json.Decoder().decode


def search_inbound(
    connection: Connection,
    partner_id: int,
    app_id: str,
    wanted: Wanted,
    *,
    before: Place | None = None,
    at_most: int = 50,
    look_at: int = LOOKED_AT,
) -> Found:
    """One page of what was written to an app, newest first.

    Args:
        connection: any.
        partner_id: whose app it must be; another's has nothing.
        app_id: which.
        wanted: of it number and times count.
        before: the page after the one that ended there; its id is the operator's.
        at_most: how many; never more than `MOST`.
        look_at: how many are looked at for a number.

    Returns:
        Rows with who wrote, `kind`, `received_on_ms`, `text`, and `answers`: the operator's id of the
        message it answers. Text and answer are None once retention has cleared them.
    """
    if wanted.until_ms is not None and (before is None or before.accepted_on_ms >= wanted.until_ms):
        before = Place(wanted.until_ms, "")
    kinds = list(_kinds(connection, app_id))
    horizons = [
        _horizon(connection, app_id, kind, before, look_at // len(kinds))
        for kind in kinds
        if wanted.number is not None
    ]
    horizon_ms = max((one for one in horizons if one is not None), default=None)
    at_most = min(at_most, MOST)
    of_kinds = [
        _of_kind(connection, partner_id, app_id, kind, wanted, before, horizon_ms, at_most + 1)
        for kind in kinds
    ]
    newest = heapq.merge(*of_kinds, key=_place_of, reverse=True)
    found = [row for row, _ in zip(newest, range(at_most + 1), strict=False)]
    rows = [{**row, **_words(row.pop("item"))} for row in found[:at_most]]
    if len(found) > at_most:
        return Found(rows, Place(*_place_of(rows[-1])))
    if horizon_ms is None or (wanted.from_ms is not None and horizon_ms <= wanted.from_ms):
        return Found(rows)
    return Found(rows, Place(horizon_ms, ""), horizon_ms)


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


def _horizon(
    connection: Connection, app_id: str, kind: str, before: Place | None, look_at: int
) -> int | None:
    asked = select(inbound_messages.c.received_on_ms).where(*_of(app_id, kind))
    if before is not None:
        asked = asked.where(inbound_messages.c.received_on_ms <= before.accepted_on_ms)
    newest = asked.order_by(inbound_messages.c.received_on_ms.desc())
    return connection.execute(newest.offset(look_at).limit(1)).scalar_one_or_none()


def _of_kind(
    connection: Connection,
    partner_id: int,
    app_id: str,
    kind: str,
    wanted: Wanted,
    before: Place | None,
    horizon_ms: int | None,
    at_most: int,
) -> list[dict[str, Any]]:
    asked = (
        select(
            inbound_messages.c.operator_message_id,
            inbound_messages.c.kind,
            inbound_messages.c.received_on_ms,
            recipients.c.phone_number,
            recipients.c.user_id,
            recipients.c.name,
            arrival_items.c.item,
        )
        .outerjoin(recipients, recipients.c.id == inbound_messages.c.recipient_id)
        .outerjoin(arrival_items, arrival_items.c.id == inbound_messages.c.item_id)
        .where(*_of(app_id, kind), inbound_messages.c.partner_id == partner_id)
    )
    if wanted.number is not None:
        asked = asked.where(recipients.c.phone_number.contains(wanted.number))
    since = [one for one in (wanted.from_ms, horizon_ms) if one is not None]
    if since:
        asked = asked.where(inbound_messages.c.received_on_ms >= max(since))
    if before is not None:
        place = tuple_(inbound_messages.c.received_on_ms, inbound_messages.c.operator_message_id)
        asked = asked.where(place < (before.accepted_on_ms, before.id))
    newest = asked.order_by(
        inbound_messages.c.received_on_ms.desc(), inbound_messages.c.operator_message_id.desc()
    )
    return [dict(row) for row in connection.execute(newest.limit(at_most)).mappings()]


def _of(app_id: str, kind: str) -> tuple[ColumnElement[bool], ...]:
    return inbound_messages.c.app_id == app_id, inbound_messages.c.kind == kind


def _place_of(row: dict[str, Any]) -> tuple[int, str]:
    return row["received_on_ms"], row["operator_message_id"]


def _words(item: bytes | None) -> dict[str, Any]:
    """What somebody wrote, from the operator's own words. Source: operator's facts 7.4."""
    if not item:
        return {"text": None, "answers": None}
    try:
        message = _members(_members(_decode(item)).get("message"))
    except (msgspec.DecodeError, RecursionError):
        return {"text": None, "answers": None}
    said = list(_texts(message.get(str(message.get("type")))))
    answers = _members(message.get("context")).get("id")
    return {
        "text": " · ".join(" ".join(one.split()) for one in said)[:300],
        "answers": answers if isinstance(answers, str) else None,
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
