"""`waypost app`: apps, their tokens, their rates and their operators."""

from typing import Annotated

import typer

from waypost.cli.admin_client import show
from waypost.cli.commands.if_missing import Existing, IfMissing, add
from waypost.cli.commands.partners import PartnerId
from waypost.cli.output.printing import AsJson

app = typer.Typer(help="Apps, their tokens, their rates, and their operator.", no_args_is_help=True)


@app.command("add")
def add_app(
    partner_id: PartnerId,
    name: str,
    phone_number: str,
    phone_number_id: str,
    business_account_id: str,
    per_second: Annotated[int | None, typer.Option(help="The operator's throughput for the number.")] = None,
    if_missing: IfMissing = False,
    as_json: AsJson = False,
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
    add(
        "/admin/apps",
        body,
        Existing("/admin/apps", ("apps",), ("partner_id", "name")),
        if_missing=if_missing,
        as_json=as_json,
    )


@app.command("connect")
def connect_app(
    app_id: Annotated[str, typer.Argument(help="Id of the app.")],
    phone_number: Annotated[str, typer.Argument(help="Its source number.")],
    phone_number_id: Annotated[str, typer.Argument(help="The operator's id of that number.")],
    business_account_id: Annotated[str, typer.Argument(help="Id of a business account of its partner.")],
    live: Annotated[bool, typer.Option(help="Live, or still a sandbox app.")] = True,
    as_json: AsJson = False,
) -> None:
    """Connect an app, such as one that its partner has created, to its number and business account."""
    body = {
        "phone_number": phone_number,
        "phone_number_id": phone_number_id,
        "business_account_id": business_account_id,
        "live": live,
    }
    show("POST", f"/admin/apps/{app_id}/connect", body, as_json=as_json)


@app.command("list")
def list_apps(as_json: AsJson = False) -> None:
    """List apps."""
    show("GET", "/admin/apps", as_json=as_json)


@app.command("revoke-token")
def renew_app_token(app_id: str, as_json: AsJson = False) -> None:
    """Revoke an app's token and show the new one."""
    show("POST", f"/admin/apps/{app_id}/token/revoke", {}, as_json=as_json)


@app.command("rates")
def app_rates(
    app_id: Annotated[str, typer.Argument(help="Id of the app.")],
    rates: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ROW=N/PERIOD]...", help="Rates that it gets, such as templates=20/60s."),
    ] = None,
    reset: Annotated[bool, typer.Option("--reset", help="First remove all rates of its own.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show an app's rates, or give it rates of its own: they apply at once, instead of the service's."""
    path = f"/admin/apps/{app_id}/rates"
    if not rates and not reset:
        show("GET", path, as_json=as_json)
        return
    by_row: dict[str, str] = {}
    for text in rates or ():
        row, separator, rate = text.partition("=")
        if not separator or row in by_row:
            problem = f"{row} is named twice" if separator else f"{text!r} is not a rate"
            raise typer.BadParameter(f"{problem}; write each row once, with its rate: templates=20/60s")
        by_row[row] = rate
    show("PUT", path, {"rates": by_row, "reset": reset}, as_json=as_json)


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
    as_json: AsJson = False,
) -> None:
    """Move an app, with everything of its business account, to another operator account."""
    body = {
        "operator_account_id": operator_account_id,
        "business_account_id": business_account_id,
        "phone_number_id": phone_number_id,
        "submit_templates": submit_templates,
    }
    show("PUT", f"/admin/apps/{app_id}/operator", body, as_json=as_json)
