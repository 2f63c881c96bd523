"""`waypost account`: operator accounts, business accounts, their numbers and webhooks."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from waypost.base.error_texts import error_text
from waypost.cli.call_commands import Existing, call_command
from waypost.cli.connections import show
from waypost.cli.output import AsJson

STDIN = Path("-")


def read_secret(value: str | None, file: Path | None, *, name: str, prompt: bool) -> str | None:
    """Return a secret: the value given, else a line of the file (`-` is standard input), else what is typed.

    Raises:
        typer.BadParameter: the file cannot be read, or its line is empty.
    """
    if value:
        return value
    if file is not None:
        try:
            text = sys.stdin.readline() if file == STDIN else file.read_text(encoding="utf-8")
        except (OSError, UnicodeError) as error:
            raise typer.BadParameter(f"{file} cannot be read for the {name}: {error_text(error)}") from error
        secret = text.partition("\n")[0].strip()
        if not secret:
            raise typer.BadParameter(f"{file} has no line for the {name}")
        return secret
    if prompt and sys.stdin.isatty():
        return typer.prompt(name.capitalize(), hide_input=True)
    return None


account = typer.Typer(help="Operator accounts and business accounts.", no_args_is_help=True)

AccountId = Annotated[str, typer.Argument(help="A name; also the end of its webhook path.")]
Token = Annotated[
    str | None, typer.Option(envvar="WAYPOST_OPERATOR_TOKEN", help="The access token; a file or the variable is safer.")
]
TokenFile = Annotated[Path | None, typer.Option(help="File whose first line is the token; - is standard input.")]


@account.command("operator")
def put_operator_account(
    account_id: AccountId,
    base_url: Annotated[
        str | None, typer.Option(help="Such as https://graph.facebook.com. [required for a new account]")
    ] = None,
    app_id: Annotated[
        str | None, typer.Option(help="The operator's id of your app. [required for a new account]")
    ] = None,
    version: Annotated[str | None, typer.Option(help="Version of the operator's API. [default: v25.0]")] = None,
    token: Token = None,
    token_file: TokenFile = None,
    app_secret: Annotated[
        str | None,
        typer.Option(
            envvar="WAYPOST_OPERATOR_APP_SECRET", help="Signs the operator's webhooks. [required for a new account]"
        ),
    ] = None,
    app_secret_file: Annotated[Path | None, typer.Option(help="File with the app secret.")] = None,
    verify_token: Annotated[
        str | None,
        typer.Option(
            envvar="WAYPOST_OPERATOR_VERIFY_TOKEN",
            help="For the webhook's verification request. [default: generated, and shown once]",
        ),
    ] = None,
    verify_token_file: Annotated[Path | None, typer.Option(help="File with the verify token.")] = None,
    kind: Annotated[str | None, typer.Option(help="Kind of operator; it cannot be changed. [default: cloud]")] = None,
    field: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="A field of another kind of operator; repeatable.")
    ] = None,
    field_file: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=FILE", help="A field whose value is in a file; - is standard input."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Add an operator account; change the given fields of an existing one."""
    is_new = base_url is not None and kind in (None, "cloud")
    values = {
        "kind": kind,
        "base_url": base_url,
        "version": version,
        "token": read_secret(token, token_file, name="token", prompt=is_new),
        "app_id": app_id,
        "app_secret": read_secret(app_secret, app_secret_file, name="app secret", prompt=is_new),
        "verify_token": read_secret(verify_token, verify_token_file, name="verify token", prompt=False),
    }
    for pair in field or []:
        field_name, _, values[field_name] = pair.partition("=")
    for pair in field_file or []:
        field_name, _, path = pair.partition("=")
        values[field_name] = read_secret(None, Path(path), name=field_name, prompt=False)
    values["account_id"] = account_id
    show("PUT /admin/operator-accounts/{account_id}", values, as_json=as_json)


@account.command("token")
def rotate_token(
    account_id: AccountId, token: Token = None, token_file: TokenFile = None, as_json: AsJson = False
) -> None:
    """Replace the token of an operator account; it is used from the next call on."""
    secret = read_secret(token, token_file, name="token", prompt=True)
    if secret is None:
        raise typer.BadParameter("use --token-file, or set WAYPOST_OPERATOR_TOKEN")
    show("PUT /admin/operator-accounts/{account_id}", {"account_id": account_id, "token": secret}, as_json=as_json)


account.command("list")(call_command("GET /admin/operator-accounts"))
account.command("numbers")(
    call_command(
        "GET /admin/operator-accounts/{account_id}/numbers", arguments={"business_account_id": "business_account_id"}
    )
)
account.command("business")(
    call_command(
        "POST /admin/business-accounts",
        {"namespace": None},
        arguments={"id": "account_id"},
        existing=Existing("GET /admin/operator-accounts", ("operator_accounts", "business_accounts"), ("id",)),
    )
)
account.command("subscribe")(
    call_command(
        "POST /admin/business-accounts/{account_id}/subscribe", arguments={"account_id": "business_account_id"}
    )
)
