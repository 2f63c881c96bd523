"""The row type of the console's route table."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum

from starlette.responses import Response

from waypost.console.page_tools import PageTools
from waypost.console.web.page_request import PageRequest


class RouteKind(StrEnum):
    """Kind of a console route."""

    PAGE = "page"  # a page for the browser's address bar
    PART = "part"  # HTML, JSON or bytes for an open page
    LIVE = "live"  # an event stream that updates an open page
    ACT = "act"  # an action: POST with the session's token


class Audience(StrEnum):
    """Set of users who may call a route."""

    PUBLIC = "anybody"
    PARTNER = "partner"


Endpoint = Callable[[PageTools, PageRequest], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class PageRoute:
    """One route. `{app_id}` in a path must be one of the partner's apps.

    Attributes:
        does: short description for readers of the table.
        is_shared: shows or changes what is for administrators only under `serve`, such as what all partners share.
        is_audited: writes an entry in the audit log, also when it is rejected.
    """

    kind: RouteKind
    path: str
    endpoint: Endpoint
    does: str
    audience: Audience = Audience.PARTNER
    is_shared: bool = False
    is_audited: bool = False

    @property
    def method(self) -> str:
        """POST for actions, GET for everything else."""
        return "POST" if self.kind is RouteKind.ACT else "GET"
