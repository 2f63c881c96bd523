"""The tools: each with its arguments and its function, which calls what the command of the same task calls.

A tool that is one call is a row: its operation, and its arguments.
"""

import json
from collections.abc import Awaitable, Callable
from inspect import signature
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeVar, get_type_hints

import msgspec
from msgspec import Meta, Struct

from waypost.cli.commands.clock import clock_line, due_times
from waypost.cli.commands.inspection import format_trace
from waypost.cli.commands.listen import ALL_MODES, DEFAULT_MODES
from waypost.cli.commands.listener import ListenerSubscription
from waypost.cli.commands.messages import NEEDED_TO_SEND, NEEDED_TO_TAP, send_content, send_template, tap_button
from waypost.cli.commands.templates import NEEDED, create_template, list_templates, template_form, wait_for_template
from waypost.cli.commands.trigger import NEEDED_TO_TRIGGER, cause_event
from waypost.cli.commands.trigger_events import EVENTS, list_events
from waypost.cli.connections import poll
from waypost.cli.mcp.connection import ServiceConnection, ToolError
from waypost.client.operations import find_operation
from waypost.client.simulated_events import add_simulated_events
from waypost.domain.templates.template import TemplateStatus
from waypost.wire.callbacks.kinds import event_name
from waypost.wire.requests import StatusFilter

MAX_WAIT_S: Final = 300
_SHOWN = ("id", "elementName", "status", "category", "templateType", "languageCode", "data", "reason")
_PROGRESS: Final = ("accepted", "uncertain", "enqueued", "sent", "delivered", "read", "deleted")
"""States of a message that does not fail, in their order."""
_FAILED: Final = "failed"


class ToolOutput(NamedTuple):
    """The result of a tool."""

    value: dict[str, Any]  # a JSON object
    text: str = ""  # the same for people; empty: the JSON


class AgentTool(NamedTuple):
    """A tool."""

    arguments_type: type[Struct]  # of its arguments
    function: Callable[..., Awaitable[ToolOutput]]  # carries it out; it takes the arguments by name
    description: str  # what it does, for an agent
    is_read_only: bool  # True if it changes nothing


Function = TypeVar("Function", bound=Callable[..., Awaitable[ToolOutput]])
TOOLS: Final[dict[str, AgentTool]] = {}
"""By the name by which an agent calls it."""


def tool(name: str, *, is_read_only: bool = False) -> Callable[[Function], Function]:
    """Declare a tool beside its function: its parameters are the arguments, and its docstring describes it."""

    def declare(function: Function) -> Function:
        types = get_type_hints(function, include_extras=True)
        _, *parameters = signature(function).parameters.values()
        fields = [
            (one.name, types[one.name]) if one.default is one.empty else (one.name, types[one.name], one.default)
            for one in parameters
        ]
        arguments_type = msgspec.defstruct(name, fields, forbid_unknown_fields=True)
        TOOLS[name] = AgentTool(arguments_type, function, " ".join((function.__doc__ or "").split()), is_read_only)
        return function

    return declare


def call_tool(operation: str, arguments_type: type[Struct] | None = None, *, is_read_only: bool = False) -> AgentTool:
    """Return a tool that is one call of the admin or the control API; the declaration describes it to an agent."""

    async def call(connection: ServiceConnection, **arguments: Any) -> ToolOutput:
        client = connection.control if " /control/" in operation else connection.admin
        sent = {name: value for name, value in arguments.items() if value is not None}
        return ToolOutput(await client.call(operation, **sent))

    given = arguments_type or msgspec.defstruct("NoArguments", (), forbid_unknown_fields=True)
    return AgentTool(given, call, find_operation(operation).effect.partition("\n\n")[0], is_read_only)


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
ButtonNumber = Annotated[int, _value("Number of the button, from 0.", _COUNT, ge=0)]
Status = Annotated[
    str,
    _value(
        "Only these. Default: all.",
        ", ".join(TemplateStatus),
        pattern=f"^({'|'.join(TemplateStatus)})$",
        extra_json_schema={"enum": list(TemplateStatus)},
    ),
]
TRIGGERED_EVENTS: Final = [name for group in list_events().values() for name in group]
Event = Annotated[
    str,
    _value("Event of the callback, such as delivered, read, failed, text, quick_reply.", ", ".join(TRIGGERED_EVENTS)),
]


@tool("subscribe")
async def subscribe(
    connection: ServiceConnection,
    *,
    url: Annotated[
        str | None,
        _value("URL of your receiver. Default: a receiver in this server.", "a URL such as http://127.0.0.1:3000/hook"),
    ] = None,
    modes: Annotated[str, _value("Modes, separated by commas.", f"some of {ALL_MODES}")] = DEFAULT_MODES,
    tag: Annotated[str, _value("A name for the subscription of a url.", "a name such as shop", min_length=1)] = "mcp",
) -> ToolOutput:
    """Subscribe to the app's callbacks; without a url, a receiver in this server accepts them until it ends.

    wait_for_callback needs a subscription.
    """
    variables = connection.variables(*NEEDED)
    if url is None:
        subscription = await connection.receiver.subscribe(variables, modes)
    else:
        fields = {"modes": modes, "tag": tag, "url": url, "version": "2"}
        subscription = await ListenerSubscription(variables, fields).create()
    return ToolOutput({"subscription": subscription})


@tool("create_template")
async def create(
    connection: ServiceConnection,
    *,
    name: Annotated[
        str, _value("Element name: lower case letters, digits and _.", "a name such as order_ready", min_length=1)
    ],
    text: Annotated[
        str,
        _value("The text, with {{1}}, {{2}} for parameters.", "a text such as Hi {{1}}, it is ready.", min_length=1),
    ],
    examples: Annotated[
        tuple[str, ...], _value("What each parameter may be, in order.", 'a list of texts, such as ["Ann"]')
    ] = (),
    buttons: Annotated[
        tuple[str, ...], _value("Texts of quick replies, in order.", 'a list of texts, such as ["Yes", "No"]')
    ] = (),
    category: Annotated[Literal["UTILITY", "MARKETING", "AUTHENTICATION"], Meta(description="Its category.")] = (
        "UTILITY"
    ),
    language: Annotated[str, _value("Its language.", "a language such as en_US or de")] = "en_US",
    fields: Annotated[
        dict[str, Any] | None,
        _value("More fields of the partner API; they replace those made here.", 'fields such as {"footer": "Acme"}'),
    ] = None,
) -> ToolOutput:
    """Create a template and submit it for review: a text with parameters and quick replies; fields has everything else.

    An existing template of the same name and text is returned. wait_for_template waits for its approval.
    """
    more = {"category": category, "languageCode": language, **(fields or {})}
    form = template_form(name, text, examples, buttons, more)
    return ToolOutput(_shorten(await create_template(connection.variables(*NEEDED), form, if_missing=True)))


@tool("list_templates", is_read_only=True)
async def list_all_templates(connection: ServiceConnection, *, status: Status | None = None) -> ToolOutput:
    """List the app's templates: name, id, status and text."""
    filters = {"status": status} if status else {}
    rows = await list_templates(connection.variables(*NEEDED), **filters)
    return ToolOutput({"templates": [_shorten(row) for row in rows]})


@tool("wait_for_template", is_read_only=True)
async def wait_until_approved(
    connection: ServiceConnection,
    *,
    template: Annotated[
        str, _value("Its id or element name.", "an id or element name of list_templates", min_length=1)
    ],
    timeout_s: WaitSeconds = 30,
) -> ToolOutput:
    """Wait until a template is approved, and return it. One that is rejected is an error with the reason."""
    row = await wait_for_template(connection.variables(*NEEDED), template, timeout_s)
    return ToolOutput(_shorten(row))


@tool("send")
async def send(
    connection: ServiceConnection,
    *,
    text: Annotated[
        str | None, _value("A text; the recipient has written within 24 hours.", "a text such as Good morning")
    ] = None,
    template: Annotated[
        str | None, _value("A template: its id or element name.", "an id or element name of list_templates")
    ] = None,
    params: Annotated[
        tuple[str, ...], _value("Parameters of the template, in order.", 'a list of texts, such as ["Ann", "4711"]')
    ] = (),
    postbacks: Annotated[
        tuple[str, ...],
        _value("Texts that taps on its buttons return, in order.", 'a list of texts, such as ["yes", "no"]'),
    ] = (),
    message: Annotated[
        dict[str, Any] | None,
        _value("A session message of any type.", 'a message such as {"type": "text", "text": "Hi"}'),
    ] = None,
    to: Annotated[str | None, _value("The recipient. Default: DESTINATION of waypost-dev.env.", _DIGITS)] = None,
) -> ToolOutput:
    """Send a message of the app: a text, a template with its parameters, or a session message of any type.

    Returns its id; a message that is not accepted is an error with the field, the rule and what is accepted.
    """
    contents = {"text": text, "template": template, "message": message}
    given = [name for name, content in contents.items() if content is not None]
    if len(given) != 1:
        raise ToolError(" and ".join(given) or "text", "is not the only content", "one of text, template and message")
    variables = connection.variables(*NEEDED_TO_SEND)
    recipient = to or variables.get("DESTINATION")
    if not recipient:
        raise ToolError("to", "is missing", "8 to 15 digits, such as 15550002001")
    if template is not None:
        response = await send_template(variables, recipient, template, params, postbacks)
    else:
        content = message or {"type": "text", "text": text}
        response = await send_content(variables, recipient, content)
    return ToolOutput({"message_id": response["messageId"], "status": response["status"], "to": recipient})


@tool("tap")
async def tap(
    connection: ServiceConnection,
    *,
    text: Annotated[str | None, _value("The text on the button.", "a text such as Yes please")] = None,
    index: ButtonNumber | None = None,
    phone: Phone | None = None,
    message_id: Annotated[
        str | None, _value("Id of the message, ours or the operator's. Default: the newest.", _ID)
    ] = None,
    wait_s: Annotated[int, Meta(ge=0, le=60, description="Seconds to wait for the message, 0 to 60.")] = 5,
) -> ToolOutput:
    """Tap a button on a simulated phone, by its text or its number; waits for the message to arrive."""
    if (text is None) == (index is None):
        raise ToolError("text", "a button has one description", "one of text and index")
    variables = connection.variables(*NEEDED_TO_TAP)
    variables |= {"DESTINATION": phone} if phone else {}
    button = {"text": text, "index": index}
    return ToolOutput(await tap_button(variables, button, message_id=message_id, wait_s=wait_s))


@tool("trigger")
async def trigger(
    connection: ServiceConnection,
    *,
    event: Annotated[
        str, _value("Name of the event.", ", ".join(TRIGGERED_EVENTS), extra_json_schema={"enum": TRIGGERED_EVENTS})
    ],
    changes: Annotated[
        dict[str, Any] | None,
        _value("Members of the call by dotted name.", 'members such as {"text": "Hi"} or {"code": 131026}'),
    ] = None,
    phone: Phone | None = None,
    message_id: Annotated[str | None, _value("Id of a message, ours or the operator's. Default: a new one.", _ID)] = (
        None
    ),
) -> ToolOutput:
    """Cause an event at the simulator: the recipient writes (text, …), reads or reacts; a message fails; and others.

    A message is sent first if the event needs one. An unknown event is an error that lists all.
    """
    if event not in EVENTS:
        raise ToolError("event", f"there is no event {event}", ", ".join(TRIGGERED_EVENTS))
    variables = connection.variables(*NEEDED_TO_TRIGGER)
    variables |= {"DESTINATION": phone} if phone else {}
    result = await cause_event(variables, EVENTS[event], changes or {}, message=message_id)
    return ToolOutput({"event": event, **result})


@tool("wait_for_message", is_read_only=True)
async def wait_for_message(
    connection: ServiceConnection,
    *,
    message_id: MessageId,
    state: Annotated[
        Literal["enqueued", "sent", "delivered", "read", "failed"],
        Meta(description="The state; a later one counts as reached, and failed only if it is named."),
    ] = "delivered",
    timeout_s: WaitSeconds = 30,
) -> ToolOutput:
    """Wait until a message has a state, and return the message. A failed one is an error with the operator's reason."""

    async def read() -> dict[str, Any]:
        return await connection.admin.call("GET /admin/messages/{message_id}", message_id=message_id)

    message = await poll(read, lambda view: view["state"] == _FAILED or _has_reached(view["state"], state), timeout_s)
    if _has_reached(message["state"], state):
        return ToolOutput(message)
    if message["state"] == _FAILED:
        rule = f"the message has failed: {message['code']} {message['reason'] or ''}".rstrip()
        raise ToolError("state", rule, "failed", message_id=message["id"], hint="explain_message shows the whole trace")
    rule = f"the message is {message['state']} and not {state} after {timeout_s} s"
    raise ToolError("state", rule, message["state"], message_id=message["id"], hint="a longer timeout_s")


@tool("wait_for_callback", is_read_only=True)
async def wait_for_callback(
    connection: ServiceConnection,
    *,
    event: Event | None = None,
    message_id: Annotated[
        str | None,
        _value(
            "Our id of the message that it is about.",
            "an id such as 01a21f1b-48ed-7142-ae76-1a86b472aaf9, as send returns it",
        ),
    ] = None,
    newer_than: Annotated[
        str | None,
        _value("Id of a callback; only newer ones count.", "the id of an earlier result of wait_for_callback"),
    ] = None,
    delivered: Annotated[bool, Meta(description="Wait until the receiver has accepted it.")] = True,
    timeout_s: WaitSeconds = 30,
) -> ToolOutput:
    """Wait until a receiver gets a callback, and return it with its body and every attempt.

    Without newer_than, an earlier callback that matches counts too.
    """
    app_id = connection.variables("APP_ID")["APP_ID"]
    subscriptions = await connection.admin.call("GET /admin/subscriptions", app_id=app_id)
    if not any(row["state"] in ("active", "failing") for row in subscriptions["subscriptions"]):
        rule = "the app has no active callback subscription, so no callback will come"
        raise ToolError("event", rule, "", hint="call subscribe first, or run `waypost listen`")
    seen: set[str] = set()

    async def read() -> list[dict[str, Any]]:
        rows = (await connection.admin.call("GET /admin/apps/{app_id}/callbacks", app_id=app_id))["callbacks"]
        seen.update(event_name(row["event"]) for row in rows)
        return [row for row in rows if is_match(row)]

    def is_match(row: dict[str, Any]) -> bool:
        return (
            (event is None or event_name(row["event"]) == event_name(event))
            and message_id in (None, row["message_id"])
            and (newer_than is None or row["id"] > newer_than)
        )

    def is_complete(rows: list[dict[str, Any]]) -> bool:
        return any(row["delivered"] or not delivered for row in rows)

    rows = await poll(read, is_complete, timeout_s)
    ready = [row for row in rows if row["delivered"] or not delivered]
    if ready:
        oldest = min(ready, key=lambda row: row["id"])
        view = await connection.admin.call("GET /admin/callbacks/{callback_id}", callback_id=oldest["id"])
        return ToolOutput({**view, "body": _read_body(view["body"])})
    if rows:
        rule = f"the receiver has not accepted it after {timeout_s} s"
        raise ToolError(
            "delivered", rule, "false", callback_id=rows[0]["id"], hint="explain_message shows the attempts"
        )
    rule = f"there is no such callback after {timeout_s} s"
    raise ToolError(
        "event", rule, ", ".join(sorted(seen)), hint="cause it with trigger, or wait with a longer timeout_s"
    )


@tool("advance_clock")
async def advance_clock(
    connection: ServiceConnection, *, days: Amount = 0, hours: Amount = 0, minutes: Amount = 0, seconds: Amount = 0
) -> ToolOutput:
    """Advance the clock of service and simulator, stopping at each due time; it cannot be set back."""
    hours = days * 24 + hours
    ms = ((hours * 60 + minutes) * 60 + seconds) * 1000
    if not ms:
        raise ToolError("hours", "the duration is 0", "at least one of days, hours, minutes and seconds above 0")
    response = await connection.control.call("POST /control/clock/advance", ms=ms)
    return ToolOutput(response, f"{clock_line(response)}; {due_times(response['steps'])} on the way")


class FaultArguments(Struct, forbid_unknown_fields=True):
    """Arguments of `arm_fault`: the fault, as the control API reads it."""

    on: Annotated[Literal["call", "webhook"], Meta(description="A call of the service, or a webhook to it.")]
    what: Annotated[
        dict[str, Any],
        _value(
            "What happens.",
            'an object such as {"error": 131016, "status": 503}, {"delay_ms": 5000} or {"fail": 131026}',
        ),
    ]
    call: Annotated[str | None, _value("Name of the call. Default: any.", "a call such as messages.send")] = None
    webhook: Annotated[
        str | None, _value("Name of the webhook. Default: any.", "a webhook such as delivered or messages")
    ] = None
    when: Annotated[
        dict[str, Any] | None,
        _value(
            "When it fires. Default: always.", 'an object such as {"next": 2}, {"every": 3} or {"probability": 0.1}'
        ),
    ] = None
    phone: Annotated[str | None, _value("Only for this phone, by its digits.", _DIGITS)] = None
    template: Annotated[
        str | None, _value("Only for this template, by its name.", "an element name of list_templates")
    ] = None
    number: Annotated[str | None, _value("Only for this business number.", "its digits, such as 15550001000")] = None
    label: Annotated[str | None, _value("A name of your own for it.", "a text such as outage")] = None


TOOLS["arm_fault"] = call_tool("POST /control/faults", FaultArguments)


TOOLS["disarm_faults"] = call_tool("DELETE /control/faults")


@tool("explain_message", is_read_only=True)
async def explain_message(connection: ServiceConnection, *, message_id: MessageId) -> ToolOutput:
    """Show a message's trace: request, queue, operator, events, callbacks with every attempt, and why it failed."""
    view = await connection.admin.call("GET /admin/trace/{message_id}", message_id=message_id)
    await add_simulated_events(lambda: connection.control, view)
    return ToolOutput(view, "\n".join(format_trace(view)))


@tool("explain_request", is_read_only=True)
async def explain_request(
    connection: ServiceConnection,
    *,
    request_id: Annotated[
        str,
        _value(
            "The X-Request-Id of the response, or the id of the request log.",
            "an id or request_id of list_requests",
            min_length=1,
        ),
    ],
) -> ToolOutput:
    """Explain a failed request by the X-Request-Id of its response: the error, the field and what would be accepted."""
    entry = await connection.find_request(request_id)
    if entry is None:
        newest = await connection.admin.call("GET /admin/requests", limit=5)
        accepted = ", ".join(entry["request_id"] or entry["id"] for entry in newest["requests"])
        raise ToolError("request_id", "is not in the request log", accepted, hint="list_requests has more")
    return ToolOutput(entry)


class ListRequestsArguments(Struct, forbid_unknown_fields=True):
    """Arguments of `list_requests`."""

    status: StatusFilter | None = None
    route: Annotated[str | None, _value("Part of method and path.", "a text such as /template/msg")] = None
    app_id: Annotated[
        str | None, _value("Only requests for this app.", "an app's id such as 01990000-0000-7000-8000-0000000000a1")
    ] = None
    limit: Annotated[int, Meta(ge=1, le=100, description="Number of requests, 1 to 100.")] = 10


TOOLS["list_requests"] = call_tool("GET /admin/requests", ListRequestsArguments, is_read_only=True)


def _shorten(row: dict[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in _SHOWN if name in row}


def _has_reached(state: str, wanted: str) -> bool:
    if _FAILED in (state, wanted):
        return state == wanted
    return _PROGRESS.index(state) >= _PROGRESS.index(wanted)


def _read_body(body: Any) -> Any:
    """Return the body of a callback as JSON; what is no JSON text stays as it is."""
    try:
        return json.loads(body)
    except (TypeError, ValueError):
        return body
