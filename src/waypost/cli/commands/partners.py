"""`waypost partner`: partners and their credentials."""

from typing import Annotated
from urllib.parse import quote

import typer

from waypost.base.clock import SystemClock
from waypost.cli.admin_client import show
from waypost.cli.commands.if_missing import Existing, IfMissing, add
from waypost.cli.output.printing import AsJson

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
    if_missing: IfMissing = False,
    as_json: AsJson = False,
) -> None:
    """Add a partner."""
    body = {"email": email, "name": name, "password": password}
    add(
        "/admin/partners",
        body,
        Existing("/admin/partners", ("partners",), ("email",)),
        if_missing=if_missing,
        as_json=as_json,
    )


@partner.command("list")
def list_partners(as_json: AsJson = False) -> None:
    """List partners."""
    show("GET", "/admin/partners", as_json=as_json)


@partner.command("secret")
def add_client_secret(
    partner_id: PartnerId,
    days: Annotated[int | None, typer.Option(help="Days until it expires. [default: never]")] = None,
    as_json: AsJson = False,
) -> None:
    """Create a client secret; it is shown only once."""
    expires = None if days is None else SystemClock().now_ms() + days * 86_400_000
    show("POST", f"/admin/partners/{partner_id}/client-secrets", {"expires_on_ms": expires}, as_json=as_json)


@partner.command("secrets")
def list_client_secrets(partner_id: PartnerId, as_json: AsJson = False) -> None:
    """List the ids of a partner's client secrets; the secrets themselves are shown only once."""
    show("GET", f"/admin/partners/{partner_id}/client-secrets", as_json=as_json)


@partner.command("revoke-secret")
def revoke_client_secret(
    partner_id: PartnerId,
    secret_id: Annotated[str, typer.Argument(help="Id, as `waypost partner secrets` lists it.")],
    keep_tokens: Annotated[
        bool, typer.Option("--keep-tokens", help="Keep the partner tokens it has issued, which live up to a day.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Revoke a client secret at once, with the partner tokens it has issued."""
    query = "?keep_tokens=true" if keep_tokens else ""
    show("DELETE", f"/admin/partners/{partner_id}/client-secrets/{quote(secret_id, safe='')}{query}", as_json=as_json)


@partner.command("token")
def add_universal_token(
    partner_id: PartnerId,
    days: Annotated[int, typer.Option(min=1, max=60, help="Days until it expires.")] = 30,
    name: Annotated[str, typer.Option(help="A name for it in lists.")] = "token",
    as_json: AsJson = False,
) -> None:
    """Create a universal token for all apps of a partner; at most three are active, and it is shown only once."""
    minute_ms = 60_000 if days < 60 else 0  # so that a day is still a day when the request arrives
    body = {"name": name, "expires_on_ms": SystemClock().now_ms() + days * 86_400_000 + minute_ms}
    show("POST", f"/admin/partners/{partner_id}/universal-tokens", body, as_json=as_json)


@partner.command("tokens")
def list_universal_tokens(partner_id: PartnerId, as_json: AsJson = False) -> None:
    """List the ids of a partner's universal tokens; the tokens themselves are shown only once."""
    show("GET", f"/admin/partners/{partner_id}/universal-tokens", as_json=as_json)


@partner.command("revoke-token")
def revoke_universal_token(
    partner_id: PartnerId,
    token_id: Annotated[str, typer.Argument(help="Id, as `waypost partner tokens` lists it.")],
    as_json: AsJson = False,
) -> None:
    """Revoke a universal token at once."""
    show("DELETE", f"/admin/partners/{partner_id}/universal-tokens/{quote(token_id, safe='')}", as_json=as_json)


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
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Change a partner's password and end its sessions; from then on the API accepts client secrets only."""
    body = {"password": password, "end_tokens": end_tokens}
    show("POST", f"/admin/partners/{partner_id}/password", body, as_json=as_json)


@partner.command("quota")
def show_or_change_quotas(
    partner_id: PartnerId,
    messages: Annotated[
        int | None, typer.Option(help="Maximum number of messages that wait for the operator; 0: no limit.")
    ] = None,
    callbacks: Annotated[
        int | None, typer.Option(help="Maximum number of callbacks that wait for its receivers; 0: no limit.")
    ] = None,
    default: Annotated[
        bool, typer.Option("--default", help="Remove the partner's own quotas first: those of the settings apply.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show a partner's quotas and what it has waiting; with options, change the quotas."""
    options = {"message_quota": messages, "callback_quota": callbacks}
    body = {name: value for name, value in options.items() if default or value is not None}
    path = f"/admin/partners/{partner_id}/quotas"
    if body:
        show("PUT", path, body, as_json=as_json)
    else:
        show("GET", path, as_json=as_json)


@partner.command("retention")
def show_or_change_retention(
    partner_id: PartnerId,
    bodies_days: Annotated[int | None, typer.Option(help="Days for content; no more than keep_bodies_days.")] = None,
    messages_days: Annotated[
        int | None, typer.Option(help="Days for messages and their states; no more than keep_messages_days.")
    ] = None,
    default: Annotated[
        bool, typer.Option("--default", help="Remove the partner's own periods first: those of the settings apply.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show a partner's retention periods; with options, change them."""
    options = {"keep_bodies_days": bodies_days, "keep_messages_days": messages_days}
    body = {name: value for name, value in options.items() if default or value is not None}
    path = f"/admin/partners/{partner_id}/retention"
    if body:
        show("PUT", path, body, as_json=as_json)
    else:
        show("GET", path, as_json=as_json)


@partner.command("key")
def add_api_key(
    partner_id: PartnerId, name: str = "key", if_missing: IfMissing = False, as_json: AsJson = False
) -> None:
    """Create an API key; it is shown only once."""
    path = f"/admin/partners/{partner_id}/api-keys"
    add(path, {"name": name}, Existing(path, ("api_keys",), ("name",)), if_missing=if_missing, as_json=as_json)


@partner.command("keys")
def list_api_keys(partner_id: PartnerId, as_json: AsJson = False) -> None:
    """List the ids of a partner's API keys; the keys themselves are shown only once."""
    show("GET", f"/admin/partners/{partner_id}/api-keys", as_json=as_json)


@partner.command("revoke-key")
def revoke_api_key(
    api_key: Annotated[str, typer.Argument(help="The key; or, with --of, its id as `waypost partner keys` lists it.")],
    of: Annotated[int | None, typer.Option(help="Id of the partner that has the key.")] = None,
    as_json: AsJson = False,
) -> None:
    """Revoke an API key at once."""
    if of is None:
        show("POST", "/admin/api-keys/revoke", {"api_key": api_key}, as_json=as_json)
    else:
        show("DELETE", f"/admin/partners/{of}/api-keys/{quote(api_key, safe='')}", as_json=as_json)
