"""Checks the filters of lists: an unknown app, partner or subscription is an error, not an empty list."""

from typing import Final

from waypost.admin.provisioning import AdminContext, partner_of
from waypost.domain.errors import resource_not_found
from waypost.store.accounts.partners import app_by_id
from waypost.store.callbacks.receivers import SubscriptionFilter, list_receivers

ABSENT: Final = (None, 0)
"""A number 0 counts as absent."""


async def check_filters(
    context: AdminContext,
    *,
    app_id: str | None = None,
    partner_id: int | None = None,
    subscription_id: int | None = None,
) -> None:
    """Raise an error if one of these does not exist.

    Lists call it when nothing matches: entries of what has been deleted since are still found.
    """
    if partner_id not in ABSENT:
        await partner_of(context, partner_id)
    if app_id is not None and await context.database.read(app_by_id, app_id) is None:
        raise resource_not_found("app", "app_id", app_id)
    if subscription_id not in ABSENT and not await context.database.read(
        list_receivers, SubscriptionFilter(id=subscription_id)
    ):
        raise resource_not_found("subscription", "subscription_id", subscription_id)
