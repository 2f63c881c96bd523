"""The arguments of the tools: structs that are read strictly, and shown to an agent as JSON Schema."""

from typing import Annotated, Any, Final, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from waypost.base.invalid_values import describe_invalid_value
from waypost.cli.commands.listen import ALL_MODES, DEFAULT_MODES
from waypost.cli.commands.trigger_events import list_events
from waypost.cli.mcp.tool_error import ToolError
from waypost.domain.templates.template import TemplateStatus
from waypost.wire.request_statuses import StatusFilter

Arguments = TypeVar("Arguments", bound=Struct)

MAX_WAIT_S: Final = 300


def _value(description: str, accepted: str, **limits: Any) -> Meta:
    """Return the description of an argument for an agent, and the values that an error says are accepted."""
    return Meta(description=description, extra={"accepted": accepted}, **limits)


WaitSeconds = Annotated[int, Meta(ge=0, le=MAX_WAIT_S, description=f"Seconds to wait at most, 0 to {MAX_WAIT_S}.")]
_COUNT: Final = "a whole number from 0 on"
Amount = Annotated[int, _value("A part of the duration, a whole number.", _COUNT, ge=0)]
_ID: Final = "an id such as 01a21f1b-48ed-7142-ae76-1a86b472aaf9, as send returns it, or wamid.HBgL…"
MessageId = Annotated[str, _value("Our id of the message, or the operator's (wamid).", _ID, min_length=1)]
_DIGITS: Final = "8 to 15 digits, such as 15550002001"
Phone = Annotated[str, _value("Digits of a simulated phone. Default: DESTINATION of waypost-dev.env.", _DIGITS)]
TRIGGERED_EVENTS: Final = [name for group in list_events().values() for name in group]
Event = Annotated[
    str,
    _value("Event of the callback, such as delivered, read, failed, text, quick_reply.", ", ".join(TRIGGERED_EVENTS)),
]


class SubscribeArguments(Struct, forbid_unknown_fields=True):
    """Arguments of `subscribe`."""

    url: (
        Annotated[
            str,
            _value(
                "URL of your receiver. Default: a receiver in this server.", "a URL such as http://127.0.0.1:3000/hook"
            ),
        ]
        | None
    ) = None
    modes: Annotated[str, _value("Modes, separated by commas.", f"some of {ALL_MODES}")] = DEFAULT_MODES
    tag: Annotated[str, _value("A name for the subscription of a url.", "a name such as shop", min_length=1)] = "mcp"


class CreateTemplateArguments(Struct, forbid_unknown_fields=True):
    """Arguments of `create_template`."""

    name: Annotated[
        str, _value("Element name: lower case letters, digits and _.", "a name such as order_ready", min_length=1)
    ]
    text: Annotated[
        str,
        _value("The text, with {{1}}, {{2}} for parameters.", "a text such as Hi {{1}}, it is ready.", min_length=1),
    ]
    examples: Annotated[
        list[str], _value("What each parameter may be, in order.", 'a list of texts, such as ["Ann"]')
    ] = []
    buttons: Annotated[
        list[str], _value("Texts of quick replies, in order.", 'a list of texts, such as ["Yes", "No"]')
    ] = []
    category: Annotated[Literal["UTILITY", "MARKETING", "AUTHENTICATION"], Meta(description="Its category.")] = (
        "UTILITY"
    )
    language: Annotated[str, _value("Its language.", "a language such as en_US or de")] = "en_US"
    fields: Annotated[
        dict[str, Any],
        _value("More fields of the partner API; they replace those made here.", 'fields such as {"footer": "Acme"}'),
    ] = {}


class ListTemplatesArguments(Struct, forbid_unknown_fields=True):
    """Arguments of `list_templates`."""

    status: (
        Annotated[
            str,
            _value(
                "Only these. Default: all.",
                ", ".join(TemplateStatus),
                pattern=f"^({'|'.join(TemplateStatus)})$",
                extra_json_schema={"enum": list(TemplateStatus)},
            ),
        ]
        | None
    ) = None


class WaitForTemplateArguments(Struct, forbid_unknown_fields=True):
    """Arguments of `wait_for_template`."""

    template: Annotated[str, _value("Its id or element name.", "an id or element name of list_templates", min_length=1)]
    timeout_s: WaitSeconds = 30


class SendArguments(Struct, forbid_unknown_fields=True):
    """Arguments of `send`: exactly one of text, template and message."""

    text: (
        Annotated[str, _value("A text; the recipient has written within 24 hours.", "a text such as Good morning")]
        | None
    ) = None
    template: (
        Annotated[str, _value("A template: its id or element name.", "an id or element name of list_templates")] | None
    ) = None
    params: Annotated[
        list[str], _value("Parameters of the template, in order.", 'a list of texts, such as ["Ann", "4711"]')
    ] = []
    postbacks: Annotated[
        list[str], _value("Texts that taps on its buttons return, in order.", 'a list of texts, such as ["yes", "no"]')
    ] = []
    message: (
        Annotated[
            dict[str, Any], _value("A session message of any type.", 'a message such as {"type": "text", "text": "Hi"}')
        ]
        | None
    ) = None
    to: Annotated[str, _value("The recipient. Default: DESTINATION of waypost-dev.env.", _DIGITS)] | None = None


class TapArguments(Struct, forbid_unknown_fields=True):
    """Arguments of `tap`: exactly one of text and index."""

    text: Annotated[str, _value("The text on the button.", "a text such as Yes please")] | None = None
    index: Annotated[int, _value("Number of the button, from 0.", _COUNT, ge=0)] | None = None
    phone: Phone | None = None
    message_id: (
        Annotated[str, _value("Id of the message, ours or the operator's. Default: the newest.", _ID)] | None
    ) = None
    wait_s: Annotated[int, Meta(ge=0, le=60, description="Seconds to wait for the message, 0 to 60.")] = 5


class TriggerArguments(Struct, forbid_unknown_fields=True):
    """Arguments of `trigger`."""

    event: Annotated[
        str, _value("Name of the event.", ", ".join(TRIGGERED_EVENTS), extra_json_schema={"enum": TRIGGERED_EVENTS})
    ]
    changes: Annotated[
        dict[str, Any],
        _value("Members of the call by dotted name.", 'members such as {"text": "Hi"} or {"code": 131026}'),
    ] = {}
    phone: Phone | None = None
    message_id: Annotated[str, _value("Id of a message, ours or the operator's. Default: a new one.", _ID)] | None = (
        None
    )


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
    message_id: (
        Annotated[
            str,
            _value(
                "Our id of the message that it is about.",
                "an id such as 01a21f1b-48ed-7142-ae76-1a86b472aaf9, as send returns it",
            ),
        ]
        | None
    ) = None
    newer_than: (
        Annotated[
            str, _value("Id of a callback; only newer ones count.", "the id of an earlier result of wait_for_callback")
        ]
        | None
    ) = None
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
        _value(
            "What happens.",
            'an object such as {"error": 131016, "status": 503}, {"delay_ms": 5000} or {"fail": 131026}',
        ),
    ]
    call: Annotated[str, _value("Name of the call. Default: any.", "a call such as messages.send")] | None = None
    webhook: (
        Annotated[str, _value("Name of the webhook. Default: any.", "a webhook such as delivered or messages")] | None
    ) = None
    when: (
        Annotated[
            dict[str, Any],
            _value(
                "When it fires. Default: always.", 'an object such as {"next": 2}, {"every": 3} or {"probability": 0.1}'
            ),
        ]
        | None
    ) = None
    phone: Annotated[str, _value("Only for this phone, by its digits.", _DIGITS)] | None = None
    template: (
        Annotated[str, _value("Only for this template, by its name.", "an element name of list_templates")] | None
    ) = None
    number: Annotated[str, _value("Only for this business number.", "its digits, such as 15550001000")] | None = None
    label: Annotated[str, _value("A name of your own for it.", "a text such as outage")] | None = None


class NoArguments(Struct, forbid_unknown_fields=True):
    """A tool without arguments."""


class ExplainMessageArguments(Struct, forbid_unknown_fields=True):
    """Arguments of `explain_message`."""

    message_id: MessageId


class ExplainRequestArguments(Struct, forbid_unknown_fields=True):
    """Arguments of `explain_request`."""

    request_id: Annotated[
        str,
        _value(
            "The X-Request-Id of the response, or the id of the request log.",
            "an id or request_id of list_requests",
            min_length=1,
        ),
    ]


class ListRequestsArguments(Struct, forbid_unknown_fields=True):
    """Arguments of `list_requests`."""

    status: StatusFilter | None = None
    route: Annotated[str, _value("Part of method and path.", "a text such as /template/msg")] | None = None
    app_id: (
        Annotated[
            str, _value("Only requests for this app.", "an app's id such as 01990000-0000-7000-8000-0000000000a1")
        ]
        | None
    ) = None
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
        raise ToolError(invalid.path, invalid.rule, invalid.accepted) from error


def input_schema(arguments_type: type[Struct]) -> dict[str, Any]:
    """Return the JSON Schema of a tool's arguments."""
    _, components = msgspec.json.schema_components([arguments_type])
    schema = dict(components[arguments_type.__name__])
    return {name: value for name, value in schema.items() if name not in ("title", "description")}
