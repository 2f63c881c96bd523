"""Messages in the operator's own format, and MM Lite: marketing templates through its API for them."""

from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlencode

from msgspec import UNSET, Struct, UnsetType

from waypost.api.apps.settings import set_preferences
from waypost.api.fields import Field, omit_empty
from waypost.api.idempotency import record_message
from waypost.api.messages.send import build_message, trace_accepted
from waypost.api.messages.status import mark_read
from waypost.api.operation import APP, AppCall, Operations
from waypost.api.requests import ApiResponse
from waypost.api.route import IdempotencyMode
from waypost.api.subscriptions import stored_subscriptions
from waypost.base.telemetry.tracing import tracer
from waypost.domain.app import App, Hosting
from waypost.domain.direct_calls import GetBusinessStatus
from waypost.domain.errors import ApiError, ErrorCode, invalid_field
from waypost.wire.passthrough import (
    MessageContext,
    PassthroughSend,
    ReadReceipt,
    TemplateObject,
    TypingIndicator,
    passthrough_response,
    read_passthrough,
)
from waypost.wire.responses import Success, success

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
    """
    parsed = read_passthrough(call.request.members())
    if isinstance(parsed, ReadReceipt):
        await mark_read(call, parsed)
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
    if services.strict and not any(
        each.active and _BILLING.intersection(each.modes) for each in await stored_subscriptions(services, app)
    ):
        raise ApiError(
            ErrorCode.CALLBACK_BILLING_OFF,
            "The app needs a subscription with the mode BILLING; POST /partner/app/{appId}/subscription creates it.",
        )
    message = build_message(services, request, app, parsed.destination, parsed.content)
    response = await record_message(services, request, message, ApiResponse(passthrough_response(message.id, parsed)))
    if tracer.is_enabled:
        trace_accepted(request, message)
    return response


_ONBOARDED = "ONBOARDED"  # Source: ledger 1.9, `mmLiteStatus`


marketing_operation = Operations("ledger 1.7, `mmlite/msg/enable`; facts 11")
_send_marketing = partial(
    marketing_operation,
    "POST",
    returns=AcceptedPassthrough,
    at_operator=False,
    body=PassthroughFields,
    errors=(*PASSTHROUGH_ERRORS, ErrorCode.MM_LITE_OFF),
    idempotency=IdempotencyMode.ONE_TRANSACTION,
)


class TermsLanguage(Struct):
    """The language of the terms."""

    lang: Annotated[str, Field("The language of the operator's page.", "pt_BR")] = ""


@_send_marketing(path=f"{APP}/v3/mmlite/message", source="facts 9.3, MM Lite")
@_send_marketing(path=f"{APP}/onboarding/marketing/msg", source="ledger 1.7, `onboarding/marketing/msg`")
async def send_marketing_message(call: AppCall) -> ApiResponse:
    """Accept a marketing template in the operator's own format; 200 means that it is on disk.

    Errors in this order: 401 wrong token, 429 too many, 400 the app is not enabled, 400 as for `v3/message`, 400
    another type than template. The operator rejects a template of another category.
    """
    check_enabled(call.app)
    parsed = read_passthrough(call.request.members())
    if isinstance(parsed, ReadReceipt) or parsed.content.type != "template":
        raise invalid_field("type", "template: marketing templates only")
    content = replace(parsed.content, is_marketing=True)
    return await accept_passthrough(call, replace(parsed, content=content))


@marketing_operation("POST", f"{APP}/mmlite/msg/enable", Success, rate="mmlite", errors=(ErrorCode.MM_LITE_OFF,))
async def enable_marketing_messages(call: AppCall) -> None:
    """Send the app's marketing templates through the operator's API for them from now on.

    Errors in this order: 401 wrong token, 429 third in an hour, 400 no business account, 400 its owner has not accepted
    the operator's terms, 503 the operator does not respond.
    """
    status = await call.operator(GetBusinessStatus(call.account))
    if status.marketing_messages != _ONBOARDED:
        raise ApiError(
            ErrorCode.MM_LITE_OFF,
            "The owner of the business account first accepts the operator's terms for marketing messages: "
            "GET /partner/app/{appId}/mmlite/link returns the page for it.",
        )
    await set_preferences(call.services, call.app, marketing_messages=True)


@marketing_operation(
    "GET",
    f"{APP}/mmlite/link",
    success(link=str),
    source="ledger 1.7, `mmlite/link`",
    at_operator=False,
    errors=(ErrorCode.MM_LITE_NOT_LIVE, ErrorCode.APP_NOT_APPROVED),
)
async def show_marketing_link(call: AppCall, query: TermsLanguage) -> dict[str, Any]:
    """Return the link to the operator's page where the owner accepts the terms for marketing messages.

    Errors in this order: 401 wrong token, 429 too many, 400 a sandbox app or one of another hosting, 400 no business
    account.
    """
    if not call.app.live or call.app.hosting is not Hosting.CLOUD:
        raise ApiError(
            ErrorCode.MM_LITE_NOT_LIVE,
            "The app must be live; the administrator makes it live with `waypost app connect`.",
        )
    parameters = omit_empty({"asset_id": call.account, "locale": query.lang.strip()})
    _, graph = await call.graph_client()
    return {"link": f"{graph.marketing_terms}?{urlencode(parameters)}", "status": "success"}


def check_enabled(app: App) -> None:
    """Check that the app sends through the operator's API for marketing messages."""
    if not app.preferences.marketing_messages:
        raise ApiError(ErrorCode.MM_LITE_OFF, "POST /partner/app/{appId}/mmlite/msg/enable enables it.")
