"""Subscriptions: where a partner receives callbacks, and which ones."""

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, Row, bindparam, delete, func, insert, select, update

from waypost.domain.callbacks import Subscription
from waypost.store.bulk_statements import BulkSelect
from waypost.store.queue.job_subjects import QueueName
from waypost.store.queue.jobs import live_group, replay_group
from waypost.store.sql import RowReader, equals_any, is_of_app, read_all, read_one
from waypost.store.tables import subscriptions
from waypost.store.write_through_cache import enqueued_jobs

_read_subscription: Final = RowReader(Subscription)

Seal = Callable[[str, str], bytes]
Unseal = Callable[[bytes, str], str]

_COUNT_OF_APP: Final = select(func.count()).where(subscriptions.c.app_id == bindparam("app_id"))
_IDS_BY_TAG: Final = select(subscriptions.c.id).where(
    subscriptions.c.app_id == bindparam("app_id"), subscriptions.c.tag == bindparam("tag")
)
_BY_ID: Final = select(subscriptions).where(
    subscriptions.c.id == bindparam("id"), subscriptions.c.partner_id == bindparam("partner_id")
)
_BY_ID_LOCKED: Final = _BY_ID.with_for_update()
_BY_APP: Final = (
    select(subscriptions)
    .where(subscriptions.c.app_id == bindparam("app_id"), subscriptions.c.partner_id == bindparam("partner_id"))
    .order_by(subscriptions.c.id)
)


def add_subscription(connection: Connection, subscription: Subscription, seal: Seal, max_subscriptions: int) -> str:
    """Store a subscription and return its id.

    Raises:
        DuplicateTag: the app has one with this tag.
        TooManySubscriptions: the app has as many as it may.
    """
    _check_tag(connection, subscription)
    if connection.execute(_COUNT_OF_APP, {"app_id": subscription.app_id}).scalar_one() >= max_subscriptions:
        raise TooManySubscriptions(subscription.app_id)
    created = {name: getattr(subscription, name) for name in ("partner_id", "app_id", "created_on_ms")}
    new = insert(subscriptions).values(**created, **_columns(subscription, seal)).returning(subscriptions.c.id)
    return str(connection.execute(new).scalar_one())


def change_subscription(
    connection: Connection,
    target: Subscription,
    change: Callable[[Subscription], Subscription],
    seal: Seal,
    unseal: Unseal,
) -> Subscription | None:
    """Change a subscription's current row, and return it; None if it was deleted.

    Args:
        connection: the writer's, so that no other write comes between the read and the change.
        target: it may be seconds old, so only its id and owner are used.
        change: returns the new subscription for the current one.

    Raises:
        DuplicateTag: another subscription of the app has this tag.
    """
    current = subscription_of_partner(connection, target.partner_id, int(target.id), unseal, for_update=True)
    if current is None or current.app_id != target.app_id:
        return None
    changed = change(current)
    is_same = (subscriptions.c.app_id == current.app_id, subscriptions.c.id == int(current.id))
    _check_tag(connection, replace(changed, app_id=current.app_id), current.id)
    connection.execute(update(subscriptions).where(*is_same).values(**_columns(changed, seal)))
    wake_callback_worker(connection, current.id)
    return changed


def _check_tag(connection: Connection, subscription: Subscription, own_id: str | None = None) -> None:
    others = connection.execute(_IDS_BY_TAG, {"app_id": subscription.app_id, "tag": subscription.tag}).scalars()
    if {str(other) for other in others} - {own_id}:
        raise DuplicateTag(subscription.tag)


def wake_callback_worker(connection: Connection, id: int | str) -> None:
    """Make the worker of a subscription's callbacks read its jobs again, once this is committed."""
    for group in (live_group(id), replay_group(id)):
        enqueued_jobs(connection).add_group(QueueName.CALLBACKS, group)


def _columns(subscription: Subscription, seal: Seal) -> dict[str, Any]:
    """Return the columns that may change."""
    names = (
        *("tag", "url", "version", "active", "show_on_ui", "modified_on_ms", "paused_on_ms", "pause_reason"),
        *("failing_since_ms", "retry_after_until_ms"),
    )
    meta = subscription.meta
    sealed = None if meta is None else seal(meta, subscription.app_id)
    changing = {name: getattr(subscription, name) for name in names}
    return {**changing, "modes": ",".join(subscription.modes), "encrypted_meta": sealed}


class DuplicateTag(Exception):
    """The app already has a subscription with this tag."""


class TooManySubscriptions(Exception):
    """The app already has as many subscriptions as it may."""


def list_app_subscriptions(connection: Connection, app_id: str, partner_id: int, unseal: Unseal) -> list[Subscription]:
    """Return an app's subscriptions, oldest first."""
    owner = {"app_id": app_id, "partner_id": partner_id}
    return read_all(connection, _BY_APP, lambda row: decode_subscription(row, unseal), **owner)


def subscription_of_partner(
    connection: Connection, partner_id: int, id: int, unseal: Unseal, *, for_update: bool = False
) -> Subscription | None:
    """Return one of a partner's subscriptions, of any of its apps; None if there is no such subscription."""
    query = _BY_ID_LOCKED if for_update else _BY_ID
    return read_one(connection, query, lambda row: decode_subscription(row, unseal), id=id, partner_id=partner_id)


def delete_subscriptions(connection: Connection, app_id: str, partner_id: int, id: str | None = None) -> int:
    """Delete one subscription of an app, or all of them; return how many there were."""
    chosen = delete(subscriptions).where(is_of_app(subscriptions, partner_id, app_id))
    if id is not None:
        chosen = chosen.where(subscriptions.c.id == int(id))
    deleted_ids = connection.execute(chosen.returning(subscriptions.c.id)).scalars().all()
    for deleted_id in deleted_ids:
        wake_callback_worker(connection, deleted_id)  # its waiting callbacks are ended
    return len(deleted_ids)


def subscriptions_by_ids(connection: Connection, ids: set[int], unseal: Unseal) -> dict[int, Subscription]:
    """Return subscriptions by id; those that were deleted are left out."""
    rows = connection.execute(_SUBSCRIPTIONS_BY_IDS, {"ids": list(ids)})
    return {row.id: decode_subscription(row, unseal) for row in rows}


class ActiveSubscription(NamedTuple):
    """The columns that decide which callbacks a subscription receives."""

    id: int
    app_id: str
    version: int
    modes: str


def active_subscriptions(connection: Connection, app_ids: Collection[str]) -> list[ActiveSubscription]:
    """Return the subscriptions of these apps that their partners have not paused."""
    return _ACTIVE_SUBSCRIPTIONS.run(connection, app_ids)


def tags_by_ids(connection: Connection, ids: Sequence[int]) -> dict[int, str]:
    """Return the tags of subscriptions; those that were deleted are left out."""
    named = select(subscriptions.c.id, subscriptions.c.tag).where(subscriptions.c.id.in_(ids))
    return dict(read_all(connection, named, tuple))


def decode_subscription(row: Row[Any], unseal: Unseal) -> Subscription:
    """Return a subscription from its row, with its headers decrypted."""
    meta = None if row.encrypted_meta is None else unseal(row.encrypted_meta, row.app_id)
    stored: dict[str, Any] = (json.loads(meta).get("headers") if meta else None) or {}
    headers = {name: str(value) for name, value in stored.items()}
    return _read_subscription(row, id=str(row.id), modes=tuple(row.modes.split(",")), meta=meta, headers=headers)


_SUBSCRIPTIONS_BY_IDS: Final = select(subscriptions).where(equals_any(subscriptions.c.id, "ids"))
_ACTIVE_SUBSCRIPTIONS: Final = BulkSelect(
    subscriptions, ActiveSubscription, "app_id", condition="active", is_locked=False
)
