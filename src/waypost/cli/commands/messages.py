"""`waypost send` and `waypost tap`: send one message of an app, and tap a button of it on a simulated phone."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from waypost.cli.commands.templates import find_template
from waypost.cli.connections import ENV_FILE, EnvFile, admin_client, control_client, poll, read_environment
from waypost.cli.errors import EXIT_USAGE, CommandError, fail, read_json_object, report_api_errors
from waypost.cli.output import AsJson, print_view
from waypost.client.api_client import ApiClient, HttpTransport

NEEDED_TO_FIND: Final = ("ADMIN_URL", "ADMIN_TOKEN")
NEEDED_TO_SEND: Final = ("API_URL", "API_KEY", "PARTNER_URL", "APP_ID", "APP_TOKEN", "SOURCE", "SRC_NAME")
NEEDED_TO_TAP: Final = ("CONTROL_URL", "DESTINATION", *NEEDED_TO_FIND)
MESSAGE_TIMEOUT_S: Final = 15
"""How long a message may take to reach the operator."""
_OPERATOR_PREFIX: Final = "wamid."


async def find_operator_id(variables: Mapping[str, str], message_id: str) -> str:
    """Return the operator's id of a message, by our id or its own, once it has one."""
    if message_id.startswith(_OPERATOR_PREFIX):
        return message_id
    admin = admin_client(variables)

    async def read() -> dict[str, Any]:
        return await admin.call("GET /admin/messages/{message_id}", message_id=message_id)

    message = await poll(read, lambda view: view["operator_message_id"] or view["state"] == "failed", MESSAGE_TIMEOUT_S)
    if message["operator_message_id"]:
        return message["operator_message_id"]
    reason = message["reason"] or f"it is {message['state']}"
    rule = f"the operator has not accepted the message {message_id}: {reason}"
    raise CommandError("message_id", rule, f"a message that it accepts; `waypost trace {message_id}` shows this one")


_MESSAGES_PATH: Final = "/wa/api/v1"


def send(
    text: Annotated[str | None, typer.Argument(help="The text; the recipient has written within 24 hours.")] = None,
    to: Annotated[str | None, typer.Option(help="The recipient. [default: DESTINATION of the file]")] = None,
    template: Annotated[str | None, typer.Option(help="Send this template instead: its id or element name.")] = None,
    param: Annotated[list[str] | None, typer.Option(help="A parameter of the template; repeatable, in order.")] = None,
    postback: Annotated[
        list[str] | None,
        typer.Option(help="The text that a tap on a button of the template returns; repeatable, in order."),
    ] = None,
    message: Annotated[
        Path | None, typer.Option(help="Send the message of a JSON file instead, of any type; - is standard input.")
    ] = None,
    env_file: EnvFile = ENV_FILE,
    as_json: AsJson = False,
) -> None:
    """Send a message: a text, a template, or the JSON of any type; prints its id."""
    if sum(value is not None for value in (text, template, message)) != 1:
        fail("give one of a text, --template and --message, as in `waypost send 'Hello'`", code=EXIT_USAGE)
    if (param or postback) and template is None:
        fail(f"--{'param' if param else 'postback'} needs --template", code=EXIT_USAGE)
    content = {"type": "text", "text": text} if message is None else read_json_object(message, "--message")
    with report_api_errors(address=f"API_URL in {env_file}", credential=f"API_KEY in {env_file}"):
        variables = read_environment(env_file, *NEEDED_TO_SEND)
        recipient = to or variables.get("DESTINATION")
        if not recipient:
            fail(f"give --to: DESTINATION is missing in {env_file}", code=EXIT_USAGE)
        if template is None:
            response = asyncio.run(send_content(variables, recipient, content))
        else:
            response = asyncio.run(send_template(variables, recipient, template, param or [], postback or []))
    print_view({"message_id": response["messageId"], "status": response["status"], "to": recipient}, as_json=as_json)


async def send_content(variables: Mapping[str, str], recipient: str, content: Any) -> Any:
    """Send a session message and return the response."""
    return await _post(
        variables, f"{_MESSAGES_PATH}/msg", recipient, {"channel": "whatsapp", "message": json.dumps(content)}
    )


async def send_template_by_id(
    variables: Mapping[str, str], recipient: str, template_id: str, params: Sequence[str], postbacks: Sequence[str] = ()
) -> Any:
    """Send a template message and return the response."""
    fields = {"template": json.dumps({"id": template_id, "params": params})}
    if postbacks:
        fields["postbackTexts"] = json.dumps([{"index": index, "text": text} for index, text in enumerate(postbacks)])
    return await _post(variables, f"{_MESSAGES_PATH}/template/msg", recipient, fields)


async def _post(variables: Mapping[str, str], path: str, recipient: str, fields: Mapping[str, str]) -> Any:
    sender = {"source": variables["SOURCE"], "src.name": variables["SRC_NAME"], "destination": recipient}
    client = ApiClient(HttpTransport(variables["API_URL"]), {"apikey": variables["API_KEY"]})
    return await client.form("POST", path, {**sender, **fields})


async def send_template(
    variables: Mapping[str, str], recipient: str, name: str, params: Sequence[str], postbacks: Sequence[str]
) -> Any:
    """Send a template message by the template's id or element name, and return the response."""
    template = await find_template(variables, name)
    return await send_template_by_id(variables, recipient, template["id"], params, postbacks)


MAX_WAIT_S: Final = 60


def tap(
    text: Annotated[str | None, typer.Argument(help="The text on the button.")] = None,
    index: Annotated[int | None, typer.Option(min=0, max=99, help="Number of the button instead, from 0.")] = None,
    card: Annotated[int | None, typer.Option(min=0, max=9, help="Number of the card that has it, from 0.")] = None,
    message: Annotated[
        str | None, typer.Option(help="Id of the message, ours or the operator's. [default: the newest with a button]")
    ] = None,
    phone: Annotated[str | None, typer.Option(help="The simulated phone. [default: DESTINATION of the file]")] = None,
    wait_s: Annotated[int, typer.Option("--wait", min=0, max=MAX_WAIT_S, help="Seconds to wait for the message.")] = 5,
    env_file: EnvFile = ENV_FILE,
    as_json: AsJson = False,
) -> None:
    """Tap a button on a simulated phone, by its text or its number, once the message has arrived."""
    if (text is None) == (index is None):
        fail("give the text of a button or --index, as in `waypost tap 'Yes please'`", code=EXIT_USAGE)
    with report_api_errors(address=f"CONTROL_URL in {env_file}", credential=f"ADMIN_TOKEN in {env_file}"):
        variables = read_environment(env_file, *NEEDED_TO_TAP)
        variables |= {"DESTINATION": phone} if phone else {}
        button = {"text": text, "index": index, "card": card}
        result = asyncio.run(tap_button(variables, button, message_id=message, wait_s=wait_s))
    if not as_json:  # `send` prints our id of the message under `message id`
        names = {"message_id": "operator_message_id", "wamid": "wamid_of_the_tap"}
        result = {names.get(name, name): result[name] for name in ("message_id", "wamid", "button")}
    print_view(result, as_json=as_json)


async def tap_button(
    variables: Mapping[str, str], button: Mapping[str, Any], *, message_id: str | None, wait_s: int
) -> dict[str, Any]:
    """Tap a button on the phone DESTINATION, and return the simulator's response.

    Args:
        button: its text or index, and its card; what is None is not given.
        message_id: ours or the operator's; None: the newest message with a button.
        wait_s: longest time to wait for the message.
    """
    body = {name: value for name, value in button.items() if value is not None} | {"wait_ms": wait_s * 1000}
    if message_id is not None:
        body["message_id"] = await find_operator_id(variables, message_id)
    return await control_client(variables).call(
        "POST /control/phones/{phone}/tap", phone=variables["DESTINATION"], **body
    )
