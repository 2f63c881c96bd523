"""Permissions of the Graph API's calls, and the call that inspects a token."""

from typing import Any, Final

from waypost.simulator.accounts.accounts import GraphApp, Number
from waypost.simulator.accounts.tokens import MANAGEMENT, MESSAGING
from waypost.simulator.errors import bad_parameter
from waypost.simulator.groups.model import SimulatedGroup
from waypost.simulator.media.media import SimulatedMedia
from waypost.simulator.media.uploads import UploadSession
from waypost.simulator.requests import Call
from waypost.simulator.services import SimulatorServices

DEBUG: Final = "debug_token"
"""The first path segment of the call that inspects a token."""

_CALL_PERMISSIONS: Final[
    dict[tuple[type, str], str | None]
] = {  # Source: facts 1, "Permissions"; all others need MANAGEMENT
    # object, edge, permission
    (Number, "messages"): MESSAGING,
    (Number, "marketing_messages"): MESSAGING,
    (Number, "media"): MESSAGING,
    (SimulatedMedia, ""): MESSAGING,
    (Number, "block_users"): MESSAGING,
    (Number, "whatsapp_business_profile"): MESSAGING,
    (Number, "groups"): MESSAGING,
    (Number, "calls"): MESSAGING,
    (SimulatedGroup, ""): MESSAGING,
    (SimulatedGroup, "invite_link"): MESSAGING,
    (SimulatedGroup, "participants"): MESSAGING,
    (SimulatedGroup, "join_requests"): MESSAGING,
    (GraphApp, "uploads"): None,
    (GraphApp, "subscriptions"): None,
    (UploadSession, ""): None,
}


def permission_of(kind: type, edge: str) -> str | None:
    """Return the permission that a call needs; None: any token of the account is accepted."""
    return _CALL_PERMISSIONS.get((kind, edge), MANAGEMENT)


async def debug_token(services: SimulatorServices, call: Call, _object: Any) -> dict[str, Any]:
    """Return the debug data of a token. Source: the operator's page "Debug-Token"."""
    token = call.query.get("input_token")
    if not token:
        raise bad_parameter("The parameter input_token is required.")
    return {"data": services.tokens.debug_view(token)}
