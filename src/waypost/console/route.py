"""The row types of the console's table of pages."""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Final

from starlette.responses import Response

from waypost.console.page_request import PageRequest
from waypost.console.page_tools import Command

_OTHER_PARAMETER: Final = re.compile(r"\{(?!app_id\})")


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


Endpoint = Callable[[PageRequest], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class PageRoute:
    """One route. `{app_id}` in a path must be one of the partner's apps."""

    kind: RouteKind
    path: str
    endpoint: Endpoint
    does: str  # of a page, its name in the palette; of an action, its text in the audit log
    audience: Audience = Audience.PARTNER
    is_shared: bool = False  # for administrators only under `serve`, such as what all partners share
    is_audited: bool = False  # writes an entry in the audit log, also when it is rejected
    nav: str = ""  # when the navigation has the page: always, or for an app, simulator or administrator; empty: never
    tab: str = ""  # its tab in its section, after the group of tabs and `/` if there are groups; empty: none

    @property
    def method(self) -> str:
        """POST for actions, GET for everything else."""
        return "POST" if self.kind is RouteKind.ACT else "GET"


page_row: Final = partial(PageRoute, RouteKind.PAGE)
part_row: Final = partial(PageRoute, RouteKind.PART)
live_row: Final = partial(PageRoute, RouteKind.LIVE)
action_row: Final = partial(PageRoute, RouteKind.ACT)


def rows_at(path: str, *rows: PageRoute) -> list[PageRoute]:
    """Return rows whose paths continue this one."""
    return [replace(row, path=path + row.path) for row in rows]


@dataclass(frozen=True, slots=True)
class Section:
    """One item of the navigation, with the rows of its pages."""

    name: str  # of its icon; pages name it as `here`
    label: str
    rows: Sequence[PageRoute]

    @property
    def navigation_row(self) -> PageRoute:
        """The page that the navigation leads to."""
        return next(row for row in self.rows if row.nav)

    @property
    def tabs(self) -> list[tuple[str, str, str]]:
        """Group, label and path of each tab."""
        split = [(*row.tab.rpartition("/")[::2], row.path) for row in self.rows if row.tab]
        return [(group, label, path) for group, label, path in split]

    @property
    def commands(self) -> list[Command]:
        """The palette's commands for its pages, except for one that the navigation calls the same."""
        section = "Settings" if self.name == "partners" else self.label
        return [
            Command(row.does, section, row.path)
            for row in self.rows
            if row.kind is RouteKind.PAGE
            and not _OTHER_PARAMETER.search(row.path)
            and not (row.nav and row.does == self.label)
        ]
