"""`waypost audit`: the audit log."""

from enum import StrEnum
from typing import Annotated
from urllib.parse import urlencode

import typer

from waypost.base.clock import DAY_MS, SystemClock
from waypost.cli.admin_client import show
from waypost.cli.output.printing import AsJson


class AuditOutcome(StrEnum):
    """The outcome of an action."""

    DONE = "done"
    REJECTED = "rejected"


def audit(
    partner_id: Annotated[int | None, typer.Option("--partner", help="Entries about this partner's account.")] = None,
    actor: Annotated[str | None, typer.Option(help="admin, nobody, or a partner's e-mail address.")] = None,
    action: Annotated[str | None, typer.Option(help="Part of method and path, such as client-secrets.")] = None,
    outcome: Annotated[AuditOutcome | None, typer.Option(help="Outcome of the action.")] = None,
    days: Annotated[int | None, typer.Option(min=1, help="Maximum age in days. [default: all]")] = None,
    before: Annotated[
        int | None, typer.Option(help="Only entries older than the one with this id, for the next page.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=500, help="Maximum number of entries.")] = 100,
    as_json: AsJson = False,
) -> None:
    """Show the audit log: every action of administrators and partners, rejected ones too, newest first."""
    since_ms = None if days is None else SystemClock().now_ms() - days * DAY_MS
    filters = {
        "partner_id": partner_id,
        "actor": actor,
        "action": action,
        "outcome": outcome,
        "since_ms": since_ms,
        "before": before,
        "limit": limit,
    }
    query = urlencode({name: value for name, value in filters.items() if value is not None})
    show("GET", f"/admin/audit?{query}", as_json=as_json)
