"""Endpoints for read receipts and actions on calls, and for the status of a message."""

from waypost.api.auth.authorisation import authorise_app
from waypost.api.direct_calls import call_operator, number_of
from waypost.api.http.requests import ApiResponse, Request
from waypost.api.services import Services
from waypost.domain.app import App
from waypost.domain.direct_calls.calling import ApplyCallAction
from waypost.domain.direct_calls.profile import MarkRead
from waypost.domain.errors import ApiError, ErrorCode
from waypost.store.console.conversations import mark_conversation_read
from waypost.store.encoding import TEMPLATE_MESSAGE_KINDS
from waypost.store.messages.messages import messages_by_ids
from waypost.store.messages.received import find_inbound_message, find_inbound_with_sender
from waypost.wire.calling import CallEvent
from waypost.wire.messages.message_records import message_record, received_record
from waypost.wire.messages.passthrough import ReadReceipt, read_event


async def put_message_read(services: Services, request: Request) -> ApiResponse:
    """Mark an inbound message as read. Source: facts 9.1, read receipts."""
    app = await authorise_app(services, request)
    await mark_read(services, app, ReadReceipt(request.path["message_id"]))
    return ApiResponse({"status": "success"})


async def post_event(services: Services, request: Request) -> ApiResponse:
    """Mark an inbound message as read and optionally show a typing indicator, or act on a call.

    The operator knows which calls there are; its error for another one is passed on.

    Source: facts 9.1, `v1/event` and its two errors; ledger 1.7, voice-event.
    """
    app = await authorise_app(services, request)
    event = read_event(request.body)
    if isinstance(event, CallEvent):
        action = ApplyCallAction(number_of(app), event.call_id, event.action, event.session)
        await call_operator(services, app, action)
    else:
        await mark_read(services, app, event)
    return ApiResponse({"status": "success"})


async def show_message(services: Services, request: Request) -> ApiResponse:
    """Return the status of a message that the app sent or received.

    Source: facts 9.1 for the path; the response's format is ours.
    """
    app = await authorise_app(services, request)
    message_id = request.path["message_id"]
    row = (await services.database.read(messages_by_ids, {message_id})).get(message_id)
    if row is not None and row.app_id == app.id:
        record = message_record(row, row.kind in TEMPLATE_MESSAGE_KINDS)
        return ApiResponse({"status": "success", "message": record})
    received = await services.database.read(find_inbound_with_sender, app.id, message_id)
    if received is None:
        raise ApiError(ErrorCode.MESSAGE_DOES_NOT_EXIST, "The path must end in the id of a message of the app's.")
    return ApiResponse({"status": "success", "message": received_record(received, app.phone_number)})


async def mark_read(services: Services, app: App, receipt: ReadReceipt) -> None:
    """Mark an inbound message as read at the operator, and what its sender wrote before as read here.

    Raises:
        ApiError: the app has received no such message, or the operator returned an error or no response.
    """
    received = await services.database.read(find_inbound_message, app.id, receipt.message_id)
    if received is None:
        raise ApiError(
            ErrorCode.MESSAGE_DOES_NOT_EXIST,
            "The id must be that of a message that the app has received, as its callback names it.",
        )
    await call_operator(services, app, MarkRead(number_of(app), receipt.message_id, receipt.typing))
    await services.database.write(mark_conversation_read, app.id, received.recipient_id, received.received_on_ms)
