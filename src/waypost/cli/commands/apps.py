"""`waypost app`: apps, their tokens and their operators."""

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
    """Add an app with its source number; prints its app token."""
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
    business_account_id: Annotated[str, typer.Argument(help="Id of a business account of its partner.")],
    live: Annotated[bool, typer.Option(help="Live, or still a sandbox app.")] = True,
) -> None:
    """Connect an app, such as one that its partner has created, to its number and business account."""
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
    """Revoke an app's token and show the new one."""
    show("POST", f"/admin/apps/{app_id}/token/revoke", {})


@app.command("operator")
def switch_operator(
    app_id: Annotated[str, typer.Argument(help="Id of the app.")],
    operator_account_id: Annotated[str, typer.Argument(help="Id of its new operator account.")],
    business_account_id: Annotated[
        str | None,
        typer.Option(
            "--business-account", help="Its id at that operator. [default: its earlier id there, or the same]"
        ),
    ] = None,
    phone_number_id: Annotated[
        str | None,
        typer.Option("--number", help="The number's id there. [default: its earlier id there, or found by its digits]"),
    ] = None,
    submit_templates: Annotated[
        bool, typer.Option("--submit-templates", help="Submit templates that are missing there.")
    ] = False,
) -> None:
    """Move an app, with everything of its business account, to another operator account."""
    body = {
        "operator_account_id": operator_account_id,
        "business_account_id": business_account_id,
        "phone_number_id": phone_number_id,
        "submit_templates": submit_templates,
    }
    show("PUT", f"/admin/apps/{app_id}/operator", body)
