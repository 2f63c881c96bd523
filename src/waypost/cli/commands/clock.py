"""`waypost clock`: the time of service and simulator, read and moved."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final

import typer

from waypost.cli.control_client import ENV_FILE, EnvFile, ask
from waypost.cli.errors import MISUSED, complain

PROGRESS_MS: Final = 5_000
"""How often a long advance says how far it has come."""

clock = typer.Typer(help="The clock of a running `waypost dev`.", no_args_is_help=True)


Number = Annotated[int | None, typer.Option(min=0)]


@clock.command("show")
def show_clock(env_file: EnvFile = ENV_FILE) -> None:
    """Say where the clock stands and how it goes."""
    typer.echo(sentence(ask(env_file, "GET", "/control/clock")))


@clock.command("advance")
def advance_clock(
    days: Number = None,
    hours: Number = None,
    minutes: Number = None,
    seconds: Number = None,
    env_file: EnvFile = ENV_FILE,
) -> None:
    """Move the clock from due time to due time; returns when it has arrived.

    Where that takes long it says every few seconds how far it has come. Stopped with Ctrl-C, it leaves
    the clock where it is.
    """
    if days is hours is minutes is seconds is None:
        complain(
            "say how far: at least one of --days, --hours, --minutes and --seconds, each a whole "
            "number, as in `waypost clock advance --hours 24`",
            code=MISUSED,
        )
    in_hours = (days or 0) * 24 + (hours or 0)
    left_ms = ((in_hours * 60 + (minutes or 0)) * 60 + (seconds or 0)) * 1000
    steps = 0
    while True:
        wish = {"ms": left_ms, "within_ms": PROGRESS_MS}
        answer = ask(env_file, "POST", "/control/clock/advance", wish)
        steps += answer["steps"]
        if answer["is_complete"]:
            break
        left_ms = answer["left_ms"]
        left = timedelta(seconds=round(left_ms / 1000))
        typer.echo(f"{sentence(answer)}; {steps} stops, {left} left", err=True)
    typer.echo(f"{sentence(answer)}; {steps} stops on the way")


@clock.command("freeze")
def freeze_clock(env_file: EnvFile = ENV_FILE) -> None:
    """Stop the clock: nothing becomes due until it is moved, or runs again."""
    typer.echo(sentence(ask(env_file, "POST", "/control/clock/freeze", {})))


@clock.command("run")
def run_clock(
    factor: Annotated[float, typer.Option(help="How many times as fast as the machine's.")] = 1,
    env_file: EnvFile = ENV_FILE,
) -> None:
    """Let the clock run."""
    typer.echo(sentence(ask(env_file, "POST", "/control/clock/run", {"factor": factor})))


def sentence(view: dict[str, Any]) -> str:
    """The control door's view of the clock in a line."""
    at = datetime.fromtimestamp(view["now_ms"] / 1000, UTC).isoformat(" ", "seconds")
    return f"{at}, {manner(view['ahead_ms'], view['factor'])}"


def manner(ahead_ms: int, factor: float) -> str:
    """How a clock goes, against the machine's."""
    ahead_s = round(ahead_ms / 1000)
    way = f"{timedelta(seconds=abs(ahead_s))} {'ahead' if ahead_s > 0 else 'behind'}"
    where = way if ahead_s else "as the machine's"
    return where + (", frozen" if factor == 0 else "" if factor == 1 else f", {factor:g} times as fast")
