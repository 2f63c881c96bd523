"""What is happening to one app now. Every look costs the same, whatever else is stored.

Counts read so many messages at most, newest first, by the index on an app's time; whoever shows a
whole day asks for it a piece at a time and remembers what it was told (`console/overview/minute_counts.py`).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, case, func, select

from waypost.base.clock import MINUTE_MS
from waypost.domain.app import App
from waypost.store.callbacks.subscriptions import live_group, replay_group
from waypost.store.queue.jobs import DeadLetter, JobState, QueueName, read_dead_letters
from waypost.store.tables import (
    callbacks,
    inbound_messages,
    inbound_webhooks,
    messages,
    queue_jobs,
    subscriptions,
    templates,
)

MOST_WAITING: Final = 2_000
"""How many entries of a group are counted; of a longer one it is known that it is longer."""
MAX_DEAD_LETTERS: Final = 500
"""How many entries that are set aside are looked through for an app's."""
MOST_TEMPLATES: Final = 20
MAX_WEBHOOKS: Final = 500
"""How many of the newest arrivals are looked through for an operator account's."""
MOST_CALLBACKS: Final = 50

_HURT: Final = ("PAUSED", "DISABLED", "FLAGGED", "LOCKED")
_REFUSED: Final = ("REJECTED", "FAILED")


@dataclass(frozen=True, slots=True)
class Count:
    """Messages of one minute that are in one state, for one reason.

    Attributes:
        minute: since the epoch.
        code: of the failure.
        reason: of one of them, where they failed.
    """

    minute: int
    state: str
    code: int | None
    messages: int
    reason: str | None


@dataclass(frozen=True, slots=True)
class Counts:
    """What was counted of a span of time.

    Attributes:
        from_ms: how far back: nothing older was counted.
    """

    rows: list[Count]
    from_ms: int


def counts_by_minute(
    connection: Connection, partner_id: int, app_id: str, from_ms: int, before_ms: int, at_most: int
) -> Counts:
    """How many messages of each minute are in which state, the newest minutes first.

    Args:
        connection: any.
        partner_id: whose app it must be; another's has nothing.
        app_id: which.
        from_ms: the beginning of a minute.
        before_ms: what was accepted before then.
        at_most: so many messages are read. Where there are more, the oldest minute that was read is
            left out, unless it is the only one: then it counts as far as it was read.
    """
    looked_at = (
        select(messages.c.accepted_on_ms, messages.c.state, messages.c.code, messages.c.reason)
        .where(
            messages.c.app_id == app_id,
            messages.c.partner_id == partner_id,
            messages.c.accepted_on_ms >= from_ms,
            messages.c.accepted_on_ms < before_ms,
        )
        .order_by(messages.c.accepted_on_ms.desc())
        .limit(at_most)
        .subquery()
    )
    minute = (looked_at.c.accepted_on_ms.op("/")(MINUTE_MS)).label("minute")
    failed = case((looked_at.c.state == "failed", looked_at.c.reason))
    rows = connection.execute(
        select(
            minute, looked_at.c.state, looked_at.c.code, func.count().label("messages"),
            func.max(failed).label("reason"),
        ).group_by(minute, looked_at.c.state, looked_at.c.code)
    ).all()  # fmt: skip
    found = [Count(*row) for row in rows]
    if sum(one.messages for one in found) < at_most:
        return Counts(found, from_ms)
    oldest = min(one.minute for one in found)
    whole = [one for one in found if one.minute > oldest]
    if not whole:
        return Counts(found, oldest * MINUTE_MS)
    return Counts(whole, (oldest + 1) * MINUTE_MS)


@dataclass(frozen=True, slots=True)
class Waiting:
    """What of one queue waits for one app.

    Attributes:
        entries: as many as were counted.
        is_longer: there are more.
        oldest_due_ms: of what is due next; None where nothing waits.
        tries: how often the one was tried that was tried most.
        note: why that one was put off.
    """

    queue: QueueName
    entries: int
    is_longer: bool
    oldest_due_ms: int | None
    tries: int
    note: str


def groups_of_app(app: App, subscription_ids: Collection[int]) -> tuple[tuple[QueueName, tuple[str, ...]], ...]:
    """The groups of each queue that are an app's own: by its number, its business account, its subscriptions."""
    source = [app.phone_number] if app.phone_number else []
    number = [app.phone_number_id] if app.phone_number_id else []
    account = [app.business_account_id] if app.business_account_id else []
    told = [group(one) for one in subscription_ids for group in (live_group, replay_group)]
    return (
        (QueueName.OUTBOUND, (*source, *(f"templates {one}" for one in account))),
        (QueueName.UNCONFIRMED, tuple(source)),
        (QueueName.WEBHOOKS, (*number, *account)),
        (QueueName.MEDIA, tuple(number)),
        (QueueName.CALLBACKS, tuple(told)),
    )


def waiting_of_app(connection: Connection, app: App, subscription_ids: Collection[int]) -> list[Waiting]:
    """How much waits for an app in each queue, without what is set aside."""
    return [_waiting(connection, queue_name, groups) for queue_name, groups in groups_of_app(app, subscription_ids)]


def _waiting(connection: Connection, queue_name: QueueName, groups: Sequence[str]) -> Waiting:
    jobs, is_longer, oldest, tries, note = 0, False, None, 0, ""
    for group in groups:
        looked_at = (
            select(queue_jobs.c.due_ms, queue_jobs.c.attempt, queue_jobs.c.note)
            .where(
                queue_jobs.c.queue == int(queue_name),
                queue_jobs.c.concurrency_group == group,
                queue_jobs.c.state < int(JobState.DEAD_LETTER),
            )
            .order_by(queue_jobs.c.position)
            .limit(MOST_WAITING)
            .subquery()
        )
        row = connection.execute(
            select(
                func.count().label("entries"),
                func.min(looked_at.c.due_ms).label("oldest_due_ms"),
                func.max(looked_at.c.attempt).label("tries"),
            ).select_from(looked_at)
        ).one()
        jobs += row.entries
        is_longer = is_longer or row.entries >= MOST_WAITING
        if row.entries:
            oldest = row.oldest_due_ms if oldest is None else min(oldest, row.oldest_due_ms)
        if row.entries and row.tries > tries:
            tries = row.tries
            why = select(looked_at.c.note).where(looked_at.c.attempt == tries).limit(1)
            note = connection.execute(why).scalar_one_or_none() or ""
    return Waiting(queue_name, jobs, is_longer, oldest, tries, note)


def dead_letters_of_app(connection: Connection, app: App, subscription_ids: Collection[int]) -> list[DeadLetter]:
    """An app's entries that wait for a person."""
    own = {(int(queue_name), group) for queue_name, groups in groups_of_app(app, subscription_ids) for group in groups}
    return [
        one
        for one in read_dead_letters(connection, at_most=MAX_DEAD_LETTERS)
        if (one.queue, one.concurrency_group) in own
    ]


def receivers_of_app(connection: Connection, partner_id: int, app_id: str) -> list[dict[str, Any]]:
    """An app's subscriptions by id, with how they are doing; no secret of them, and not what waits."""
    names = (
        "id", "tag", "url", "active", "failing_since_ms", "asked_until_ms", "paused_on_ms",
        "pause_reason",
    )  # fmt: skip
    found = select(*(subscriptions.c[name] for name in names)).where(
        subscriptions.c.app_id == app_id, subscriptions.c.partner_id == partner_id
    )
    return [dict(row) for row in connection.execute(found.order_by(subscriptions.c.id)).mappings()]


def hurt_templates(
    connection: Connection, partner_id: int, business_account_id: str, refused_since_ms: int
) -> list[Any]:
    """Templates that cannot be sent or hardly, and those refused since a time, newest first."""
    column = templates.c
    hurt = column.status.in_(_HURT) | ((column.quality == "LOW") & (column.status == "APPROVED"))
    refused = column.status.in_(_REFUSED) & (column.modified_on_ms >= refused_since_ms)
    found = (
        select(
            column.id, column.element_name, column.language_code, column.status, column.quality,
            column.reason, column.modified_on_ms,
        )
        .where(
            column.business_account_id == business_account_id,
            column.partner_id == partner_id,
            hurt | refused,
        )
        .order_by(column.id.desc())
        .limit(MOST_TEMPLATES)
    )  # fmt: skip
    return list(connection.execute(found).all())


@dataclass(frozen=True, slots=True)
class Line:
    """What was last heard on the line to the operator, of one app's newest messages.

    Attributes:
        taken_ms: when the operator last took or reported one.
        failed_ms: when one last failed.
        failed_why: and why.
    """

    taken_ms: int | None
    failed_ms: int | None
    failed_why: str


def line_of_app(connection: Connection, partner_id: int, app_id: str, at_most: int = 200) -> Line:
    """How the newest messages of an app went at the operator."""
    rows = connection.execute(
        select(messages.c.state, messages.c.changed_on_ms, messages.c.operator_message_id, messages.c.reason)
        .where(messages.c.app_id == app_id, messages.c.partner_id == partner_id)
        .order_by(messages.c.accepted_on_ms.desc())
        .limit(at_most)
    ).all()
    taken = [row.changed_on_ms for row in rows if row.operator_message_id and row.state != "failed"]
    failed = max((row for row in rows if row.state == "failed"), key=lambda row: row.changed_on_ms, default=None)
    return Line(
        max(taken, default=None),
        None if failed is None else failed.changed_on_ms,
        "" if failed is None else failed.reason or "",
    )


@dataclass(frozen=True, slots=True)
class Begun:
    """How far somebody new has come.

    Attributes:
        has_inbound: somebody has answered since, from a phone.
        has_callback: and somebody has taken a callback.
    """

    has_message: bool
    has_inbound: bool
    has_callback: bool


def begun(connection: Connection, partner_id: int, app_id: str, subscription_ids: Collection[int]) -> Begun:
    """Whether an app has ever sent, received and told anything."""

    def is_there(found: Any) -> bool:
        return connection.execute(found.limit(1)).first() is not None

    of_app = (messages.c.app_id == app_id, messages.c.partner_id == partner_id)
    first_ms = connection.execute(
        select(messages.c.accepted_on_ms).where(*of_app).order_by(messages.c.accepted_on_ms).limit(1)
    ).scalar_one_or_none()
    if first_ms is None:
        return Begun(False, False, False)
    came = (
        inbound_messages.c.app_id == app_id,
        inbound_messages.c.partner_id == partner_id,
        inbound_messages.c.received_on_ms >= first_ms,
    )
    return Begun(
        True,
        is_there(select(inbound_messages.c.operator_message_id).where(*came)),
        any(_has_taken(connection, one) for one in subscription_ids),
    )


def _has_taken(connection: Connection, subscription_id: int) -> bool:
    """Whether a receiver has taken one of its newest callbacks."""
    newest = (
        select(callbacks.c.delivered)
        .where(callbacks.c.subscription_id == subscription_id)
        .order_by(callbacks.c.created_on_ms.desc())
        .limit(MOST_CALLBACKS)
    )
    return True in connection.execute(newest).scalars().all()


def last_call_of(connection: Connection, operator_account_id: str) -> int | None:
    """When an operator account last called its webhook; None where it has not among the newest arrivals."""
    newest = (
        select(inbound_webhooks.c.operator_account_id, inbound_webhooks.c.received_on_ms)
        .order_by(inbound_webhooks.c.id.desc())
        .limit(MAX_WEBHOOKS)
        .subquery()
    )
    return connection.execute(
        select(func.max(newest.c.received_on_ms)).where(newest.c.operator_account_id == operator_account_id)
    ).scalar_one_or_none()
