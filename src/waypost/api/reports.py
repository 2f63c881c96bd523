"""Reports: deliveries of callbacks, and event logs of messages."""

from functools import partial
from typing import Annotated, Any, Final

from msgspec import Struct

from waypost.api.authorisation import Credential
from waypost.api.fields import Field
from waypost.api.operation import AppCall, Operations, PartnerCall
from waypost.api.subscriptions import ONE_SUBSCRIPTION, ONE_SUBSCRIPTION_ERRORS, subscription_in_path
from waypost.domain.app import App
from waypost.domain.errors import ApiError, ErrorCode
from waypost.store.callbacks.deliveries import callback_events, sent_message_events
from waypost.store.callbacks.receivers import count_attempts
from waypost.wire.reports import (
    DEFAULT_INTERVAL,
    POINTS,
    DeliveryAnalytics,
    EventItem,
    callback_event_items,
    check_window,
    delivery_analytics,
    message_event_items,
    read_day,
    read_interval,
)
from waypost.wire.responses import response, success

operation = Operations("ledger 1.4", at_operator=False)


class Interval(Struct, rename="camel"):
    """The intervals of a series."""

    agg_by: Annotated[
        str, Field("The length of an interval: 15m, 1hr, 6hr, 12hr, 1d or 3d; 1hr when absent.", "1hr")
    ] = DEFAULT_INTERVAL


@operation(
    "GET",
    f"{ONE_SUBSCRIPTION}/analytics",
    success(analytics=DeliveryAnalytics),
    rate="subscription",
    errors=(*ONE_SUBSCRIPTION_ERRORS, ErrorCode.FIELD_BROKEN),
)
async def show_delivery_analytics(call: AppCall, query: Interval) -> dict[str, Any]:
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
    return {"status": "success", "analytics": analytics}


event_operation = Operations("ledger 1.2", Credential.PARTNER_TOKEN, at_operator=False)
_ERRORS: Final = (ErrorCode.FIELD_BROKEN, ErrorCode.APP_ID_UNKNOWN)
_EVENTS: Final = response(eventList=list[EventItem])


class LoggedMessage(Struct, rename="camel"):
    """A message, and a day of its log."""

    id: Annotated[str, Field("A message's id.", "01990000-0000-7000-8000-0000000000c1", "a message's id")]
    app_id: Annotated[
        str, Field("The id of one of your apps.", "01990000-0000-7000-8000-0000000000a1", "the id of one of your apps")
    ]
    date: Annotated[str, Field("The day, UTC, as DD-MM-YYYY.", "27-11-2026", "a day as DD-MM-YYYY")]


class LoggedCallbacks(LoggedMessage, rename="camel"):
    """A message, and a time of one day of its log."""

    start: Annotated[
        int,
        Field(
            "From then on, in milliseconds since the epoch.",
            "1795772400000",
            "milliseconds since the epoch",
            kind="Long",
        ),
    ]
    end: Annotated[
        int,
        Field(
            "Until then, at most 600000 milliseconds after `start`.",
            "1795773000000",
            "milliseconds since the epoch",
            kind="Long",
        ),
    ]


@event_operation("GET", "/partner/account/api/event/outgoing", _EVENTS, errors=_ERRORS)
async def list_outgoing_events(call: PartnerCall, query: LoggedMessage) -> dict[str, Any]:
    """Return the steps of a message that an app has sent, of one day.

    Steps of today are there too, and a message that does not exist has none.

    Errors in this order: 401, 429, 400 a missing field, 400 not one of the partner's apps, 400 no day.
    """
    app = await _find_app(call, query.app_id)
    from_ms, to_ms = read_day(query.date)
    events = await call.services.database.read(sent_message_events, app.id, query.id, from_ms, to_ms)
    return {"eventList": message_event_items(events, query.id, app.phone_number)}


@event_operation("GET", "/partner/account/api/event/incoming", _EVENTS, errors=_ERRORS)
async def list_incoming_events(call: PartnerCall, query: LoggedCallbacks) -> dict[str, Any]:
    """Return the callbacks about a message that an app has sent or received, of at most ten minutes of one day.

    Errors in this order: 401, 429, 400 a missing field, 400 not one of the partner's apps, 400 no day, 400 a
    longer time.
    """
    app = await _find_app(call, query.app_id)
    from_ms, to_ms = read_day(query.date)
    check_window(query.start, query.end)
    within = (max(from_ms, query.start), min(to_ms, query.end + 1))
    events = await call.services.database.read(callback_events, app.id, query.id, *within)
    return {"eventList": callback_event_items(events, query.id, app.name)}


async def _find_app(call: PartnerCall, app_id: str) -> App:
    """Return one of the partner's apps."""
    app = await call.services.directory.app(app_id)
    if app is None or app.partner_id != call.partner_id:
        raise ApiError(ErrorCode.APP_ID_UNKNOWN, "appId must be the id of one of your apps.", field="appId")
    return app
