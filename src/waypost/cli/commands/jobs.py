"""`waypost entry` and `waypost message`: what waits for a person, and one message's whole way."""

import typer

from waypost.cli.admin_client import show

entry = typer.Typer(help="Entries of the journal that were set aside.", no_args_is_help=True)


@entry.command("list")
def list_entries() -> None:
    """List entries that wait for a person."""
    show("GET", "/admin/entries")


@entry.command("release")
def release_entry(position: int) -> None:
    """Put an entry back, to be worked again."""
    show("POST", f"/admin/entries/{position}/release", {})


@entry.command("drop")
def drop_entry(position: int) -> None:
    """Delete an entry; what it was about is not done."""
    show("DELETE", f"/admin/entries/{position}")


def message(message_id: str) -> None:
    """Show one message's whole way: its states, its callbacks, and every attempt."""
    show("GET", f"/admin/messages/{message_id}")
