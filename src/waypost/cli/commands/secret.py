"""`waypost secret`: the instance key."""

import typer

from waypost.cli.call_commands import call_command

secret = typer.Typer(help="The instance key, which encrypts the store's secrets.", no_args_is_help=True)
secret.command("rotate")(
    call_command("POST /admin/secret/rotate", {"app_tokens": None, "keep_old_for_s": "--keep-old-for"})
)
