"""The deliveries of a subscription: how many succeeded, and how long they took."""

from functools import partial
from typing import Annotated

from msgspec import Struct

from waypost.api.fields import Field
from waypost.api.operation import AppCall, Operations
from waypost.api.route import StatusFirst
from waypost.api.subscriptions import ONE_SUBSCRIPTION, ONE_SUBSCRIPTION_ERRORS, subscription_in_path
from waypost.domain.errors import ErrorCode
from waypost.store.callbacks.receivers import count_attempts
from waypost.wire.reports import DEFAULT_INTERVAL, POINTS, DeliveryAnalytics, delivery_analytics, read_interval

operation = Operations("ledger 1.4", at_operator=False)


class Interval(Struct, rename="camel"):
    """The intervals of a series."""

    agg_by: Annotated[
        str, Field("The length of an interval: 15m, 1hr, 6hr, 12hr, 1d or 3d; 1hr when absent.", "1hr")
    ] = DEFAULT_INTERVAL


class SubscriptionDeliveries(StatusFirst, kw_only=True):
    """The deliveries of a subscription."""

    analytics: DeliveryAnalytics


@operation(
    "GET",
    f"{ONE_SUBSCRIPTION}/analytics",
    SubscriptionDeliveries,
    rate="subscription",
    errors=(*ONE_SUBSCRIPTION_ERRORS, ErrorCode.FIELD_BROKEN),
)
async def show_delivery_analytics(call: AppCall, query: Interval) -> SubscriptionDeliveries:
    """Return the deliveries of a subscription in the last 24 intervals, the current one included.

    Of a very busy receiver only the newest 20,000 attempts count.

    Errors in this order: 401, 429, 400 unknown, 403 of another app, 400 no interval.

    Source: ledger 1.4, `analytics`; the number of intervals is ours.
    """
    subscription = await subscription_in_path(call)
    interval_ms = read_interval(query.agg_by)
    now_ms = call.services.clock.now_ms()
    to_ms = now_ms - now_ms % interval_ms + interval_ms
    from_ms = to_ms - POINTS * interval_ms
    counts = await call.services.database.read(
        partial(count_attempts, subscription_id=int(subscription.id), from_ms=from_ms, to_ms=to_ms, slots=POINTS)
    )
    analytics = delivery_analytics(counts, from_ms=from_ms, interval_ms=interval_ms, now_ms=now_ms)
    return SubscriptionDeliveries(analytics=analytics)
