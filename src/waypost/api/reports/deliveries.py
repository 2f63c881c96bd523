"""The endpoint for the deliveries of a subscription: how many succeeded, and how long they took."""

from functools import partial

from waypost.api.auth.authorisation import authorise_app
from waypost.api.http.requests import ApiResponse, Request
from waypost.api.services import Services
from waypost.api.subscriptions import subscription_in_path
from waypost.store.callbacks.receiver_statistics import count_attempts
from waypost.wire.reports import POINTS, delivery_analytics, read_interval


async def show_delivery_analytics(services: Services, request: Request) -> ApiResponse:
    """Return the deliveries of a subscription in the last 24 intervals, the current one included.

    Of a very busy receiver only the newest 20,000 attempts count.

    Errors in this order: 401, 429, 400 unknown, 403 of another app, 400 no interval.

    Source: ledger 1.4, `analytics`; the number of intervals is ours.
    """
    app = await authorise_app(services, request)
    subscription = await subscription_in_path(services, request, app)
    interval_ms = read_interval(request.query("aggBy"))
    now_ms = services.clock.now_ms()
    to_ms = now_ms - now_ms % interval_ms + interval_ms
    from_ms = to_ms - POINTS * interval_ms
    counts = await services.database.read(
        partial(count_attempts, subscription_id=int(subscription.id), from_ms=from_ms, to_ms=to_ms, slots=POINTS)
    )
    analytics = delivery_analytics(counts, from_ms=from_ms, interval_ms=interval_ms, now_ms=now_ms)
    return ApiResponse({"status": "success", "analytics": analytics})
