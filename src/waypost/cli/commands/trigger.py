"""`waypost trigger`: cause any event at the simulator, and with it the service's callback."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from difflib import get_close_matches
from typing import Annotated, Any, Final, cast
from urllib.parse import quote

import typer

from waypost.base.clock import SystemClock
from waypost.base.ids import RandomIds
from waypost.cli.commands.messages import (
    NEEDED_TO_FIND,
    NEEDED_TO_SEND,
    find_operator_id,
    send_content,
    send_template_by_id,
)
from waypost.cli.commands.trigger_events import EVENTS, TriggerEvent, list_events
from waypost.cli.connections import ENV_FILE, EnvFile, control_client, partner_client, read_environment
from waypost.cli.errors import EXIT_USAGE, CommandError, fail, report_api_errors
from waypost.cli.output import AsJson, print_view
from waypost.client.api_client import ApiClient, ApiResponseError

NEEDED_TO_TRIGGER: Final = (
    *NEEDED_TO_SEND, *NEEDED_TO_FIND, "CONTROL_URL", "WABA_ID", "PHONE_NUMBER_ID", "DESTINATION", "TEMPLATE_ID",
)  # fmt: skip
_PARAMETER: Final = re.compile(r"\{\{(\d+)\}\}")


def trigger(
    event: Annotated[str | None, typer.Argument(help="Name of the event. [default: list them]")] = None,
    assignments: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="A member of the call, such as text=Hi or value.event=X; repeatable."
        ),
    ] = None,
    to: Annotated[str | None, typer.Option(help="The simulated phone. [default: DESTINATION of the file]")] = None,
    message: Annotated[
        str | None,
        typer.Option(help="Id of the message that it is about, ours or the operator's. [default: a new one]"),
    ] = None,
    env_file: EnvFile = ENV_FILE,
    as_json: AsJson = False,
) -> None:
    """Cause an event at the simulator, such as delivered or image; without a name, list the events."""
    if event is None:
        groups = {
            group: [{"event": name, "occasion": row.occasion} for name, row in events.items()]
            for group, events in list_events().items()
        }
        rows = [{**row, "group": group} for group, rows in groups.items() for row in rows]
        print_view({"events": rows} if as_json else groups, as_json=as_json)
        return
    chosen = EVENTS.get(event)
    if chosen is None:
        similar = get_close_matches(event, EVENTS, n=1)
        hint = f"Did you mean {similar[0]}? " if similar else ""
        fail(f"there is no event {event}. {hint}`waypost trigger` lists the events", code=EXIT_USAGE)
    changes = _parse_assignments(assignments or [])
    with report_api_errors(address=f"CONTROL_URL in {env_file}", credential=f"API_KEY in {env_file}"):
        variables = read_environment(env_file, *NEEDED_TO_TRIGGER)
        variables |= {"DESTINATION": to} if to else {}
        result = asyncio.run(cause_event(variables, chosen, changes, message=message))
    print_view({"event": event, **result}, as_json=as_json)


async def cause_event(
    variables: Mapping[str, str], event: TriggerEvent, changes: Mapping[str, Any], *, message: str | None = None
) -> dict[str, Any]:
    """Cause an event: send the message that it needs, unless one is named, then make its call.

    Args:
        changes: members of the call's body by dotted name; they replace those of the table.
        message: id of the message, ours or the operator's.

    Returns:
        The id of the message, if one was sent or named, and the simulator's response.
    """
    control = control_client(variables)
    if event.before_delivery and message is None:
        async with _offline(control, variables["DESTINATION"]):
            return await _cause(variables, control, event, changes, None)
    return await _cause(variables, control, event, changes, message)


@asynccontextmanager
async def _offline(control: ApiClient, phone: str) -> AsyncGenerator[None]:
    """Take a phone offline, and bring it back as it was."""
    was_offline = (await control.call("GET /control/phones/{phone}", phone=phone))["is_offline"]
    await control.call("PUT /control/phones/{phone}", phone=phone, is_offline=True)
    try:
        yield
    finally:
        await control.call("PUT /control/phones/{phone}", phone=phone, is_offline=was_offline)


async def _cause(
    variables: Mapping[str, str],
    control: ApiClient,
    event: TriggerEvent,
    changes: Mapping[str, Any],
    message: str | None,
) -> dict[str, Any]:
    ids = RandomIds(SystemClock())
    known = {name.lower(): value for name, value in variables.items()}
    known |= {"now_s": str(SystemClock().now_ms() // 1000), "unique": ids.new()}
    result: dict[str, Any] = {}
    if event.needs_message:
        if message is None:
            message = await _send_first(variables, control, event)
            kind = event.sends["type"] if event.sends else "template"
            result["sent_first"] = f"{kind} message {message} to {variables['DESTINATION']}"
        message = await find_operator_id(variables, message)
        known["message"] = result["operator_message_id"] = message
    if "{template}" in event.path:
        known["template"] = await _find_template(control, variables["WABA_ID"])
    if not event.path:
        return result
    body = _fill(event.body, known)
    for name, value in changes.items():
        _assign(body, name, value)
    path = event.path.format_map({name: quote(text, safe="") for name, text in known.items()})
    try:
        response = await control.json("POST", path, body)
    except ApiResponseError as error:
        accepted = f"; accepted: {error.expected}" if error.expected else ""
        raise ApiResponseError(error.status, f"{error.problem}{accepted}") from error
    return {**result, **(response or {})}


async def _send_first(variables: Mapping[str, str], control: ApiClient, event: TriggerEvent) -> str:
    """Send the message of an event, and return our id of it."""
    recipient = variables["DESTINATION"]
    if event.sends is None:
        template_id = variables["TEMPLATE_ID"]
        path = f"/partner/app/{variables['APP_ID']}/templates/{template_id}"
        template = (await partner_client(variables).json("GET", path))["template"]
        params = [f"value {number}" for number in sorted(set(_PARAMETER.findall(template["data"])))]
        sent = await send_template_by_id(variables, recipient, template_id, params)
    else:
        opening = {"to": variables["SOURCE"], "type": "text", "text": "Hello"}
        await control.call("POST /control/phones/{phone}/messages", phone=recipient, **opening)
        sent = await send_content(variables, recipient, event.sends)
    return sent["messageId"]


async def _find_template(control: ApiClient, waba_id: str) -> str:
    """Return the operator's id of the newest approved template of a business account."""
    found = await control.call("GET /control/templates", waba_id=waba_id, status="APPROVED", limit=1)
    templates = found["templates"]
    if not templates:
        raise CommandError("template", "no template of the app is approved", "create one: `waypost template create`")
    return templates[-1]["id"]


def _parse_assignments(texts: list[str]) -> dict[str, Any]:
    """Return values by name; a value that is JSON is read as such, any other is a text."""
    values: dict[str, Any] = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator or not name:
            fail(f"--set must be NAME=VALUE, as in text=Hi; {text!r} is not", code=EXIT_USAGE)
        try:
            values[name] = json.loads(value)
        except ValueError:
            values[name] = value
    return values


def _fill(value: Any, known: Mapping[str, str]) -> Any:
    """Return a value with each `{name}` of a known variable replaced."""
    if isinstance(value, str):
        for name, text in known.items():
            value = value.replace(f"{{{name}}}", text)
        return value
    if isinstance(value, Mapping):
        members = cast("Mapping[str, Any]", value)
        return {name: _fill(item, known) for name, item in members.items()}
    if isinstance(value, list):
        return [_fill(item, known) for item in cast("list[Any]", value)]
    return value


def _assign(body: dict[str, Any], name: str, value: Any) -> None:
    """Set a member of nested objects by its dotted name."""
    *path, last = name.split(".")
    for part in path:
        inner = body.get(part)
        if not isinstance(inner, dict):
            inner = body[part] = cast("dict[str, Any]", {})
        body = cast("dict[str, Any]", inner)
    body[last] = value
