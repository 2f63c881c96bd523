"""Endpoints for the log of one message: its own steps, and the callbacks about it."""

from waypost.api.auth.authorisation import authorise_partner
from waypost.api.http.requests import ApiResponse, Request
from waypost.api.services import Services
from waypost.domain.app import App
from waypost.domain.errors import ApiError, ErrorCode, missing_parameter
from waypost.store.callbacks.event_log import callback_events, sent_message_events
from waypost.wire.reports import callback_event_items, message_event_items, read_day, read_window


async def list_outgoing_events(services: Services, request: Request) -> ApiResponse:
    """Return the steps of a message that an app has sent, of one day.

    Steps of today are there too, and a message that does not exist has none.

    Errors in this order: 401, 429, 400 a missing field, 400 no day, 400 not one of the partner's apps.

    Source: ledger 1.2, `event/outgoing`.
    """
    partner_id = await authorise_partner(services, request)
    message_id, app = await _read_message(services, request, partner_id)
    from_ms, to_ms = read_day(request.query)
    events = await services.database.read(sent_message_events, app.id, message_id, from_ms, to_ms)
    return ApiResponse({"eventList": message_event_items(events, message_id, app.phone_number)})


async def list_incoming_events(services: Services, request: Request) -> ApiResponse:
    """Return the callbacks about a message that an app has sent or received, of at most ten minutes of one day.

    Errors in this order: 401, 429, 400 a missing field, 400 no day, 400 a longer time, 400 not one of the
    partner's apps.

    Source: ledger 1.2, `event/incoming`.
    """
    partner_id = await authorise_partner(services, request)
    message_id, app = await _read_message(services, request, partner_id)
    from_ms, to_ms = read_day(request.query)
    start_ms, end_ms = read_window(request.query)
    within = (max(from_ms, start_ms), min(to_ms, end_ms + 1))
    events = await services.database.read(callback_events, app.id, message_id, *within)
    return ApiResponse({"eventList": callback_event_items(events, message_id, app.name)})


async def _read_message(services: Services, request: Request, partner_id: int) -> tuple[str, App]:
    """Return the message's id and the app that a query names."""
    message_id, app_id = request.query("id"), request.query("appId")
    if not message_id:
        raise missing_parameter("id", "a message's id")
    if not app_id:
        raise missing_parameter("appId", "the id of one of your apps")
    app = await services.directory.app(app_id)
    if app is None or app.partner_id != partner_id:
        raise ApiError(ErrorCode.APP_ID_UNKNOWN, "appId must be the id of one of your apps.", field="appId")
    return message_id, app
