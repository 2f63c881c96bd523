"""Read receipts and actions on calls, and the status of a message."""

from dataclasses import asdict
from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Struct, UnsetType

from waypost.api.authorisation import Credential
from waypost.api.fields import Field, omit_empty
from waypost.api.operation import APP, KEY_APP, AppCall, Operations
from waypost.api.route import BodyFormat
from waypost.domain.direct_calls import MarkRead
from waypost.domain.errors import ApiError, ErrorCode
from waypost.store.console.conversations import mark_conversation_read
from waypost.store.encoding import TEMPLATE_MESSAGE_KINDS
from waypost.store.messages.messages import messages_by_ids
from waypost.store.messages.received import find_inbound_message, find_inbound_with_sender
from waypost.wire.calling import CallEvent, VoiceAction
from waypost.wire.message_forms import message_record, received_record
from waypost.wire.passthrough import ReadMessage, ReadReceipt, read_event
from waypost.wire.responses import Success, success

operation = Operations("facts 9.1, read receipts")
_MESSAGE: Final = f"{KEY_APP}/msg/{{message_id}}"


class SentEvent(Struct):
    """An event about a message or a call; `wire/passthrough.py` reads it."""

    type: Annotated[
        str, Field("The type of event: message-event or voice-event.", "message-event", is_required=True)
    ] = ""
    message: Annotated[
        ReadMessage | None,
        Field(
            "The receipt; required for message-event.",
            '{"messaging_product":"whatsapp","status":"read","message_id":"wamid.A"}',
        ),
    ] = None
    voice: Annotated[
        VoiceAction | None,
        Field(
            "An action on a call: accept and pre_accept with a session, reject or terminate; required for voice-event."
        ),
    ] = None


class MessageRecord(Struct, rename="camel"):
    """The status of a message."""

    id: str
    app_id: str
    destination: str
    type: Literal["session", "template", "message"]
    status: Literal["submitted", "enqueued", "sent", "delivered", "read", "deleted", "failed", "received"]
    created_on: int
    modified_on: int
    source: str | UnsetType = UNSET
    whatsapp_message_id: str | UnsetType = UNSET
    code: int | UnsetType = UNSET
    reason: str | UnsetType = UNSET


@operation(
    "PUT", f"{_MESSAGE}/read", Success, credential=Credential.API_KEY, errors=(ErrorCode.MESSAGE_DOES_NOT_EXIST,)
)
async def mark_as_read(call: AppCall) -> None:
    """Mark an inbound message as read."""
    await mark_read(call, ReadReceipt(call.request.path["message_id"]))


@operation(
    "POST",
    f"{APP}/v1/event",
    Success,
    source="facts 9.1, read receipts; ledger 1.7, voice-event",
    body=SentEvent,
    body_format=BodyFormat.JSON,
    errors=(
        ErrorCode.EVENT_NOT_SUPPORTED,
        ErrorCode.INVALID_JSON_PAYLOAD,
        ErrorCode.WRONG_TYPE,
        ErrorCode.MESSAGE_DOES_NOT_EXIST,
    ),
)
async def post_event(call: AppCall) -> None:
    """Mark an inbound message as read and optionally show a typing indicator, or act on a call.

    The operator knows which calls there are; its error for another one is passed on.
    """
    event = read_event(call.request.body)
    if isinstance(event, CallEvent):
        body = omit_empty({"messaging_product": "whatsapp", **asdict(event)})
        await call.graph("POST", f"{call.number}/calls", body, is_message=True)
    else:
        await mark_read(call, event)


@operation(
    "GET",
    _MESSAGE,
    success(message=MessageRecord),
    source="facts 9.1; the response format is ours",
    credential=Credential.API_KEY,
    at_operator=False,
    errors=(ErrorCode.MESSAGE_DOES_NOT_EXIST,),
)
async def show_message(call: AppCall) -> dict[str, Any]:
    """Return the status of a message that the app sent or received.

    Source: facts 9.1 for the path; the response's format is ours.
    """
    services, request, app = call
    message_id = request.path["message_id"]
    row = (await services.database.read(messages_by_ids, {message_id})).get(message_id)
    if row is not None and row.app_id == app.id:
        record = message_record(row, row.kind in TEMPLATE_MESSAGE_KINDS)
        return {"status": "success", "message": record}
    received = await services.database.read(find_inbound_with_sender, app.id, message_id)
    if received is None:
        raise ApiError(ErrorCode.MESSAGE_DOES_NOT_EXIST, "The path must end in the id of a message of the app's.")
    return {"status": "success", "message": received_record(received, app.phone_number)}


async def mark_read(call: AppCall, receipt: ReadReceipt) -> None:
    """Mark an inbound message as read at the operator, and what its sender wrote before as read here.

    Raises:
        ApiError: the app has received no such message, or the operator returned an error or no response.
    """
    database, app = call.services.database, call.app
    received = await database.read(find_inbound_message, app.id, receipt.message_id)
    if received is None:
        raise ApiError(
            ErrorCode.MESSAGE_DOES_NOT_EXIST,
            "The id must be that of a message that the app has received, as its callback names it.",
        )
    await call.operator(MarkRead(call.number, receipt.message_id, receipt.typing))
    await database.write(mark_conversation_read, app.id, received.recipient_id, received.received_on_ms)
