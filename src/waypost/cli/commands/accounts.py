"""`waypost account`: operator accounts, business accounts, their numbers and webhooks."""

import sys
from pathlib import Path
from typing import Annotated
from urllib.parse import urlencode

import typer

from waypost.cli.admin_client import show

STDIN = Path("-")


def take_secret(given: str | None, file: Path | None, *, name: str, wanted: bool) -> str | None:
    """The secret: as given, else a line of the file, else the answer to a question.

    Args:
        given: by option or environment.
        file: whose first line it is; `-` is standard input, of which every secret takes a line.
        name: of the secret, for the question and for complaints.
        wanted: whether to ask when it comes from nowhere else and somebody sits there.

    Raises:
        typer.BadParameter: the file cannot be read, or has no such line.
    """
    if given:
        return given
    if file is not None:
        secret = _line_of(file, name)
        if not secret:
            raise typer.BadParameter(f"{file} has no line for the {name}")
        return secret
    if wanted and sys.stdin.isatty():
        return typer.prompt(name.capitalize(), hide_input=True)
    return None


def _line_of(file: Path, name: str) -> str:
    if file == STDIN:
        return sys.stdin.readline().strip()
    try:
        return file.read_text(encoding="utf-8").partition("\n")[0].strip()
    except (OSError, UnicodeError) as error:
        raise typer.BadParameter(f"{file} cannot be read for the {name}: {error}") from error


account = typer.Typer(help="Operator accounts and business accounts.", no_args_is_help=True)

AccountId = Annotated[str, typer.Argument(help="A name; also the end of its webhook path.")]
BusinessId = Annotated[str, typer.Argument(help="The operator's id; wabaId on the wire.")]
Token = Annotated[
    str | None, typer.Option(envvar="WAYPOST_OPERATOR_TOKEN", help="Better from a file, or from its variable.")
]
TokenFile = Annotated[Path | None, typer.Option(help="File whose first line is the token; - is standard input.")]


@account.command("operator")
def put_operator_account(
    account_id: AccountId,
    base_url: Annotated[str | None, typer.Option(help="Such as https://graph.facebook.com. [needed once]")] = None,
    app_id: Annotated[str | None, typer.Option(help="The operator's id of your app. [needed once]")] = None,
    version: Annotated[str | None, typer.Option(help="Of the operator's interface. [default: v25.0]")] = None,
    token: Token = None,
    token_file: TokenFile = None,
    app_secret: Annotated[
        str | None, typer.Option(envvar="WAYPOST_OPERATOR_APP_SECRET", help="Signs its webhooks. [needed once]")
    ] = None,
    app_secret_file: Annotated[Path | None, typer.Option(help="Likewise in a file.")] = None,
    verify_token: Annotated[
        str | None,
        typer.Option(
            envvar="WAYPOST_OPERATOR_VERIFY_TOKEN",
            help="For the webhook's handshake. [default: one is made, and shown once]",
        ),
    ] = None,
    verify_token_file: Annotated[Path | None, typer.Option(help="Likewise in a file.")] = None,
    kind: Annotated[str | None, typer.Option(help="Of operator; it never changes. [default: cloud]")] = None,
    field: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="A field of another kind of operator; repeatable.")
    ] = None,
    field_file: Annotated[
        list[str] | None, typer.Option(metavar="NAME=FILE", help="Likewise in a file; - is standard input.")
    ] = None,
) -> None:
    """Keep our credentials and address at an operator; of an account that is there, change what is given."""
    is_new = base_url is not None and kind in (None, "cloud")
    body = {
        "kind": kind,
        "base_url": base_url,
        "version": version,
        "token": take_secret(token, token_file, name="token", wanted=is_new),
        "app_id": app_id,
        "app_secret": take_secret(app_secret, app_secret_file, name="app secret", wanted=is_new),
        "verify_token": take_secret(verify_token, verify_token_file, name="verify token", wanted=False),
    }
    body |= _fields(field, field_file)
    show("PUT", f"/admin/operator-accounts/{account_id}", body)


def _fields(given: list[str] | None, files: list[str] | None) -> dict[str, str | None]:
    """Fields by name, from `NAME=VALUE` and from the first lines of `NAME=FILE`."""
    fields: dict[str, str | None] = {}
    for one in given or []:
        name, _, value = one.partition("=")
        fields[name] = value
    for one in files or []:
        name, _, path = one.partition("=")
        fields[name] = take_secret(None, Path(path), name=name, wanted=False)
    return fields


@account.command("token")
def rotate_token(account_id: AccountId, token: Token = None, token_file: TokenFile = None) -> None:
    """Take another token for an operator account, from the next call on."""
    taken = take_secret(token, token_file, name="token", wanted=True)
    if taken is None:
        raise typer.BadParameter("give it by --token-file, or in WAYPOST_OPERATOR_TOKEN")
    show("PUT", f"/admin/operator-accounts/{account_id}", {"token": taken})


@account.command("list")
def list_accounts() -> None:
    """List operator accounts with their business accounts and apps; no secret is shown."""
    show("GET", "/admin/operator-accounts")


@account.command("numbers")
def list_numbers(
    account_id: AccountId,
    business_account_id: Annotated[str, typer.Argument(help="The operator's id; it need not be here yet.")],
) -> None:
    """Ask the operator which numbers a business account has, to add apps for them."""
    path = f"/admin/operator-accounts/{account_id}/numbers"
    show("GET", f"{path}?{urlencode({'business_account_id': business_account_id})}")


@account.command("business")
def add_business_account(
    account_id: BusinessId,
    partner_id: int,
    operator_account_id: Annotated[str, typer.Argument(help="Who carries it.")],
    namespace: Annotated[str | None, typer.Option(help="Of its templates. [default: the operator is asked]")] = None,
) -> None:
    """Add a partner's business account."""
    body = {
        "id": account_id,
        "partner_id": partner_id,
        "namespace": namespace,
        "operator_account_id": operator_account_id,
    }
    show("POST", "/admin/business-accounts", body)


@account.command("subscribe")
def subscribe(business_account_id: BusinessId) -> None:
    """Have the operator send a business account's webhooks to this service, which must be running."""
    show("POST", f"/admin/business-accounts/{business_account_id}/subscribe", {})
