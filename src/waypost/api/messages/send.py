"""Session and template messages, in the messaging API and the partner API. The hot path."""

from dataclasses import replace
from functools import partial
from typing import Annotated, Final, Literal, NamedTuple, Self

from msgspec import Struct, field

from waypost.api.authorisation import Credential, KeyHolder, holder_may_use, holder_of_api_key
from waypost.api.fields import Field
from waypost.api.idempotency import record_message
from waypost.api.operation import APP, KEY_APP, OLDER_API_ENDED_S, AppCall, Operations
from waypost.api.requests import ApiResponse, Request
from waypost.api.route import IdempotencyMode
from waypost.api.services import Services
from waypost.base.telemetry.tracing import TraceStep, mark_id, sampled_by_sender, tracer
from waypost.domain.app import App
from waypost.domain.errors import ApiError, ErrorCode, invalid_field, missing_parameter
from waypost.domain.message import Content, Message, TemplateSend
from waypost.domain.send_rules import operator_limit_error, postback_error, template_send_error
from waypost.domain.templates.template import Category, Template, TemplateStatus
from waypost.domain.templates.types import type_row
from waypost.wire.forms import Form
from waypost.wire.message_forms import (
    MessageObject,
    PostbackText,
    SendAddresses,
    TemplateId,
    TemplateMessage,
    is_about_products,
    is_location_sample,
    json_text,
    read_addresses,
    read_session_message,
    read_template_send,
    submission_response,
)

MAX_UNAUTHENTICATED_BYTES: Final = 64 * 1024
"""The limit of a body that is read although its credential is wrong."""


operation = Operations("facts 9.2; public clients", Credential.API_KEY, at_operator=False)


class SentAddresses(Struct, kw_only=True, rename="camel"):
    """The source and the destination of a message."""

    channel: Annotated[str, Field("The channel: whatsapp, also when absent.", "whatsapp")] = ""
    source: Annotated[
        str,
        Field(
            "The app's phone number; required unless `src` is there. If the path names the app, its id is "
            "accepted too.",
            "15550001000",
        ),
    ] = ""
    src: Annotated[str, Field("Another name of `source`.", "15550001000")] = ""
    destination: Annotated[str, Field("The recipient's phone number: 8 to 15 digits.", "15550002001")]
    app_name: Annotated[
        str,
        Field(
            "The app's name; required for session messages with an API key. "
            "If the path names the app, its id is accepted too.",
            "WaypostDemo",
        ),
    ] = field(default="", name="src.name")


class SessionFields(SentAddresses, kw_only=True):
    """A free-form message."""

    message: Annotated[
        MessageObject,
        Field(
            "JSON text: the message, by its type. A text that is not a JSON object is sent as it is.",
            '{"type":"text","text":"Hello"}',
        ),
    ]
    disable_preview: Annotated[bool, Field("true shows no preview of a URL in the text.", "false")] = False


class TemplateFields(SentAddresses, kw_only=True):
    """A template message."""

    template: Annotated[
        TemplateId,
        Field(
            "JSON text: the template's id and the values of its variables, in order.",
            '{"id":"01990000-0000-7000-8000-0000000000b1","params":["Ann","4711"]}',
        ),
    ]
    message: Annotated[
        TemplateMessage | None,
        Field("JSON text: the media, location or cards that the template shows.", '{"type":"text","text":"Hi Ann"}'),
    ] = None
    postback_texts: Annotated[
        list[PostbackText] | PostbackText,
        Field(
            "JSON text: the postback text of each quick reply, by the button's index from 0.",
            '[{"index":0,"text":"ok-1"}]',
        ),
    ] = []
    sandbox: Annotated[bool, Field("Stored and shown; no other effect.", "false")] = False


class SubmittedMessage(Struct, rename="camel"):
    """An accepted message. Source: spec, "Message submission result"."""

    status: Literal["submitted"]
    message_id: str


_send = partial(operation, "POST", returns=SubmittedMessage, idempotency=IdempotencyMode.ONE_TRANSACTION)
_ADDRESS_ERRORS: Final = (ErrorCode.FIELD_BROKEN, ErrorCode.INVALID_DESTINATION, ErrorCode.INVALID_APP_DETAILS)


def _nest_credential_error(request: Request, error: ApiError) -> ApiError:
    """Return a credential's error in the format of the message's type: nested for products. Source: facts 10."""
    if error.code is not ErrorCode.AUTHENTICATION_FAILED or len(request.body) > MAX_UNAUTHENTICATED_BYTES:
        return error
    try:
        nested = is_about_products(request.form_or_json())
    except ApiError:
        return error
    return ApiError(ErrorCode.NESTED_AUTHENTICATION_FAILED, error.explanation) if nested else error


_send_session = partial(
    _send,
    rate="session",
    body=SessionFields,
    errors=(ErrorCode.NESTED_AUTHENTICATION_FAILED, *_ADDRESS_ERRORS),
    rejection=_nest_credential_error,
)
_send_template = partial(
    _send, rate="send_template", body=TemplateFields, errors=(ErrorCode.INVALID_TEMPLATE, *_ADDRESS_ERRORS)
)


class HolderCall(NamedTuple):
    """A call of the holder of an API key, whose fields name the app."""

    services: Services
    request: Request
    holder: KeyHolder

    @classmethod
    async def authorise(cls, services: Services, request: Request) -> Self:
        """Return the call."""
        return cls(services, request, await holder_of_api_key(services, request))


@_send_session(path="/wa/api/v1/msg", source="spec, Send session text message; facts 9.1")
async def send_session_message_by_api_key(call: HolderCall) -> ApiResponse:
    """Accept a free-form message; 200 means that it is on disk with its outbound job.

    Errors in this order: 401 wrong key, 400 unreadable form, 400 invalid destination, 400 invalid app
    details, 429 twenty-first in a second for the source, 400 invalid message.
    """
    return await _send_by_key(call, needs_app_name=True)


@_send_session(path="/sm/api/v1/msg", deprecated_s=OLDER_API_ENDED_S)
async def send_older_session_message(call: HolderCall) -> ApiResponse:
    """Accept a free-form message at the older path, where the source number names the app if `src.name` does not.

    A strict service requires the name. Errors as of the newer path.

    Source: facts 9.2; public clients; decision 0059.
    """
    return await _send_by_key(call, needs_app_name=call.services.strict)


async def _send_by_key(call: HolderCall, *, needs_app_name: bool) -> ApiResponse:
    services, request, holder = call
    form = request.form_or_json()
    addresses = read_addresses(form)
    if needs_app_name and not addresses.app_name:
        raise ApiError(ErrorCode.INVALID_APP_DETAILS, "src.name must be the name of the app.")
    app = await _find_app(services, holder, addresses)
    request.note_caller(app.partner_id, app.id)
    await request.spend(services.limiter, app.phone_number, app)
    content = _read_session_content(services, form)
    return await accept_message(services, request, app, addresses.destination, content)


@_send_session(path=f"{APP}/msg", source="facts 9.1", credential=Credential.APP_TOKEN)
async def send_session_message(call: AppCall) -> ApiResponse:
    """Accept a free-form message through the partner API; the app's name is optional.

    Errors in this order: 401 wrong token, 429 twenty-first in a second, 400 unreadable form, 400 invalid
    destination, 400 invalid app details, 400 invalid message.
    """
    services, request, app = call
    form = request.form_or_json()
    addresses = read_addresses(form, app.id)
    _check_app(app, addresses)
    content = _read_session_content(services, form)
    return await accept_message(services, request, app, addresses.destination, content)


@_send_template(path="/sm/api/v1/template/msg", deprecated_s=OLDER_API_ENDED_S)
@_send_template(path="/wa/api/v1/template/msg", source="spec, Send template message with postback texts; facts 9.2")
async def send_template_message_by_api_key(call: HolderCall) -> ApiResponse:
    """Accept a template message with its parameters, media and postback texts.

    Without `src.name` the app is the one that has the source number (decision 0059); a strict service
    requires it. Errors in this order: 401 wrong key, 400 unreadable form, 400 invalid destination, 400 invalid
    app details, 429 eleventh in a minute, 400 invalid template, parameters, media or postback texts.
    """
    services, request, holder = call
    form = request.form_or_json()
    addresses = read_addresses(form)
    app = await _find_app(services, holder, addresses)
    if services.strict and not addresses.app_name:
        raise ApiError(ErrorCode.INVALID_APP_DETAILS, "src.name must be the name of the app.")
    request.note_caller(app.partner_id, app.id)
    await request.spend(services.limiter, app.id, app)
    content, template = await _read_template_content(services, form, app)
    _check_template(services, content, template)
    return await accept_message(services, request, app, addresses.destination, content, sandbox=form.flag("sandbox"))


@_send_template(path=f"{KEY_APP}/template/v1/msg", source="facts 9.2; by API key as public clients call it")
@_send_template(
    path=f"{APP}/template/msg",
    source="spec, Send template message (image, location); facts 9.2",
    credential=Credential.APP_TOKEN,
)
async def send_template_message(call: AppCall) -> ApiResponse:
    """Accept a template message through the partner API.

    Errors in this order: 401 wrong token, 429 eleventh in a minute, 400 unreadable form, 400 invalid
    destination, 400 invalid app details, 400 invalid template, parameters, media or postback texts.

    Source: spec, "Send template message (image, location) through the partner API". Clients omit the
        message of a TEXT template, and the app's name, because the path identifies the app (facts 9).
    """
    services, request, app = call
    form = request.form_or_json()
    addresses = read_addresses(form, app.id)
    _check_app(app, addresses)
    content, template = await _read_template_content(services, form, app)
    _check_message(form, content, template)
    _check_template(services, content, template)
    return await accept_message(services, request, app, addresses.destination, content, sandbox=form.flag("sandbox"))


async def accept_message(
    services: Services, request: Request, app: App, destination: str, content: Content, *, sandbox: bool = False
) -> ApiResponse:
    """Store a checked message with its outbound job on disk, and return a response with its id."""
    message = build_message(services, request, app, destination, content, sandbox=sandbox)
    response = await record_message(services, request, message, ApiResponse(submission_response(message.id)))
    if tracer.is_enabled:
        trace_accepted(request, message)
    return response


def trace_accepted(request: Request, message: Message) -> None:
    """Record the trace step that a message was accepted. A replay is not accepted again."""
    if request.idempotency is not None and request.idempotency.is_replay:
        return
    tracer.record(
        TraceStep.ACCEPTED,
        message.id,
        app_id=message.app_id,
        partner_id=message.partner_id,
        kind=message.message_kind.value,
        traceparent=request.header(b"traceparent"),
        request_id=message.request_id or None,
    )


def build_message(
    services: Services, request: Request, app: App, destination: str, content: Content, *, sandbox: bool = False
) -> Message:
    """Return a new message of an app, accepted now."""
    message_id = services.ids.new()
    sampled = sampled_by_sender(request.header(b"traceparent")) if tracer.is_enabled else None
    return Message(
        # If steps are traced, the id has the sampling decision of the sender.
        id=message_id if sampled is None else mark_id(message_id, sampled=sampled),
        partner_id=app.partner_id,
        app_id=app.id,
        source=app.phone_number,
        destination=destination,
        content=content,
        accepted_on_ms=services.clock.now_ms(),
        sandbox=sandbox,
        request=request.text(),
        request_id=request.request_id,
    )


async def _find_app(services: Services, holder: KeyHolder, addresses: SendAddresses) -> App:
    app = await services.directory.app_by_source(holder.partner_id, addresses.source)
    if (
        app is None
        or (addresses.app_name and app.name != addresses.app_name)
        or (holder.app_token_hash is not None and not await holder_may_use(services, holder, app))
    ):
        raise ApiError(
            ErrorCode.INVALID_APP_DETAILS,
            "source must be the phone number of one of your apps, and src.name the name of that app.",
        )
    return app


def _check_app(app: App, addresses: SendAddresses) -> None:
    is_its_number = addresses.source in (app.phone_number, app.id) and bool(app.phone_number)
    if not is_its_number or addresses.app_name not in ("", app.name, app.id):
        raise ApiError(
            ErrorCode.INVALID_APP_DETAILS,
            "source must be the phone number of the app in the path, and src.name its name; "
            "the app's id serves for either.",
        )


def _read_session_content(services: Services, form: Form) -> Content:
    content = read_session_message(form)
    if services.strict:
        reject_violation(operator_limit_error(content))
    return content


async def _read_template_content(services: Services, form: Form, app: App) -> tuple[TemplateSend, Template]:
    content = read_template_send(form)
    template = await services.directory.template(app, content.template_id)
    if template is None or template.status is TemplateStatus.DELETED:
        raise ApiError(
            ErrorCode.INVALID_TEMPLATE,
            "template.id must be the id of one of this app's templates: GET /partner/app/<APP_ID>/templates "
            "lists them.",
        )
    reject_violation(postback_error(content, template.draft))
    if app.preferences.marketing_messages and template.category is Category.MARKETING:
        content = replace(content, is_marketing=True)
    return content, template


def _check_message(form: Form, content: TemplateSend, template: Template) -> None:
    """Check that the message of a partner's send shows what its template's type needs.

    Source: spec, "Send template message (image, location) through the partner API": `message` is required; facts 9.2.
    """
    kind = template.draft.template_type
    row = type_row(kind)
    if not row.is_header_sent and not row.has_cards:
        return
    needed = "carousel" if row.has_cards else row.medium.name if row.medium else "location"
    accepted = f"an object of the type {needed}, which a template of type {kind} shows"
    text = json_text(form, "message")
    if text is None:
        raise missing_parameter("message", accepted)
    if content.shown_kind != needed and not (needed == "location" and is_location_sample(text)):
        raise invalid_field("message", accepted)


def _check_template(services: Services, content: TemplateSend, template: Template) -> None:
    if services.strict:
        now_ms = services.clock.now_ms()
        reject_violation(template_send_error(content, template.draft, now_ms=now_ms) or operator_limit_error(content))


def reject_violation(violation: str | None) -> None:
    """Raise an error for a violated rule of the operator; None is no violation.

    Raises:
        ApiError: with the violation as its text.
    """
    if violation is not None:
        raise ApiError(ErrorCode.FIELD_BROKEN, f"{violation}.")
