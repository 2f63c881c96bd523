"""`waypost callbacks`: subscriptions, the health of their receivers, and their keys; `waypost replay`."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Final

import typer

from waypost.cli.call_commands import call_command
from waypost.cli.commands.inspection import REVEAL_HELP
from waypost.cli.connections import call_admin, show
from waypost.cli.errors import EXIT_USAGE, fail
from waypost.cli.output import AsJson, print_view, show_progress


def _time_reader(option: str) -> Callable[[str | None], int | None]:
    """Return a function that reads a time as milliseconds since the epoch; a time without a zone is UTC."""

    def read(text: str | None) -> int | None:
        if text is None:
            return None
        try:
            time = datetime.fromisoformat(text)
        except ValueError:
            fail(f"{option} must be a time such as 2026-11-22T10:00Z", code=EXIT_USAGE)
        time = time if time.tzinfo else time.replace(tzinfo=UTC)
        return int(time.timestamp() * 1000)

    return read


_FROM_HELP: Final = "From this time on, such as 2026-11-22T10:00Z."
FromOption = Annotated[str | None, typer.Option("--from", callback=_time_reader("--from"), help=_FROM_HELP)]
ToOption = Annotated[str | None, typer.Option("--to", callback=_time_reader("--to"), help="Before this time.")]
_SUBSCRIPTION: Final = "/admin/subscriptions/{subscription_id}"
_ID: Final = {"subscription_id": Annotated[int, typer.Argument(min=1)]}
_OF_ONE: Final = {"app_id": "--app", "partner_id": "--partner"}

callbacks = typer.Typer(help="Callback subscriptions: their state and their keys.", no_args_is_help=True)
callbacks.command("list")(call_command("GET /admin/subscriptions", _OF_ONE))


@callbacks.command("show")
def show_callback(
    callback_id: str,
    reveal: Annotated[bool, typer.Option("--reveal", help=REVEAL_HELP)] = False,
    as_json: AsJson = False,
) -> None:
    """Show one callback with its body and every attempt."""
    path = "/admin/callbacks/{callback_id}"
    show(f"POST {path}/reveal" if reveal else f"GET {path}", {"callback_id": callback_id}, as_json=as_json)


callbacks.command("check")(call_command(f"POST {_SUBSCRIPTION}/check", arguments=_ID))
callbacks.command("resume")(call_command(f"POST {_SUBSCRIPTION}/resume", arguments=_ID))
callbacks.command("retry")(call_command(f"POST {_SUBSCRIPTION}/retry", arguments=_ID))
callbacks.command("key")(call_command(f"GET {_SUBSCRIPTION}/key", arguments=_ID))
callbacks.command("rotate")(
    call_command(
        f"POST {_SUBSCRIPTION}/key/rotate", {"keep_old_for_s": Annotated[int, typer.Option(min=0)]}, arguments=_ID
    )
)
callbacks.command("report")(
    call_command(
        "GET /admin/callbacks/report",
        {"subscription_id": "--subscription", **_OF_ONE, "from_ms": FromOption, "to_ms": ToOption},
    )
)


def replay(
    callback_id: Annotated[str | None, typer.Argument(help="One callback. [default: all that match]")] = None,
    subscription_id: Annotated[int | None, typer.Option("--subscription", help="This subscription only.")] = None,
    app_id: Annotated[str | None, typer.Option("--app", help="This app only.")] = None,
    partner_id: Annotated[int | None, typer.Option("--partner", help="This partner only.")] = None,
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
    selectors = {
        "callback_id": callback_id,
        "subscription_id": subscription_id,
        "app_id": app_id,
        "partner_id": partner_id,
    }
    if all(value is None for value in selectors.values()):
        fail(
            "name the callbacks: an id, --subscription, --app or --partner, as in `waypost replay --subscription 1`",
            code=EXIT_USAGE,
        )
    filters = {"recipient": recipient, "event": event, "delivered": delivered, "from_ms": begin, "to_ms": end}
    body = {name: value for name, value in {**selectors, **filters, "dry_run": dry_run}.items() if value is not None}
    with show_progress("counting …" if dry_run else "putting callbacks back into the queue …"):
        response = call_admin("POST /admin/callbacks/replay", **body)
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
