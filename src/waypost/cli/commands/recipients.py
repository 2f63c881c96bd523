"""`waypost recipient`: the personal data of the people that partners exchange messages with."""

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from waypost.cli.connections import use_admin_api
from waypost.cli.errors import fail
from waypost.cli.output import ProgressLine, show_progress
from waypost.client.api_client import ApiClient

recipient = typer.Typer(help="Personal data of a recipient.", no_args_is_help=True)


@recipient.callback()
def _recipient() -> None:
    """Personal data of a recipient."""


Number = Annotated[str, typer.Argument(help="The phone number with its country code, as in +49 151 23456789.")]


@recipient.command()
def export(
    number: Number,
    output: Annotated[Path | None, typer.Option(help="A new file to write to. [default: standard output]")] = None,
) -> None:
    """Print what is stored about a phone number, of every partner: one JSON object a line. The audit log records it."""
    if output is None:
        asyncio.run(use_admin_api(lambda client, _running: _print_records(client, number, None)))
        return
    try:
        file = output.open("x", encoding="utf-8")  # private: `main` sets the umask
    except OSError as error:
        fail(f"--output {output}: {error.strerror}; name a file that does not exist, in a folder that does")
    try:
        with file, show_progress("exporting …") as progress:
            count = asyncio.run(use_admin_api(lambda client, _running: _print_records(client, number, file, progress)))
    except BaseException:
        output.unlink()
        raise
    typer.echo(f"{count} records are in {output}")


async def _print_records(client: ApiClient, number: str, file: Any, progress: ProgressLine | None = None) -> int:
    """Write every record, and return their number."""
    count, position = 0, None
    while True:
        page = await client.call("POST /admin/recipients/export", number=number, position=position)
        for record in page["records"]:
            typer.echo(json.dumps(record, ensure_ascii=False), file=file)
        count += len(page["records"])
        if progress is not None:
            progress.show(f"exporting … {count:,} records")
        position = page["next"]
        if position is None:
            return count


@recipient.command()
def erase(
    number: Number,
    yes: Annotated[bool, typer.Option("--yes", help="Erase without a question.")] = False,
    compact: Annotated[
        bool,
        typer.Option(
            help="Then rewrite the tables, so that their free space holds nothing of it; work waits meanwhile."
        ),
    ] = True,
) -> None:
    """Erase what is stored about a phone number, of every partner. It cannot be undone; the audit log records it."""
    if not yes:
        typer.confirm(f"Erase everything that is stored about {number}, of every partner?", abort=True)
    erased: Counter[str] = Counter()  # rows by table
    waiting: Counter[str] = Counter()  # work by queue that keeps some

    async def work(client: ApiClient, _running: bool) -> dict[str, Any]:
        position = None
        while True:
            page = await client.call("POST /admin/recipients/erase", number=number, position=position)
            erased.update(page["erased"])
            waiting.update(page["waiting"])
            position = page["next"]
            progress.show(f"erasing … {erased.total():,} rows")
            if position is None:
                break
        if compact and erased:
            progress.show("rewriting the tables …", at_once=True)
            await client.call("POST /admin/store/compact")
        return page

    with show_progress("erasing …") as progress:
        end = asyncio.run(use_admin_api(work))
    for name, count in sorted(erased.items()):
        typer.echo(f"{count} erased from {name}")
    if not end["complete"]:
        left = ", ".join(f"{count} of {name}" for name, count in sorted(waiting.items()))
        fail(f"work is still done for {left}: run this again when it has ended, to erase the rest")
    typer.echo(f"Nothing is stored about this number any more; the audit log names it {end['id']}.")
