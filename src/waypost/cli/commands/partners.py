"""`waypost partner` and `waypost app`: partners and their credentials; apps, their tokens, rates and operators."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

import typer

from waypost.base.clock import DAY_MS, SystemClock
from waypost.cli.call_commands import Existing, call_command
from waypost.cli.connections import show
from waypost.cli.output import AsJson

PartnerId = Annotated[int, typer.Argument(help="Id of the partner.")]
_PARTNER: Final = "/admin/partners/{partner_id}"
_APP: Final = "/admin/apps/{app_id}"


def _password_option(*, confirm: bool) -> Any:
    """Return the option of a password; without a value, a terminal prompts for it."""
    return typer.Option(prompt=True, hide_input=True, confirmation_prompt=confirm, envvar="WAYPOST_PARTNER_PASSWORD")


def _ms_in_days(days: int | None) -> int | None:
    return None if days is None else SystemClock().now_ms() + days * DAY_MS


partner = typer.Typer(help="Partners and their credentials.", no_args_is_help=True)
partner.command("add")(
    call_command(
        "POST /admin/partners",
        {"password": Annotated[str, _password_option(confirm=False)]},
        existing=Existing("GET /admin/partners", ("partners",), ("email",)),
    )
)
partner.command("list")(call_command("GET /admin/partners"))
partner.command("secret")(
    call_command(
        f"POST {_PARTNER}/client-secrets",
        {
            "expires_on_ms": Annotated[
                int, typer.Option("--days", callback=_ms_in_days, help="Days until it expires. [default: never]")
            ]
        },
    )
)
partner.command("secrets")(call_command(f"GET {_PARTNER}/client-secrets"))
partner.command("revoke-secret")(call_command(f"DELETE {_PARTNER}/client-secrets/{{secret_id}}", {"keep_tokens": None}))


@partner.command("token")
def add_universal_token(
    partner_id: PartnerId,
    days: Annotated[int, typer.Option(min=1, max=60, help="Days until it expires.")] = 30,
    name: Annotated[str, typer.Option(help="A name for it in lists.")] = "token",
    as_json: AsJson = False,
) -> None:
    """Create a universal token for all apps of a partner; at most three are active, and it is shown only once."""
    minute_ms = 60_000 if days < 60 else 0  # so that a day is still a day when the request arrives
    expires_on_ms = SystemClock().now_ms() + days * DAY_MS + minute_ms
    values = {"partner_id": partner_id, "name": name, "expires_on_ms": expires_on_ms}
    show(f"POST {_PARTNER}/universal-tokens", values, as_json=as_json)


partner.command("tokens")(call_command(f"GET {_PARTNER}/universal-tokens"))
partner.command("revoke-token")(call_command(f"DELETE {_PARTNER}/universal-tokens/{{token_id}}"))
partner.command("password")(
    call_command(
        f"POST {_PARTNER}/password", {"password": Annotated[str, _password_option(confirm=True)], "end_tokens": None}
    )
)


_MAXIMUM: Final = "Maximum number of {} that wait for {}; 0: no limit."
_UNSET: Final = "Remove the partner's own {} first: those of the settings apply."


@partner.command("quota")
def show_or_change_quotas(
    partner_id: PartnerId,
    messages: Annotated[int | None, typer.Option(help=_MAXIMUM.format("messages", "the operator"))] = None,
    callbacks: Annotated[int | None, typer.Option(help=_MAXIMUM.format("callbacks", "its receivers"))] = None,
    default: Annotated[bool, typer.Option("--default", help=_UNSET.format("quotas"))] = False,
    as_json: AsJson = False,
) -> None:
    """Show a partner's quotas and what it has waiting; with options, change the quotas."""
    options = {"message_quota": messages, "callback_quota": callbacks}
    _show_or_change(f"{_PARTNER}/quotas", partner_id, options, default=default, as_json=as_json)


@partner.command("retention")
def show_or_change_retention(
    partner_id: PartnerId,
    bodies_days: Annotated[int | None, typer.Option(help="Days for content; no more than keep_bodies_days.")] = None,
    messages_days: Annotated[
        int | None, typer.Option(help="Days for messages and their states; no more than keep_messages_days.")
    ] = None,
    default: Annotated[bool, typer.Option("--default", help=_UNSET.format("periods"))] = False,
    as_json: AsJson = False,
) -> None:
    """Show a partner's retention periods; with options, change them."""
    options = {"keep_bodies_days": bodies_days, "keep_messages_days": messages_days}
    _show_or_change(f"{_PARTNER}/retention", partner_id, options, default=default, as_json=as_json)


def _show_or_change(path: str, partner_id: int, options: Mapping[str, Any], *, default: bool, as_json: bool) -> None:
    changed = {name: value for name, value in options.items() if default or value is not None}
    method = "PUT" if changed else "GET"
    show(f"{method} {path}", {"partner_id": partner_id, **changed}, as_json=as_json)


partner.command("key")(
    call_command(
        f"POST {_PARTNER}/api-keys",
        {"name": None},
        existing=Existing(f"GET {_PARTNER}/api-keys", ("api_keys",), ("name",)),
    )
)
partner.command("keys")(call_command(f"GET {_PARTNER}/api-keys"))


@partner.command("revoke-key")
def revoke_api_key(
    api_key: Annotated[str, typer.Argument(help="The key; or, with --of, its id as `waypost partner keys` lists it.")],
    of: Annotated[int | None, typer.Option(help="Id of the partner that has the key.")] = None,
    as_json: AsJson = False,
) -> None:
    """Revoke an API key at once."""
    if of is None:
        show("POST /admin/api-keys/revoke", {"api_key": api_key}, as_json=as_json)
    else:
        values = {"partner_id": of, "key_id": api_key}
        show(f"DELETE {_PARTNER}/api-keys/{{key_id}}", values, as_json=as_json)


apps = typer.Typer(help="Apps, their tokens, their rates, and their operator.", no_args_is_help=True)
apps.command("add")(
    call_command(
        "POST /admin/apps",
        {"per_second": None},
        existing=Existing("GET /admin/apps", ("apps",), ("partner_id", "name")),
    )
)
apps.command("connect")(call_command(f"POST {_APP}/connect", {"live": None}))
apps.command("onboard")(call_command(f"POST {_APP}/onboard"))
apps.command("contact-email")(call_command(f"GET {_APP}/contact-email"))
apps.command("offer")(call_command("POST /admin/app-links", {"partner_linking_token": "--to"}))
apps.command("links")(call_command("GET /admin/app-links"))
apps.command("decide")(call_command("POST /admin/app-links/{link_id}/decide"))
apps.command("list")(call_command("GET /admin/apps"))
apps.command("revoke-token")(call_command(f"POST {_APP}/token/revoke"))


@apps.command("rates")
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
    if not rates and not reset:
        show(f"GET {_APP}/rates", {"app_id": app_id}, as_json=as_json)
        return
    by_row: dict[str, str] = {}
    for text in rates or ():
        row, separator, rate = text.partition("=")
        if not separator or row in by_row:
            problem = f"{row} is named twice" if separator else f"{text!r} is not a rate"
            raise typer.BadParameter(f"{problem}; write each row once, with its rate: templates=20/60s")
        by_row[row] = rate
    show(f"PUT {_APP}/rates", {"app_id": app_id, "rates": by_row, "reset": reset}, as_json=as_json)


apps.command("operator")(
    call_command(
        f"PUT {_APP}/operator",
        {"business_account_id": "--business-account", "phone_number_id": "--number", "submit_templates": None},
    )
)
