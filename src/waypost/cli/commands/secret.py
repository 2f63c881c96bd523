"""`waypost secret`: the instance key."""

from enum import StrEnum
from typing import Annotated

import typer

from waypost.cli.admin_client import show
from waypost.cli.output.printing import AsJson

secret = typer.Typer(help="The instance key, which encrypts the store's secrets.", no_args_is_help=True)


class AppTokens(StrEnum):
    """The choices for the app tokens."""

    KEEP = "keep"
    RENEW = "renew"


@secret.command("rotate")
def rotate(
    app_tokens: Annotated[
        AppTokens,
        typer.Option(
            help="Keep app tokens, signing keys and media URLs as they are, or renew them, as after a leak of the key."
        ),
    ] = AppTokens.KEEP,
    keep_old_for: Annotated[
        int, typer.Option(help="Seconds for which renewed tokens and keys of before are still accepted.")
    ] = 86_400,
    as_json: AsJson = False,
) -> None:
    """Encrypt every secret with WAYPOST_SECRET_KEY instead of WAYPOST_OLD_SECRET_KEY, while the service runs."""
    show(
        "POST",
        "/admin/secret/rotate",
        {"app_tokens": app_tokens.value, "keep_old_for_s": keep_old_for},
        as_json=as_json,
    )
