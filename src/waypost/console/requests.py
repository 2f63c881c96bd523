"""The request log: a partner's own requests, all for the administrator; and one request with the reason it failed."""

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Final, cast
from urllib.parse import urlencode

from sqlalchemy import Connection
from starlette.responses import Response

from waypost.console.list_filters import FilterContext, FilterField, FilterForm, ListFilter, Members, unknown_value
from waypost.console.lists import ListPage, ListQuery, ListRows, members
from waypost.console.page_request import PageRequest
from waypost.console.web.errors import NotFound
from waypost.console.web.zones import iso_time
from waypost.store.requests.request_log import RequestLogEntry, RequestLogFilter, read_request_entry, read_request_page
from waypost.wire.requests import ACCEPTED_STATUSES, is_status_filter, make_operation_id, statuses_of

_ENTRY_ID: Final = re.compile(r"[0-9a-f-]{1,40}")
_CREDENTIAL_HEADERS: Final = {  # by the kind of credential that the route requires
    "partner token": '-H "Authorization: $PARTNER_TOKEN"',
    "app token": '-H "Authorization: $APP_TOKEN"',
    "API key": '-H "apikey: $API_KEY"',
}
_JSON: Final = "application/json"


def visible_partner(request: PageRequest) -> int | None:
    """Return the partner whose entries of a log the user may see; None: those of all."""
    demo_partner_id, own_id = request.services.demo_partner_id, request.partner.id
    shows_all = request.is_administrator if demo_partner_id is None else own_id == demo_partner_id
    return None if shows_all else own_id


def _parse_status(text: str, _context: FilterContext) -> Members:
    if not is_status_filter(text):
        raise ValueError(unknown_value("status", [ACCEPTED_STATUSES]))
    return {"statuses": statuses_of(text)}


async def _read(request: PageRequest, filters: ListFilter, query: ListQuery) -> ListRows:
    before_id = query.before if _ENTRY_ID.fullmatch(query.before) else None
    search = replace(filters.search, partner_id=visible_partner(request), before_id=before_id)
    found = await request.read(read_request_page, search, query.at_most)
    return ListRows(_add_titles(request, found.entries), found.following or "")


async def _find(request: PageRequest, ids: Sequence[str]) -> Sequence[dict[str, Any]]:
    partner_id = visible_partner(request)

    def find(connection: Connection) -> list[RequestLogEntry]:
        entries = (read_request_entry(connection, entry_id, partner_id) for entry_id in sorted(ids, reverse=True))
        return [entry for entry in entries if entry is not None]

    return _add_titles(request, await request.read(find))


def _add_titles(request: PageRequest, entries: Sequence[RequestLogEntry]) -> list[dict[str, Any]]:
    titles = request.services.operation_titles()
    return [{**asdict(entry), "title": titles.get(entry.route, entry.route)} for entry in entries]


async def _values(request: PageRequest, _filters: ListFilter) -> Mapping[str, Any]:
    return {
        "options": {"app": [("", "Any app"), *((app.id, app.name) for app in request.apps)]},
        "shows_all": visible_partner(request) is None,
        "sample": request.services.request_log_sample,
    }


async def _page_of_one(_request: PageRequest, filters: ListFilter, found: ListRows) -> str:
    is_one = filters.given["id"] and len(found.rows) == 1 and not filters.before
    return f"/requests/{found.rows[0]['id']}" if is_one else ""


_STATUSES: Final = (
    ("", "Any status"),
    ("4xx", "4xx: not accepted"),
    ("5xx", "5xx: failed here"),
    ("2xx", "2xx: accepted"),
)
REQUESTS: Final = ListPage(
    name="requests",
    path="/requests",
    title="API requests",
    noun="requests",
    macros="requests/parts.html",
    columns=("Status", "Operation", "Result", "Duration", "Time"),
    form=FilterForm(
        (
            FilterField("id", "Request ID", "request_id", kind="search", placeholder="X-Request-Id of the response"),
            FilterField("route", "Route", "route", placeholder="POST, or a part of the path"),
            FilterField("status", "Status", _parse_status, kind="select", options=_STATUSES),
            FilterField("app", "App", "app_id", kind="select"),
        ),
        RequestLogFilter,
        {},
    ),
    read=_read,
    find=_find,
    element_id=lambda row: f"q-{row['id']}",
    cursor=lambda row: row["id"],
    export={
        "time": lambda row: iso_time(row["at_ms"]),
        **members("id", "request_id", "route", "status", "app_id", "credential", "error", "explanation", "took_us"),
    },
    values=_values,
    page_of_one=_page_of_one,
)


async def show_request(request: PageRequest) -> Response:
    """Show one request; NotFound if it is not in the log, or another partner's."""
    entry_id = str(request.path_params["entry_id"])
    entry = await request.read(read_request_entry, entry_id, visible_partner(request))
    if entry is None:
        raise NotFound("Request not found.")
    sent: dict[str, Any] = json.loads(entry.request) if entry.request else {}
    got: dict[str, Any] = json.loads(entry.response) if entry.response else {}
    app = next((app for app in request.apps if app.id == entry.app_id), None)
    body = got.get("body")
    message_id = cast("Mapping[str, Any]", body).get("messageId") if app and isinstance(body, Mapping) else None
    return await request.page(
        "requests/entry.html", entry=entry, sent=sent, got=got, app=app,
        title=request.services.operation_titles().get(entry.route, entry.route),
        message_id=message_id if isinstance(message_id, str) else "", show_text=request.services.show_text,
        is_form=sent.get("type") != _JSON and isinstance(sent.get("body"), Mapping),
        operation=make_operation_id(entry.route),
        curl=_repeat_command(entry, sent, request.services.public_url) if sent else "",
    )  # fmt: skip


def render_curl(
    url: str,
    fields: Mapping[str, Any] | None = None,
    *,
    method: str = "",
    header: str = '-H "Authorization: $APP_TOKEN"',
    json_body: str | None = None,
) -> str:
    """Return a request as a shell command, with a variable in place of the credential.

    Args:
        fields: of a form.
        method: empty: what curl chooses.
        header: option with the credential; empty: none.
    """
    options = [f"curl {f'-X {method} ' if method else ''}{shlex.quote(url)}", header]
    if json_body is not None:
        options += [f"-H 'Content-Type: {_JSON}'", f"--data {shlex.quote(json_body)}"]
    options += [
        f"--data-urlencode {shlex.quote(f'{name}={_format_value(value)}')}" for name, value in (fields or {}).items()
    ]
    return " \\\n  ".join(option for option in options if option)


def _repeat_command(entry: RequestLogEntry, sent: Mapping[str, Any], base_url: str) -> str:
    """Return the command that repeats a request of the log, with placeholders for hidden texts."""
    query = urlencode({name: _format_value(value) for name, value in sent["query"].items()})
    body = cast("Mapping[str, Any]", sent["body"]) if isinstance(sent["body"], Mapping) else None
    is_json = body is not None and sent["type"] == _JSON
    return render_curl(
        base_url + sent["path"] + ("?" + query if query else ""),
        None if is_json else body,
        method=entry.route.partition(" ")[0],
        header=_CREDENTIAL_HEADERS.get(sent["credential"], ""),
        json_body=_format_value(body) if is_json else None,
    )


def compact_json(value: object) -> str:
    """Return a value as JSON without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _format_value(value: Any) -> str:
    return value if isinstance(value, str) else compact_json(value)
