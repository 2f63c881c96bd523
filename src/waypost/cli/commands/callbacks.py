"""`waypost callbacks`: subscriptions, the health of their receivers, and their keys; `waypost replay`."""

from datetime import UTC, datetime
from typing import Annotated, Any, Final
from urllib.parse import urlencode

import typer

from waypost.cli.admin_client import call_once, show
from waypost.cli.commands.trace import REVEAL_HELP
from waypost.cli.errors import EXIT_USAGE, fail
from waypost.cli.output.printing import AsJson, print_view
from waypost.cli.output.progress import show_progress

callbacks = typer.Typer(help="Callback subscriptions: their state and their keys.", no_args_is_help=True)

SubscriptionId = Annotated[int, typer.Argument(min=1, help="Id of the subscription.")]
SubscriptionOption = Annotated[int | None, typer.Option("--subscription", help="This subscription only.")]
AppOption = Annotated[str | None, typer.Option("--app", help="This app only.")]
PartnerOption = Annotated[int | None, typer.Option("--partner", help="This partner only.")]
FromOption = Annotated[str | None, typer.Option("--from", help="From this time on, such as 2026-11-22T10:00Z.")]
_SELECTORS: Final = ("callback_id", "subscription_id", "app_id", "partner_id")
ToOption = Annotated[str | None, typer.Option("--to", help="Before this time.")]


@callbacks.command("list")
def list_receivers(app_id: AppOption = None, partner_id: PartnerOption = None, as_json: AsJson = False) -> None:
    """List subscriptions: their state, their circuit, and the callbacks that wait for each."""
    show("GET", _path_with_query("/admin/subscriptions", app_id=app_id, partner_id=partner_id), as_json=as_json)


@callbacks.command("show")
def show_callback(
    callback_id: str,
    reveal: Annotated[bool, typer.Option("--reveal", help=REVEAL_HELP)] = False,
    as_json: AsJson = False,
) -> None:
    """Show one callback with its body and every attempt."""
    path = f"/admin/callbacks/{callback_id}"
    if reveal:
        show("POST", f"{path}/reveal", {}, as_json=as_json)
    else:
        show("GET", path, as_json=as_json)


@callbacks.command("check")
def check(subscription_id: SubscriptionId, as_json: AsJson = False) -> None:
    """Send a signed ping to a subscription's endpoint URL and show the response."""
    show("POST", f"/admin/subscriptions/{subscription_id}/check", {}, as_json=as_json)


@callbacks.command("resume")
def resume(subscription_id: SubscriptionId, as_json: AsJson = False) -> None:
    """Resume a subscription that the service has paused; waiting callbacks are delivered in order."""
    show("POST", f"/admin/subscriptions/{subscription_id}/resume", {}, as_json=as_json)


@callbacks.command("retry")
def retry(subscription_id: SubscriptionId, as_json: AsJson = False) -> None:
    """Retry the callbacks that wait for a subscription now, whatever their next attempt is due; the order is kept."""
    show("POST", f"/admin/subscriptions/{subscription_id}/retry", {}, as_json=as_json)


@callbacks.command("key")
def show_key(subscription_id: SubscriptionId, as_json: AsJson = False) -> None:
    """Show the key that signs a subscription's callbacks."""
    show("GET", f"/admin/subscriptions/{subscription_id}/key", as_json=as_json)


@callbacks.command("rotate")
def rotate_key(
    subscription_id: SubscriptionId,
    keep_old_for_s: Annotated[int, typer.Option(min=0, help="How long the old key signs too, in seconds.")] = 86_400,
    as_json: AsJson = False,
) -> None:
    """Rotate a subscription's key. For a while both keys sign; any earlier key stops signing."""
    body = {"keep_old_for_s": keep_old_for_s}
    show("POST", f"/admin/subscriptions/{subscription_id}/key/rotate", body, as_json=as_json)


@callbacks.command("report")
def report(
    subscription_id: SubscriptionOption = None,
    app_id: AppOption = None,
    partner_id: PartnerOption = None,
    begin: FromOption = None,
    end: ToOption = None,
    as_json: AsJson = False,
) -> None:
    """Report response times and statuses of receivers; for the last day unless a time is given."""
    path = _path_with_query(
        "/admin/callbacks/report",
        subscription_id=subscription_id,
        app_id=app_id,
        partner_id=partner_id,
        from_ms=_parse_time_ms(begin, "--from"),
        to_ms=_parse_time_ms(end, "--to"),
    )
    show("GET", path, as_json=as_json)


def replay(
    callback_id: Annotated[str | None, typer.Argument(help="One callback. [default: all that match]")] = None,
    subscription_id: SubscriptionOption = None,
    app_id: AppOption = None,
    partner_id: PartnerOption = None,
    recipient: Annotated[str | None, typer.Option(help="This recipient only: a phone number or user id.")] = None,
    event: Annotated[str | None, typer.Option(help="This event only, such as delivered or failed.")] = None,
    delivered: Annotated[
        bool | None,
        typer.Option("--delivered/--given-up", help="Delivered callbacks only, or given up ones. [default: both]"),
    ] = None,
    begin: FromOption = None,
    end: ToOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print how many match.")] = False,
    as_json: AsJson = False,
) -> None:
    """Send callbacks again, alongside new ones: the same bytes, id and sequence number."""
    filters = {
        "callback_id": callback_id,
        "subscription_id": subscription_id,
        "app_id": app_id,
        "partner_id": partner_id,
        "recipient": recipient,
        "event": event,
        "delivered": delivered,
        "from_ms": _parse_time_ms(begin, "--from"),
        "to_ms": _parse_time_ms(end, "--to"),
        "dry_run": dry_run,
    }
    body = {name: value for name, value in filters.items() if value is not None}
    if body.keys().isdisjoint(_SELECTORS):
        fail(
            "name the callbacks: an id, --subscription, --app or --partner, as in `waypost replay --subscription 1`",
            code=EXIT_USAGE,
        )
    with show_progress("counting …" if dry_run else "putting callbacks back into the queue …"):
        response = call_once("POST", "/admin/callbacks/replay", body)
    if not dry_run and not any(response.values()):
        fail("no callback matches; `waypost callbacks list` lists subscriptions, and --dry-run counts what matches")
    print_view(response, as_json=as_json)
    if waiting := response["still_waiting"]:
        one = subscription_id or "SUBSCRIPTION_ID"
        typer.echo(
            f"{waiting} of them not replayed: they still wait for their first delivery. To call their receiver now: "
            f"waypost callbacks retry {one}",
            err=True,
        )


def _path_with_query(path: str, **query: Any) -> str:
    members = {name: value for name, value in query.items() if value is not None}
    return f"{path}?{urlencode(members)}" if members else path


def _parse_time_ms(text: str | None, option: str) -> int | None:
    """Return a time as milliseconds since the epoch; a time without a zone is UTC."""
    if text is None:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        fail(f"{option} must be a time such as 2026-11-22T10:00Z", code=EXIT_USAGE)
    time = time if time.tzinfo else time.replace(tzinfo=UTC)
    return int(time.timestamp() * 1000)
