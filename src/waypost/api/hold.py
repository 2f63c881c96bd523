"""The calls that a held service rejects: those that change something, and those that make an outgoing call."""

from typing import Final

from waypost.api.http.requests import ApiResponse, Request
from waypost.api.route import RouteRow
from waypost.api.services import Services

HELD_BODY: Final = (
    b'{"status":"error","message":"The service is held to be looked at: it accepts nothing now. '
    b'Calls that only read work."}'
)
HELD_RETRY_S: Final = b"60"
_STILL_SERVED: Final = frozenset(  # still served: they change nothing that leaves the service
    {"POST /partner/account/login", "POST /partner/app/{app_id}/templates/check"}
)


class ServiceHeld(Exception):
    """The service is held and rejects the call with 503."""


def is_rejected_when_held(row: RouteRow) -> bool:
    """True if a held service rejects the route's calls."""
    return (row.method != "GET" or row.calls_out) and row.name not in _STILL_SERVED


async def reject_held_call(_services: Services, _request: Request) -> ApiResponse:
    """Reject a call; the endpoint of every route that is unavailable while the service is held.

    Raises:
        ServiceHeld: always.
    """
    raise ServiceHeld
