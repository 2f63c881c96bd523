"""Daily usage of an app: counts of sent and received messages."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from sqlalchemy import Connection, func, select

from waypost.base.clock import DAY_MS
from waypost.domain.session_messages.plain import SessionMedia
from waypost.domain.templates.template import Category
from waypost.domain.templates.types import type_row
from waypost.store.encoding import MARKETING_MESSAGE_KINDS, TEMPLATE_MESSAGE_KINDS
from waypost.store.tables import inbound_messages, messages
from waypost.store.templates.templates import templates_by_ids

_OUTGOING_MEDIA: Final = SessionMedia.stored_as


@dataclass(slots=True)
class DailyUsage:
    """Usage of one day, in UTC.

    Attributes:
        day: days since the epoch.
        by_category: template messages by the category of their template, without `marketing_api`.
        marketing_api: those sent through the operator's API for marketing messages.
    """

    day: int
    incoming: int = 0
    texts: int = 0
    media: int = 0
    templates: int = 0
    media_templates: int = 0
    by_category: Counter[Category] = field(default_factory=Counter[Category])
    marketing_api: int = 0


def daily_usage(connection: Connection, app_id: str, *, first_day: int, last_day: int) -> list[DailyUsage]:
    """Return the days on which an app has sent or received messages, oldest first.

    Failed messages are not counted. Ids begin with the time, so that a range of days is a range of ids.

    Args:
        connection: any.
        app_id: the app.
        first_day: days since the epoch.
        last_day: likewise, inclusive.
    """
    from_ms, until_ms = first_day * DAY_MS, (last_day + 1) * DAY_MS
    days: dict[int, DailyUsage] = {}
    _count_sent(connection, app_id, from_ms, until_ms, days)
    _count_received(connection, app_id, from_ms, until_ms, days)
    return [days[day] for day in sorted(days)]


def _count_sent(connection: Connection, app_id: str, from_ms: int, until_ms: int, days: dict[int, DailyUsage]) -> None:
    sent_day = messages.c.accepted_on_ms.op("/")(DAY_MS).label("day")
    sent = connection.execute(
        select(sent_day, messages.c.kind, messages.c.template_id, func.count().label("times"))
        .where(
            messages.c.app_id == app_id,
            messages.c.accepted_on_ms >= from_ms,
            messages.c.accepted_on_ms < until_ms,
            messages.c.state != "failed",
        )
        .group_by(sent_day, messages.c.kind, messages.c.template_id)
    ).all()
    templates = templates_by_ids(connection, {row.template_id for row in sent if row.template_id})
    for row in sent:
        usage = days.setdefault(row.day, DailyUsage(row.day))
        template = templates.get(row.template_id)
        if row.kind not in TEMPLATE_MESSAGE_KINDS:
            is_media = row.kind == _OUTGOING_MEDIA
            usage.media += row.times if is_media else 0
            usage.texts += 0 if is_media else row.times
            continue
        is_media = template is not None and type_row(template.draft.template_type).medium is not None
        usage.media_templates += row.times if is_media else 0
        usage.templates += 0 if is_media else row.times
        if row.kind in MARKETING_MESSAGE_KINDS:
            usage.marketing_api += row.times
        elif template is not None:
            usage.by_category[template.category] += row.times


def _count_received(
    connection: Connection, app_id: str, from_ms: int, until_ms: int, days: dict[int, DailyUsage]
) -> None:
    received_day = inbound_messages.c.received_on_ms.op("/")(DAY_MS).label("day")
    received = connection.execute(
        select(received_day, func.count().label("times"))
        .where(
            inbound_messages.c.app_id == app_id,
            inbound_messages.c.received_on_ms >= from_ms,
            inbound_messages.c.received_on_ms < until_ms,
        )
        .group_by(received_day)
    )
    for row in received:
        days.setdefault(row.day, DailyUsage(row.day)).incoming += row.times
