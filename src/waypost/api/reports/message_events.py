"""The log of one message: its own steps, and the callbacks about it."""

from typing import Annotated, Final

from msgspec import Struct

from waypost.api.authorisation import Credential
from waypost.api.fields import Field
from waypost.api.operation import Operations, PartnerCall
from waypost.domain.app import App
from waypost.domain.errors import ApiError, ErrorCode
from waypost.store.callbacks.deliveries import callback_events, sent_message_events
from waypost.wire.reports import EventItem, callback_event_items, check_window, message_event_items, read_day

operation = Operations("ledger 1.2", Credential.PARTNER_TOKEN, at_operator=False)
_ERRORS: Final = (ErrorCode.FIELD_BROKEN, ErrorCode.APP_ID_UNKNOWN)


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


class EventLog(Struct, rename="camel"):
    """Events of a message."""

    event_list: list[EventItem]


@operation("GET", "/partner/account/api/event/outgoing", EventLog, errors=_ERRORS)
async def list_outgoing_events(call: PartnerCall, query: LoggedMessage) -> EventLog:
    """Return the steps of a message that an app has sent, of one day.

    Steps of today are there too, and a message that does not exist has none.

    Errors in this order: 401, 429, 400 a missing field, 400 not one of the partner's apps, 400 no day.

    Source: ledger 1.2, `event/outgoing`.
    """
    app = await _find_app(call, query.app_id)
    from_ms, to_ms = read_day(query.date)
    events = await call.services.database.read(sent_message_events, app.id, query.id, from_ms, to_ms)
    return EventLog(message_event_items(events, query.id, app.phone_number))


@operation("GET", "/partner/account/api/event/incoming", EventLog, errors=_ERRORS)
async def list_incoming_events(call: PartnerCall, query: LoggedCallbacks) -> EventLog:
    """Return the callbacks about a message that an app has sent or received, of at most ten minutes of one day.

    Errors in this order: 401, 429, 400 a missing field, 400 not one of the partner's apps, 400 no day, 400 a
    longer time.

    Source: ledger 1.2, `event/incoming`.
    """
    app = await _find_app(call, query.app_id)
    from_ms, to_ms = read_day(query.date)
    check_window(query.start, query.end)
    within = (max(from_ms, query.start), min(to_ms, query.end + 1))
    events = await call.services.database.read(callback_events, app.id, query.id, *within)
    return EventLog(callback_event_items(events, query.id, app.name))


async def _find_app(call: PartnerCall, app_id: str) -> App:
    """Return one of the partner's apps."""
    app = await call.services.directory.app(app_id)
    if app is None or app.partner_id != call.partner_id:
        raise ApiError(ErrorCode.APP_ID_UNKNOWN, "appId must be the id of one of your apps.", field="appId")
    return app
