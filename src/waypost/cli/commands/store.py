"""`waypost store` and `waypost move`: upgrade, back up and move what the service must not forget."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from waypost.cli.errors import FAILED, complain, settings_of
from waypost.config import Settings

store = typer.Typer(help="The store: which revision it has, upgrades, copies.", no_args_is_help=True)

Data = Annotated[Path | None, typer.Option(help="Folder of the store. [default: .waypost]")]


@store.command("upgrade")
def upgrade_store(
    data: Data = None,
    check: Annotated[bool, typer.Option("--check", help="Only say it; exit code 1 when an upgrade is needed.")] = False,
) -> None:
    """Bring the store to this version's revision. `waypost serve` does so at its start too."""
    from waypost.assembly.store_maintenance import standing, upgrade
    from waypost.store.tables import REVISION

    settings = _quiet(settings_of(data=data))
    with _one_line():
        found = standing(settings) if check else upgrade(settings)
    if found is None:
        typer.echo("there is no store yet")
        return
    typer.echo(
        f"store: revision {found.revision}, works with versions of revision {found.works_with} and newer; "
        f"this version: revision {REVISION}"
    )
    if found.is_older:
        typer.echo(f"an upgrade from revision {found.revision} to {REVISION} is needed")
        raise typer.Exit(FAILED)


@store.command("backup")
def back_up_store(file: Path, data: Data = None) -> None:
    """Copy an SQLite store to a file as it is now, also while the service runs."""
    from waypost.assembly.store_maintenance import back_up

    with _one_line():
        size = back_up(settings_of(data=data), file)
    typer.echo(f"{file}  {size} bytes")


def move(
    to: Annotated[
        str,
        typer.Option(
            envvar="WAYPOST_MOVE_TO",
            help="An empty PostgreSQL database: postgresql://user:password@host/database. "
            "On the command line others on this machine can read it; the variable is better.",
        ),
    ],
    data: Data = None,
) -> None:
    """Copy the SQLite store into an empty PostgreSQL database, with the service stopped."""
    from waypost.assembly.store_move import Mismatch, Moved
    from waypost.assembly.store_move import move as move_store

    settings = _quiet(settings_of(data=data))

    def tell(one: Moved) -> None:
        mended = f"  {one.mended} texts mended" if one.mended else ""
        typer.echo(f"{one.table:<20} {one.digest.rows:>12,} rows  {one.digest.short}  {one.seconds:6.1f} s{mended}")

    with _one_line(Mismatch):
        done = move_store(settings.store_path, to, tell=tell)
    rows = sum(one.digest.rows for one in done)
    typer.echo(
        f"{rows:,} rows in {len(done)} tables are there and compared. Set WAYPOST_DATABASE_URL to go on there; "
        f"media stay in {settings.media_folder}"
    )


def _quiet(settings: Settings) -> Settings:
    """The settings, once only what matters is logged."""
    from waypost.base.clock import SystemClock
    from waypost.base.telemetry.logs import set_up_logs

    set_up_logs(SystemClock(), as_json=settings.log_format == "json", level="warning")
    return settings


@contextmanager
def _one_line(*foreseen: type[Exception]) -> Generator[None]:
    """What keeps a command from its work is one line with its remedy."""
    from waypost.store.contract import StoreAway, StoreInUse, WrongStore

    try:
        yield
    except (StoreAway, StoreInUse, WrongStore, OSError, *foreseen) as error:
        complain(str(error))
