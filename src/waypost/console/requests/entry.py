"""One request of the log: what was sent, why it failed, what would be accepted, and the request as curl."""

import json
import shlex
from collections.abc import Mapping
from typing import Any, Final, cast
from urllib.parse import urlencode

from starlette.responses import Response

from waypost.console.page_tools import PageTools
from waypost.console.requests.listing import visible_partner
from waypost.console.web.page_request import NotFound, PageRequest
from waypost.store.requests.request_log import RequestLogEntry, read_request_entry
from waypost.wire.requests import make_operation_id

_CREDENTIAL_HEADERS: Final = {  # by the kind of credential that the route requires
    "partner token": '-H "Authorization: $PARTNER_TOKEN"',
    "app token": '-H "Authorization: $APP_TOKEN"',
    "API key": '-H "apikey: $API_KEY"',
}
_JSON: Final = "application/json"


async def show_request(tools: PageTools, page_request: PageRequest) -> Response:
    """Show one request.

    Raises:
        NotFound: it is not in the log, or another partner's.
    """
    entry_id = str(page_request.path_params["entry_id"])
    read = tools.services.database.read
    entry = await read(read_request_entry, entry_id, visible_partner(tools, page_request))
    if entry is None:
        raise NotFound("Request not found.")
    sent: dict[str, Any] = json.loads(entry.request) if entry.request else {}
    got: dict[str, Any] = json.loads(entry.response) if entry.response else {}
    app = next((app for app in page_request.apps if app.id == entry.app_id), None)
    return await tools.page(
        page_request,
        "requests/entry.html",
        entry=entry,
        sent=sent,
        got=got,
        title=tools.services.operation_titles().get(entry.route, entry.route),
        app=app,
        message_id=_message_id(got) if app is not None else "",
        show_text=tools.services.show_text,
        is_form=sent.get("type") != _JSON and isinstance(sent.get("body"), Mapping),
        operation=make_operation_id(entry.route),
        curl=render_curl(entry, sent, tools.services.public_url) if sent else "",
    )


def render_curl(entry: RequestLogEntry, sent: Mapping[str, Any], base_url: str) -> str:
    """Return a shell command that repeats a request, with placeholders for the credential and for hidden texts.

    Args:
        entry: the request.
        sent: its content, redacted: `path`, `query`, `type`, `credential` and `body`.
        base_url: without a trailing slash.
    """
    query = urlencode({name: _format_value(value) for name, value in sent["query"].items()})
    lines = [
        (
            f"curl -X {entry.route.partition(' ')[0]} "
            f"{shlex.quote(base_url + sent['path'] + ('?' + query if query else ''))}"
        )
    ]
    header = _CREDENTIAL_HEADERS.get(sent["credential"])
    lines += [header] if header is not None else []
    body = sent["body"]
    if isinstance(body, Mapping) and sent["type"] == _JSON:
        lines += [f"-H 'Content-Type: {_JSON}'", f"--data {shlex.quote(_format_value(body))}"]
    elif isinstance(body, Mapping):
        fields = cast("Mapping[str, Any]", body)
        lines += [f"--data-urlencode {shlex.quote(f'{name}={_format_value(value)}')}" for name, value in fields.items()]
    return " \\\n  ".join(lines)


def _message_id(got: Mapping[str, Any]) -> str:
    """Return the id of the message that a response has accepted; empty: none."""
    body = got.get("body")
    message_id = cast("Mapping[str, Any]", body).get("messageId") if isinstance(body, Mapping) else None
    return message_id if isinstance(message_id, str) else ""


def _format_value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
