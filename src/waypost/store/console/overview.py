"""Current activity of one app. Each query has a bounded cost, whatever else is stored.

Counts read a limited number of messages, newest first, by the index on an app's time; a page about a whole
day queries it in parts and caches the results (`console/overview/queries.py`).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, FromClause, case, func, select

from waypost.base.clock import MINUTE_MS
from waypost.domain.app import App
from waypost.domain.event import unreadable_group
from waypost.domain.lifecycle import SENDABLE
from waypost.domain.templates.template import TemplateStatus
from waypost.store.accounts.partners import apps_with_operators
from waypost.store.queue.depths import DeadLetter, read_dead_letters
from waypost.store.queue.job_subjects import JobState, QueueName
from waypost.store.queue.jobs import group_subscription_id, is_live_group, live_group, open_callbacks, replay_group
from waypost.store.sql import is_of_app, read_all, read_dicts
from waypost.store.tables import (
    callbacks,
    inbound_messages,
    inbound_webhooks,
    messages,
    queue_jobs,
    subscriptions,
    templates,
)

MAX_COUNTED_PER_GROUP: Final = 2_000  # how many jobs of a group are counted; a longer one is only known to be longer
MAX_DEAD_LETTERS: Final = 500  # how many dead letters are searched for those of an app
MAX_PROBLEM_TEMPLATES: Final = 20
MAX_WEBHOOKS: Final = 500  # how many of the newest inbound webhooks are searched for those of an operator account
MAX_CHECKED_CALLBACKS: Final = 50

_BLOCKED_STATUSES: Final = ("PAUSED", "DISABLED", "FLAGGED", "LOCKED")
_REJECTED_STATUSES: Final = ("REJECTED", "FAILED")


@dataclass(frozen=True, slots=True)
class MinuteCount:
    """Messages of one minute that are in one state, with one error code."""

    minute: int  # since the epoch
    state: str
    code: int | None  # of the failure
    messages: int
    reason: str | None  # of one of them, if they failed


@dataclass(frozen=True, slots=True)
class StoredMinuteCounts:
    """Counts of a time range."""

    rows: list[MinuteCount]
    from_ms: int  # nothing older was counted


def counts_by_minute(
    connection: Connection, partner_id: int, app_id: str, from_ms: int, before_ms: int, at_most: int
) -> StoredMinuteCounts:
    """Return the number of messages of each minute by state, newest minutes first.

    Args:
        partner_id: owner of the app; for another partner there are none.
        from_ms: the beginning of a minute.
        before_ms: only messages accepted before then.
        at_most: how many messages are read. If there are more, the oldest minute that was read is left
            out, unless it is the only one: then it is counted as far as it was read.
    """
    scanned = (
        select(messages.c.accepted_on_ms, messages.c.state, messages.c.code, messages.c.reason)
        .where(
            is_of_app(messages, partner_id, app_id),
            messages.c.accepted_on_ms >= from_ms,
            messages.c.accepted_on_ms < before_ms,
        )
        .order_by(messages.c.accepted_on_ms.desc())
        .limit(at_most)
        .subquery()
    )
    minute = (scanned.c.accepted_on_ms.op("/")(MINUTE_MS)).label("minute")
    failed = case((scanned.c.state == "failed", scanned.c.reason))
    kinds = (minute, scanned.c.state, scanned.c.code)
    counted = select(*kinds, func.count().label("messages"), func.max(failed).label("reason")).group_by(*kinds)
    counts = read_all(connection, counted, lambda row: MinuteCount(*row))
    if sum(count.messages for count in counts) < at_most:
        return StoredMinuteCounts(counts, from_ms)
    oldest = min(count.minute for count in counts)
    complete = [count for count in counts if count.minute > oldest]
    if not complete:
        return StoredMinuteCounts(counts, oldest * MINUTE_MS)
    return StoredMinuteCounts(complete, (oldest + 1) * MINUTE_MS)


@dataclass(frozen=True, slots=True)
class AppQueueDepth:
    """The depth of one queue for one app."""

    queue: QueueName
    jobs: int  # as many as were counted
    is_longer: bool  # there are more
    oldest_due_ms: int | None  # the earliest due time; None if no job waits
    tries: int  # the highest number of attempts of a job
    note: str  # why that job was retried later


def groups_of_app(app: App, subscription_ids: Collection[int]) -> tuple[tuple[QueueName, tuple[str, ...]], ...]:
    """Return the groups of each queue that belong to an app: by its number, its business account, its subscriptions."""
    source = (app.phone_number,) if app.phone_number else ()
    number = (app.phone_number_id,) if app.phone_number_id else ()
    account = (app.business_account_id,) if app.business_account_id else ()
    callbacks_of = tuple(group(one) for one in subscription_ids for group in (live_group, replay_group))
    return (
        (
            QueueName.OUTBOUND,
            (*source, *(f"{work} {account_id}" for account_id in account for work in ("templates", "onboarding"))),
        ),
        (QueueName.UNCONFIRMED, source),
        (QueueName.WEBHOOKS, (*number, *account)),
        (QueueName.MEDIA, number),
        (QueueName.CALLBACKS, callbacks_of),
    )


def app_queue_depths(connection: Connection, app: App, subscription_ids: Collection[int]) -> list[AppQueueDepth]:
    """Return the depth of each queue for an app, without dead letters."""
    return [
        _read_queue_depth(connection, queue_name, groups) for queue_name, groups in groups_of_app(app, subscription_ids)
    ]


def _read_queue_depth(connection: Connection, queue_name: QueueName, groups: Sequence[str]) -> AppQueueDepth:
    jobs, is_longer, oldest, tries, note = 0, False, None, 0, ""
    for group in groups:
        source: FromClause = open_callbacks if is_live_group(queue_name, group) else queue_jobs
        of_group = (
            source.c.subscription_id == group_subscription_id(group)
            if source is open_callbacks
            else source.c.concurrency_group == group
        )
        scanned = (
            select(source.c.due_ms, source.c.attempt, source.c.note)
            .where(source.c.queue == int(queue_name), of_group, source.c.state < int(JobState.DEAD_LETTER))
            .order_by(source.c.position)
            .limit(MAX_COUNTED_PER_GROUP)
            .subquery()
        )
        row = connection.execute(
            select(
                func.count().label("jobs"),
                func.min(scanned.c.due_ms).label("oldest_due_ms"),
                func.max(scanned.c.attempt).label("tries"),
            ).select_from(scanned)
        ).one()
        jobs += row.jobs
        is_longer = is_longer or row.jobs >= MAX_COUNTED_PER_GROUP
        if row.jobs:
            oldest = row.oldest_due_ms if oldest is None else min(oldest, row.oldest_due_ms)
        if row.jobs and row.tries > tries:
            tries = row.tries
            note_query = select(scanned.c.note).where(scanned.c.attempt == tries).limit(1)
            note = connection.execute(note_query).scalar_one_or_none() or ""
    return AppQueueDepth(queue_name, jobs, is_longer, oldest, tries, note)


def dead_letters_of_app(connection: Connection, app: App, subscription_ids: Collection[int]) -> list[DeadLetter]:
    """Return an app's dead letters, with unreadable webhooks of its operator account that name no number."""
    app_groups = {
        (int(queue_name), group) for queue_name, groups in groups_of_app(app, subscription_ids) for group in groups
    }
    _, operator_account_id = apps_with_operators(connection, {app.id}).get(app.id, (app, None))
    app_groups.add((int(QueueName.WEBHOOKS), unreadable_group(operator_account_id or "")))
    return [
        dead_letter
        for dead_letter in read_dead_letters(connection, at_most=MAX_DEAD_LETTERS)
        if (dead_letter.queue, dead_letter.concurrency_group) in app_groups
    ]


def receivers_of_app(connection: Connection, partner_id: int, app_id: str) -> list[dict[str, Any]]:
    """Return an app's subscriptions by id, with their health; without secrets and queue depths."""
    names = "id tag url active failing_since_ms retry_after_until_ms paused_on_ms pause_reason"
    query = select(*(subscriptions.c[name] for name in names.split())).where(
        is_of_app(subscriptions, partner_id, app_id)
    )
    return read_dicts(connection, query.order_by(subscriptions.c.id))


def templates_with_problems(
    connection: Connection, partner_id: int, business_account_id: str, rejected_since_ms: int
) -> list[Any]:
    """Return templates that cannot be sent or have low quality, and those rejected since a time, newest first."""
    column = templates.c
    is_blocked = column.status.in_(_BLOCKED_STATUSES) | ((column.quality == "LOW") & (column.status == "APPROVED"))
    is_rejected = column.status.in_(_REJECTED_STATUSES) & (column.modified_on_ms >= rejected_since_ms)
    names = ("id", "element_name", "language_code", "status", "quality", "reason", "modified_on_ms")
    query = select(*(column[name] for name in names)).where(
        column.business_account_id == business_account_id, column.partner_id == partner_id, is_blocked | is_rejected
    )
    return list(connection.execute(query.order_by(column.id.desc()).limit(MAX_PROBLEM_TEMPLATES)).all())


class OperatorActivity(NamedTuple):
    """Recent activity of the operator, from an app's newest messages."""

    accepted_ms: int | None  # when the operator last accepted or reported one
    failed_ms: int | None  # when one last failed
    failed_why: str  # and the reason


def operator_activity(connection: Connection, partner_id: int, app_id: str, at_most: int = 200) -> OperatorActivity:
    """Return how the operator handled the newest messages of an app."""
    rows = connection.execute(
        select(messages.c.state, messages.c.changed_on_ms, messages.c.operator_message_id, messages.c.reason)
        .where(is_of_app(messages, partner_id, app_id))
        .order_by(messages.c.accepted_on_ms.desc())
        .limit(at_most)
    ).all()
    accepted = [row.changed_on_ms for row in rows if row.operator_message_id and row.state != "failed"]
    failed = max((row for row in rows if row.state == "failed"), key=lambda row: row.changed_on_ms, default=None)
    return OperatorActivity(
        max(accepted, default=None),
        None if failed is None else failed.changed_on_ms,
        "" if failed is None else failed.reason or "",
    )


@dataclass(frozen=True, slots=True)
class OnboardingProgress:
    """Progress of a new partner."""

    has_template: bool  # a template that can be sent exists, or existed when the first message was sent
    has_pending_template: bool  # a template waits for its review
    has_message: bool
    has_inbound: bool  # a message from a phone has arrived since the first one was sent
    has_callback: bool  # a callback has been delivered


def onboarding_progress(
    connection: Connection, partner_id: int, app: App, subscription_ids: Collection[int]
) -> OnboardingProgress:
    """Return whether an app has a template, and has ever sent a message, received one and delivered a callback."""

    def exists(query: Any) -> bool:
        return connection.execute(query.limit(1)).first() is not None

    of_app = (messages.c.app_id == app.id, messages.c.partner_id == partner_id)
    first_ms = connection.execute(
        select(messages.c.accepted_on_ms).where(*of_app).order_by(messages.c.accepted_on_ms).limit(1)
    ).scalar_one_or_none()
    if first_ms is None:
        of_account = select(templates.c.id).where(
            templates.c.business_account_id == app.business_account_id, templates.c.partner_id == partner_id
        )
        has_template, has_pending = (
            exists(of_account.where(templates.c.status.in_(statuses)))
            for statuses in ([*SENDABLE], [TemplateStatus.PENDING])
        )
        return OnboardingProgress(has_template, has_pending, False, False, False)
    is_reply = (
        inbound_messages.c.app_id == app.id,
        inbound_messages.c.partner_id == partner_id,
        inbound_messages.c.received_on_ms >= first_ms,
    )
    has_inbound = exists(select(inbound_messages.c.operator_message_id).where(*is_reply))
    newest = select(callbacks.c.delivered).order_by(callbacks.c.created_on_ms.desc()).limit(MAX_CHECKED_CALLBACKS)
    of_receivers = (newest.where(callbacks.c.subscription_id == one) for one in subscription_ids)
    has_callback = any(True in connection.execute(of_receiver).scalars().all() for of_receiver in of_receivers)
    return OnboardingProgress(True, False, True, has_inbound, has_callback)


def last_webhook_ms(connection: Connection, operator_account_id: str) -> int | None:
    """Return when an operator account last called its webhook; None if none of the newest webhooks is its own."""
    newest = (
        select(inbound_webhooks.c.operator_account_id, inbound_webhooks.c.received_on_ms)
        .order_by(inbound_webhooks.c.id.desc())
        .limit(MAX_WEBHOOKS)
        .subquery()
    )
    return connection.execute(
        select(func.max(newest.c.received_on_ms)).where(newest.c.operator_account_id == operator_account_id)
    ).scalar_one_or_none()
