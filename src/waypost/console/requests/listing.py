"""The list of requests: a partner's own; all for the administrator."""

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from starlette.responses import RedirectResponse, Response

from waypost.console.page_tools import PageTools
from waypost.console.web.page_request import PageRequest
from waypost.store.requests.request_log import RequestLogFilter, read_request_page
from waypost.wire.requests import is_status_filter, statuses_of

REQUESTS_PER_PAGE: Final = 50
STATUS_CLASSES: Final = (  # query value, label
    ("", "Any status"), ("4xx", "4xx: not accepted"), ("5xx", "5xx: failed here"), ("2xx", "2xx: accepted"),
)  # fmt: skip
_MAX_TEXT_CHARS: Final = 200
_ENTRY_ID: Final = re.compile(r"[0-9a-f-]{1,40}")


@dataclass(frozen=True, slots=True)
class RequestListFilter:
    """Filter of the list, as in the query string; empty: any.

    Attributes:
        status: a class such as `4xx`, or one status.
        route: a part of method and path.
        request_id: the id of the response's header `X-Request-Id`.
        before: entries older than this one.
    """

    status: str = ""
    route: str = ""
    app: str = ""
    request_id: str = ""
    before: str = ""

    @property
    def query(self) -> str:
        """Return the query string without the position in the list."""
        given = {"status": self.status, "route": self.route, "app": self.app, "id": self.request_id}
        return urlencode({name: text for name, text in given.items() if text})

    @property
    def is_set(self) -> bool:
        """True if it excludes anything."""
        return bool(self.query)


async def show_requests(tools: PageTools, page_request: PageRequest) -> Response:
    """Show the newest requests; redirect to the request if its id is searched for."""
    filters = _read_filter(page_request)
    query = RequestLogFilter(
        partner_id=visible_partner(tools, page_request),
        app_id=filters.app or None,
        statuses=statuses_of(filters.status) if filters.status else None,
        route=filters.route or None,
        request_id=filters.request_id or None,
        before_id=filters.before or None,
    )
    found = await tools.services.database.read(read_request_page, query, REQUESTS_PER_PAGE)
    if filters.request_id and len(found.entries) == 1 and not filters.before:
        return RedirectResponse(f"/requests/{found.entries[0].id}", 303)
    return await tools.page(
        page_request, "requests/list.html",
        filters=filters, entries=found.entries, older=found.following, statuses=_status_options(filters.status),
        shows_all=query.partner_id is None, titles=tools.services.operation_titles(),
        sample=tools.services.request_log_sample,
    )  # fmt: skip


def _status_options(status: str) -> tuple[tuple[str, str], ...]:
    """Return the options of the filter: the classes, and the one status that is chosen."""
    return STATUS_CLASSES if status in dict(STATUS_CLASSES) else (*STATUS_CLASSES, (status, status))


def visible_partner(tools: PageTools, page_request: PageRequest) -> int | None:
    """Return the partner whose requests the user may see; None: those of all."""
    demo_partner_id = tools.services.demo_partner_id
    own_id = page_request.partner.id
    shows_all = tools.is_administrator(page_request) if demo_partner_id is None else own_id == demo_partner_id
    return None if shows_all else own_id


def _read_filter(page_request: PageRequest) -> RequestListFilter:
    texts = {name: page_request.query(name)[:_MAX_TEXT_CHARS] for name in ("status", "route", "app", "id", "before")}
    return RequestListFilter(
        status=texts["status"] if is_status_filter(texts["status"]) else "",
        route=texts["route"],
        app=texts["app"],
        request_id=texts["id"],
        before=texts["before"] if _ENTRY_ID.fullmatch(texts["before"]) else "",
    )
