"""Lists of an app's callbacks, newest first, a page at a time: for people to browse.

A page begins where the last one ended. If a filter matches few, a limited number is scanned, and the page
says how far back that was: beyond the indexes that the pipeline needs, none is written for each callback.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from operator import ge, lt
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Select,
    Text,
    and_,
    cast,
    func,
    literal_column,
    null,
    select,
    text,
    tuple_,
)

from waypost.domain.callbacks import AttemptKind
from waypost.domain.message import LoggedEvent
from waypost.store.callbacks.callbacks import is_about, read_callback_body, read_callback_details
from waypost.store.callbacks.receivers import newest_attempts
from waypost.store.messages.messages import TIMED_STATES
from waypost.store.queue.job_subjects import QueueName
from waypost.store.queue.jobs import find_open_callback, open_callbacks, replay_group
from waypost.store.sql import equals_any, filter_conditions, is_of_app, read_all, read_dict, read_dicts, select_row
from waypost.store.tables import (
    attempts,
    callbacks,
    inbound_messages,
    message_events,
    messages,
    queue_jobs,
    recipients,
    subscriptions,
    templates,
)

_Select = Any  # of many columns

MAX_SCANNED_CALLBACKS: Final = 20_000  # how many callbacks one page scans, if a filter matches few

_DELIVERY_COLUMNS: Final[list[Column[Any]]] = [  # without the body, which a list does not show
    callbacks.c[name]
    for name in (
        *("id", "subscription_id", "subject", "sequence", "message_id", "event"),
        *("created_on_ms", "ended_on_ms", "delivered"),
    )
]
_DELIVERY_ORDER: Final = (callbacks.c.created_on_ms, callbacks.c.subject, callbacks.c.sequence)
_STATE_CONDITIONS: Final = {
    "waiting": callbacks.c.ended_on_ms.is_(None),
    "delivered": callbacks.c.delivered.is_(True),
    "given up": callbacks.c.delivered.is_(False),
}
DELIVERY_STATES: Final = tuple(_STATE_CONDITIONS)  # possible states of a callback


@dataclass(frozen=True, slots=True, order=True)
class DeliveryCursor:
    """The end of a page: its last callback, or the last that was scanned."""

    created_on_ms: int
    subject: str
    sequence: int
    subscription_id: int


@dataclass(frozen=True, slots=True)
class DeliveryFilter:
    """Filter of callbacks: all given conditions must match."""

    subscription_id: int | None = None  # one of the app's; None: all of them
    state: str | None = None  # one of `DELIVERY_STATES`
    recipient: str | None = None  # a phone number or business-scoped id
    event: str | None = None  # as named in the trace, such as `delivered`
    message_id: str | None = None  # about this message; ours
    from_ms: int | None = None  # rendered from then on
    to_ms: int | None = None  # and before then

    @property
    def is_rare(self) -> bool:
        """True if many callbacks may have to be scanned for each match."""
        return bool(self.state or self.recipient or self.event)


@dataclass(frozen=True, slots=True)
class DeliveryPage:
    """One page."""

    rows: list[dict[str, Any]]  # newest first
    next: DeliveryCursor | None  # where the next page begins; None if there is nothing older
    # the scan ended there, and there may be more matches; None: these are all matches before `next`
    searched_to_ms: int | None


def list_deliveries(
    connection: Connection,
    partner_id: int,
    app_id: str,
    query: DeliveryFilter,
    *,
    before: DeliveryCursor | None = None,
    at_most: int = 50,
    scan_limit: int = MAX_SCANNED_CALLBACKS,
) -> DeliveryPage:
    """Return one page of an app's callbacks, delivered or not.

    Callbacks of a deleted subscription are included only if the filter has their message.

    Args:
        partner_id: owner of the app; for another partner the page is empty.
        before: return the page after the one that ended there.
    """
    own = is_of_app(callbacks, partner_id, app_id)
    fits = [
        own,
        *_time_conditions(query),
        *([] if query.state is None else [_STATE_CONDITIONS[query.state]]),
        *([] if query.event is None else [callbacks.c.event == query.event]),
        *is_about(connection, [app_id], query.recipient),
    ]
    if query.message_id is not None:
        chosen = callbacks.c.message_id == query.message_id
        if query.subscription_id is not None:
            chosen = and_(chosen, callbacks.c.subscription_id == query.subscription_id)
        return _page(connection, [select(*_DELIVERY_COLUMNS).where(chosen, *fits)], before, at_most)
    of_app = [is_of_app(subscriptions, partner_id, app_id)]
    if query.subscription_id is not None:
        of_app.append(subscriptions.c.id == query.subscription_id)
    ids = connection.execute(select(subscriptions.c.id).where(*of_app).order_by(subscriptions.c.id)).scalars().all()
    open_jobs = select(open_callbacks.c.position).where(open_callbacks.c.subscription_id.in_(ids)).limit(scan_limit + 1)
    # If few enough wait, all of them are read; otherwise the newest callbacks include some
    if query.state == "waiting" and _count(connection, open_jobs) <= scan_limit:
        is_open = (text("callbacks.ended_on_ms IS NULL"), callbacks.c.position.is_not(None))  # as in the partial index
        waiting = select(*_DELIVERY_COLUMNS).where(callbacks.c.subscription_id.in_(ids), *is_open, *fits)
        return _page(connection, [waiting], before, at_most)
    if not query.is_rare:
        statements = [select(*_DELIVERY_COLUMNS).where(callbacks.c.subscription_id == one, *fits) for one in ids]
        return _page(connection, statements, before, at_most)
    return _search(connection, ids, own, fits, query, before, at_most, scan_limit)


def find_delivery(connection: Connection, partner_id: int, app_id: str, callback_id: str) -> dict[str, Any] | None:
    """Return one callback with its bytes as text and every attempt; None if the app has no such callback."""
    own = is_of_app(callbacks, partner_id, app_id)
    row = read_dict(connection, select(callbacks).where(callbacks.c.id == callback_id, own))
    return None if row is None else read_callback_details(connection, row)


def attempts_by_callback_ids(connection: Connection, ids: Collection[str]) -> dict[str, list[Any]]:
    """Return attempts by callback, oldest first, without headers and responses."""
    if not ids:
        return {}
    columns = ("callback_id", "at_ms", "duration_ms", "status", "error", "kind")
    first: _Select = select(
        callbacks.c.id.label("callback_id"),
        callbacks.c.attempted_on_ms.label("at_ms"),
        callbacks.c.duration_ms,
        callbacks.c.status,
        cast(null(), Text).label("error"),
        literal_column(f"'{AttemptKind.INITIAL.value}'", Text).label("kind"),
    ).where(equals_any(callbacks.c.id, "ids"))
    others = select(*(attempts.c[name] for name in columns)).where(equals_any(attempts.c.callback_id, "ids"))
    attempts_by_callback: dict[str, list[Any]] = {}
    for statement in (first, others.order_by(attempts.c.id)):
        for row in connection.execute(statement, {"ids": list(ids)}):
            if row.at_ms is not None:  # no condition: it would let PostgreSQL take the index of attempts, not of ids
                attempts_by_callback.setdefault(row.callback_id, []).append(row)
    return attempts_by_callback


def subject_names(connection: Connection, partner_id: int, app_id: str, subjects: Collection[str]) -> dict[str, str]:
    """Return readable subjects of callbacks: a number or a business-scoped id, or a template's name."""
    names: dict[str, str] = {}
    numbers = [int(subject) for subject in subjects if subject.isdecimal() and len(subject) < 19]
    person = recipients.alias("person")
    recipient_query = (
        select(recipients.c.id, person.c.phone_number, person.c.user_id)
        .join(person, person.c.id == func.coalesce(recipients.c.same_as, recipients.c.id))
        .where(is_of_app(recipients, partner_id, app_id), equals_any(recipients.c.id, "ids"))
    )
    for row in connection.execute(recipient_query, {"ids": numbers}):
        names[str(row.id)] = row.phone_number or row.user_id or ""
    subjects_by_template = {subject[2:]: subject for subject in subjects if subject.startswith("t:")}
    template_query = select(templates.c.id, templates.c.element_name).where(
        templates.c.partner_id == partner_id, equals_any(templates.c.id, "ids")
    )
    for row in connection.execute(template_query, {"ids": list(subjects_by_template)}):
        names[subjects_by_template[row.id]] = row.element_name
    return names


class SubscriptionHealth(NamedTuple):
    """A subscription's tag, and what keeps its callbacks waiting."""

    id: int
    tag: str
    active: bool
    failing_since_ms: int | None
    next_attempt_ms: int | None
    paused_on_ms: int | None
    # of the response to the newest attempt, while callbacks fail; None: there was no response
    last_status: int | None = None


def subscription_health_by_app(connection: Connection, partner_id: int, app_id: str) -> dict[int, SubscriptionHealth]:
    """Return the tags and the health of an app's subscriptions by id, oldest first."""
    stored = (subscriptions.c[name] for name in SubscriptionHealth._fields if name != "last_status")
    query = select(*stored).where(is_of_app(subscriptions, partner_id, app_id))
    health = {row.id: SubscriptionHealth(*row) for row in connection.execute(query.order_by(subscriptions.c.id))}
    for one in health.values():
        if one.failing_since_ms is not None:
            newest = newest_attempts(connection, one.id, 1)
            health[one.id] = one._replace(last_status=newest[0].status if newest else None)
    return health


class OpenCallback(NamedTuple):
    """A callback that has not ended: when it is due, and the state of its job."""

    id: str
    due_ms: int
    state: int


def open_callbacks_by_ids(connection: Connection, ids: Collection[str]) -> dict[str, OpenCallback]:
    """Return those of the callbacks that have not ended."""
    if not ids:
        return {}
    query = select(callbacks.c.id, callbacks.c.due_ms, callbacks.c.state, callbacks.c.ended_on_ms)
    rows = connection.execute(query.where(equals_any(callbacks.c.id, "ids")), {"ids": list(ids)})
    return {row.id: OpenCallback(row.id, row.due_ms, row.state) for row in rows if row.ended_on_ms is None}


class DeliveryJob(NamedTuple):
    """A job that delivers a callback."""

    ref: str
    due_ms: int
    attempt: int
    note: str | None
    replay: bool


def find_delivery_jobs(
    connection: Connection, subscription_id: int, callback_id: str, *, scan_limit: int = MAX_SCANNED_CALLBACKS
) -> list[DeliveryJob]:
    """Return the jobs that deliver a callback, the one that is not a replay first.

    Of a long queue of replays only the first are scanned: a callback beyond them is simply waiting.
    """
    own = find_open_callback(connection, callback_id)
    jobs = [] if own is None else [DeliveryJob._make(own[name] for name in DeliveryJob._fields)]
    first = (
        select_row(queue_jobs, DeliveryJob)
        .where(
            queue_jobs.c.queue == int(QueueName.CALLBACKS),
            queue_jobs.c.concurrency_group == replay_group(subscription_id),
        )
        .order_by(queue_jobs.c.position)
        .limit(scan_limit)
        .subquery()
    )
    replays = select(first).where(first.c.ref == callback_id)
    return [*jobs, *map(DeliveryJob._make, connection.execute(replays))]


def _count(connection: Connection, limited: Select[Any]) -> int:
    return connection.execute(select(func.count()).select_from(limited.subquery())).scalar_one()


def _search(
    connection: Connection,
    ids: Sequence[int],
    ownership: ColumnElement[bool],
    fits: Sequence[ColumnElement[bool]],
    query: DeliveryFilter,
    before: DeliveryCursor | None,
    at_most: int,
    scan_limit: int,
) -> DeliveryPage:
    """Scan the newest callbacks of each subscription, back to where all of them were scanned."""
    rows: list[dict[str, Any]] = []
    ends: list[DeliveryCursor] = []
    limit = max(scan_limit // max(len(ids), 1), at_most)
    for subscription_id in ids:
        scope = and_(callbacks.c.subscription_id == subscription_id, ownership, *_time_conditions(query))
        newest = _newest_first(select(*_DELIVERY_COLUMNS, and_(*fits).label("fits")).where(scope), before)
        last = connection.execute(newest.offset(limit - 1).limit(1)).mappings().one_or_none()
        if last is not None:
            ends.append(_row_cursor(last))
        scanned = newest.limit(limit).subquery()
        chosen = select(*(scanned.c[column.name] for column in _DELIVERY_COLUMNS)).where(scanned.c.fits)
        chosen = chosen.order_by(*(scanned.c[column.name].desc() for column in _DELIVERY_ORDER))
        rows += read_dicts(connection, chosen.limit(at_most + 1))
    end = max(ends, default=None)
    rows = sorted((row for row in rows if end is None or _row_cursor(row) >= end), key=_row_cursor)[::-1]
    if len(rows) > at_most:
        return DeliveryPage(rows[:at_most], _row_cursor(rows[at_most - 1]), None)
    return DeliveryPage(rows, end, None if end is None else end.created_on_ms)


def _page(
    connection: Connection, statements: Sequence[_Select], before: DeliveryCursor | None, at_most: int
) -> DeliveryPage:
    rows: list[dict[str, Any]] = []
    for chosen in statements:
        rows += read_dicts(connection, _newest_first(chosen, before).limit(at_most + 1))
    rows.sort(key=_row_cursor, reverse=True)
    next_cursor = _row_cursor(rows[at_most - 1]) if len(rows) > at_most else None
    return DeliveryPage(rows[:at_most], next_cursor, None)


def _newest_first(chosen: _Select, before: DeliveryCursor | None) -> _Select:
    if before is not None:
        place = tuple_(*_DELIVERY_ORDER, callbacks.c.subscription_id)
        chosen = chosen.where(
            callbacks.c.created_on_ms <= before.created_on_ms,  # so that the index scan starts at the cursor
            place < (before.created_on_ms, before.subject, before.sequence, before.subscription_id),
        )
    return chosen.order_by(*(column.desc() for column in _DELIVERY_ORDER), callbacks.c.subscription_id.desc())


def _row_cursor(row: Mapping[Any, Any]) -> DeliveryCursor:
    return DeliveryCursor(row["created_on_ms"], row["subject"], row["sequence"], row["subscription_id"])


def _time_conditions(query: DeliveryFilter) -> list[ColumnElement[bool]]:
    at_ms = callbacks.c.created_on_ms
    return filter_conditions((ge, at_ms, query.from_ms), (lt, at_ms, query.to_ms))


MAX_LOGGED_EVENTS: Final = 200  # maximum events of one log; a message has about ten


def sent_message_events(
    connection: Connection, app_id: str, message_id: str, from_ms: int, to_ms: int
) -> list[LoggedEvent]:
    """Return the steps of a message that an app has sent, of a time range, oldest first.

    Args:
        app_id: of another app's message nothing is returned.
        message_id: ours, or the operator's.
        from_ms: completed from then on, and before `to_ms`.
    """
    row = _find_message(connection, app_id, message_id)
    if row is None:
        return []
    steps: list[tuple[int, str]] = [(row["accepted_on_ms"], "accepted")]
    steps += [(at_ms, state.value) for state in TIMED_STATES if (at_ms := row[f"{state.value}_on_ms"]) is not None]
    query = select(message_events.c.at_ms, message_events.c.event).where(message_events.c.message_id == row["id"])
    steps += read_all(connection, query.order_by(message_events.c.id).limit(MAX_LOGGED_EVENTS), tuple)
    steps.sort(key=lambda step: step[0])
    begun = [None, *(at_ms for at_ms, _ in steps)]
    events = [
        LoggedEvent(name, at_ms, start_ms, row["destination"])
        for (at_ms, name), start_ms in zip(steps, begun, strict=False)
    ]
    return [event for event in events if from_ms <= (event.end_ms or 0) < to_ms][:MAX_LOGGED_EVENTS]


def callback_events(
    connection: Connection, app_id: str, message_id: str, from_ms: int, to_ms: int
) -> list[LoggedEvent]:
    """Return the callbacks about a message that were emitted within a time range, oldest first.

    Args:
        app_id: of another app's message nothing is returned.
        message_id: of a message that the app has sent or received; ours, or the operator's.
        from_ms: emitted from then on, and before `to_ms`.
        to_ms: a few minutes later, because the callbacks of a received message are found by time.
    """
    row = _find_message(connection, app_id, message_id)
    in_range = (callbacks.c.app_id == app_id, callbacks.c.created_on_ms >= from_ms, callbacks.c.created_on_ms < to_ms)
    query = select(callbacks).where(*in_range).order_by(callbacks.c.created_on_ms).limit(MAX_LOGGED_EVENTS)
    if row is not None:
        found = connection.execute(query.where(callbacks.c.message_id == row["id"])).mappings()
        return [_callback_event(callback, row["destination"]) for callback in found]
    received = select(inbound_messages.c.recipient_id).where(
        inbound_messages.c.operator_message_id == message_id, inbound_messages.c.app_id == app_id
    )
    recipient_id = connection.execute(received).scalar_one_or_none()
    if recipient_id is None:
        return []
    own = select(subscriptions.c.id).where(subscriptions.c.app_id == app_id)
    of_sender = query.where(callbacks.c.subscription_id.in_(own), callbacks.c.subject == str(recipient_id))
    return [
        _callback_event(callback, "")
        for callback in connection.execute(of_sender).mappings()
        if message_id.encode() in read_callback_body(callback["body"], callback["message_id"])
    ]


def _find_message(connection: Connection, app_id: str, message_id: str) -> Any:
    for column in (messages.c.id, messages.c.operator_message_id):
        row = read_dict(connection, select(messages).where(column == message_id, messages.c.app_id == app_id).limit(1))
        if row is not None:
            return row
    return None


def _callback_event(row: Any, destination: str) -> LoggedEvent:
    end_ms = row["ended_on_ms"]
    if row["attempted_on_ms"] is not None:  # the first attempt delivered it
        end_ms = row["attempted_on_ms"] + (row["duration_ms"] or 0)
    return LoggedEvent(row["event"], end_ms, row["created_on_ms"], destination, row["delivered"])
