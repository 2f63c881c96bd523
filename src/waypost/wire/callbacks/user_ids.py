"""Business-scoped user ids in callbacks: included or left out, as the app has set.

Without the flag of version 3, a callback has the members that it had before user ids: they are removed. One remains
where the operator gives no number: it is then all that identifies the user.
"""

from collections.abc import Mapping
from typing import Any, Final, cast

NUMBERS_OF_USER_IDS: Final = {  # members with a user id, and the member with the number of the same user. Source: ledger rows 36, 59, 73
    "user_id": "wa_id",
    "from_user_id": "from",
    "to_user_id": "to",
    "recipient_user_id": "recipient_id",
}
OTHER_USER_MEMBERS: Final = {  # removed in any case. Source: public page "BSUID"
    "parent_user_id",
    "from_parent_user_id",
    "to_parent_user_id",
    "recipient_parent_user_id",
    "username",
}
FIELDS_WITH_USER_IDS: Final = {  # besides `messages`. Source: public page "BSUID"; the last three are ours
    "user_preferences",
    "calls",
    "smb_message_echoes",
    "history",
    "group_participants_update",
    "message_echoes",
}


def hide_user_ids(value: Any) -> Any:
    """Return a value as received without user ids, except where there is no number."""
    if isinstance(value, list):
        return [hide_user_ids(item) for item in cast(list[Any], value)]
    if not isinstance(value, dict):
        return value
    members = cast(dict[str, Any], value)
    return {name: hide_user_ids(member) for name, member in members.items() if not _is_hidden(name, members)}


def _is_hidden(name: str, members: Mapping[str, Any]) -> bool:
    if name in OTHER_USER_MEMBERS:
        return True
    number = NUMBERS_OF_USER_IDS.get(name)
    return number is not None and bool(members.get(number))
