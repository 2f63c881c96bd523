"""The tools that wait: for a state of a message, and for a callback."""

import json
from typing import Any, Final

from waypost.cli.mcp.arguments import WaitForCallbackArguments, WaitForMessageArguments
from waypost.cli.mcp.connection import ServiceConnection
from waypost.cli.mcp.tool_error import ToolError
from waypost.cli.mcp.tool_output import ToolOutput
from waypost.cli.polling import poll
from waypost.wire.callbacks.kinds import event_name

_PROGRESS: Final = ("accepted", "uncertain", "enqueued", "sent", "delivered", "read", "deleted")
"""States of a message that does not fail, in their order."""
_FAILED: Final = "failed"


async def wait_for_message(connection: ServiceConnection, arguments: WaitForMessageArguments) -> ToolOutput:
    """Wait until a message has a state, and return the message. A failed one is an error with the operator's reason."""

    async def read() -> dict[str, Any]:
        return await connection.admin.call("GET /admin/messages/{message_id}", message_id=arguments.message_id)

    message = await poll(read, lambda view: _has_ended(view["state"], arguments.state), arguments.timeout_s)
    if _has_reached(message["state"], arguments.state):
        return ToolOutput(message)
    if message["state"] == _FAILED:
        rule = f"the message has failed: {message['code']} {message['reason'] or ''}".rstrip()
        raise ToolError("state", rule, "failed", message_id=message["id"], hint="explain_message shows the whole trace")
    rule = f"the message is {message['state']} and not {arguments.state} after {arguments.timeout_s} s"
    raise ToolError("state", rule, message["state"], message_id=message["id"], hint="a longer timeout_s")


async def wait_for_callback(connection: ServiceConnection, arguments: WaitForCallbackArguments) -> ToolOutput:
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
        return [row for row in rows if _is_match(row, arguments)]

    def is_complete(rows: list[dict[str, Any]]) -> bool:
        return any(row["delivered"] or not arguments.delivered for row in rows)

    rows = await poll(read, is_complete, arguments.timeout_s)
    ready = [row for row in rows if row["delivered"] or not arguments.delivered]
    if ready:
        oldest = min(ready, key=lambda row: row["id"])
        view = await connection.admin.call("GET /admin/callbacks/{callback_id}", callback_id=oldest["id"])
        return ToolOutput({**view, "body": _read_body(view["body"])})
    if rows:
        rule = f"the receiver has not accepted it after {arguments.timeout_s} s"
        raise ToolError(
            "delivered", rule, "false", callback_id=rows[0]["id"], hint="explain_message shows the attempts"
        )
    rule = f"there is no such callback after {arguments.timeout_s} s"
    raise ToolError(
        "event", rule, ", ".join(sorted(seen)), hint="cause it with trigger, or wait with a longer timeout_s"
    )


def _has_reached(state: str, wanted: str) -> bool:
    if _FAILED in (state, wanted):
        return state == wanted
    return _PROGRESS.index(state) >= _PROGRESS.index(wanted)


def _has_ended(state: str, wanted: str) -> bool:
    return state == _FAILED or _has_reached(state, wanted)


def _is_match(row: dict[str, Any], arguments: WaitForCallbackArguments) -> bool:
    return (
        (arguments.event is None or event_name(row["event"]) == event_name(arguments.event))
        and arguments.message_id in (None, row["message_id"])
        and (arguments.newer_than is None or row["id"] > arguments.newer_than)
    )


def _read_body(body: Any) -> Any:
    """Return the body of a callback as JSON; what is no JSON text stays as it is."""
    try:
        return json.loads(body)
    except (TypeError, ValueError):
        return body
