"""The nouns of administration. They call the door of a running service, or open its store themselves."""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import typer

from waypost.assembly.service import Waypost
from waypost.base.clock import SystemClock
from waypost.base.ids import RandomIds
from waypost.client.door import Door, DoorRefused, InProcess, NotReached, OverHttp
from waypost.config import Settings
from waypost.store.contract import StoreInUse, WrongStore

CHARACTERS_HELP = "8 characters or more: upper case, lower case, a digit, a symbol."
PartnerId = Annotated[int, typer.Argument(help="Id of the partner.")]

partner = typer.Typer(help="Partners and their credentials.", no_args_is_help=True)
app = typer.Typer(help="Apps and their tokens.", no_args_is_help=True)
account = typer.Typer(help="Operator accounts and business accounts.", no_args_is_help=True)
entry = typer.Typer(help="Entries of the journal that were set aside.", no_args_is_help=True)


@partner.command("add")
def add_partner(
    email: str,
    name: str,
    password: Annotated[str, typer.Option(prompt=True, hide_input=True, help=CHARACTERS_HELP)],
) -> None:
    """Add a partner."""
    _show("POST", "/admin/partners", {"email": email, "name": name, "password": password})


@partner.command("list")
def list_partners() -> None:
    """List partners."""
    _show("GET", "/admin/partners")


@partner.command("secret")
def add_client_secret(
    partner_id: PartnerId,
    days: Annotated[int | None, typer.Option(help="Until it expires. [default: never]")] = None,
) -> None:
    """Make a client secret; it is shown this once."""
    expires = None if days is None else SystemClock().now_ms() + days * 86_400_000
    _show("POST", f"/admin/partners/{partner_id}/client-secrets", {"expires_on_ms": expires})


@partner.command("secrets")
def list_client_secrets(partner_id: PartnerId) -> None:
    """List a partner's client secrets by their ids; the secrets themselves are shown once only."""
    _show("GET", f"/admin/partners/{partner_id}/client-secrets")


@partner.command("revoke-secret")
def revoke_client_secret(
    partner_id: PartnerId,
    secret_id: Annotated[str, typer.Argument(help="As `waypost partner secrets` lists it.")],
) -> None:
    """Revoke a client secret at once."""
    _show("DELETE", f"/admin/partners/{partner_id}/client-secrets/{secret_id}")


@partner.command("password")
def change_password(
    partner_id: PartnerId,
    password: Annotated[
        str,
        typer.Option(prompt=True, hide_input=True, confirmation_prompt=True, help=CHARACTERS_HELP),
    ],
) -> None:
    """Change a partner's password; from then on the API takes client secrets only."""
    _show("POST", f"/admin/partners/{partner_id}/password", {"password": password})


@partner.command("key")
def add_api_key(partner_id: PartnerId, name: str = "key") -> None:
    """Make an API key; it is shown this once."""
    _show("POST", f"/admin/partners/{partner_id}/api-keys", {"name": name})


@partner.command("revoke-key")
def revoke_api_key(api_key: str) -> None:
    """Revoke an API key at once."""
    _show("POST", "/admin/api-keys/revoke", {"api_key": api_key})


@account.command("operator")
def put_operator_account(
    account_id: Annotated[str, typer.Argument(help="A name; also the end of its webhook path.")],
    base_url: Annotated[str, typer.Option(help="Such as http://127.0.0.1:8081.")],
    app_id: Annotated[str, typer.Option(help="The operator's id of your app.")],
    token: Annotated[str, typer.Option(prompt=True, hide_input=True)],
    app_secret: Annotated[str, typer.Option(prompt=True, hide_input=True)],
    verify_token: Annotated[str, typer.Option(prompt=True, hide_input=True)],
    version: Annotated[str, typer.Option(help="Of the operator's interface.")] = "v25.0",
) -> None:
    """Keep our credentials and address at an operator, or change them."""
    body = {
        "base_url": base_url,
        "version": version,
        "token": token,
        "app_id": app_id,
        "app_secret": app_secret,
        "verify_token": verify_token,
    }
    _show("PUT", f"/admin/operator-accounts/{account_id}", body)


@account.command("business")
def add_business_account(
    account_id: Annotated[str, typer.Argument(help="The operator's id; wabaId on the wire.")],
    partner_id: int,
    namespace: str,
    operator_account_id: str,
) -> None:
    """Add a partner's business account."""
    body = {
        "id": account_id,
        "partner_id": partner_id,
        "namespace": namespace,
        "operator_account_id": operator_account_id,
    }
    _show("POST", "/admin/business-accounts", body)


@app.command("add")
def add_app(
    partner_id: PartnerId,
    name: str,
    phone_number: str,
    phone_number_id: str,
    business_account_id: str,
    per_second: Annotated[
        int | None, typer.Option(help="The operator's throughput for the number.")
    ] = None,
) -> None:
    """Add an app with its source number; answers its app token."""
    body = {
        "partner_id": partner_id,
        "name": name,
        "phone_number": phone_number,
        "phone_number_id": phone_number_id,
        "business_account_id": business_account_id,
        "per_second": per_second,
    }
    _show("POST", "/admin/apps", body)


@app.command("connect")
def connect_app(
    app_id: Annotated[str, typer.Argument(help="Id of the app.")],
    phone_number: Annotated[str, typer.Argument(help="Its source number.")],
    phone_number_id: Annotated[str, typer.Argument(help="The operator's id of that number.")],
    business_account_id: Annotated[str, typer.Argument(help="One of its partner's.")],
    live: Annotated[bool, typer.Option(help="Live, or still a sandbox app.")] = True,
) -> None:
    """Give an app its number and business account: one that its partner has made, for example."""
    body = {
        "phone_number": phone_number,
        "phone_number_id": phone_number_id,
        "business_account_id": business_account_id,
        "live": live,
    }
    _show("POST", f"/admin/apps/{app_id}/connect", body)


@app.command("list")
def list_apps() -> None:
    """List apps."""
    _show("GET", "/admin/apps")


@app.command("revoke-token")
def renew_app_token(app_id: str) -> None:
    """Revoke an app's token and show the next one."""
    _show("POST", f"/admin/apps/{app_id}/token/revoke", {})


@entry.command("list")
def list_entries() -> None:
    """List entries that wait for a person."""
    _show("GET", "/admin/entries")


@entry.command("release")
def release_entry(position: int) -> None:
    """Put an entry back, to be worked again."""
    _show("POST", f"/admin/entries/{position}/release", {})


@entry.command("drop")
def drop_entry(position: int) -> None:
    """Delete an entry; what it was about is not done."""
    _show("DELETE", f"/admin/entries/{position}")


def message(message_id: str) -> None:
    """Show one message's whole way: its states, its callbacks, and every attempt."""
    _show("GET", f"/admin/messages/{message_id}")


def doctor() -> None:
    """Is everything in place? One line per check, each with its remedy."""
    lines = asyncio.run(_with_door(_checks))
    for is_fine, text in lines:
        typer.echo(f"{'ok  ' if is_fine else 'LOOK'} {text}")
    if not all(is_fine for is_fine, _ in lines):
        raise typer.Exit(1)


async def _checks(door: Door, running: bool) -> list[tuple[bool, str]]:
    lanes = await door.json("GET", "/admin/lanes")
    messages = (await door.json("GET", "/admin/messages"))["messages"]
    apps = (await door.json("GET", "/admin/apps"))["apps"]
    waiting = sum(sum(depth.values()) for depth in lanes.values())
    aside = sum(
        count for depth in lanes.values() for state, count in depth.items() if "aside" in state
    )
    uncertain = messages.get("uncertain", 0)
    return [
        (running, "the service answers" if running else "the service is not running: start it"),
        (True, f"the store opens; {sum(messages.values())} messages, {waiting} entries to work"),
        (bool(apps), f"{len(apps)} apps" + ("" if apps else ": add one with `waypost app add`")),
        (
            aside == 0,
            f"{aside} entries set aside" + (": see `waypost entry list`" if aside else ""),
        ),
        (
            uncertain == 0,
            f"{uncertain} messages uncertain"
            + (": each waits for a status and then fails with code 4002" if uncertain else ""),
        ),
    ]


def _show(method: str, path: str, body: Any = None) -> None:
    async def call(door: Door, _running: bool) -> Any:
        return await door.json(method, path, body)

    typer.echo(json.dumps(asyncio.run(_with_door(call)), indent=2, ensure_ascii=False))


async def _with_door(use: Callable[[Door, bool], Awaitable[Any]]) -> Any:
    """Use the door of the running service; where none runs, the door on its store in this process."""
    settings = Settings()
    token = settings.admin_token
    try:
        if token is not None:
            address = os.environ.get("WAYPOST_ADMIN_URL", f"http://{settings.host}:{settings.port}")
            door = Door(
                OverHttp(address.removesuffix("/admin")), {"Authorization": f"Bearer {token}"}
            )
            try:
                return await use(door, True)
            except NotReached:
                if "WAYPOST_ADMIN_URL" in os.environ:
                    raise
        return await _on_store(settings, use)
    except (DoorRefused, NotReached, StoreInUse, WrongStore) as error:
        typer.echo(f"waypost: {error}", err=True)
        raise typer.Exit(1) from error


async def _on_store(settings: Settings, use: Callable[[Door, bool], Awaitable[Any]]) -> Any:
    if settings.secret_key is None:
        raise NotReached(
            "set WAYPOST_ADMIN_TOKEN to reach a running service, or WAYPOST_SECRET_KEY to open its store"
        )
    clock = SystemClock()
    ids = RandomIds(clock)
    token = ids.secret()
    service = Waypost(settings.model_copy(update={"admin_token": token}), clock, ids)
    await service.open()
    try:
        door = Door(InProcess(service.application), {"Authorization": f"Bearer {token}"})
        return await use(door, False)
    finally:
        await service.close()
