"""The operator's id of a message, which the simulator needs: `tap` and `trigger` accept ours too."""

from collections.abc import Mapping
from typing import Any, Final

from waypost.cli.connections import admin_client
from waypost.cli.errors import CommandError
from waypost.cli.polling import poll

NEEDED: Final = ("ADMIN_URL", "ADMIN_TOKEN")
MESSAGE_TIMEOUT_S: Final = 15
"""How long a message may take to reach the operator."""
_OPERATOR_PREFIX: Final = "wamid."


async def find_operator_id(variables: Mapping[str, str], message_id: str) -> str:
    """Return the operator's id of a message once it has one.

    Args:
        variables: of the environment file.
        message_id: ours, or the operator's.

    Raises:
        CommandError: the operator does not accept the message.
        ApiResponseError: there is no such message.
        ApiUnreachable: the service does not respond.
    """
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
