"""Errors at a form field: those of an API that are about it, and the check of a number."""

from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from sqlalchemy import Connection
from starlette.responses import Response

from waypost.base.clock import HOUR_MS
from waypost.client.api_client import ApiResponseError
from waypost.console.actions import ActionRow
from waypost.console.page_tools import PageTools
from waypost.console.web.page_request import PageRequest
from waypost.domain.app import MAX_ADDITIONAL_KEYS, MAX_MINTED_TOKENS, AppKey, KeyStatus
from waypost.domain.rates import MAX_PERIOD_S, MAX_REQUESTS, read_stored_rate
from waypost.store.apps.keys import list_app_keys

_ABOUT_THE_FORM = range(400, 500)


def form_error(error: ApiResponseError) -> str:
    """Return the explanation of an API error, or its documented text if it has none.

    Raises:
        ApiResponseError: the error is not about the form.
    """
    if error.status not in _ABOUT_THE_FORM or error.status in (401, 403, 404):
        raise error
    text = error.explanation or error.message
    return text[:1].upper() + text[1:]


def is_number_up_to(maximum: int, text: str, *, minimum: int = 1) -> bool:
    """True if a text is a whole number from the minimum to the maximum, in ASCII digits."""
    return text.isascii() and text.isdecimal() and len(text) <= len(str(maximum)) and minimum <= int(text) <= maximum


MIN_APP_NAME_CHARS: Final = 6
MAX_APP_NAME_CHARS: Final = 150


async def show_apps(tools: PageTools, page_request: PageRequest) -> Response:
    """List the apps, each with its number and whether it is live."""
    return await _app_list_page(tools, page_request)


async def create_app(tools: PageTools, page_request: PageRequest) -> Response:
    """Create a sandbox app; the administrator connects a number and makes it live. Source: facts 2."""
    name = (await page_request.field("name")).strip()
    api = await tools.services.apis.partner(page_request.partner.id)
    try:
        response = await api.form("POST", "/partner/app", {"name": name})
    except ApiResponseError as error:
        return await _app_list_page(tools, page_request, name=name, wrong=form_error(error))
    return tools.redirect(
        f"/apps/{response['appId']}/settings",
        f"App {name} created.",
        hint="It is a sandbox app. The administrator connects it to a number and makes it live.",
    )


async def _app_list_page(tools: PageTools, page_request: PageRequest, *, name: str = "", wrong: str = "") -> Response:
    return await tools.page(
        page_request, "settings/apps.html", 400 if wrong else 200,
        typed=name, wrong=wrong, shortest=MIN_APP_NAME_CHARS, longest=MAX_APP_NAME_CHARS,
    )  # fmt: skip


RATE_SOURCES: Final = {  # source in the response of the API: the text and the state of its badge
    "documented": ("documented", "default"),
    "setting":    ("setting", "setting"),
    "app":        ("this app", "of this app"),
}  # fmt: skip
_UNITS: Final = {1: "second", 60: "minute", 3600: "hour", 86_400: "day"}


@dataclass(frozen=True, slots=True)
class RateView:
    """A row of the table of an app's rates.

    Attributes:
        name: the row of the table of rates.
        limit: the requests and their period that apply, such as `10 per minute`.
        documented: likewise, as documented.
        source: text and state of a badge.
        is_own: the app has a rate of its own.
    """

    name: str
    per: str
    limit: str
    documented: str
    source: tuple[str, str]
    is_own: bool


@dataclass(frozen=True, slots=True)
class AppRatesView:
    """The rates of an app.

    Attributes:
        limits_requests: False if the service applies no rates.
    """

    limits_requests: bool
    rows: list[RateView]

    @property
    def options(self) -> list[tuple[str, str]]:
        """The rows, for a list to choose from."""
        return [(row.name, f"{row.name}, now {row.limit}") for row in self.rows]

    @property
    def changed(self) -> list[RateView]:
        """The rows whose rate the app or the service has set."""
        return [row for row in self.rows if row.source != RATE_SOURCES["documented"]]

    @property
    def unchanged(self) -> list[RateView]:
        """The rows with the documented rate."""
        return [row for row in self.rows if row.source == RATE_SOURCES["documented"]]

    @property
    def has_own(self) -> bool:
        """True if the app has a rate of its own."""
        return any(row.is_own for row in self.rows)


async def read_app_rates_view(tools: PageTools, page_request: PageRequest) -> AppRatesView:
    """Return the rates of the app in the path."""
    response = await tools.services.apis.admin.json("GET", rates_path(page_request))
    return AppRatesView(response["limits_requests"], [_rate_view(row) for row in response["rates"]])


def format_limit(name: str, text: str) -> str:
    """Return a rate as people read it, such as `10 per minute` or `20 in 90 s`.

    Args:
        name: its row.
        text: as the admin API writes it, such as `10/60s`.
    """
    rate = read_stored_rate(name, text)
    period_s = rate.within_ms // 1000
    unit = _UNITS.get(period_s)
    return f"{rate.at_most} per {unit}" if unit else f"{rate.at_most} in {period_s} s"


def _rate_view(row: dict[str, Any]) -> RateView:
    name, own = row["rate"], row["app"]
    return RateView(
        name=name,
        per=row["per"],
        limit=format_limit(name, own or row["service"]),
        documented=format_limit(name, row["documented"]),
        source=RATE_SOURCES[row["source"]],
        is_own=own is not None,
    )


def rates_path(page_request: PageRequest) -> str:
    """Return the path of the app's rates at the admin API."""
    return f"/admin/apps/{page_request.app.id}/rates"


TOKEN_LIFETIMES: Final = (("24", "in 24 hours"), ("12", "in 12 hours"), ("4", "in 4 hours"), ("1", "in 1 hour"))
"""Lifetimes of minted tokens. Source: facts 1.5."""


@dataclass(frozen=True, slots=True)
class ShownSecret:
    """A secret that the page shows once.

    Attributes:
        what: `token`, `key` or `minted`.
        notice: a notice above it.
    """

    what: str
    secret: str
    notice: str = ""


@dataclass(frozen=True, slots=True)
class RejectedForm:
    """A rejected form, with the values as typed.

    Attributes:
        wrong: errors by field.
    """

    values: dict[str, str] = field(default_factory=dict[str, str])
    wrong: dict[str, str] = field(default_factory=dict[str, str])


EMPTY_FORM: Final = RejectedForm()


async def show_app(tools: PageTools, page_request: PageRequest) -> Response:
    """Return the page without any secret."""
    return await app_page(tools, page_request)


async def app_page(
    tools: PageTools, page_request: PageRequest, *, shown: ShownSecret | None = None, typed: RejectedForm = EMPTY_FORM
) -> Response:
    """Return the page, with a secret that is shown once or a rejected form where given."""
    now_ms = tools.services.clock.now_ms()
    keys, minted = await tools.services.database.read(partial(_read_keys, app_id=page_request.app.id))
    active = [key for key in keys if key.status(now_ms) is KeyStatus.ACTIVE]
    tokens = [(key, key.status(now_ms)) for key in reversed(minted)]
    rates = await read_app_rates_view(tools, page_request)
    return await tools.page(
        page_request, "settings/app.html", 400 if typed.wrong else 200,
        app=page_request.app, keys=active, minted=tokens[:20], lives=TOKEN_LIFETIMES, shown=shown,
        values=typed.values, wrong=typed.wrong, rates=rates,
        is_administrator=tools.is_administrator(page_request),
        most_keys=MAX_ADDITIONAL_KEYS, most_minted=MAX_MINTED_TOKENS,
        active_minted=sum(status is KeyStatus.ACTIVE for _, status in tokens),
    )  # fmt: skip


def _read_keys(connection: Connection, *, app_id: str) -> tuple[list[AppKey], list[AppKey]]:
    """Return additional keys and minted tokens, including expired and revoked ones."""
    return (list_app_keys(connection, app_id, minted=False), list_app_keys(connection, app_id, minted=True))


_LIFETIME_MARGIN_MS: Final = 30_000
"""Added to a lifetime of one hour, so that it is not shorter when the API checks it."""
_SETTINGS_PATH: Final = "/apps/{app_id}/settings"

APP_ACTIONS: Final = (  # the path names the key
    # path, name, call, page, notice
    ActionRow(
        _SETTINGS_PATH + "/keys/{key_id}/revoke",
        does="revoke an additional app key",
        call="DELETE /partner/app/{app_id}/apikey/{key_id}",
        page=_SETTINGS_PATH,
        notice="Key revoked.",
        missing="The app has no such key.",
    ),
    ActionRow(
        _SETTINGS_PATH + "/tokens/{key_id}/revoke",
        does="revoke an app token that expires",
        call="POST /partner/app/{app_id}/token/revoke",
        page=_SETTINGS_PATH,
        notice="Token revoked.",
        body=lambda fields: {"id": fields["key_id"]},
        missing="The app has no such token.",
    ),
)


async def change_app(tools: PageTools, page_request: PageRequest) -> Response:
    """Change the app's name and preferences. Source: facts 2, `PUT /partner/app/{appId}`."""
    name = (await page_request.field("name")).strip()
    fields = {
        "name": name,
        "templateMessaging": _format_flag(await page_request.is_checked("template_messaging")),
        "disableOptinPrefUrl": _format_flag(await page_request.is_checked("disable_optin_pref_url")),
    }
    api = await tools.services.apis.partner(page_request.partner.id)
    try:
        if not name:
            return await app_page(
                tools, page_request, typed=RejectedForm({"name": ""}, {"name": "Enter a name for the app."})
            )
        await api.form("PUT", f"/partner/app/{page_request.app.id}", fields)
    except ApiResponseError as error:
        typed = RejectedForm({"name": name}, {"name": form_error(error)})
        return await app_page(tools, page_request, typed=typed)
    return tools.redirect(_settings_path(page_request), "App updated.")


async def delete_app(tools: PageTools, page_request: PageRequest) -> Response:
    """Delete a sandbox app with everything that belongs to it, if its name was typed."""
    typed = (await page_request.field("typed")).strip()
    if typed != page_request.app.name:
        wrong = {"typed": f"Enter {page_request.app.name} to delete the app."}
        return await app_page(tools, page_request, typed=RejectedForm({"typed": typed}, wrong))
    api = await tools.services.apis.partner(page_request.partner.id)
    await api.form("DELETE", f"/partner/app/{page_request.app.id}", {})
    return tools.redirect("/settings/apps", f"App {page_request.app.name} deleted.")


async def show_token(tools: PageTools, page_request: PageRequest) -> Response:
    """Show the app token; it is derived, so it can be shown again. Source: facts 1.4."""
    api = await tools.services.apis.partner(page_request.partner.id)
    response = await api.json("GET", f"/partner/app/{page_request.app.id}/token")
    return await app_page(tools, page_request, shown=ShownSecret("token", response["token"]["token"]))


async def renew_token(tools: PageTools, page_request: PageRequest) -> Response:
    """Revoke the app token immediately, and show its replacement."""
    response = await tools.services.apis.admin.json("POST", f"/admin/apps/{page_request.app.id}/token/revoke", {})
    notice = "The previous app token is revoked."
    return await app_page(tools, page_request, shown=ShownSecret("token", response["app_token"], notice))


async def set_rate(tools: PageTools, page_request: PageRequest) -> Response:
    """Give the app a rate of its own, which applies at once."""
    values = {name: (await page_request.field(name)).strip() for name in ("rate", "requests", "period_s")}
    wrong = {
        name: f"Enter a number from 1 to {maximum}."
        for name, maximum in (("requests", MAX_REQUESTS), ("period_s", MAX_PERIOD_S))
        if not is_number_up_to(maximum, values[name])
    }
    if wrong:
        return await app_page(tools, page_request, typed=RejectedForm(values, wrong))
    name, text = values["rate"], f"{int(values['requests'])}/{int(values['period_s'])}s"
    try:
        await tools.services.apis.admin.json("PUT", rates_path(page_request), {"rates": {name: text}})
    except ApiResponseError as error:
        return await app_page(tools, page_request, typed=RejectedForm(values, {"requests": form_error(error)}))
    return _redirect_to_rates(tools, page_request, f"{name}: now {format_limit(name, text)}.")


async def reset_rate(tools: PageTools, page_request: PageRequest) -> Response:
    """Remove one of the app's own rates; the service's applies again."""
    name = await page_request.field("rate")
    await tools.services.apis.admin.json("PUT", rates_path(page_request), {"rates": {name: None}})
    return _redirect_to_rates(tools, page_request, f"{name}: the rate of the service applies again.")


async def reset_rates(tools: PageTools, page_request: PageRequest) -> Response:
    """Remove all of the app's own rates."""
    await tools.services.apis.admin.json("PUT", rates_path(page_request), {"reset": True})
    return _redirect_to_rates(tools, page_request, "The rates of the service apply again.")


async def make_key(tools: PageTools, page_request: PageRequest) -> Response:
    """Create an additional key, and show it once. Source: facts 1.4."""
    name = (await page_request.field("key_name")).strip()
    if not name:
        wrong = {"key_name": "Enter a name for the key, such as where it is used."}
        return await app_page(tools, page_request, typed=RejectedForm({}, wrong))
    api = await tools.services.apis.partner(page_request.partner.id)
    try:
        response = await api.form("POST", f"/partner/app/{page_request.app.id}/apikey", {"name": name})
    except ApiResponseError as error:
        typed = RejectedForm({"key_name": name}, {"key_name": form_error(error)})
        return await app_page(tools, page_request, typed=typed)
    return await app_page(tools, page_request, shown=ShownSecret("key", response["apiKey"]["apiKey"]))


async def mint_token(tools: PageTools, page_request: PageRequest) -> Response:
    """Create an app token that expires, and show it once. Source: facts 1.5."""
    name, hours = (await page_request.field("token_name")).strip(), await page_request.field("hours", "24")
    if not name:
        wrong = {"token_name": "Enter a name for the token that no other active token has."}
        return await app_page(tools, page_request, typed=RejectedForm({"hours": hours}, wrong))
    life_ms = {"1": HOUR_MS + _LIFETIME_MARGIN_MS, "4": 4 * HOUR_MS, "12": 12 * HOUR_MS}.get(hours, 24 * HOUR_MS)
    fields = {"name": name, "expiry": str(tools.services.clock.now_ms() + life_ms)}
    api = await tools.services.apis.partner(page_request.partner.id)
    try:
        response = await api.form("POST", f"/partner/app/{page_request.app.id}/token", fields)
    except ApiResponseError as error:
        typed = RejectedForm({"token_name": name, "hours": hours}, {"token_name": form_error(error)})
        return await app_page(tools, page_request, typed=typed)
    return await app_page(tools, page_request, shown=ShownSecret("minted", response["token"]))


def _settings_path(page_request: PageRequest) -> str:
    return _SETTINGS_PATH.format(app_id=page_request.app.id)


def _redirect_to_rates(tools: PageTools, page_request: PageRequest, notice: str) -> Response:
    return tools.redirect(_settings_path(page_request) + "#rates", notice)


def _format_flag(flag: bool) -> str:
    return "true" if flag else "false"
