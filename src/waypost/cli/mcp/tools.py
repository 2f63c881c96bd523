"""The tools: one row each, with its arguments and its function, which calls what the command of the same task calls."""

from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple

import msgspec

from waypost.cli.commands.clock import clock_line, due_times
from waypost.cli.commands.messages import NEEDED as NEEDED_TO_SEND
from waypost.cli.commands.messages import send_content, send_template
from waypost.cli.commands.tap import NEEDED as NEEDED_TO_TAP
from waypost.cli.commands.tap import tap_button
from waypost.cli.commands.trace import format_trace
from waypost.cli.commands.trigger import NEEDED as NEEDED_TO_TRIGGER
from waypost.cli.commands.trigger import cause_event
from waypost.cli.commands.trigger_events import EVENTS
from waypost.cli.mcp.arguments import (
    TRIGGERED_EVENTS,
    AdvanceArguments,
    CreateTemplateArguments,
    ExplainMessageArguments,
    ExplainRequestArguments,
    FaultArguments,
    ListRequestsArguments,
    ListTemplatesArguments,
    NoArguments,
    SendArguments,
    SubscribeArguments,
    TapArguments,
    TriggerArguments,
    WaitForCallbackArguments,
    WaitForMessageArguments,
    WaitForTemplateArguments,
)
from waypost.cli.mcp.connection import ServiceConnection
from waypost.cli.mcp.template_tools import create, list_all_templates, subscribe, wait_until_approved
from waypost.cli.mcp.tool_error import ToolError
from waypost.cli.mcp.tool_output import ToolOutput
from waypost.cli.mcp.wait_tools import wait_for_callback, wait_for_message
from waypost.client.simulated_events import add_simulated_events


class AgentTool(NamedTuple):
    """A tool.

    Attributes:
        arguments_type: of its arguments.
        function: carries it out; its docstring describes it to an agent.
        is_read_only: True if it changes nothing.
    """

    arguments_type: type[msgspec.Struct]
    function: Callable[[ServiceConnection, Any], Awaitable[ToolOutput]]
    is_read_only: bool = False

    @property
    def description(self) -> str:
        """Return what it does, for an agent."""
        return " ".join((self.function.__doc__ or "").split())


async def send(connection: ServiceConnection, arguments: SendArguments) -> ToolOutput:
    """Send a message of the app: a text, a template with its parameters, or a session message of any type.

    Returns its id; a message that is not accepted is an error with the field, the rule and what is accepted.
    """
    given = [name for name in ("text", "template", "message") if getattr(arguments, name) is not None]
    if len(given) != 1:
        raise ToolError(" and ".join(given) or "text", "is not the only content", "one of text, template and message")
    variables = connection.variables(*NEEDED_TO_SEND)
    recipient = arguments.to or variables.get("DESTINATION")
    if not recipient:
        raise ToolError("to", "is missing", "8 to 15 digits, such as 15550002001")
    if arguments.template is not None:
        response = await send_template(variables, recipient, arguments.template, arguments.params, arguments.postbacks)
    else:
        content = arguments.message or {"type": "text", "text": arguments.text}
        response = await send_content(variables, recipient, content)
    return ToolOutput({"message_id": response["messageId"], "status": response["status"], "to": recipient})


async def tap(connection: ServiceConnection, arguments: TapArguments) -> ToolOutput:
    """Tap a button on a simulated phone, by its text or its number; waits for the message to arrive."""
    if (arguments.text is None) == (arguments.index is None):
        raise ToolError("text", "a button has one description", "one of text and index")
    variables = connection.variables(*NEEDED_TO_TAP)
    variables |= {"DESTINATION": arguments.phone} if arguments.phone else {}
    button = {"text": arguments.text, "index": arguments.index}
    return ToolOutput(await tap_button(variables, button, message_id=arguments.message_id, wait_s=arguments.wait_s))


async def trigger(connection: ServiceConnection, arguments: TriggerArguments) -> ToolOutput:
    """Cause an event at the simulator: the recipient writes (text, image, …), reads, reacts; a message fails; and others.

    A message is sent first if the event needs one. An unknown event is an error that lists all.
    """
    event = EVENTS.get(arguments.event)
    if event is None:
        raise ToolError("event", f"there is no event {arguments.event}", ", ".join(TRIGGERED_EVENTS))
    variables = connection.variables(*NEEDED_TO_TRIGGER)
    variables |= {"DESTINATION": arguments.phone} if arguments.phone else {}
    result = await cause_event(variables, event, arguments.changes, message=arguments.message_id)
    return ToolOutput({"event": arguments.event, **result})


async def advance_clock(connection: ServiceConnection, arguments: AdvanceArguments) -> ToolOutput:
    """Advance the clock of service and simulator, stopping at each due time; it cannot be set back."""
    hours = arguments.days * 24 + arguments.hours
    ms = ((hours * 60 + arguments.minutes) * 60 + arguments.seconds) * 1000
    if not ms:
        raise ToolError("hours", "the duration is 0", "at least one of days, hours, minutes and seconds above 0")
    response = await connection.control.call("POST /control/clock/advance", ms=ms)
    return ToolOutput(response, f"{clock_line(response)}; {due_times(response['steps'])} on the way")


async def arm_fault(connection: ServiceConnection, arguments: FaultArguments) -> ToolOutput:
    """Arm a fault of the simulated operator, such as a rejected call, a lost response or a late webhook."""
    return ToolOutput(await connection.control.call("POST /control/faults", **msgspec.to_builtins(arguments)))


async def disarm_faults(connection: ServiceConnection, _arguments: NoArguments) -> ToolOutput:
    """Disarm all faults."""
    return ToolOutput(await connection.control.call("DELETE /control/faults"))


async def explain_message(connection: ServiceConnection, arguments: ExplainMessageArguments) -> ToolOutput:
    """Show a message's trace: request, queue, operator, events, callbacks with every attempt, and why it failed."""
    view = await connection.admin.call("GET /admin/trace/{message_id}", message_id=arguments.message_id)
    await add_simulated_events(lambda: connection.control, view)
    return ToolOutput(view, "\n".join(format_trace(view)))


async def explain_request(connection: ServiceConnection, arguments: ExplainRequestArguments) -> ToolOutput:
    """Explain a failed request by the X-Request-Id of its response: the error, the field and what would be accepted."""
    entry = await connection.find_request(arguments.request_id)
    if entry is None:
        newest = await connection.admin.call("GET /admin/requests", limit=5)
        accepted = ", ".join(entry["request_id"] or entry["id"] for entry in newest["requests"])
        raise ToolError("request_id", "is not in the request log", accepted, hint="list_requests has more")
    return ToolOutput(entry)


async def list_requests(connection: ServiceConnection, arguments: ListRequestsArguments) -> ToolOutput:
    """List the newest requests of the request log: all that failed, and of the others all under `waypost dev`."""
    return ToolOutput(await connection.admin.call("GET /admin/requests", **msgspec.structs.asdict(arguments)))


# fmt: off
TOOLS: Final = {  # the name by which an agent calls it
    "subscribe":         AgentTool(SubscribeArguments,       subscribe),
    "create_template":   AgentTool(CreateTemplateArguments,  create),
    "list_templates":    AgentTool(ListTemplatesArguments,   list_all_templates,  is_read_only=True),
    "wait_for_template": AgentTool(WaitForTemplateArguments, wait_until_approved, is_read_only=True),
    "send":              AgentTool(SendArguments,            send),
    "tap":               AgentTool(TapArguments,             tap),
    "trigger":           AgentTool(TriggerArguments,         trigger),
    "wait_for_message":  AgentTool(WaitForMessageArguments,  wait_for_message,  is_read_only=True),
    "wait_for_callback": AgentTool(WaitForCallbackArguments, wait_for_callback, is_read_only=True),
    "advance_clock":     AgentTool(AdvanceArguments,         advance_clock),
    "arm_fault":         AgentTool(FaultArguments,           arm_fault),
    "disarm_faults":     AgentTool(NoArguments,              disarm_faults),
    "explain_message":   AgentTool(ExplainMessageArguments,  explain_message,         is_read_only=True),
    "explain_request":   AgentTool(ExplainRequestArguments,  explain_request,         is_read_only=True),
    "list_requests":     AgentTool(ListRequestsArguments,    list_requests,           is_read_only=True),
}
# fmt: on
