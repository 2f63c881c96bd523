"""`waypost partner`: partners and their credentials."""

from typing import Annotated
from urllib.parse import quote

import typer

from waypost.base.clock import SystemClock
from waypost.cli.admin_client import show

CHARACTERS_HELP = "8 characters or more: upper case, lower case, a digit, a symbol."
PartnerId = Annotated[int, typer.Argument(help="Id of the partner.")]

partner = typer.Typer(help="Partners and their credentials.", no_args_is_help=True)


@partner.command("add")
def add_partner(
    email: str,
    name: str,
    password: Annotated[
        str, typer.Option(prompt=True, hide_input=True, envvar="WAYPOST_PARTNER_PASSWORD", help=CHARACTERS_HELP)
    ],
) -> None:
    """Add a partner."""
    show("POST", "/admin/partners", {"email": email, "name": name, "password": password})


@partner.command("list")
def list_partners() -> None:
    """List partners."""
    show("GET", "/admin/partners")


@partner.command("secret")
def add_client_secret(
    partner_id: PartnerId,
    days: Annotated[int | None, typer.Option(help="Days until it expires. [default: never]")] = None,
) -> None:
    """Create a client secret; it is shown only once."""
    expires = None if days is None else SystemClock().now_ms() + days * 86_400_000
    show("POST", f"/admin/partners/{partner_id}/client-secrets", {"expires_on_ms": expires})


@partner.command("secrets")
def list_client_secrets(partner_id: PartnerId) -> None:
    """List the ids of a partner's client secrets; the secrets themselves are shown only once."""
    show("GET", f"/admin/partners/{partner_id}/client-secrets")


@partner.command("revoke-secret")
def revoke_client_secret(
    partner_id: PartnerId,
    secret_id: Annotated[str, typer.Argument(help="Id, as `waypost partner secrets` lists it.")],
    keep_tokens: Annotated[
        bool, typer.Option("--keep-tokens", help="Keep the partner tokens it has issued, which live up to a day.")
    ] = False,
) -> None:
    """Revoke a client secret at once, with the partner tokens it has issued."""
    query = "?keep_tokens=true" if keep_tokens else ""
    show("DELETE", f"/admin/partners/{partner_id}/client-secrets/{quote(secret_id, safe='')}{query}")


@partner.command("password")
def change_password(
    partner_id: PartnerId,
    password: Annotated[
        str,
        typer.Option(
            prompt=True,
            hide_input=True,
            confirmation_prompt=True,
            envvar="WAYPOST_PARTNER_PASSWORD",
            help=CHARACTERS_HELP,
        ),
    ],
    end_tokens: Annotated[
        bool, typer.Option(help="Revoke the partner's tokens too, which otherwise live up to a day.")
    ] = False,
) -> None:
    """Change a partner's password and end its sessions; from then on the API accepts client secrets only."""
    body = {"password": password, "end_tokens": end_tokens}
    show("POST", f"/admin/partners/{partner_id}/password", body)


@partner.command("key")
def add_api_key(partner_id: PartnerId, name: str = "key") -> None:
    """Create an API key; it is shown only once."""
    show("POST", f"/admin/partners/{partner_id}/api-keys", {"name": name})


@partner.command("keys")
def list_api_keys(partner_id: PartnerId) -> None:
    """List the ids of a partner's API keys; the keys themselves are shown only once."""
    show("GET", f"/admin/partners/{partner_id}/api-keys")


@partner.command("revoke-key")
def revoke_api_key(
    api_key: Annotated[str, typer.Argument(help="The key; or, with --of, its id as `waypost partner keys` lists it.")],
    of: Annotated[int | None, typer.Option(help="Id of the partner that has the key.")] = None,
) -> None:
    """Revoke an API key at once."""
    if of is None:
        show("POST", "/admin/api-keys/revoke", {"api_key": api_key})
    else:
        show("DELETE", f"/admin/partners/{of}/api-keys/{quote(api_key, safe='')}")
