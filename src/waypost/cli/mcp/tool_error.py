"""The error of a tool: the field, the rule that it breaks, and what would be accepted."""

from typing import Any

from waypost.cli.errors import CommandError
from waypost.cli.mcp.connection import BUSY_REQUEST_LOG_DELAY_S, ServiceConnection
from waypost.client.api_client import ApiResponseError, ApiUnreachable
from waypost.client.dev_variables import MissingVariable

REPORTED_ERRORS = (ApiResponseError, ApiUnreachable, MissingVariable, CommandError)
"""Errors whose text is for the caller of a tool; any other exception is a defect."""


class ToolError(Exception):
    """A tool cannot do what it was called for.

    Args:
        field: the invalid argument, or the field of the API; empty: the error is not about one.
        rule: the rule that it breaks.
        accepted: what would be accepted, or what to do.
        details: further members of the error; `hint` says what to do.
    """

    def __init__(self, field: str, rule: str, accepted: str, **details: Any) -> None:
        subject = f"{field}: " if field and not rule.startswith(field) else ""
        hint = details.get("hint", "")
        super().__init__(
            f"{subject}{rule}" + (f"; accepted: {accepted}" if accepted else "") + (f"; {hint}" if hint else "")
        )
        self.members = {"field": field, "rule": rule, "accepted": accepted, **details}


async def describe_error(connection: ServiceConnection, error: Exception) -> ToolError:
    """Return the error of a call as the tool's; the request log completes one that does not name its field."""
    match error:
        case ApiResponseError(field="", request_id=request_id, status=status) if request_id:
            entry = await _find_entry(connection, request_id)
            if entry is not None:
                rule = entry["explanation"] or entry["message"]
                return ToolError(
                    entry["field"], rule, entry["accepted"], message=error.message, status=status, request_id=request_id
                )
            return ToolError("", str(error), "", message=error.message, status=status, request_id=request_id)
        case ApiResponseError():
            rule = str(error) if error.rule in ("", error.message) or not error.expected else error.rule
            return ToolError(error.field, rule, error.accepted, message=error.message, status=error.status)
        case CommandError():
            return ToolError(error.field, error.rule, error.accepted)
        case ApiUnreachable():
            return ToolError("", str(error), "", hint="start `waypost dev`")
        case _:
            return ToolError("", str(error), "")


async def _find_entry(connection: ServiceConnection, request_id: str) -> dict[str, Any] | None:
    try:
        return await connection.find_request(request_id, BUSY_REQUEST_LOG_DELAY_S)
    except (ApiResponseError, ApiUnreachable, MissingVariable):
        return None
