"""The arguments of the tools: structs that are read strictly, and shown to an agent as JSON Schema."""

import re
from typing import Annotated, Any, Final, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from waypost.base.invalid_values import describe_invalid_value
from waypost.cli.live.listen import DEFAULT_MODES
from waypost.cli.mcp.tool_error import ToolError

Arguments = TypeVar("Arguments", bound=Struct)

MAX_WAIT_S: Final = 300
WaitSeconds = Annotated[int, Meta(ge=0, le=MAX_WAIT_S, description=f"Seconds to wait at most, 0 to {MAX_WAIT_S}.")]
Amount = Annotated[int, Meta(ge=0, description="A part of the duration, a whole number.")]
MessageId = Annotated[str, Meta(min_length=1, description="Our id of the message, or the operator's (wamid).")]
Phone = Annotated[str, Meta(description="Digits of a simulated phone. Default: DESTINATION of waypost-dev.env.")]
Event = Annotated[str, Meta(description="Event of the callback, such as delivered, read, failed, text, quick_reply.")]


class SubscribeArguments(Struct, forbid_unknown_fields=True):
    """Arguments of `subscribe`."""

    url: Annotated[str, Meta(description="URL of your receiver. Default: a receiver in this server.")] | None = None
    modes: Annotated[str, Meta(description="Modes, separated by commas.")] = DEFAULT_MODES
    tag: Annotated[str, Meta(min_length=1, description="A name for the subscription of a url.")] = "mcp"


class CreateTemplateArguments(Struct, forbid_unknown_fields=True):
    """Arguments of `create_template`."""

    name: Annotated[str, Meta(min_length=1, description="Element name: lower case letters, digits and _.")]
    text: Annotated[str, Meta(min_length=1, description="The text, with {{1}}, {{2}} for parameters.")]
    examples: Annotated[list[str], Meta(description="What each parameter may be, in order.")] = []
    buttons: Annotated[list[str], Meta(description="Texts of quick replies, in order.")] = []
    category: Annotated[Literal["UTILITY", "MARKETING", "AUTHENTICATION"], Meta(description="Its category.")] = (
        "UTILITY"
    )
    language: Annotated[str, Meta(description="Its language, such as en_US.")] = "en_US"
    fields: Annotated[
        dict[str, Any],
        Meta(description='More fields of the partner API, such as {"footer": "Acme"}; they replace those made here.'),
    ] = {}


class ListTemplatesArguments(Struct, forbid_unknown_fields=True):
    """Arguments of `list_templates`."""

    status: Annotated[str, Meta(description="Only these, such as APPROVED. Default: all.")] | None = None


class WaitForTemplateArguments(Struct, forbid_unknown_fields=True):
    """Arguments of `wait_for_template`."""

    template: Annotated[str, Meta(min_length=1, description="Its id or element name.")]
    timeout_s: WaitSeconds = 30


class SendArguments(Struct, forbid_unknown_fields=True):
    """Arguments of `send`: exactly one of text, template and message."""

    text: Annotated[str, Meta(description="A text; the recipient has written within 24 hours.")] | None = None
    template: Annotated[str, Meta(description="A template: its id or element name.")] | None = None
    params: Annotated[list[str], Meta(description="Parameters of the template, in order.")] = []
    postbacks: Annotated[list[str], Meta(description="Texts that taps on its buttons return, in order.")] = []
    message: Annotated[dict[str, Any], Meta(description="A session message of any type.")] | None = None
    to: Annotated[str, Meta(description="The recipient. Default: DESTINATION of waypost-dev.env.")] | None = None


class TapArguments(Struct, forbid_unknown_fields=True):
    """Arguments of `tap`: exactly one of text and index."""

    text: Annotated[str, Meta(description="The text on the button.")] | None = None
    index: Annotated[int, Meta(ge=0, description="Number of the button, from 0.")] | None = None
    phone: Phone | None = None
    message_id: (
        Annotated[str, Meta(description="Id of the message, ours or the operator's. Default: the newest.")] | None
    ) = None
    wait_s: Annotated[int, Meta(ge=0, le=60, description="Seconds to wait for the message, 0 to 60.")] = 5


class TriggerArguments(Struct, forbid_unknown_fields=True):
    """Arguments of `trigger`."""

    event: Annotated[str, Meta(description="Name of the event, such as text, image, read, failed, status-update.")]
    changes: Annotated[
        dict[str, Any],
        Meta(description='Members of the call by dotted name, such as {"text": "Hi"} or {"code": 131026}.'),
    ] = {}
    phone: Phone | None = None
    message_id: (
        Annotated[str, Meta(description="Id of a message, ours or the operator's. Default: a new one.")] | None
    ) = None


class WaitForMessageArguments(Struct, forbid_unknown_fields=True):
    """Arguments of `wait_for_message`."""

    message_id: MessageId
    state: Annotated[
        Literal["enqueued", "sent", "delivered", "read", "failed"],
        Meta(description="The state; a later one counts as reached, and failed only if it is named."),
    ] = "delivered"
    timeout_s: WaitSeconds = 30


class WaitForCallbackArguments(Struct, forbid_unknown_fields=True):
    """Arguments of `wait_for_callback`."""

    event: Event | None = None
    message_id: Annotated[str, Meta(description="Our id of the message that it is about.")] | None = None
    newer_than: Annotated[str, Meta(description="Id of a callback; only newer ones count.")] | None = None
    delivered: Annotated[bool, Meta(description="Wait until the receiver has accepted it.")] = True
    timeout_s: WaitSeconds = 30


class AdvanceArguments(Struct, forbid_unknown_fields=True):
    """Arguments of `advance_clock`: the sum of all parts."""

    days: Amount = 0
    hours: Amount = 0
    minutes: Amount = 0
    seconds: Amount = 0


class FaultArguments(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Arguments of `arm_fault`: the fault, as the control API reads it."""

    on: Annotated[Literal["call", "webhook"], Meta(description="A call of the service, or a webhook to it.")]
    what: Annotated[
        dict[str, Any],
        Meta(
            description='What happens, such as {"error": 131016, "status": 503}, {"delay_ms": 5000} or {"fail": 131026}.'
        ),
    ]
    call: Annotated[str, Meta(description="Name of the call, such as messages.send. Default: any.")] | None = None
    webhook: Annotated[str, Meta(description="Name of the webhook, such as delivered. Default: any.")] | None = None
    when: (
        Annotated[
            dict[str, Any],
            Meta(
                description='When it fires, such as {"next": 2}, {"every": 3} or {"probability": 0.1}. Default: always.'
            ),
        ]
        | None
    ) = None
    phone: Annotated[str, Meta(description="Only for this phone, by its digits.")] | None = None
    template: Annotated[str, Meta(description="Only for this template, by its name.")] | None = None
    number: Annotated[str, Meta(description="Only for this business number.")] | None = None
    label: Annotated[str, Meta(description="A name of your own for it.")] | None = None


class NoArguments(Struct, forbid_unknown_fields=True):
    """A tool without arguments."""


class ExplainMessageArguments(Struct, forbid_unknown_fields=True):
    """Arguments of `explain_message`."""

    message_id: MessageId


class ExplainRequestArguments(Struct, forbid_unknown_fields=True):
    """Arguments of `explain_request`."""

    request_id: Annotated[
        str, Meta(min_length=1, description="The X-Request-Id of the response, or the id of the request log.")
    ]


class ListRequestsArguments(Struct, forbid_unknown_fields=True):
    """Arguments of `list_requests`."""

    status: Annotated[Literal["2xx", "4xx", "5xx"], Meta(description="Only these statuses. Default: all.")] | None = (
        None
    )
    route: Annotated[str, Meta(description="Part of method and path, such as /template/msg.")] | None = None
    app_id: Annotated[str, Meta(description="Only requests for this app.")] | None = None
    limit: Annotated[int, Meta(ge=1, le=100, description="Number of requests, 1 to 100.")] = 10


def read_arguments(values: Any, arguments_type: type[Arguments]) -> Arguments:
    """Return the arguments of a tool.

    Raises:
        ToolError: one is invalid, missing or unknown.
    """
    try:
        return msgspec.convert(values or {}, arguments_type)
    except msgspec.ValidationError as error:
        invalid = describe_invalid_value(error, arguments_type)
        meaning = _describe(arguments_type, invalid.path)
        accepted = f"{invalid.accepted}: {meaning[0].lower()}{meaning[1:]}" if meaning else invalid.accepted
        raise ToolError(invalid.path, invalid.rule, accepted) from error


def input_schema(arguments_type: type[Struct]) -> dict[str, Any]:
    """Return the JSON Schema of a tool's arguments."""
    _, components = msgspec.json.schema_components([arguments_type])
    schema = dict(components[arguments_type.__name__])
    return {name: value for name, value in schema.items() if name not in ("title", "description")}


def _describe(arguments_type: type[Struct], path: str) -> str:
    """Return the meaning of an argument by its path; empty for one that is not there."""
    name = re.split(r"[.\[]", path, maxsplit=1)[0]
    schema = input_schema(arguments_type)["properties"].get(name, {})
    branches = [schema, *schema.get("anyOf", [])]
    return next((branch["description"] for branch in branches if "description" in branch), "").rstrip(".")
