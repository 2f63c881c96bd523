"""`waypost requests`: the request log, failed requests first of all, and why one failed."""

from typing import Annotated
from urllib.parse import quote, urlencode

import typer

from waypost.cli.admin_client import show
from waypost.cli.output.printing import AsJson
from waypost.wire.request_statuses import ACCEPTED_STATUSES, is_status_filter

requests = typer.Typer(help="Requests to the API, why one failed, and what was sent.")


def _check_status(text: str | None) -> str | None:
    if text is not None and not is_status_filter(text):
        raise typer.BadParameter(f"{text} is not one of {ACCEPTED_STATUSES}")
    return text


@requests.callback(invoke_without_command=True)
def list_requests(
    context: typer.Context,
    status: Annotated[
        str | None,
        typer.Option(callback=_check_status, help=f"Only these statuses: {ACCEPTED_STATUSES}. [default: all]"),
    ] = None,
    route: Annotated[str | None, typer.Option(help="Part of method and path, such as /template/msg.")] = None,
    app_id: Annotated[str | None, typer.Option("--app", help="Only requests for this app, by its id.")] = None,
    partner_id: Annotated[int | None, typer.Option("--partner", help="Only requests of this partner.")] = None,
    request_id: Annotated[str | None, typer.Option(help="Only those with this X-Request-Id.")] = None,
    before: Annotated[
        str | None, typer.Option(help="Only requests older than the one with this id, for the next page.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=500, help="Maximum number of requests.")] = 50,
    as_json: AsJson = False,
) -> None:
    """List requests of the log, newest first.

    All that failed are there. Of the others `waypost dev` keeps all; `serve` one in `WAYPOST_REQUEST_LOG_SAMPLE` (200).
    """
    if context.invoked_subcommand is not None:
        return
    filters = {
        "status": status,
        "route": route,
        "app_id": app_id,
        "partner_id": partner_id,
        "request_id": request_id,
        "before": before,
        "limit": limit,
    }
    query = urlencode({name: value for name, value in filters.items() if value is not None})
    show("GET", f"/admin/requests?{query}", as_json=as_json)


@requests.command("show")
def show_request(
    request_id: Annotated[
        str, typer.Argument(help="Id of the request in the log, or the X-Request-Id of its response.")
    ],
    as_json: AsJson = False,
) -> None:
    """Show one request: why it failed, what would be accepted, and what was sent, redacted."""
    show("GET", f"/admin/requests/{quote(request_id, safe='')}", as_json=as_json)
