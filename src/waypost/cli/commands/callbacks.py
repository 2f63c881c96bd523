"""`waypost callbacks`: receivers and how they are doing, their keys, and sending callbacks again."""

from datetime import UTC, datetime
from typing import Annotated, Any
from urllib.parse import urlencode

import typer

from waypost.cli.admin_client import show
from waypost.cli.commands.trace import REVEAL
from waypost.cli.errors import MISUSED, complain

callbacks = typer.Typer(
    help="Receivers of callbacks: their state, their keys, and sending again.", no_args_is_help=True
)

SubscriptionId = Annotated[int, typer.Argument(min=1, help="Id of the subscription.")]
Subscription = Annotated[int | None, typer.Option("--subscription", help="Of this one only.")]
App = Annotated[str | None, typer.Option("--app", help="Of this app only.")]
Partner = Annotated[int | None, typer.Option("--partner", help="Of this partner only.")]
From = Annotated[str | None, typer.Option("--from", help="From this time on: 2026-11-22T10:00Z.")]
To = Annotated[str | None, typer.Option("--to", help="Before this time.")]


@callbacks.command("list")
def list_receivers(app_id: App = None, partner_id: Partner = None) -> None:
    """List subscriptions: their state, their circuit, and how much waits for each."""
    show("GET", _path("/admin/subscriptions", app_id=app_id, partner_id=partner_id))


@callbacks.command("show")
def show_callback(callback_id: str, reveal: Annotated[bool, typer.Option("--reveal", help=REVEAL)] = False) -> None:
    """Show one callback with its body and every attempt."""
    path = f"/admin/callbacks/{callback_id}"
    if reveal:
        show("POST", f"{path}/reveal", {})
    else:
        show("GET", path)


@callbacks.command("check")
def check(subscription_id: SubscriptionId) -> None:
    """Send the ping to a subscription's address, signed, and show what it answers."""
    show("POST", f"/admin/subscriptions/{subscription_id}/check", {})


@callbacks.command("resume")
def resume(subscription_id: SubscriptionId) -> None:
    """Let a subscription go on that the service has paused; what waited is delivered, in order."""
    show("POST", f"/admin/subscriptions/{subscription_id}/resume", {})


@callbacks.command("key")
def show_key(subscription_id: SubscriptionId) -> None:
    """Show the key that signs a subscription's callbacks."""
    show("GET", f"/admin/subscriptions/{subscription_id}/key")


@callbacks.command("rotate")
def rotate_key(
    subscription_id: SubscriptionId,
    keep_old_for_s: Annotated[int, typer.Option(min=0, help="How long the old key signs beside the new one.")] = 86_400,
) -> None:
    """Give a subscription a new key. For a while both sign; the key before the old one signs no more."""
    body = {"keep_old_for_s": keep_old_for_s}
    show("POST", f"/admin/subscriptions/{subscription_id}/key/rotate", body)


@callbacks.command("report")
def report(
    subscription_id: Subscription = None,
    app_id: App = None,
    partner_id: Partner = None,
    begin: From = None,
    end: To = None,
) -> None:
    """Report how long receivers took to answer, and what; of the last day unless a time is given."""
    path = _path(
        "/admin/callbacks/report",
        subscription_id=subscription_id,
        app_id=app_id,
        partner_id=partner_id,
        from_ms=_time(begin, "--from"),
        to_ms=_time(end, "--to"),
    )
    show("GET", path)


@callbacks.command("replay")
def replay(
    callback_id: Annotated[str | None, typer.Argument(help="One callback. [default: many]")] = None,
    subscription_id: Subscription = None,
    app_id: App = None,
    partner_id: Partner = None,
    recipient: Annotated[str | None, typer.Option(help="About this phone number or user id only.")] = None,
    news: Annotated[str | None, typer.Option(help="Such as delivered or failed.")] = None,
    delivered: Annotated[
        bool | None,
        typer.Option("--delivered/--given-up", help="Only what was taken, or what was given up. [default: both]"),
    ] = None,
    begin: From = None,
    end: To = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say how many they are.")] = False,
) -> None:
    """Send callbacks again: the same bytes, the same id, the same sequence number, beside the live ones."""
    given = {
        "callback_id": callback_id,
        "subscription_id": subscription_id,
        "app_id": app_id,
        "partner_id": partner_id,
        "recipient": recipient,
        "news": news,
        "delivered": delivered,
        "from_ms": _time(begin, "--from"),
        "to_ms": _time(end, "--to"),
        "dry_run": dry_run,
    }
    body = {name: value for name, value in given.items() if value is not None}
    show("POST", "/admin/callbacks/replay", body)


def _path(path: str, **query: Any) -> str:
    given = {name: value for name, value in query.items() if value is not None}
    return f"{path}?{urlencode(given)}" if given else path


def _time(text: str | None, option: str) -> int | None:
    """Milliseconds since the epoch; a time without a zone is UTC."""
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        complain(f"{option} must be a time such as 2026-11-22T10:00Z", code=MISUSED)
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return int(at.timestamp() * 1000)
