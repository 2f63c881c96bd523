"""Permissions of the Graph API's calls, and the call that inspects a token."""

from typing import Any, Final

from waypost.simulator.accounts.accounts import App, Number
from waypost.simulator.accounts.tokens import MANAGEMENT, MESSAGING
from waypost.simulator.errors import bad_parameter
from waypost.simulator.media.media import Media
from waypost.simulator.media.uploads import Upload
from waypost.simulator.requests import Call
from waypost.simulator.services import Parts

DEBUG: Final = "debug_token"
"""The first path segment of the call that inspects a token."""

# fmt: off
_NEEDED: Final[dict[tuple[type, str], str | None]] = {  # Source: facts 1, "Permissions"; all others need MANAGEMENT
    # object   edge                          permission
    (Number,   "messages"):                  MESSAGING,
    (Number,   "media"):                     MESSAGING,
    (Media,    ""):                          MESSAGING,
    (Number,   "block_users"):               MESSAGING,
    (Number,   "whatsapp_business_profile"): MESSAGING,
    (App,      "uploads"):                   None,
    (App,      "subscriptions"):             None,
    (Upload,   ""):                          None,
}
# fmt: on


def permission_of(kind: type, edge: str) -> str | None:
    """Return the permission that a call needs; None: any token of the account is accepted."""
    return _NEEDED.get((kind, edge), MANAGEMENT)


async def debug_token(parts: Parts, call: Call, _thing: Any) -> dict[str, Any]:
    """Return the debug data of a token. Source: the operator's page "Debug-Token"."""
    token = call.query.get("input_token")
    if not token:
        raise bad_parameter("The parameter input_token is required.")
    return {"data": parts.tokens.view(token)}
