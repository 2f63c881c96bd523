"""Actions on one app and its credentials, through the APIs that scripts use too."""

from typing import Final

from starlette.responses import Response

from waypost.base.clock import HOUR_MS
from waypost.client.api_client import ApiResponseError
from waypost.console.actions import ActionRow
from waypost.console.page_tools import PageTools
from waypost.console.settings.app import RejectedForm, ShownSecret, app_page
from waypost.console.settings.app_rates import format_limit, rates_path
from waypost.console.settings.field_errors import form_error, is_number_up_to
from waypost.console.web.page_request import PageRequest
from waypost.domain.rates import MAX_PERIOD_S, MAX_REQUESTS

_LIFETIME_MARGIN_MS: Final = 30_000
"""Added to a lifetime of one hour, so that it is not shorter when the API checks it."""
_SETTINGS_PATH: Final = "/apps/{app_id}/settings"

APP_ACTIONS: Final = (  # the path names the key
    # path, name, call, page, notice
    ActionRow(
        _SETTINGS_PATH + "/keys/{key_id}/revoke",
        does="revoke a key",
        call="DELETE /partner/app/{app_id}/apikey/{key_id}",
        page=_SETTINGS_PATH,
        notice="Key revoked.",
        missing="The app has no such key.",
    ),
    ActionRow(
        _SETTINGS_PATH + "/tokens/{key_id}/revoke",
        does="revoke a token",
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
