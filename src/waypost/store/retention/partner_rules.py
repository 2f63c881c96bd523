"""Retention of single partners whose periods are shorter than the service's: rules, and their statements.

A rule looks at rows between the end of the partner's period and the end of the service's, which has rules of its
own. Up to where it has looked is stored with what it has deleted, so that it continues there: after a restart, in
another process, and in the next run. Open rows are never deleted; they are stored, and checked again.
"""

import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import is_
from typing import Any, Final, NamedTuple

from sqlalchemy import Column, Connection, delete, or_, select, update

from waypost.base.clock import DAY_MS
from waypost.domain.media import INBOUND_LIFE_MS
from waypost.store.properties import set_properties
from waypost.store.queue.job_subjects import QueueName
from waypost.store.queue.jobs import read_subject
from waypost.store.requests.request_log import delete_partner_requests
from waypost.store.retention.columns import Period, RetentionPeriods
from waypost.store.retention.partitions import floor_id
from waypost.store.retention.rules import (
    MAX_BATCH_ROWS,
    MAX_REMEMBERED_OPEN,
    OPEN_MESSAGE_STATES,
    clear_contents,
    delete_messages,
    read_open_items,
    read_progress,
)
from waypost.store.sql import read_one, select_row
from waypost.store.tables import (
    app_operator_history,
    apps,
    attempts,
    callbacks,
    inbound_media,
    inbound_messages,
    inbound_webhooks,
    media,
    messages,
    partners,
    queue_jobs,
    webhook_items,
)
from waypost.store.templates.gallery import uploads_in_templates

MAX_WINDOW_ROWS: Final = 2_000
"""Of one transaction, of all partners: those among which it looks for rows of the partner."""
MAX_OPEN_SENDS: Final = 1_000
"""With more messages of a partner that wait, none of its uploads is deleted: they may need it."""
PARTITION_DELAY_MS: Final = 32 * DAY_MS
"""Rows of a partition that PostgreSQL has not dropped yet may be so much older than the service's period."""


@dataclass(frozen=True, slots=True)
class PartnerScan:
    """The rows at which one rule looks."""

    partner_id: int
    from_ms: int  # older rows are deleted by the service's own rule
    before_ms: int  # the end of the partner's period
    now_ms: int
    is_first: bool  # True for the first transaction of a run


class Progress(NamedTuple):
    """The progress of one rule with the rows of one partner."""

    after: str = ""  # the last key; empty: none yet
    left: tuple[str, ...] = ()  # ids of rows up to there that were still open


DeletePartnerBatch = Callable[[Connection, PartnerScan, Progress], tuple[Progress, bool]]
"""Deletes some rows; returns how far it has looked now, and whether there is more."""


@dataclass(frozen=True, slots=True)
class PartnerRule:
    """The retention rule of one kind of rows of a partner."""

    name: str
    period: Period  # how long they are retained; the rule applies where that is less than with the service's periods
    delete_batch: DeletePartnerBatch

    def property_name(self, partner_id: int) -> str:
        """Return the name of the store's property that has the progress."""
        return f"retention {self.name} {partner_id}"


def run_partner_batch(connection: Connection, rule: PartnerRule, scan: PartnerScan) -> bool:
    """Delete some rows of a partner and store the progress; return True if there is more."""
    name = rule.property_name(scan.partner_id)
    stored = read_progress(connection, name)
    progress = Progress(str(stored.get("after", "")), tuple(stored.get("left", ())))
    following, is_more = rule.delete_batch(connection, scan, progress)
    if following != progress:
        set_properties(connection, {name: json.dumps(following._asdict())})
    return is_more


class _IdTable(NamedTuple):
    """A table whose ids begin with their time."""

    key: Column[Any]
    open_column: Column[Any]  # its value says whether a row is open
    is_open: Callable[[Any], bool]
    delete: Callable[[Connection, Sequence[str]], None]  # deletes what must go of rows that are not open


def _delete_by_time(
    table: _IdTable, connection: Connection, scan: PartnerScan, progress: Progress
) -> tuple[Progress, bool]:
    end = floor_id(scan.before_ms)
    begin = floor_id(scan.from_ms)
    after = progress.after if begin < progress.after <= end else begin
    checked = progress.left[:MAX_BATCH_ROWS] if scan.is_first else ()
    is_full = len(progress.left) >= MAX_REMEMBERED_OPEN
    query = select(table.key, table.open_column).where(table.key.table.c.partner_id == scan.partner_id)
    query = query.order_by(table.key).with_for_update()
    rows: list[Any] = []
    if checked:
        rows += connection.execute(query.where(table.key.in_(checked))).all()
    is_more = False
    if not is_full:
        keys = select(table.key).where(table.key > after, table.key < end).order_by(table.key)
        last = connection.execute(keys.offset(MAX_WINDOW_ROWS - 1).limit(1)).scalar_one_or_none()
        window = table.key < end if last is None else table.key <= last
        found = connection.execute(query.where(table.key > after, window).limit(MAX_BATCH_ROWS)).all()
        if len(found) == MAX_BATCH_ROWS:
            last = found[-1][0]
        rows += found
        after, is_more = (end, False) if last is None else (str(last), True)
    closed = [key for key, value in rows if not table.is_open(value)]
    if closed:
        table.delete(connection, closed)
    still_open = [key for key, value in rows if table.is_open(value)]
    left = (*progress.left[len(checked) :], *still_open)
    return Progress(after, left), is_more


def _delete_callbacks_and_attempts(connection: Connection, ids: Sequence[str]) -> None:
    connection.execute(delete(attempts).where(attempts.c.callback_id.in_(ids)))
    connection.execute(delete(callbacks).where(callbacks.c.id.in_(ids), callbacks.c.ended_on_ms.is_not(None)))


def _delete_inbound(connection: Connection, scan: PartnerScan, progress: Progress) -> tuple[Progress, bool]:
    key = inbound_messages.c.received_on_ms
    stored_ms = int(progress.after or 0)
    after_ms = stored_ms if scan.from_ms < stored_ms < scan.before_ms else scan.from_ms - 1
    times = select(key).where(key > after_ms, key < scan.before_ms).order_by(key)
    last_ms = connection.execute(times.offset(MAX_BATCH_ROWS - 1).limit(1)).scalar_one_or_none()
    end_ms = scan.before_ms - 1 if last_ms is None else last_ms
    of_partner = inbound_messages.c.partner_id == scan.partner_id
    connection.execute(delete(inbound_messages).where(key > after_ms, key <= end_ms, of_partner))
    return Progress(str(end_ms)), last_ms is not None


def _delete_webhooks(connection: Connection, scan: PartnerScan, progress: Progress) -> tuple[Progress, bool]:
    """Delete the bodies of webhooks that name a number of the partner, with what they have of other partners."""
    key = inbound_webhooks.c.id
    end, begin = floor_id(scan.before_ms), floor_id(scan.from_ms)
    after = progress.after if begin < progress.after <= end else begin
    query = select(key, inbound_webhooks.c.body, inbound_webhooks.c.compressed)
    rows = connection.execute(query.where(key > after, key < end).order_by(key).limit(MAX_BATCH_ROWS)).all()
    names = _number_names(connection, scan.partner_id)
    bodies = ((row.id, zlib.decompress(row.body) if row.compressed else row.body) for row in rows)
    ids = [webhook_id for webhook_id, body in bodies if any(name in body for name in names)]
    if ids:
        connection.execute(delete(inbound_webhooks).where(key.in_(ids)))
    is_more = len(rows) == MAX_BATCH_ROWS
    return Progress(rows[-1].id if is_more else end), is_more


def _delete_items(connection: Connection, scan: PartnerScan, progress: Progress) -> tuple[Progress, bool]:
    """Delete webhook items that name a number of the partner; the service's rule deletes one that is open now."""
    key = webhook_items.c.id
    query = select(key, webhook_items.c.item, webhook_items.c.received_on_ms).where(key > int(progress.after or 0))
    rows = connection.execute(query.order_by(key).limit(MAX_BATCH_ROWS)).all()
    old = [row for row in rows if row.received_on_ms < scan.before_ms]
    open_ids = read_open_items(connection) if old else set[int]()
    if not old or open_ids is None:
        return progress, False
    names = _number_names(connection, scan.partner_id)
    ids = [row.id for row in old if row.id not in open_ids and any(name in row.item for name in names)]
    if ids:
        connection.execute(delete(webhook_items).where(key.in_(ids)))
    return Progress(str(old[-1].id)), len(old) == MAX_BATCH_ROWS


def _expire_received_files(connection: Connection, scan: PartnerScan, progress: Progress) -> tuple[Progress, bool]:
    """Let received files expire now, once they are fetched; the sweep of media deletes them."""
    expires = inbound_media.c.expires_on_ms
    keys = (
        select(inbound_media.c.key)
        .where(
            inbound_media.c.partner_id == scan.partner_id,
            expires > scan.now_ms,
            expires < scan.before_ms + INBOUND_LIFE_MS,
            or_(inbound_media.c.sha256.is_not(None), inbound_media.c.failure.is_not(None)),
        )
        .limit(MAX_BATCH_ROWS)
    )
    expire = update(inbound_media).where(inbound_media.c.key.in_(keys)).values(expires_on_ms=scan.now_ms)
    return progress, connection.execute(expire).rowcount == MAX_BATCH_ROWS


def _expire_uploads(connection: Connection, scan: PartnerScan, progress: Progress) -> tuple[Progress, bool]:
    """Let uploads expire now that no template and no message that waits refers to; the sweep of media deletes them."""
    after = "" if scan.is_first else progress.after
    of_partner = media.c.partner_id == scan.partner_id
    query = select(media.c.id, media.c.handle, media.c.partner_id).where(
        of_partner, media.c.created_on_ms < scan.before_ms, media.c.expires_on_ms > scan.now_ms, media.c.id > after
    )
    rows = connection.execute(query.order_by(media.c.id).limit(MAX_BATCH_ROWS)).all()
    contents = _waiting_contents(connection, scan.partner_id) if rows else []
    if not rows or contents is None:
        return Progress(), False
    in_use = set(uploads_in_templates(connection, rows))
    in_use |= {row.id for row in rows if any(row.id.encode() in content for content in contents)}
    ids = [row.id for row in rows if row.id not in in_use]
    if ids:
        connection.execute(update(media).where(media.c.id.in_(ids)).values(expires_on_ms=scan.now_ms))
    is_more = len(rows) == MAX_BATCH_ROWS
    return Progress(rows[-1].id) if is_more else Progress(), is_more


def _waiting_contents(connection: Connection, partner_id: int) -> list[bytes] | None:
    """Return the contents of a partner's messages that wait for the operator; None if they are too many."""
    query = (
        select(queue_jobs.c.ref)
        .join(apps, apps.c.phone_number == queue_jobs.c.concurrency_group)
        .where(apps.c.partner_id == partner_id, queue_jobs.c.queue == int(QueueName.OUTBOUND))
        .limit(MAX_OPEN_SENDS + 1)
    )
    refs = connection.execute(query).scalars().all()
    if len(refs) > MAX_OPEN_SENDS:
        return None
    ids = [read_subject(QueueName.OUTBOUND, ref).id for ref in refs]
    if not ids:
        return []
    return [bytes(content) for content in connection.scalars(select(messages.c.content).where(messages.c.id.in_(ids)))]


def _number_names(connection: Connection, partner_id: int) -> list[bytes]:
    """Return the operator's ids of a partner's numbers, present and former, as they stand in its JSON."""
    ids: set[str] = set()
    for table in (apps, app_operator_history):
        query = select(table.c.phone_number_id).where(table.c.partner_id == partner_id, table.c.phone_number_id != "")
        ids |= set(connection.execute(query).scalars())
    return [f'"{phone_number_id}"'.encode() for phone_number_id in sorted(ids)]


def _is_open_message(state: str) -> bool:
    return state in OPEN_MESSAGE_STATES


_CONTENTS: Final = _IdTable(messages.c.id, messages.c.state, _is_open_message, clear_contents)
_MESSAGES: Final = _IdTable(messages.c.id, messages.c.state, _is_open_message, delete_messages)
_CALLBACKS: Final = _IdTable(
    callbacks.c.id, callbacks.c.ended_on_ms, partial(is_, None), _delete_callbacks_and_attempts
)
PARTNER_RULES: Final = (  # Source: decision 0051. In this order
    # name, period, delete
    PartnerRule("contents", Period.BODIES, partial(_delete_by_time, _CONTENTS)),
    PartnerRule("messages", Period.MESSAGES, partial(_delete_by_time, _MESSAGES)),
    PartnerRule("callbacks", Period.BODIES, partial(_delete_by_time, _CALLBACKS)),
    PartnerRule("webhooks", Period.BODIES, _delete_webhooks),
    PartnerRule("items", Period.ITEMS, _delete_items),
    PartnerRule("inbound", Period.MESSAGES, _delete_inbound),
    PartnerRule("received", Period.BODIES, _expire_received_files),
    PartnerRule(  # none is open
        "requests",
        Period.REQUESTS,
        lambda connection, scan, progress: (
            progress,
            delete_partner_requests(connection, scan.partner_id, scan.before_ms),
        ),
    ),
    PartnerRule("uploads", Period.BODIES, _expire_uploads),
)


class OwnPeriods(NamedTuple):
    """The retention periods of a partner of its own, in days, by the names of the settings; None: the service's."""

    keep_bodies_days: int | None = None
    keep_messages_days: int | None = None


def apply_own_periods(keep: RetentionPeriods, own: OwnPeriods) -> RetentionPeriods:
    """Return the periods that apply to a partner: the shorter of its own and the service's."""
    bodies_days = keep.bodies_days if own.keep_bodies_days is None else own.keep_bodies_days
    messages_days = keep.messages_days if own.keep_messages_days is None else own.keep_messages_days
    return replace(
        keep, bodies_days=min(keep.bodies_days, bodies_days), messages_days=min(keep.messages_days, messages_days)
    )


def read_own_periods(connection: Connection, partner_id: int) -> OwnPeriods:
    """Return the periods that a partner has of its own; without any if there is no such partner."""
    query = select_row(partners, OwnPeriods).where(partners.c.id == partner_id)
    return read_one(connection, query, OwnPeriods._make) or OwnPeriods()


def list_own_periods(connection: Connection) -> dict[int, OwnPeriods]:
    """Return the partners that have periods of their own, by id."""
    has_own = partners.c.keep_bodies_days.is_not(None) | partners.c.keep_messages_days.is_not(None)
    rows = connection.execute(select_row(partners, OwnPeriods).add_columns(partners.c.id).where(has_own))
    return {partner_id: OwnPeriods(*periods) for *periods, partner_id in rows.all()}


def change_own_periods(connection: Connection, partner_id: int, values: Mapping[str, int | None]) -> None:
    """Set the periods of a partner that are given, by name."""
    if values:
        connection.execute(update(partners).where(partners.c.id == partner_id).values(**values))
