"""`waypost snapshot`: the state of service and simulator, kept and brought back."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import typer

from waypost.cli.control_client import ENV_FILE, EnvFile, ask, download
from waypost.cli.errors import complain

snapshot = typer.Typer(help="The state of a running `waypost dev`, kept and brought back.", no_args_is_help=True)


@snapshot.command("save")
def save_snapshot(
    name: str,
    to: Annotated[Path | None, typer.Option(help="Write it to this file too, for `waypost dev --from`.")] = None,
    env_file: EnvFile = ENV_FILE,
) -> None:
    """Keep the state as it is now, under a name."""
    kept = ask(env_file, "POST", "/control/snapshots", {"name": name})["snapshot"]
    if to is not None:
        try:
            to.write_bytes(download(env_file, f"/control/snapshots/{name}/content"))
        except OSError as error:
            complain(f"{name} is kept, but {to} cannot be written: {error.strerror}")
    typer.echo(f"{kept['name']}  {kept['size_bytes']} bytes" + (f"  {to}" if to else ""))


@snapshot.command("load")
def load_snapshot(name: str, env_file: EnvFile = ENV_FILE) -> None:
    """Put both sides, and the clock, where they were when it was saved."""
    ask(env_file, "POST", f"/control/snapshots/{quote(name, safe='')}/load", {})
    typer.echo(f"{name} is loaded")


@snapshot.command("list")
def list_snapshots(env_file: EnvFile = ENV_FILE) -> None:
    """List what is kept."""
    for one in ask(env_file, "GET", "/control/snapshots")["snapshots"]:
        at = datetime.fromtimestamp(one["at_ms"] / 1000, UTC).isoformat(" ", "seconds")
        typer.echo(f"{one['name']}  {at}  {one['size_bytes']} bytes")


@snapshot.command("drop")
def drop_snapshot(name: str, env_file: EnvFile = ENV_FILE) -> None:
    """Forget one."""
    ask(env_file, "DELETE", f"/control/snapshots/{quote(name, safe='')}")
    typer.echo(f"{name} is gone")


@snapshot.command("reset")
def reset_state(env_file: EnvFile = ENV_FILE) -> None:
    """Put both sides back to where `waypost dev` started from."""
    ask(env_file, "POST", "/control/reset", {})
    typer.echo("back at the start")
