"""`waypost dead-letter`: jobs that a defect keeps from being worked."""

import typer

from waypost.cli.admin_client import show
from waypost.cli.output.printing import AsJson

dead_letter = typer.Typer(help="Jobs that a defect keeps from being worked.", no_args_is_help=True)


@dead_letter.command("list")
def list_dead_letters(as_json: AsJson = False) -> None:
    """List dead letters."""
    show("GET", "/admin/dead-letters", as_json=as_json)


@dead_letter.command("retry")
def retry_dead_letter(position: int, as_json: AsJson = False) -> None:
    """Put a dead letter back into its queue."""
    show("POST", f"/admin/dead-letters/{position}/retry", {}, as_json=as_json)


@dead_letter.command("delete")
def delete_dead_letter(position: int, as_json: AsJson = False) -> None:
    """Delete a dead letter; its work is not done."""
    show("DELETE", f"/admin/dead-letters/{position}", as_json=as_json)
