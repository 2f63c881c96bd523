"""Errors at a form field: those of an API that are about it, and the check of a number."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from starlette.responses import Response

from waypost.base.clock import HOUR_MS
from waypost.client.api_client import ApiResponseError
from waypost.console.actions import ActionRow
from waypost.console.page_request import PageRequest
from waypost.console.web.forms import parse_number
from waypost.domain.app import MAX_ADDITIONAL_KEYS, MAX_MINTED_TOKENS, KeyStatus
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
    number = parse_number(text, max_digits=len(str(maximum)))
    return number is not None and minimum <= number <= maximum


MIN_APP_NAME_CHARS: Final = 6
MAX_APP_NAME_CHARS: Final = 150


async def show_apps(request: PageRequest, *, typed: str = "", wrong: str = "") -> Response:
    """List the apps, each with its number and whether it is live; with a rejected name and what is wrong with it."""
    return await request.page(
        "settings/apps.html", 400 if wrong else 200,
        typed=typed, wrong=wrong, shortest=MIN_APP_NAME_CHARS, longest=MAX_APP_NAME_CHARS,
    )  # fmt: skip


async def create_app(request: PageRequest) -> Response:
    """Create a sandbox app; the administrator connects a number and makes it live. Source: facts 2."""
    name = (await request.field("name")).strip()
    api = await request.partner_api()
    try:
        response = await api.form("POST", "/partner/app", {"name": name})
    except ApiResponseError as error:
        return await show_apps(request, typed=name, wrong=form_error(error))
    hint = "It is a sandbox app. The administrator connects it to a number and makes it live."
    return request.redirect(f"/apps/{response['appId']}/settings", f"App {name} created.", hint=hint)


RATE_SOURCES: Final = {  # source in the response of the API: the text and the state of its badge
    "documented": ("documented", "default"),
    "setting": ("setting", "setting"),
    "app": ("this app", "of this app"),
}
_UNITS: Final = {1: "second", 60: "minute", 3600: "hour", 86_400: "day"}


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


TOKEN_LIFETIMES: Final = (("24", "in 24 hours"), ("12", "in 12 hours"), ("4", "in 4 hours"), ("1", "in 1 hour"))
"""Lifetimes of minted tokens. Source: facts 1.5."""


async def show_app(
    request: PageRequest, *, values: Mapping[str, str] = {}, wrong: Mapping[str, str] = {}, **shown: str
) -> Response:
    """Return the page, with a rejected form or a secret that is shown once where given.

    Args:
        values: of the form as typed.
        wrong: its errors by field.
        shown: `token`, `key` or `minted`; `notice`: a sentence above a token.
    """
    now_ms, app = request.now_ms(), request.app
    keys, minted = [await request.read(partial(list_app_keys, minted=is_minted), app.id) for is_minted in (False, True)]
    tokens = [(key, key.status(now_ms)) for key in reversed(minted)]
    contact = None
    if app.preferences.contact_email and request.is_administrator:  # the link is for whoever would get the mail
        contact = await request.admin("GET /admin/apps/{app_id}/contact-email", app_id=app.id)
    rates = await request.admin("GET /admin/apps/{app_id}/rates", app_id=app.id)
    return await request.page(
        "settings/app.html", 400 if wrong else 200,
        app=app, keys=[key for key in keys if key.status(now_ms) is KeyStatus.ACTIVE],
        minted=tokens[:20], lives=TOKEN_LIFETIMES, shown=shown, values=values, wrong=wrong,
        rates=rates, sources=RATE_SOURCES, format_limit=format_limit,
        most_keys=MAX_ADDITIONAL_KEYS, most_minted=MAX_MINTED_TOKENS,
        contact=contact, active_minted=sum(status is KeyStatus.ACTIVE for _, status in tokens),
    )  # fmt: skip


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


async def change_app(request: PageRequest) -> Response:
    """Change the app's name and preferences. Source: facts 2, `PUT /partner/app/{appId}`."""
    name = (await request.field("name")).strip()
    if not name:
        return await show_app(request, values={"name": ""}, wrong={"name": "Enter a name for the app."})
    flags = {"templateMessaging": "template_messaging", "disableOptinPrefUrl": "disable_optin_pref_url"}
    fields = {wire: str(await request.is_checked(field)).lower() for wire, field in flags.items()}
    api = await request.partner_api()
    try:
        await api.form("PUT", f"/partner/app/{request.app.id}", {"name": name, **fields})
    except ApiResponseError as error:
        return await show_app(request, values={"name": name}, wrong={"name": form_error(error)})
    return request.redirect(_settings_path(request), "App updated.")


async def delete_app(request: PageRequest) -> Response:
    """Delete a sandbox app with everything that belongs to it, if its name was typed."""
    typed = (await request.field("typed")).strip()
    if typed != request.app.name:
        wrong = {"typed": f"Enter {request.app.name} to delete the app."}
        return await show_app(request, values={"typed": typed}, wrong=wrong)
    api = await request.partner_api()
    await api.form("DELETE", f"/partner/app/{request.app.id}", {})
    return request.redirect("/settings/apps", f"App {request.app.name} deleted.")


async def show_token(request: PageRequest) -> Response:
    """Show the app token; it is derived, so it can be shown again. Source: facts 1.4."""
    api = await request.partner_api()
    response = await api.json("GET", f"/partner/app/{request.app.id}/token")
    return await show_app(request, token=response["token"]["token"])


async def renew_token(request: PageRequest) -> Response:
    """Revoke the app token immediately, and show its replacement."""
    operation = "POST /admin/apps/{app_id}/token/revoke"
    response = await request.admin(operation, app_id=request.app.id)
    notice = "The previous app token is revoked."
    return await show_app(request, token=response["app_token"], notice=notice)


async def set_rate(request: PageRequest) -> Response:
    """Give the app a rate of its own, which applies at once."""
    values = {name: (await request.field(name)).strip() for name in ("rate", "requests", "period_s")}
    wrong = {
        name: f"Enter a number from 1 to {maximum}."
        for name, maximum in (("requests", MAX_REQUESTS), ("period_s", MAX_PERIOD_S))
        if not is_number_up_to(maximum, values[name])
    }
    if wrong:
        return await show_app(request, values=values, wrong=wrong)
    name, text = values["rate"], f"{int(values['requests'])}/{int(values['period_s'])}s"
    try:
        await _put_rates(request, rates={name: text})
    except ApiResponseError as error:
        return await show_app(request, values=values, wrong={"requests": form_error(error)})
    return request.redirect(_settings_path(request) + "#rates", f"{name}: now {format_limit(name, text)}.")


async def reset_rate(request: PageRequest) -> Response:
    """Remove one of the app's own rates; the service's applies again."""
    name = await request.field("rate")
    await _put_rates(request, rates={name: None})
    notice = f"{name}: the rate of the service applies again."
    return request.redirect(_settings_path(request) + "#rates", notice)


async def reset_rates(request: PageRequest) -> Response:
    """Remove all of the app's own rates."""
    await _put_rates(request, reset=True)
    return request.redirect(_settings_path(request) + "#rates", "The rates of the service apply again.")


async def _put_rates(request: PageRequest, **fields: Any) -> None:
    await request.admin("PUT /admin/apps/{app_id}/rates", app_id=request.app.id, **fields)


async def make_key(request: PageRequest) -> Response:
    """Create an additional key, and show it once. Source: facts 1.4."""
    name = (await request.field("key_name")).strip()
    if not name:
        wrong = {"key_name": "Enter a name for the key, such as where it is used."}
        return await show_app(request, wrong=wrong)
    api = await request.partner_api()
    try:
        response = await api.form("POST", f"/partner/app/{request.app.id}/apikey", {"name": name})
    except ApiResponseError as error:
        return await show_app(request, values={"key_name": name}, wrong={"key_name": form_error(error)})
    return await show_app(request, key=response["apiKey"]["apiKey"])


async def mint_token(request: PageRequest) -> Response:
    """Create an app token that expires, and show it once. Source: facts 1.5."""
    name, hours = (await request.field("token_name")).strip(), await request.field("hours", "24")
    if not name:
        wrong = {"token_name": "Enter a name for the token that no other active token has."}
        return await show_app(request, values={"hours": hours}, wrong=wrong)
    life_ms = {"1": HOUR_MS + _LIFETIME_MARGIN_MS, "4": 4 * HOUR_MS, "12": 12 * HOUR_MS}.get(hours, 24 * HOUR_MS)
    fields = {"name": name, "expiry": str(request.now_ms() + life_ms)}
    api = await request.partner_api()
    try:
        response = await api.form("POST", f"/partner/app/{request.app.id}/token", fields)
    except ApiResponseError as error:
        values, wrong = {"token_name": name, "hours": hours}, {"token_name": form_error(error)}
        return await show_app(request, values=values, wrong=wrong)
    return await show_app(request, minted=response["token"])


def _settings_path(request: PageRequest) -> str:
    return _SETTINGS_PATH.format(app_id=request.app.id)
