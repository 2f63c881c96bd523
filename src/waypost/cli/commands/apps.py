"""`waypost app`: apps, their tokens, and which operator carries them."""

from typing import Annotated

import typer

from waypost.cli.admin_client import show
from waypost.cli.commands.partners import PartnerId

app = typer.Typer(help="Apps, their tokens, and their operator.", no_args_is_help=True)


@app.command("add")
def add_app(
    partner_id: PartnerId,
    name: str,
    phone_number: str,
    phone_number_id: str,
    business_account_id: str,
    per_second: Annotated[int | None, typer.Option(help="The operator's throughput for the number.")] = None,
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
    show("POST", "/admin/apps", body)


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
    show("POST", f"/admin/apps/{app_id}/connect", body)


@app.command("list")
def list_apps() -> None:
    """List apps."""
    show("GET", "/admin/apps")


@app.command("revoke-token")
def renew_app_token(app_id: str) -> None:
    """Revoke an app's token and show the next one."""
    show("POST", f"/admin/apps/{app_id}/token/revoke", {})


@app.command("operator")
def switch_operator(
    app_id: Annotated[str, typer.Argument(help="Id of the app.")],
    operator_account_id: Annotated[str, typer.Argument(help="Who is to carry it.")],
    business_account_id: Annotated[
        str | None, typer.Option("--business-account", help="Its id there. [default: as before there, or the same]")
    ] = None,
    phone_number_id: Annotated[
        str | None, typer.Option("--number", help="The number's id there. [default: as before there, or by its digits]")
    ] = None,
    submit_templates: Annotated[
        bool, typer.Option("--submit-templates", help="Hand in templates that are not there yet.")
    ] = False,
) -> None:
    """Have another operator account carry an app, with all that its business account has."""
    body = {
        "operator_account_id": operator_account_id,
        "business_account_id": business_account_id,
        "phone_number_id": phone_number_id,
        "submit_templates": submit_templates,
    }
    show("PUT", f"/admin/apps/{app_id}/operator", body)
