"""Where a partner wants callbacks, and which."""

import json
from collections.abc import Callable
from typing import Any, Final

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from waypost.domain.subscription import Subscription
from waypost.store.tables import subscriptions

Seal = Callable[[str, str], bytes]
Unseal = Callable[[bytes, str], str]


def add_subscription(
    connection: Connection,
    subscription: Subscription,
    seal: Seal,
    most: int,
) -> str:
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
    held = subscription_of_partner(connection, named.partner_id, int(named.id), unseal)
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
    return subscription


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
    }


class TagTaken(Exception):
    """The app already has a subscription with this tag."""


class TooMany(Exception):
    """The app already has as many subscriptions as it may."""


def subscriptions_of(
    connection: Connection, app_id: str, partner_id: int, unseal: Unseal
) -> list[Subscription]:
    """An app's subscriptions, oldest first."""
    rows = connection.execute(
        select(subscriptions)
        .where(subscriptions.c.app_id == app_id, subscriptions.c.partner_id == partner_id)
        .order_by(subscriptions.c.id)
    )
    return [subscription_of(row, unseal) for row in rows]


def subscription_of_partner(
    connection: Connection, partner_id: int, id: int, unseal: Unseal
) -> Subscription | None:
    """One of a partner's subscriptions, of whichever of its apps; None where it has none such."""
    row = connection.execute(
        select(subscriptions).where(
            subscriptions.c.id == id, subscriptions.c.partner_id == partner_id
        )
    ).one_or_none()
    return None if row is None else subscription_of(row, unseal)


def delete_subscriptions(
    connection: Connection, app_id: str, partner_id: int, id: str | None = None
) -> int:
    """Delete one subscription of an app, or all of them; give how many there were."""
    chosen = delete(subscriptions).where(
        subscriptions.c.app_id == app_id, subscriptions.c.partner_id == partner_id
    )
    if id is not None:
        chosen = chosen.where(subscriptions.c.id == int(id))
    return connection.execute(chosen).rowcount


def subscriptions_by_ids(
    connection: Connection, ids: set[int], unseal: Unseal
) -> dict[int, Subscription]:
    """Subscriptions by id; those that were deleted are left out."""
    rows = connection.execute(_BY_ID, {"ids": list(ids)})
    return {row.id: subscription_of(row, unseal) for row in rows}


def _headers_in(meta: str | None) -> dict[str, str]:
    headers: dict[str, Any] = (json.loads(meta).get("headers") if meta else None) or {}
    return {name: str(value) for name, value in headers.items()}


def subscription_of(row: Any, unseal: Unseal) -> Subscription:
    """A subscription from its row, its headers opened."""
    meta = None if row.sealed_meta is None else unseal(row.sealed_meta, row.app_id)
    return Subscription(
        id=str(row.id),
        partner_id=row.partner_id,
        app_id=row.app_id,
        tag=row.tag,
        url=row.url,
        version=row.version,
        modes=tuple(row.modes.split(",")),
        created_on_ms=row.created_on_ms,
        modified_on_ms=row.modified_on_ms,
        active=row.active,
        show_on_ui=row.show_on_ui,
        meta=meta,
        headers=_headers_in(meta),
    )


_BY_ID: Final = select(subscriptions).where(
    subscriptions.c.id.in_(bindparam("ids", expanding=True))
)
