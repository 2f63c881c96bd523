"""`waypost clock`: show and advance the clock of service and simulator."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final

import typer

from waypost.cli.control_client import ENV_FILE, EnvFile, call_control_api
from waypost.cli.errors import EXIT_USAGE, fail
from waypost.cli.output.printing import AsJson, print_json

PROGRESS_MS: Final = 5_000
"""Interval at which a long advance prints its progress."""

clock = typer.Typer(help="The clock of a running `waypost dev`.", no_args_is_help=True)


AmountOption = Annotated[int | None, typer.Option(min=0, help="A part of the duration.")]


@clock.command("show")
def show_clock(env_file: EnvFile = ENV_FILE, as_json: AsJson = False) -> None:
    """Show the time of the clock and its speed."""
    _print_clock(call_control_api(env_file, "GET", "/control/clock"), as_json=as_json)


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
        body = {"ms": left_ms, "within_ms": PROGRESS_MS}
        response = call_control_api(env_file, "POST", "/control/clock/advance", body)
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


@clock.command("freeze")
def freeze_clock(env_file: EnvFile = ENV_FILE, as_json: AsJson = False) -> None:
    """Freeze the clock: nothing becomes due until it is advanced or runs again."""
    _print_clock(call_control_api(env_file, "POST", "/control/clock/freeze", {}), as_json=as_json)


@clock.command("run")
def run_clock(
    factor: Annotated[float, typer.Option(help="Speed, as a multiple of real time.")] = 1,
    env_file: EnvFile = ENV_FILE,
    as_json: AsJson = False,
) -> None:
    """Let the clock run."""
    _print_clock(call_control_api(env_file, "POST", "/control/clock/run", {"factor": factor}), as_json=as_json)


def _print_clock(view: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(view)
    else:
        typer.echo(clock_line(view))


def due_times(steps: int) -> str:
    """Return the number of due times that an advance has handled, in words."""
    return "1 due time" if steps == 1 else f"{steps} due times"


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
