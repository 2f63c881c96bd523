"""The Graph side's view of access: which permission each call needs, and what a token allows."""

from typing import Any, Final

from waypost.simulator.accounts.accounts import App, Number
from waypost.simulator.accounts.tokens import MANAGEMENT, MESSAGING
from waypost.simulator.errors import bad_parameter
from waypost.simulator.media.media import Media
from waypost.simulator.media.uploads import Upload
from waypost.simulator.requests import Call
from waypost.simulator.services import Parts

DEBUG: Final = "debug_token"
"""The first segment of the path that tells of a token."""

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
    """The permission that a call needs; None: any token of the account will do."""
    return _NEEDED.get((kind, edge), MANAGEMENT)


async def debug_token(parts: Parts, call: Call, _thing: Any) -> dict[str, Any]:
    """What a token is good for. Source: the operator's page "Debug-Token"."""
    asked = call.query.get("input_token")
    if not asked:
        raise bad_parameter("The parameter input_token is required.")
    return {"data": parts.tokens.view(asked)}
