"""`waypost dead-letter` and `waypost message`: dead letters, and one message's history."""

import typer

from waypost.cli.admin_client import show

dead_letter = typer.Typer(help="Jobs that a defect keeps from being worked.", no_args_is_help=True)


@dead_letter.command("list")
def list_dead_letters() -> None:
    """List dead letters."""
    show("GET", "/admin/dead-letters")


@dead_letter.command("retry")
def retry_dead_letter(position: int) -> None:
    """Put a dead letter back into its queue."""
    show("POST", f"/admin/dead-letters/{position}/retry", {})


@dead_letter.command("delete")
def delete_dead_letter(position: int) -> None:
    """Delete a dead letter; its work is not done."""
    show("DELETE", f"/admin/dead-letters/{position}")


def message(message_id: str) -> None:
    """Show one message: its states, its callbacks, and every attempt."""
    show("GET", f"/admin/messages/{message_id}")
