"""`waypost send`: send one message of an app, a text or a template."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from waypost.cli.commands.template_calls import find_template
from waypost.cli.connections import ENV_FILE, EnvFile, messaging_client, read_environment
from waypost.cli.errors import EXIT_USAGE, fail, report_api_errors
from waypost.cli.json_file import read_json_object
from waypost.cli.output import AsJson, print_view

NEEDED: Final = ("API_URL", "API_KEY", "PARTNER_URL", "APP_ID", "APP_TOKEN", "SOURCE", "SRC_NAME")
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
        variables = read_environment(env_file, *NEEDED)
        recipient = to or variables.get("DESTINATION")
        if not recipient:
            fail(f"give --to: DESTINATION is missing in {env_file}", code=EXIT_USAGE)
        if template is None:
            response = asyncio.run(send_content(variables, recipient, content))
        else:
            response = asyncio.run(send_template(variables, recipient, template, param or [], postback or []))
    print_view({"message_id": response["messageId"], "status": response["status"], "to": recipient}, as_json=as_json)


async def send_content(variables: Mapping[str, str], recipient: str, content: Any) -> Any:
    """Send a session message and return the response.

    Raises:
        ApiResponseError: it was rejected.
        ApiUnreachable: the service does not respond.
    """
    return await _post(
        variables, f"{_MESSAGES_PATH}/msg", recipient, {"channel": "whatsapp", "message": json.dumps(content)}
    )


async def send_template_by_id(
    variables: Mapping[str, str], recipient: str, template_id: str, params: list[str], postbacks: Sequence[str] = ()
) -> Any:
    """Send a template message and return the response; arguments as `send_template`.

    Raises:
        ApiResponseError: it was rejected.
        ApiUnreachable: the service does not respond.
    """
    fields = {"template": json.dumps({"id": template_id, "params": params})}
    if postbacks:
        fields["postbackTexts"] = json.dumps([{"index": index, "text": text} for index, text in enumerate(postbacks)])
    return await _post(variables, f"{_MESSAGES_PATH}/template/msg", recipient, fields)


async def _post(variables: Mapping[str, str], path: str, recipient: str, fields: Mapping[str, str]) -> Any:
    sender = {"source": variables["SOURCE"], "src.name": variables["SRC_NAME"], "destination": recipient}
    return await messaging_client(variables).form("POST", path, {**sender, **fields})


async def send_template(
    variables: Mapping[str, str], recipient: str, name: str, params: list[str], postbacks: list[str]
) -> Any:
    """Send a template message by the template's id or element name, and return the response.

    Args:
        variables: of the environment file.
        recipient: the phone number.
        name: of the template.
        params: its parameters, in order.
        postbacks: the texts that taps on its buttons return, in order.

    Raises:
        CommandError: there is no such template.
        ApiResponseError: it was rejected.
        ApiUnreachable: the service does not respond.
    """
    template = await find_template(variables, name)
    return await send_template_by_id(variables, recipient, template["id"], params, postbacks)
