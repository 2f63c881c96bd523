"""Passthrough messages in the operator's own format: flows, templates and every other type."""

from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Struct, UnsetType

from waypost.api.fields import Field
from waypost.api.idempotency import record_message
from waypost.api.messages.send import build_message, trace_accepted
from waypost.api.messages.status import mark_read
from waypost.api.operation import APP, AppCall, Operations
from waypost.api.requests import ApiResponse
from waypost.api.route import IdempotencyMode
from waypost.api.services import Services
from waypost.base.telemetry.tracing import tracer
from waypost.domain.app import App
from waypost.domain.errors import ApiError, ErrorCode
from waypost.store.callbacks.subscriptions import list_app_subscriptions
from waypost.wire.passthrough import (
    MessageContext,
    PassthroughSend,
    ReadReceipt,
    TemplateObject,
    TypingIndicator,
    passthrough_response,
    read_passthrough,
)

_BILLING = frozenset({"BILLING", "ALL"})


operation = Operations("facts 9.3")
PASSTHROUGH_ERRORS: Final = (
    ErrorCode.FIELD_MISSING,
    ErrorCode.FIELD_BROKEN,
    ErrorCode.INVALID_DESTINATION,
    ErrorCode.INVALID_APP_DETAILS,
    ErrorCode.CALLBACK_BILLING_OFF,
)


class PassthroughFields(Struct):
    """A message in the operator's own format, or a read receipt; `wire/passthrough.py` reads it."""

    messaging_product: Annotated[str, Field("The product: whatsapp.", "whatsapp")] = ""
    recipient_type: Annotated[str, Field("The kind of recipient: individual or group.", "individual")] = ""
    to: Annotated[
        str,
        Field(
            "The recipient's phone number, or the id of a group; sent exactly as it is. Required unless "
            "`recipient` is there.",
            "15550002001",
        ),
    ] = ""
    recipient: Annotated[str, Field("A business-scoped user id, instead of `to`.", "US.1349")] = ""
    type: Annotated[
        str,
        Field(
            "The type of the message, whose object is in the field of that name; required except for a read receipt.",
            "text",
        ),
    ] = ""
    context: Annotated[
        MessageContext | None,
        Field(
            "JSON text: the message that this one replies to.", '{"message_id":"01990000-0000-7000-8000-0000000000c1"}'
        ),
    ] = None
    category: Annotated[
        str,
        Field("For Direct Send, the operator's category of a message without a template: utility or authentication."),
    ] = ""
    ttl_seconds: Annotated[int, Field("For Direct Send, how long the operator tries to deliver it.")] = 0
    biz_opaque_callback_data: Annotated[
        str, Field("The partner's own text of at most 475 characters; statuses of version 3 return it.")
    ] = ""
    status: Annotated[str, Field("read: this is a read receipt, not a message.")] = ""
    message_id: Annotated[str, Field("For a read receipt, the inbound message's id.")] = ""
    typing_indicator: Annotated[
        TypingIndicator | None, Field("JSON text, for a read receipt: show a typing indicator.")
    ] = None
    text: Annotated[dict[str, Any] | None, Field("JSON text: a text message.", '{"body":"Hello"}')] = None
    image: Annotated[dict[str, Any] | None, Field("JSON text: an image.", '{"link":"https://shop.example/a.png"}')] = (
        None
    )
    audio: Annotated[dict[str, Any] | None, Field("JSON text: audio.", '{"link":"https://shop.example/a.mp3"}')] = None
    video: Annotated[dict[str, Any] | None, Field("JSON text: a video.", '{"link":"https://shop.example/a.mp4"}')] = (
        None
    )
    document: Annotated[
        dict[str, Any] | None,
        Field("JSON text: a document.", '{"link":"https://shop.example/a.pdf","filename":"a.pdf"}'),
    ] = None
    sticker: Annotated[
        dict[str, Any] | None, Field("JSON text: a sticker.", '{"link":"https://shop.example/a.webp"}')
    ] = None
    location: Annotated[
        dict[str, Any] | None,
        Field("JSON text: a location.", '{"latitude":52.52,"longitude":13.4,"name":"Shop","address":"Main Street 1"}'),
    ] = None
    contacts: Annotated[
        list[dict[str, Any]] | None,
        Field(
            "JSON text: contact cards.",
            '[{"name":{"formatted_name":"Ann","first_name":"Ann"},"phones":[{"phone":"+15550002001"}]}]',
        ),
    ] = None
    reaction: Annotated[
        dict[str, Any] | None,
        Field(
            "JSON text: a reaction to a message.", '{"message_id":"01990000-0000-7000-8000-0000000000c1","emoji":"👍"}'
        ),
    ] = None
    interactive: Annotated[
        dict[str, Any] | None,
        Field(
            "JSON text: buttons, a list, a flow, products.",
            '{"type":"button","body":{"text":"Shall we come?"},"action":{"buttons":[{"type":"reply",'
            '"reply":{"id":"yes","title":"Yes"}}]}}',
        ),
    ] = None
    template: Annotated[
        TemplateObject | None,
        Field(
            "JSON text: a template's name, language and components.",
            '{"name":"order_ready","language":{"policy":"deterministic","code":"en_US"},'
            '"components":[{"type":"body","parameters":[{"type":"text","text":"Ann"},{"type":"text","text":"4711"}]}]}',
        ),
    ] = None


class PassthroughId(Struct):
    """The id of a message."""

    id: str


class PassthroughContact(Struct):
    """The recipient of a message, as written, and as a number or a business-scoped user id."""

    input: str
    wa_id: str | UnsetType = UNSET
    user_id: str | UnsetType = UNSET


class AcceptedPassthrough(Struct):
    """An accepted message."""

    messages: list[PassthroughId]
    messaging_product: Literal["whatsapp"]
    contacts: list[PassthroughContact]


class SentReceipt(Struct):
    """The response to a read receipt."""

    success: Literal[True]


@operation(
    "POST",
    f"{APP}/v3/message",
    AcceptedPassthrough | SentReceipt,
    source="spec, Flow passthrough message; facts 9.3",
    body=PassthroughFields,
    errors=(*PASSTHROUGH_ERRORS, ErrorCode.MESSAGE_DOES_NOT_EXIST),
    idempotency=IdempotencyMode.ONE_TRANSACTION,
)
async def send_passthrough(call: AppCall) -> dict[str, Any] | ApiResponse:
    """Accept a message that is sent to the operator as it is; 200 means that it is on disk.

    A read receipt in the same format is sent to the operator at once. A strict service also requires a
    billing subscription, as the documentation does. Errors in this order: 401 wrong token, 429 too
    many, 400 unreadable body, product, recipient, type or object, 400 app without a number.

    Source: spec, "Flow passthrough message"; facts 9.3.
    """
    parsed = read_passthrough(call.request.members())
    if isinstance(parsed, ReadReceipt):
        await mark_read(call.services, call.app, parsed)
        return {"success": True}
    return await accept_passthrough(call, parsed)


async def accept_passthrough(call: AppCall, parsed: PassthroughSend) -> ApiResponse:
    """Store a message in the operator's format with its outbound job on disk, and return a response with its id.

    Raises:
        ApiError: the app has no number, or, if the service is strict, no billing subscription.
    """
    services, request, app = call
    if not app.phone_number:
        raise ApiError(
            ErrorCode.INVALID_APP_DETAILS,
            "The app has no phone number yet; the administrator connects one with `waypost app connect`.",
        )
    if services.strict and not await _has_billing_subscription(services, app):
        raise ApiError(
            ErrorCode.CALLBACK_BILLING_OFF,
            "The app needs a subscription with the mode BILLING; POST /partner/app/{appId}/subscription creates it.",
        )
    message = build_message(services, request, app, parsed.destination, parsed.content)
    response = await record_message(services, request, message, ApiResponse(passthrough_response(message.id, parsed)))
    if tracer.is_enabled:
        trace_accepted(request, message)
    return response


async def _has_billing_subscription(services: Services, app: App) -> bool:
    subscriptions = await services.database.read(
        list_app_subscriptions, app.id, app.partner_id, services.directory.unseal
    )
    return any(subscription.active and _BILLING.intersection(subscription.modes) for subscription in subscriptions)
