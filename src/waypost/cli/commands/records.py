"""`waypost audit`, `waypost requests` and `waypost dead-letter`: what the service has recorded."""

from typing import Annotated

import typer

from waypost.base.clock import DAY_MS, SystemClock
from waypost.cli.call_commands import call_command
from waypost.wire.requests import ACCEPTED_STATUSES, is_status_filter

Limit = Annotated[int, typer.Option(min=1, max=500)]


def _ms_before_days(days: int | None) -> int | None:
    return None if days is None else SystemClock().now_ms() - days * DAY_MS


def _check_status(text: str | None) -> str | None:
    if text is not None and not is_status_filter(text):
        raise typer.BadParameter(f"{text} is not one of {ACCEPTED_STATUSES}")
    return text


audit = call_command(
    "GET /admin/audit",
    {
        "partner_id": "--partner",
        "actor": None,
        "action": None,
        "outcome": None,
        "since_ms": Annotated[
            int, typer.Option("--days", min=1, callback=_ms_before_days, help="Maximum age in days. [default: all]")
        ],
        "before": None,
        "limit": Limit,
    },
)

requests = typer.Typer(help="Requests to the API, why one failed, and what was sent.")
requests.callback(invoke_without_command=True)(
    call_command(
        "GET /admin/requests",
        {
            "status": Annotated[
                str,
                typer.Option(callback=_check_status, help=f"Only these statuses: {ACCEPTED_STATUSES}. [default: all]"),
            ],
            "route": None,
            "app_id": "--app",
            "partner_id": "--partner",
            "request_id": None,
            "before": None,
            "limit": Limit,
        },
        is_default=True,
    )
)
requests.command("show")(call_command("GET /admin/requests/{request_id}"))

dead_letter = typer.Typer(help="Jobs that a defect keeps from being worked.", no_args_is_help=True)
dead_letter.command("list")(call_command("GET /admin/dead-letters"))
dead_letter.command("retry")(call_command("POST /admin/dead-letters/{position}/retry"))
dead_letter.command("delete")(call_command("DELETE /admin/dead-letters/{position}"))
