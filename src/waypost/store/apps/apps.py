"""Apps: changes by their partner and by the administrator, and the apps that an event concerns."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import msgspec
from sqlalchemy import Connection, Table, delete, false, func, select, update

from waypost.base.clock import DAY_MS
from waypost.domain.app import App
from waypost.domain.event import AccountEvent, LimitEvent
from waypost.domain.session_messages.plain import SessionMedia
from waypost.domain.templates.template import Category
from waypost.domain.templates.types import type_row
from waypost.store.accounts.partners import app_by_id, app_by_phone_number_id
from waypost.store.encoding import MARKETING_MESSAGE_KINDS, TEMPLATE_MESSAGE_KINDS, app_columns, decode_app
from waypost.store.sql import read_all, read_one
from waypost.store.tables import (
    app_keys,
    app_operator_history,
    app_users,
    apps,
    business_accounts,
    inbound_messages,
    messages,
    old_app_tokens,
    queue_jobs,
    subscriptions,
    template_events,
    template_operator_history,
    templates,
)
from waypost.store.templates.templates import templates_by_ids

NUMBER_EVENT_FIELDS: Final = {  # events of a number, not of its account. Source: facts 6.6, 6.8
    "phone_number_name_update",
    "phone_number_quality_update",
    "user_preferences",
}


def apps_for_event(connection: Connection, operator_account_id: str, event: AccountEvent) -> list[App]:
    """Return the app of the number in an event, or else every app of the business account, oldest first.

    An event of one number concerns no app if none has that number. Only apps of this operator account are
    returned: an operator account sends no events for another account's apps.
    """
    if event.phone_number_id:
        app = app_by_phone_number_id(connection, operator_account_id, event.phone_number_id)
        return [] if app is None else [app]
    account_ids = [event.business_account_id, event.other_account_id or ""]
    of_account = (
        select(apps)
        .join(business_accounts, business_accounts.c.id == apps.c.business_account_id)
        .where(business_accounts.c.id.in_(account_ids), business_accounts.c.operator_account_id == operator_account_id)
        .order_by(apps.c.id)
    )
    account_apps = read_all(connection, of_account, decode_app)
    if event.phone_number is None:
        return account_apps
    number_apps = [app for app in account_apps if app.phone_number == event.phone_number]
    return number_apps if number_apps or event.field in NUMBER_EVENT_FIELDS else account_apps


SUBJECT_ID_CHARS: Final = 36  # length of the ids of messages and templates

_IMMUTABLE_COLUMNS: Final = ("id", "partner_id", "token_serial", "token_hash", "created_on_ms")


def list_apps(
    connection: Connection,
    partner_id: int,
    *,
    name: str = "",
    phone: str = "",
    offset: int = 0,
    at_most: int | None = None,
) -> list[App]:
    """Return a partner's apps, oldest first.

    Args:
        name: part of the name, in any case; empty for all. Likewise `phone`, of the source number.
    """
    chosen = select(apps).where(apps.c.partner_id == partner_id)
    if name:
        chosen = chosen.where(func.lower(apps.c.name).contains(name.lower(), autoescape=True))
    if phone:
        chosen = chosen.where(apps.c.phone_number.contains(phone, autoescape=True))
    chosen = chosen.order_by(apps.c.created_on_ms, apps.c.id).offset(offset)
    return read_all(connection, chosen.limit(at_most), decode_app)


def app_by_name(connection: Connection, partner_id: int, name: str) -> App | None:
    """Return the partner's app with this name, or None."""
    return read_one(connection, select(apps).where(apps.c.partner_id == partner_id, apps.c.name == name), decode_app)


class DuplicateApp(Exception):
    """Another app has the name or the number that an app was to get."""


def change_app(connection: Connection, app_id: str, change: Callable[[App], App]) -> App | None:
    """Change an app's current row, and return it; None if it was deleted.

    Only columns that differ are written, and never its ids, its credential or its creation time.

    Args:
        connection: the writer's, so that no other write comes between the read and the change.
        change: returns the new app for the current one.

    Raises:
        DuplicateApp: another app has its name or its number.
    """
    before = app_by_id(connection, app_id)
    if before is None:
        return None
    app = change(before)
    duplicates = select(func.count()).where(
        apps.c.id != app.id,
        ((apps.c.partner_id == app.partner_id) & (apps.c.name == app.name))
        | ((apps.c.phone_number == app.phone_number) if app.phone_number else false()),
    )
    if connection.execute(duplicates).scalar_one():
        raise DuplicateApp(app.id)
    old_columns = app_columns(before, "")
    columns = {
        name: value
        for name, value in app_columns(app, "").items()
        if name not in _IMMUTABLE_COLUMNS and value != old_columns[name]
    }
    if columns:
        connection.execute(update(apps).where(apps.c.id == app.id).values(**columns))
    return app


def delete_app(connection: Connection, app: App, *, also_live: bool = False) -> bool:
    """Delete an app with its credentials, subscriptions, and jobs; False, without changes, if it is live.

    Templates belong to the business account under which they were created, which may differ from the app's
    current one: another app of that account takes them over. Those of an account without another app are
    deleted.
    """
    is_live = select(apps.c.live).where(apps.c.id == app.id)
    if connection.execute(is_live).scalar_one_or_none() and not also_live:
        return False
    _delete_jobs(connection, messages, app.id)
    of_app = templates.c.app_id == app.id
    accounts = select(templates.c.business_account_id).where(of_app).distinct()
    for account_id in connection.execute(accounts).scalars().all():
        others = select(apps.c.id).where(apps.c.business_account_id == account_id, apps.c.id != app.id)
        heir_id = connection.execute(others.order_by(apps.c.id).limit(1)).scalar_one_or_none()
        if heir_id is not None:
            of_account = of_app & (templates.c.business_account_id == account_id)
            connection.execute(update(templates).where(of_account).values(app_id=heir_id))
    _delete_jobs(connection, templates, app.id)
    template_ids = select(templates.c.id).where(of_app)
    for table in (template_operator_history, template_events):
        connection.execute(delete(table).where(table.c.template_id.in_(template_ids)))
    for table in (app_operator_history, app_users, templates, subscriptions, app_keys, old_app_tokens):
        connection.execute(delete(table).where(table.c.app_id == app.id))
    connection.execute(delete(apps).where(apps.c.id == app.id))
    return True


def _delete_jobs(connection: Connection, table: Table, app_id: str) -> None:
    """Delete the open jobs of an app's messages or templates.

    Jobs are few and messages many, so the query goes from the job to its subject: a reference ends with
    the id.
    """
    jobs = queue_jobs.alias()
    subject_id = func.substr(jobs.c.ref, func.length(jobs.c.ref) - SUBJECT_ID_CHARS + 1)
    positions = select(jobs.c.position).join(table, table.c.id == subject_id).where(table.c.app_id == app_id)
    connection.execute(delete(queue_jobs).where(queue_jobs.c.position.in_(positions)))


_OUTGOING_MEDIA: Final = SessionMedia.stored_as


@dataclass(slots=True)
class DailyUsage:
    """Usage of one day, in UTC."""

    day: int  # days since the epoch
    incoming: int = 0
    texts: int = 0
    media: int = 0
    templates: int = 0
    media_templates: int = 0
    # template messages by the category of their template, without `marketing_api`
    by_category: Counter[Category] = field(default_factory=Counter[Category])
    marketing_api: int = 0  # those sent through the operator's API for marketing messages


def daily_usage(connection: Connection, app_id: str, *, first_day: int, last_day: int) -> list[DailyUsage]:
    """Return the days on which an app has sent or received messages, oldest first.

    Failed messages are not counted. Days are counted since the epoch; the last one is included.
    """
    from_ms, until_ms = first_day * DAY_MS, (last_day + 1) * DAY_MS
    days: dict[int, DailyUsage] = {}
    accepted_ms, received_ms = messages.c.accepted_on_ms, inbound_messages.c.received_on_ms
    sent_day, received_day = (at_ms.op("/")(DAY_MS).label("day") for at_ms in (accepted_ms, received_ms))
    sent = connection.execute(
        select(sent_day, messages.c.kind, messages.c.template_id, func.count().label("times"))
        .where(
            messages.c.app_id == app_id, accepted_ms >= from_ms, accepted_ms < until_ms, messages.c.state != "failed"
        )
        .group_by(sent_day, messages.c.kind, messages.c.template_id)
    ).all()
    used_templates = templates_by_ids(connection, {row.template_id for row in sent if row.template_id})
    for row in sent:
        usage = days.setdefault(row.day, DailyUsage(row.day))
        template = used_templates.get(row.template_id)
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
    received = connection.execute(
        select(received_day, func.count().label("times"))
        .where(inbound_messages.c.app_id == app_id, received_ms >= from_ms, received_ms < until_ms)
        .group_by(received_day)
    )
    for row in received:
        days.setdefault(row.day, DailyUsage(row.day)).incoming += row.times
    return [days[day] for day in sorted(days)]


_encode_event: Final = msgspec.json.Encoder().encode
_decode_event: Final = msgspec.json.Decoder(LimitEvent).decode


def record_limit_event(connection: Connection, app_id: str, event: LimitEvent) -> None:
    """Store an event as the last one of an app's number."""
    connection.execute(update(apps).where(apps.c.id == app_id).values(limit_event=_encode_event(event).decode()))


def last_limit_event(connection: Connection, app_id: str) -> LimitEvent | None:
    """Return the last event of an app's number; None if there was none."""
    text = connection.execute(select(apps.c.limit_event).where(apps.c.id == app_id)).scalar_one_or_none()
    return None if text is None else _decode_event(text)
