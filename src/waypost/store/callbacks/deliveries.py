"""Lists of an app's callbacks, newest first, a page at a time: for people to browse.

A page begins where the last one ended. If a filter matches few, a limited number is scanned, and the page
says how far back that was: beyond the indexes that the pipeline needs, none is written for each callback.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, and_, func, or_, select, tuple_

from waypost.store.callbacks.callbacks import shown_callback
from waypost.store.callbacks.subscriptions import live_group, replay_group
from waypost.store.queue.jobs import QueueName
from waypost.store.sql import one_of
from waypost.store.tables import attempts, callbacks, queue_jobs, recipients, subscriptions, templates
from waypost.store.typed_rows import select_row

_Select = Any  # of many columns

LOOKED_AT: Final = 20_000
"""How many callbacks one page scans, if a filter matches few."""

_SHOWN: Final = (  # without the body, which a list does not show
    callbacks.c.id, callbacks.c.subscription_id, callbacks.c.about, callbacks.c.sequence,
    callbacks.c.message_id, callbacks.c.news, callbacks.c.created_on_ms, callbacks.c.ended_on_ms,
    callbacks.c.delivered,
)  # fmt: skip
_ORDER: Final = (callbacks.c.created_on_ms, callbacks.c.about, callbacks.c.sequence)
_STATES: Final = {
    "waiting": callbacks.c.ended_on_ms.is_(None),
    "delivered": callbacks.c.delivered.is_(True),
    "given up": callbacks.c.delivered.is_(False),
}
STATES: Final = tuple(_STATES)
"""Possible states of a callback."""


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """The end of a page: its last callback, or the last that was scanned."""

    created_on_ms: int
    about: str
    sequence: int
    subscription_id: int


@dataclass(frozen=True, slots=True)
class Sought:
    """Filter of callbacks: all given conditions must match.

    Attributes:
        subscription_id: one of the app's; None: all of them.
        state: one of `DELIVERY_STATES`.
        recipient: a phone number or business-scoped id.
        event: as named in the trace, such as `delivered`.
        message_id: about this message; ours.
        from_ms: rendered from then on.
        to_ms: and before then.
    """

    subscription_id: int | None = None
    state: str | None = None
    recipient: str | None = None
    news: str | None = None
    message_id: str | None = None
    from_ms: int | None = None
    to_ms: int | None = None

    @property
    def is_rare(self) -> bool:
        """True if many callbacks may have to be scanned for each match."""
        return bool(self.state or self.recipient or self.news)


@dataclass(frozen=True, slots=True)
class Deliveries:
    """One page.

    Attributes:
        rows: newest first.
        next: where the next page begins; None if there is nothing older.
        searched_to_ms: the scan ended there, and there may be more matches; None: these are all matches
            before `next`.
    """

    rows: list[dict[str, Any]]
    further: Place | None
    searched_to_ms: int | None


def deliveries_of(
    connection: Connection,
    partner_id: int,
    app_id: str,
    sought: Sought,
    *,
    before: Place | None = None,
    at_most: int = 50,
    look_at: int = LOOKED_AT,
) -> Deliveries:
    """Return one page of an app's callbacks, delivered or not.

    Callbacks of a deleted subscription are included only if the filter has their message.

    Args:
        connection: any.
        partner_id: owner of the app; for another partner the page is empty.
        app_id: the app.
        query: the filter.
        before: return the page after the one that ended there.
        at_most: how many.
        scan_limit: how many are scanned at most.
    """
    own = and_(callbacks.c.partner_id == partner_id, callbacks.c.app_id == app_id)
    fits = [own, *_fits(connection, app_id, sought)]
    if sought.message_id is not None:
        chosen = callbacks.c.message_id == sought.message_id
        if sought.subscription_id is not None:
            chosen = and_(chosen, callbacks.c.subscription_id == sought.subscription_id)
        return _page(connection, [select(*_SHOWN).where(chosen, *fits)], before, at_most)
    ids = _subscriptions(connection, partner_id, app_id, sought.subscription_id)
    if sought.state == "waiting" and _few_wait(connection, ids, look_at):
        queued = select(*_SHOWN).join(queue_jobs, queue_jobs.c.ref == callbacks.c.id)
        return _page(connection, [queued.where(_in_queue(ids), *fits)], before, at_most)
    if not sought.is_rare:
        statements = [
            select(*_SHOWN).where(callbacks.c.subscription_id == subscription_id, *fits) for subscription_id in ids
        ]
        return _page(connection, statements, before, at_most)
    return _search(connection, ids, own, fits, sought, before, at_most, look_at)


def delivery(connection: Connection, partner_id: int, app_id: str, callback_id: str) -> dict[str, Any] | None:
    """Return one callback with its bytes as text and every attempt; None if the app has no such callback."""
    row = connection.execute(
        select(callbacks).where(
            callbacks.c.id == callback_id,
            callbacks.c.partner_id == partner_id,
            callbacks.c.app_id == app_id,
        )
    ).mappings().one_or_none()  # fmt: skip
    return None if row is None else shown_callback(connection, dict(row))


def tries_of(connection: Connection, ids: Collection[str]) -> dict[str, list[Any]]:
    """Return attempts by callback, oldest first, without headers and responses."""
    if not ids:
        return {}
    columns = ("callback_id", "at_ms", "duration_ms", "status", "error", "kind")
    rows = connection.execute(
        select(*(attempts.c[name] for name in columns))
        .where(one_of(attempts.c.callback_id, "ids"))
        .order_by(attempts.c.id),
        {"ids": list(ids)},
    )
    attempts_by_callback: dict[str, list[Any]] = {}
    for row in rows:
        attempts_by_callback.setdefault(row.callback_id, []).append(row)
    return attempts_by_callback


def whom_about(connection: Connection, partner_id: int, app_id: str, abouts: Collection[str]) -> dict[str, str]:
    """Return readable subjects of callbacks: a number or a business-scoped id, or a template's name."""
    names: dict[str, str] = {}
    numbers = [int(about) for about in abouts if about.isdecimal() and len(about) < 19]
    recipient_query = select(recipients.c.id, recipients.c.phone_number, recipients.c.user_id).where(
        recipients.c.app_id == app_id, recipients.c.partner_id == partner_id, one_of(recipients.c.id, "ids")
    )
    for row in connection.execute(recipient_query, {"ids": numbers}):
        names[str(row.id)] = row.phone_number or row.user_id
    subjects_by_template = {about[2:]: about for about in abouts if about.startswith("t:")}
    template_query = select(templates.c.id, templates.c.element_name).where(
        templates.c.partner_id == partner_id, one_of(templates.c.id, "ids")
    )
    for row in connection.execute(template_query, {"ids": list(subjects_by_template)}):
        names[subjects_by_template[row.id]] = row.element_name
    return names


def tags_of(connection: Connection, partner_id: int, app_id: str) -> dict[int, str]:
    """Return the tags of an app's subscriptions by id, oldest first."""
    query = select(subscriptions.c.id, subscriptions.c.tag).where(
        subscriptions.c.app_id == app_id, subscriptions.c.partner_id == partner_id
    )
    return {row.id: row.tag for row in connection.execute(query.order_by(subscriptions.c.id))}


class DeliveryEntry(NamedTuple):
    """A job that delivers a callback."""

    ref: str
    due_ms: int
    attempt: int
    note: str | None
    replay: bool


def entries_of(
    connection: Connection, subscription_id: int, callback_id: str, *, look_at: int = LOOKED_AT
) -> list[DeliveryEntry]:
    """Return the jobs that deliver a callback, the one that is not a replay first.

    Of a long queue only the first jobs are scanned: a callback beyond them is simply waiting.
    """
    jobs: list[DeliveryEntry] = []
    for group in (live_group(subscription_id), replay_group(subscription_id)):
        first = (
            select_row(queue_jobs, DeliveryEntry)
            .where(queue_jobs.c.queue == int(QueueName.CALLBACKS), queue_jobs.c.concurrency_group == group)
            .order_by(queue_jobs.c.position)
            .limit(look_at)
            .subquery()
        )  # fmt: skip
        jobs += map(DeliveryEntry._make, connection.execute(select(first).where(first.c.ref == callback_id)))
    return jobs


def _search(
    connection: Connection,
    ids: Sequence[int],
    own: ColumnElement[bool],
    fits: Sequence[ColumnElement[bool]],
    sought: Sought,
    before: Place | None,
    at_most: int,
    look_at: int,
) -> Deliveries:
    """Scan the newest callbacks of each subscription, back to where all of them were scanned."""
    rows: list[dict[str, Any]] = []
    ends: list[Place] = []
    limit = max(look_at // max(len(ids), 1), at_most)
    for subscription_id in ids:
        scope = and_(callbacks.c.subscription_id == subscription_id, own, *_within(sought))
        newest = _newest_first(select(*_SHOWN, and_(*fits).label("fits")).where(scope), before)
        last = connection.execute(newest.offset(limit - 1).limit(1)).mappings().one_or_none()
        if last is not None:
            ends.append(_place(last))
        scanned = newest.limit(limit).subquery()
        chosen = select(*(scanned.c[column.name] for column in _SHOWN)).where(scanned.c.fits)
        chosen = chosen.order_by(*(scanned.c[column.name].desc() for column in _ORDER))
        rows += [dict(row) for row in connection.execute(chosen.limit(at_most + 1)).mappings()]
    end = max(ends, default=None)
    rows = sorted((row for row in rows if end is None or _place(row) >= end), key=_place)[::-1]
    if len(rows) > at_most:
        return Deliveries(rows[:at_most], _place(rows[at_most - 1]), None)
    return Deliveries(rows, end, None if end is None else end.created_on_ms)


def _page(connection: Connection, each: Sequence[_Select], before: Place | None, at_most: int) -> Deliveries:
    rows: list[dict[str, Any]] = []
    for chosen in each:
        newest = _newest_first(chosen, before).limit(at_most + 1)
        rows += [dict(row) for row in connection.execute(newest).mappings()]
    rows.sort(key=_place, reverse=True)
    next_cursor = _place(rows[at_most - 1]) if len(rows) > at_most else None
    return Deliveries(rows[:at_most], next_cursor, None)


def _newest_first(chosen: _Select, before: Place | None) -> _Select:
    if before is not None:
        place = tuple_(*_ORDER, callbacks.c.subscription_id)
        chosen = chosen.where(
            callbacks.c.created_on_ms <= before.created_on_ms,  # so that the index scan starts at the cursor
            place < (before.created_on_ms, before.about, before.sequence, before.subscription_id),
        )
    return chosen.order_by(*(column.desc() for column in _ORDER), callbacks.c.subscription_id.desc())


def _place(row: Mapping[Any, Any]) -> Place:
    return Place(row["created_on_ms"], row["about"], row["sequence"], row["subscription_id"])


def _within(sought: Sought) -> list[ColumnElement[bool]]:
    within: list[ColumnElement[bool]] = []
    if sought.from_ms is not None:
        within.append(callbacks.c.created_on_ms >= sought.from_ms)
    if sought.to_ms is not None:
        within.append(callbacks.c.created_on_ms < sought.to_ms)
    return within


def _fits(connection: Connection, app_id: str, sought: Sought) -> list[ColumnElement[bool]]:
    fits = _within(sought)
    if sought.state is not None:
        fits.append(_STATES[sought.state])
    if sought.news is not None:
        fits.append(callbacks.c.news == sought.news)
    if sought.recipient is not None:
        known = connection.execute(
            select(recipients.c.id).where(
                recipients.c.app_id == app_id,
                or_(recipients.c.phone_number == sought.recipient, recipients.c.user_id == sought.recipient),
            )
        ).scalars()
        # Before the operator has identified a recipient, its callbacks are about the destination.
        fits.append(callbacks.c.about.in_([sought.recipient, *map(str, known)]))
    return fits


def _subscriptions(connection: Connection, partner_id: int, app_id: str, id: int | None) -> Sequence[int]:
    chosen = select(subscriptions.c.id).where(
        subscriptions.c.app_id == app_id, subscriptions.c.partner_id == partner_id
    )
    if id is not None:
        chosen = chosen.where(subscriptions.c.id == id)
    return connection.execute(chosen.order_by(subscriptions.c.id)).scalars().all()


def _in_queue(ids: Sequence[int]) -> ColumnElement[bool]:
    groups = [live_group(subscription_id) for subscription_id in ids]
    return and_(queue_jobs.c.queue == int(QueueName.CALLBACKS), queue_jobs.c.concurrency_group.in_(groups))


def _few_wait(connection: Connection, ids: Sequence[int], most: int) -> bool:
    """Return True if few enough wait for all of them to be read; otherwise the newest callbacks include some."""
    jobs = select(queue_jobs.c.position).where(_in_queue(ids)).limit(most + 1).subquery()
    return connection.execute(select(func.count()).select_from(jobs)).scalar_one() <= most
