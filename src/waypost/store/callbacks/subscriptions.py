"""Where a partner wants callbacks, and which."""

import json
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, Row, delete, func, insert, select, update

from waypost.domain.callbacks.subscription import Subscription
from waypost.store.queue.jobs import QueueName
from waypost.store.sql import one_of
from waypost.store.tables import subscriptions
from waypost.store.typed_rows import RowReader, select_row
from waypost.store.write_through_cache import APPENDED

_subscription_of: Final = RowReader(Subscription)

Seal = Callable[[str, str], bytes]
Unseal = Callable[[bytes, str], str]


def add_subscription(connection: Connection, subscription: Subscription, seal: Seal, most: int) -> str:
    """Keep a subscription and give its id.

    Raises:
        TagTaken: the app has one with this tag.
        TooMany: the app has as many as it may.
    """
    of_app = subscriptions.c.app_id == subscription.app_id
    if connection.execute(
        select(subscriptions.c.id).where(of_app, subscriptions.c.tag == subscription.tag)
    ).one_or_none():
        raise TagTaken(subscription.tag)
    if connection.execute(select(func.count()).where(of_app)).scalar_one() >= most:
        raise TooMany(subscription.app_id)
    new_id = connection.execute(
        insert(subscriptions).returning(subscriptions.c.id),
        {
            **_columns(subscription, seal),
            "partner_id": subscription.partner_id,
            "app_id": subscription.app_id,
            "created_on_ms": subscription.created_on_ms,
        },
    ).scalar_one()
    return str(new_id)


def change_subscription(
    connection: Connection,
    named: Subscription,
    change: Callable[[Subscription], Subscription],
    seal: Seal,
    unseal: Unseal,
) -> Subscription | None:
    """Change a subscription as it is now, and give it; None where it is there no longer.

    Args:
        connection: the writer's, so that nothing comes between the look and the change.
        named: which; it may be seconds old, so nothing of it but whose it is counts.
        change: gives the subscription as it is to be from the subscription as it is.
        seal: closes its headers.
        unseal: opens them.

    Raises:
        TagTaken: another one of the app has this tag.
    """
    held = subscription_of_partner(connection, named.partner_id, int(named.id), unseal, to_change=True)
    if held is None or held.app_id != named.app_id:
        return None
    subscription = change(held)
    of_app = subscriptions.c.app_id == held.app_id
    is_it = subscriptions.c.id == int(held.id)
    if connection.execute(
        select(subscriptions.c.id).where(of_app, subscriptions.c.tag == subscription.tag, ~is_it)
    ).one_or_none():
        raise TagTaken(subscription.tag)
    columns = _columns(subscription, seal)
    connection.execute(update(subscriptions).where(of_app, is_it).values(**columns))
    tell_worker(connection, held.id)
    return subscription


def tell_worker(connection: Connection, id: int | str) -> None:
    """Have whoever works a subscription's callbacks look at it again, once this is committed."""
    for group in (live_group(id), replay_group(id)):
        connection.info[APPENDED].look_at(QueueName.CALLBACKS, group)


def live_group(id: int | str) -> str:
    """The group of a subscription's callbacks in their queue."""
    return f"subscription {id}"


def replay_group(id: int | str) -> str:
    """The group of those that are told to it again: they hold up no live one."""
    return f"replay {id}"


def subscription_in(group: str) -> int:
    """Which subscription a group of the callbacks' queue belongs to."""
    return int(group.rpartition(" ")[2])


def _columns(subscription: Subscription, seal: Seal) -> dict[str, Any]:
    """What may change of it."""
    meta = subscription.meta
    return {
        "tag": subscription.tag,
        "url": subscription.url,
        "version": subscription.version,
        "modes": ",".join(subscription.modes),
        "active": subscription.active,
        "show_on_ui": subscription.show_on_ui,
        "sealed_meta": None if meta is None else seal(meta, subscription.app_id),
        "modified_on_ms": subscription.modified_on_ms,
        "paused_on_ms": subscription.paused_on_ms,
        "pause_reason": subscription.pause_reason,
        "failing_since_ms": subscription.failing_since_ms,
        "asked_until_ms": subscription.asked_until_ms,
    }


class TagTaken(Exception):
    """The app already has a subscription with this tag."""


class TooMany(Exception):
    """The app already has as many subscriptions as it may."""


def subscriptions_of(connection: Connection, app_id: str, partner_id: int, unseal: Unseal) -> list[Subscription]:
    """An app's subscriptions, oldest first."""
    rows = connection.execute(
        select(subscriptions)
        .where(subscriptions.c.app_id == app_id, subscriptions.c.partner_id == partner_id)
        .order_by(subscriptions.c.id)
    )
    return [subscription_of(row, unseal) for row in rows]


def subscription_of_partner(
    connection: Connection, partner_id: int, id: int, unseal: Unseal, *, to_change: bool = False
) -> Subscription | None:
    """One of a partner's subscriptions, of whichever of its apps; None where it has none such."""
    found = select(subscriptions).where(subscriptions.c.id == id, subscriptions.c.partner_id == partner_id)
    row = connection.execute(found.with_for_update() if to_change else found).one_or_none()
    return None if row is None else subscription_of(row, unseal)


def delete_subscriptions(connection: Connection, app_id: str, partner_id: int, id: str | None = None) -> int:
    """Delete one subscription of an app, or all of them; give how many there were."""
    chosen = delete(subscriptions).where(subscriptions.c.app_id == app_id, subscriptions.c.partner_id == partner_id)
    if id is not None:
        chosen = chosen.where(subscriptions.c.id == int(id))
    gone = connection.execute(chosen.returning(subscriptions.c.id)).scalars().all()
    for gone_id in gone:
        tell_worker(connection, gone_id)  # what waits for it is ended
    return len(gone)


def subscriptions_by_ids(connection: Connection, ids: set[int], unseal: Unseal) -> dict[int, Subscription]:
    """Subscriptions by id; those that were deleted are left out."""
    rows = connection.execute(_BY_ID, {"ids": list(ids)})
    return {row.id: subscription_of(row, unseal) for row in rows}


class ActiveSubscription(NamedTuple):
    """What decides which callbacks a subscription gets."""

    id: int
    app_id: str
    version: int
    modes: str


def active_subscriptions(connection: Connection, app_ids: Collection[str]) -> list[ActiveSubscription]:
    """The subscriptions of these apps that their partners have not paused."""
    return list(map(ActiveSubscription._make, connection.execute(_ACTIVE, {"apps": app_ids})))


def tags_of(connection: Connection, ids: Sequence[int]) -> dict[int, str]:
    """The tags of subscriptions; those that were deleted are left out."""
    rows = connection.execute(select(subscriptions.c.id, subscriptions.c.tag).where(subscriptions.c.id.in_(ids)))
    return {row.id: row.tag for row in rows}


def _headers_in(meta: str | None) -> dict[str, str]:
    headers: dict[str, Any] = (json.loads(meta).get("headers") if meta else None) or {}
    return {name: str(value) for name, value in headers.items()}


def subscription_of(row: Row[Any], unseal: Unseal) -> Subscription:
    """A subscription from its row, its headers opened."""
    meta = None if row.sealed_meta is None else unseal(row.sealed_meta, row.app_id)
    modes = tuple(row.modes.split(","))
    return _subscription_of(row, id=str(row.id), modes=modes, meta=meta, headers=_headers_in(meta))


_BY_ID: Final = select(subscriptions).where(one_of(subscriptions.c.id, "ids"))
_ACTIVE: Final = select_row(subscriptions, ActiveSubscription).where(
    one_of(subscriptions.c.app_id, "apps"), subscriptions.c.active
)
