"""Messages to groups: told apart from every phone, and without a phone that shows them.

The simulator keeps no list of groups: any id is one. What their members do is said through the control
API, as webhooks of the account.
"""

from typing import Any, Final

from waypost.simulator.errors import bad_parameter
from waypost.simulator.tables.messages import Message
from waypost.simulator.tables.updates import Update
from waypost.simulator.webhooks.outbox import ascii_json, status_rest

GROUP: Final = "group:"
"""Before a group's id where a message's phone stands."""
_ID_AT_MOST: Final = 200


def group_place(request: dict[str, Any]) -> str | None:
    """Where a message to a group is kept: in the place of a phone. None for one to a person.

    Raises:
        GraphRefused: 100, the group is not named.
    """
    if request.get("recipient_type", "individual") != "group":
        return None
    group_id = request.get("to")
    if not isinstance(group_id, str) or not 0 < len(group_id.strip()) <= _ID_AT_MOST:
        raise bad_parameter("The parameter to is required: the id of a group.")
    return GROUP + group_id


def group_contact(place: str) -> dict[str, Any]:
    """Who the answer says it went to."""
    group_id = place.removeprefix(GROUP)
    return {"input": group_id, "wa_id": group_id}


def group_sent(message: Message, waba_id: str, update_id: int, errors: str = "") -> Update:
    """The first status of a message to a group: `sent`, or `failed` with errors."""
    group_id = message.phone.removeprefix(GROUP)
    recipient = f'"recipient_id":{ascii_json(group_id)},"recipient_type":"group"'
    rest = status_rest(recipient, message.callback_data, errors)
    kind = "failed" if errors else "sent"
    return Update(waba_id, message.at_ms, update_id, kind, message.phone_number_id, message.wamid, rest)
