"""What a row of the console's route table says."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum

from starlette.responses import Response

from waypost.console.page_tools import PageTools
from waypost.console.web.page_request import PageRequest


class Kind(StrEnum):
    """What an address gives."""

    PAGE = "page"  # for a browser's address bar
    PART = "part"  # HTML, JSON or bytes for a page that is open
    LIVE = "live"  # a stream of what changes on it
    ACT = "act"  # does something: POST, with the token of the session


class Who(StrEnum):
    """Who may ask."""

    ANYBODY = "anybody"
    PARTNER = "partner"


Endpoint = Callable[[PageTools, PageRequest], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class PageRow:
    """One address. A path with `{app_id}` is that of one of the partner's apps, or there is nothing.

    Attributes:
        does: in a few words, for whoever reads the table.
        is_shared: shows or changes what all partners share; under `serve` for the administrator.
        is_audited: has an entry in the audit log, also where it is rejected.
    """

    kind: Kind
    path: str
    endpoint: Endpoint
    does: str
    who: Who = Who.PARTNER
    is_shared: bool = False
    is_audited: bool = False

    @property
    def method(self) -> str:
        """Acts are POST, all else is GET."""
        return "POST" if self.kind is Kind.ACT else "GET"
