"""`waypost tap`: tap a button of a message on a simulated phone."""

import asyncio
from collections.abc import Mapping
from typing import Annotated, Any, Final

import typer

from waypost.cli.commands.operator_ids import NEEDED as NEEDED_TO_FIND
from waypost.cli.commands.operator_ids import find_operator_id
from waypost.cli.connections import ENV_FILE, EnvFile, control_client, read_environment
from waypost.cli.errors import EXIT_USAGE, fail, report_api_errors
from waypost.cli.output import AsJson, print_view

NEEDED: Final = ("CONTROL_URL", "DESTINATION", *NEEDED_TO_FIND)
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
        variables = read_environment(env_file, *NEEDED)
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
    """Tap a button, and return the simulator's response.

    Args:
        variables: of the environment file; DESTINATION is the phone.
        button: its text or index, and its card; what is None is not given.
        message_id: ours or the operator's; None: the newest message with a button.
        wait_s: longest time to wait for the message.

    Raises:
        CommandError: the operator does not accept the message.
        ApiResponseError: there is no such button or message.
        ApiUnreachable: service or simulator do not respond.
    """
    body = {name: value for name, value in button.items() if value is not None} | {"wait_ms": wait_s * 1000}
    if message_id is not None:
        body["message_id"] = await find_operator_id(variables, message_id)
    return await control_client(variables).call(
        "POST /control/phones/{phone}/tap", phone=variables["DESTINATION"], **body
    )
