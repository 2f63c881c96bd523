"""The last change of the quality or messaging limit of an app's number."""

from typing import Final

import msgspec
from sqlalchemy import Connection, select, update

from waypost.domain.event import LimitEvent
from waypost.store.tables import apps

_encode_event: Final = msgspec.json.Encoder().encode
_decode_event: Final = msgspec.json.Decoder(LimitEvent).decode


def record_limit_event(connection: Connection, app_id: str, event: LimitEvent) -> None:
    """Store an event as the last one of an app's number."""
    connection.execute(update(apps).where(apps.c.id == app_id).values(limit_event=_encode_event(event).decode()))


def last_limit_event(connection: Connection, app_id: str) -> LimitEvent | None:
    """Return the last event of an app's number; None if there was none."""
    text = connection.execute(select(apps.c.limit_event).where(apps.c.id == app_id)).scalar_one_or_none()
    return None if text is None else _decode_event(text)
