"""Messages to groups: stored under a recipient that no phone can have, and shown on no phone.

The simulator stores no list of groups: any id is one. Actions of their members are sent through the control API,
as webhooks of the account.
"""

from typing import Any, Final

from waypost.simulator.errors import bad_parameter
from waypost.simulator.tables.messages import SimulatedMessage
from waypost.simulator.tables.updates import Update
from waypost.simulator.webhooks.outbox import ascii_json, status_json

GROUP_PREFIX: Final = "group:"
"""The prefix of a group's id in the column of a message's phone."""
_MAX_GROUP_ID_CHARS: Final = 200


def group_recipient(request: dict[str, Any]) -> str | None:
    """Return the recipient under which a message to a group is stored, or None for a message to a person.

    Raises:
        GraphApiError: 100, the group's id is missing.
    """
    if request.get("recipient_type", "individual") != "group":
        return None
    group_id = request.get("to")
    if not isinstance(group_id, str) or not 0 < len(group_id.strip()) <= _MAX_GROUP_ID_CHARS:
        raise bad_parameter("The parameter to is required: the id of a group.")
    return GROUP_PREFIX + group_id


def group_contact(recipient: str) -> dict[str, Any]:
    """Return the contact of a group for the response."""
    group_id = recipient.removeprefix(GROUP_PREFIX)
    return {"input": group_id, "wa_id": group_id}


def group_status_update(message: SimulatedMessage, waba_id: str, update_id: int, errors: str = "") -> Update:
    """Return the first status of a message to a group: `sent`, or `failed` with errors."""
    group_id = message.phone.removeprefix(GROUP_PREFIX)
    recipient = f'"recipient_id":{ascii_json(group_id)},"recipient_type":"group"'
    rest = status_json(recipient, message.callback_data, errors)
    kind = "failed" if errors else "sent"
    return Update(waba_id, message.at_ms, update_id, kind, message.phone_number_id, message.wamid, rest)
