"""`waypost snapshot`: save and load the state of service and simulator."""

import sys
from pathlib import Path
from typing import Annotated, Final
from urllib.parse import quote

import typer

from waypost.cli.control_client import ENV_FILE, EnvFile, call_control_api, download
from waypost.cli.errors import fail
from waypost.cli.output.printing import AsJson, print_json, print_view

RESET_QUESTION: Final = (
    "Delete partners, templates, messages and files added since the start of `waypost dev`, and reset the clock?"
)

snapshot = typer.Typer(help="Save and load the state of a running `waypost dev`.", no_args_is_help=True)


@snapshot.command("save")
def save_snapshot(
    name: str,
    to: Annotated[Path | None, typer.Option(help="Also write it to this file, for `waypost dev --from`.")] = None,
    env_file: EnvFile = ENV_FILE,
    as_json: AsJson = False,
) -> None:
    """Save the current state under a name."""
    saved = call_control_api(env_file, "POST", "/control/snapshots", {"name": name})["snapshot"]
    if to is not None:
        try:
            to.write_bytes(download(env_file, f"/control/snapshots/{name}/content"))
        except OSError as error:
            fail(f"{name} is saved, but {to} cannot be written: {error.strerror}")
    if as_json:
        print_json(saved)
    else:
        typer.echo(f"{saved['name']}  {saved['size_bytes']} bytes" + (f"  {to}" if to else ""))


@snapshot.command("load")
def load_snapshot(name: str, env_file: EnvFile = ENV_FILE) -> None:
    """Restore a snapshot: service, simulator and clock."""
    call_control_api(env_file, "POST", f"/control/snapshots/{quote(name, safe='')}/load", {})
    typer.echo(f"{name} is loaded")


@snapshot.command("list")
def list_snapshots(env_file: EnvFile = ENV_FILE, as_json: AsJson = False) -> None:
    """List snapshots."""
    print_view(call_control_api(env_file, "GET", "/control/snapshots"), as_json=as_json)


@snapshot.command("drop")
def drop_snapshot(name: str, env_file: EnvFile = ENV_FILE) -> None:
    """Delete a snapshot."""
    call_control_api(env_file, "DELETE", f"/control/snapshots/{quote(name, safe='')}")
    typer.echo(f"{name} is deleted")


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
    call_control_api(env_file, "POST", "/control/reset", {})
    typer.echo("state is reset")
