"""`waypost clock` and `waypost snapshot`: the clock and the state of a running `waypost dev`."""

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from waypost.cli.call_commands import call_command
from waypost.cli.connections import ENV_FILE, EnvFile, call_control, download
from waypost.cli.errors import EXIT_USAGE, fail
from waypost.cli.output import AsJson, print_json

PROGRESS_MS: Final = 5_000
"""Interval at which a long advance prints its progress."""
RESET_QUESTION: Final = (
    "Delete partners, templates, messages and files added since the start of `waypost dev`, and reset the clock?"
)

AmountOption = Annotated[int | None, typer.Option(min=0, help="A part of the duration.")]


def clock_line(view: dict[str, Any]) -> str:
    """Return one line that describes the clock from the control API's view of it."""
    at = datetime.fromtimestamp(view["now_ms"] / 1000, UTC).isoformat(" ", "seconds")
    return f"{at}, {describe_clock(view['ahead_ms'], view['factor'])}"


def describe_clock(ahead_ms: int, factor: float) -> str:
    """Return how a clock differs from the machine's: its offset and its speed."""
    ahead_s = round(ahead_ms / 1000)
    distance = f"{timedelta(seconds=abs(ahead_s))} {'ahead' if ahead_s > 0 else 'behind'}"
    offset = distance if ahead_s else "as the machine's"
    return offset + (", frozen" if factor == 0 else "" if factor == 1 else f", {factor:g} times as fast")


def due_times(steps: int) -> str:
    """Return the number of due times that an advance has handled, in words."""
    return "1 due time" if steps == 1 else f"{steps} due times"


clock = typer.Typer(help="The clock of a running `waypost dev`.", no_args_is_help=True)
clock.command("show")(call_command("GET /control/clock", describe=clock_line))


@clock.command("advance")
def advance_clock(
    days: AmountOption = None,
    hours: AmountOption = None,
    minutes: AmountOption = None,
    seconds: AmountOption = None,
    env_file: EnvFile = ENV_FILE,
    as_json: AsJson = False,
) -> None:
    """Advance the clock; returns when it has reached the end.

    On the way it stops at each due time, such as a retry or a review, until the work that is due is done.

    A long advance prints its progress every few seconds. Ctrl-C leaves the clock at the time it has reached.
    """
    if days is hours is minutes is seconds is None:
        fail(
            "give a duration: at least one of --days, --hours, --minutes and --seconds, each a whole "
            "number, as in `waypost clock advance --hours 24`",
            code=EXIT_USAGE,
        )
    total_hours = (days or 0) * 24 + (hours or 0)
    left_ms = ((total_hours * 60 + (minutes or 0)) * 60 + (seconds or 0)) * 1000
    steps = 0
    while True:
        response = call_control(env_file, "POST /control/clock/advance", ms=left_ms, within_ms=PROGRESS_MS)
        steps += response["steps"]
        if response["is_complete"]:
            break
        left_ms = response["left_ms"]
        left = timedelta(seconds=round(left_ms / 1000))
        typer.echo(f"{clock_line(response)}; {due_times(steps)}, {left} left", err=True)
    if as_json:
        print_json({**response, "steps": steps})
    else:
        typer.echo(f"{clock_line(response)}; {due_times(steps)} on the way")


clock.command("freeze")(call_command("POST /control/clock/freeze", describe=clock_line))
clock.command("run")(call_command("POST /control/clock/run", {"factor": None}, describe=clock_line))

snapshot = typer.Typer(help="Save and load the state of a running `waypost dev`.", no_args_is_help=True)


@snapshot.command("save")
def save_snapshot(
    name: str,
    to: Annotated[Path | None, typer.Option(help="Also write it to this file, for `waypost dev --from`.")] = None,
    env_file: EnvFile = ENV_FILE,
    as_json: AsJson = False,
) -> None:
    """Save the current state under a name."""
    saved = call_control(env_file, "POST /control/snapshots", name=name)["snapshot"]
    if to is not None:
        try:
            to.write_bytes(download(env_file, f"/control/snapshots/{name}/content"))
        except OSError as error:
            fail(f"{name} is saved, but {to} cannot be written: {error.strerror}")
    if as_json:
        print_json(saved)
    else:
        typer.echo(f"{saved['name']}  {saved['size_bytes']} bytes" + (f"  {to}" if to else ""))


snapshot.command("load")(call_command("POST /control/snapshots/{name}/load", done="{name} is loaded"))
snapshot.command("list")(call_command("GET /control/snapshots"))
snapshot.command("drop")(call_command("DELETE /control/snapshots/{name}", done="{name} is deleted"))


@snapshot.command("reset")
def reset_state(
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Reset without confirmation. Without a terminal none is required.")
    ] = False,
    env_file: EnvFile = ENV_FILE,
) -> None:
    """Delete what was added since `waypost dev` started, such as templates and messages, and reset the clock.

    Saved snapshots stay. A terminal prompts for confirmation first.
    """
    if not yes and sys.stdin.isatty():
        typer.confirm(RESET_QUESTION, abort=True)
    call_control(env_file, "POST /control/reset")
    typer.echo("state is reset")
