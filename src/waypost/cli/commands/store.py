"""`waypost store`, `waypost move` and `waypost secret`: upgrade, back up and move the store; its key."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from waypost.cli.call_commands import call_command
from waypost.cli.errors import EXIT_FAILURE, fail, load_settings
from waypost.cli.output import AsJson, print_json, show_progress

if TYPE_CHECKING:
    from waypost.config import Settings


store = typer.Typer(help="The store: its revision, upgrades, backups.", no_args_is_help=True)

Data = Annotated[Path | None, typer.Option(help="Folder of the store. [default: .waypost]")]


@store.command("upgrade")
def upgrade_store(
    data: Data = None,
    check: Annotated[
        bool, typer.Option("--check", help="Only print the revision; exit code 1 if an upgrade is needed.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Upgrade the store to this version's revision. `waypost serve` does so at its start too."""
    from waypost.assembly.store_maintenance import read_status, upgrade
    from waypost.store.tables import REVISION

    settings = _log_warnings_only(load_settings(data=data).settings)
    with _report_store_errors(), show_progress("" if check else "upgrading the store …"):
        status = read_status(settings) if check else upgrade(settings)
    if as_json:
        revisions = None if status is None else {"revision": status.revision, "works_with": status.works_with}
        print_json({"store": revisions, "this_version": REVISION})
    elif status is None:
        typer.echo("there is no store yet")
    else:
        typer.echo(
            f"store: revision {status.revision}, works with versions of revision {status.works_with} and newer; "
            f"this version: revision {REVISION}"
        )
    if status is not None and status.is_older:
        if not as_json:
            typer.echo(f"an upgrade from revision {status.revision} to {REVISION} is needed")
        raise typer.Exit(EXIT_FAILURE)


@store.command("backup")
def back_up_store(file: Path, data: Data = None) -> None:
    """Copy the current SQLite store to a file, also while the service runs."""
    from waypost.assembly.store_maintenance import back_up

    with _report_store_errors(), show_progress("copying the store …"):
        size = back_up(load_settings(data=data).settings, file)
    typer.echo(f"{file}  {size} bytes")


def move(
    to: Annotated[
        str,
        typer.Option(
            envvar="WAYPOST_MOVE_TO",
            help="An empty PostgreSQL database: postgresql://user:password@host/database. "
            "Other users of this machine can read the command line; the variable is safer.",
        ),
    ],
    data: Data = None,
) -> None:
    """Copy the SQLite store into an empty PostgreSQL database, with the service stopped."""
    from waypost.assembly.store_maintenance import CopyMismatch, MovedTable
    from waypost.assembly.store_maintenance import move as move_store

    settings = _log_warnings_only(load_settings(data=data).settings)

    copied_rows = 0

    def report(moved: MovedTable) -> None:
        nonlocal copied_rows
        progress.clear()
        replaced = f"  U+0000 replaced in {moved.replaced_texts} texts" if moved.replaced_texts else ""
        digest = moved.digest
        typer.echo(f"{moved.table:<20} {digest.rows:>12,} rows  {digest.short}  {moved.seconds:6.1f} s{replaced}")
        copied_rows += digest.rows
        progress.show(f"copying … {copied_rows:,} rows so far", at_once=True)

    with _report_store_errors(CopyMismatch), show_progress("copying …") as progress:
        tables = move_store(settings.store_path, to, report=report)
    rows = sum(table.digest.rows for table in tables)
    typer.echo(
        f"{rows:,} rows in {len(tables)} tables are copied and compared. Set WAYPOST_DATABASE_URL to use that "
        f"database; media files stay in {settings.media_folder}"
    )


def _log_warnings_only(settings: "Settings") -> "Settings":
    """Log warnings and errors only, and return the settings."""
    from waypost.base.clock import SystemClock
    from waypost.base.telemetry.logs import set_up_logs

    set_up_logs(SystemClock(), as_json=settings.log_format == "json", level="warning")
    return settings


@contextmanager
def _report_store_errors(*foreseen: type[Exception]) -> Generator[None]:
    """Print foreseen errors as one line, and exit."""
    from waypost.store.contract import StoreInUse, StoreUnavailable, WrongStore

    try:
        yield
    except (StoreUnavailable, StoreInUse, WrongStore, OSError, *foreseen) as error:
        fail(str(error))


secret = typer.Typer(help="The instance key, which encrypts the store's secrets.", no_args_is_help=True)
secret.command("rotate")(
    call_command("POST /admin/secret/rotate", {"app_tokens": None, "keep_old_for_s": "--keep-old-for"})
)
