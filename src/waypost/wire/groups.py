"""Groups in the formats of the partner API."""

from typing import Final

import msgspec

from waypost.domain.errors import ApiError, ErrorCode

# fmt: off
GROUP_FIELDS: Final = (  # Source: ledger 1.10; the operator's page "Groups"
    "subject", "description", "participants", "total_participant_count", "creation_timestamp", "suspended",
    "join_approval_mode",
)
# fmt: on
_SHOWN_FIELDS: Final = ("subject", "description", "participants", "total_participant_count")
_ADMINS: Final = "admins"
"""A documented field that the operator does not have: the business is the only administrator."""


class GroupUser(msgspec.Struct):
    """A participant of a group."""

    user: str


def list_fields(text: str | None) -> list[str]:
    """Return the fields of a group that a request names; by default those of the documented response.

    Raises:
        ApiError: one is unknown.

    Source: ledger 1.10.
    """
    names = [name.strip() for name in (text or "").split(",") if name.strip()]
    if any(name not in (*GROUP_FIELDS, _ADMINS, "id") for name in names):
        raise ApiError(ErrorCode.FIELD_BROKEN, f"fields must be some of {','.join(GROUP_FIELDS)}.")
    return [name for name in names if name in GROUP_FIELDS] or list(_SHOWN_FIELDS)
