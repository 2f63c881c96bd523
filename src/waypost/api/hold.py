"""Which calls a held service refuses: all that change something, and those that would call somebody else."""

from typing import Final

from waypost.api.http.requests import Answer, Request
from waypost.api.route import RouteRow
from waypost.api.services import Services

HELD_BODY: Final = (
    b'{"status":"error","message":"The service is held to be looked at: it accepts nothing now. '
    b'Calls that only read work."}'
)
HELD_RETRY_S: Final = b"60"
_WORK: Final = frozenset(  # they change nothing that anybody waits for
    {"POST /partner/account/login", "POST /partner/app/{app_id}/templates/check"}
)


class Held(Exception):
    """The service is held, and refuses the call with 503."""


def is_held(row: RouteRow) -> bool:
    """True for a call that a held service refuses."""
    return (row.method != "GET" or row.calls) and row.name not in _WORK


async def refuse_held(_services: Services, _request: Request) -> Answer:
    """The endpoint of each of them.

    Raises:
        Held: always.
    """
    raise Held
