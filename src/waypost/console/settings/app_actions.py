"""Actions on one app and its credentials, through the APIs that scripts use too."""

from typing import Final

from starlette.responses import Response

from waypost.base.clock import HOUR_MS
from waypost.client.api_client import ApiResponseError
from waypost.console.actions import ActionRow
from waypost.console.page_tools import PageTools
from waypost.console.settings.app import Shown, Typed, app_page
from waypost.console.settings.field_errors import words_of
from waypost.console.web.page_request import PageRequest

_MARGIN_MS: Final = 30_000
"""Added to a lifetime of one hour, so that it is not shorter when the API checks it."""
_PAGE: Final = "/apps/{app_id}/settings"

# fmt: off
ACTIONS: Final = (  # the path names the key
    #         path                                does          call                                            page   said
    ActionRow(_PAGE + "/keys/{key_id}/revoke",    "revoke a key", "DELETE /partner/app/{app_id}/apikey/{key_id}", _PAGE, "Key revoked.", missing="The app has no such key."),
    ActionRow(_PAGE + "/tokens/{key_id}/revoke",  "revoke a token", "POST /partner/app/{app_id}/token/revoke",      _PAGE, "Token revoked.",
              body=lambda fields: {"id": fields["key_id"]}, missing="The app has no such token."),
)
# fmt: on


async def change_app(desk: PageTools, visit: PageRequest) -> Response:
    """Change the app's name and preferences. Source: facts 2, `PUT /partner/app/{appId}`."""
    name = (await visit.field("name")).strip()
    fields = {
        "name": name,
        "templateMessaging": _word(await visit.flag("template_messaging")),
        "disableOptinPrefUrl": _word(await visit.flag("disable_optin_pref_url")),
    }
    api = await desk.parts.apis.partner(visit.partner.id)
    try:
        if not name:
            return await app_page(desk, visit, typed=Typed({"name": ""}, {"name": "Enter a name for the app."}))
        await api.form("PUT", f"/partner/app/{visit.app.id}", fields)
    except ApiResponseError as error:
        typed = Typed({"name": name}, {"name": words_of(error)})
        return await app_page(desk, visit, typed=typed)
    return desk.go(_page_of(visit), "App updated.")


async def delete_app(desk: PageTools, visit: PageRequest) -> Response:
    """Delete a sandbox app with everything that belongs to it, if its name was typed."""
    typed = (await visit.field("typed")).strip()
    if typed != visit.app.name:
        wrong = {"typed": f"Enter {visit.app.name} to delete the app."}
        return await app_page(desk, visit, typed=Typed({"typed": typed}, wrong))
    api = await desk.parts.apis.partner(visit.partner.id)
    await api.form("DELETE", f"/partner/app/{visit.app.id}", {})
    return desk.go("/settings/apps", f"App {visit.app.name} deleted.")


async def show_token(desk: PageTools, visit: PageRequest) -> Response:
    """Show the app token; it is derived, so it can be shown again. Source: facts 1.4."""
    api = await desk.parts.apis.partner(visit.partner.id)
    response = await api.json("GET", f"/partner/app/{visit.app.id}/token")
    return await app_page(desk, visit, shown=Shown("token", response["token"]["token"]))


async def renew_token(desk: PageTools, visit: PageRequest) -> Response:
    """Revoke the app token immediately, and show its replacement."""
    response = await desk.parts.apis.admin.json("POST", f"/admin/apps/{visit.app.id}/token/revoke", {})
    notice = "The previous app token is revoked."
    return await app_page(desk, visit, shown=Shown("token", response["app_token"], notice))


async def make_key(desk: PageTools, visit: PageRequest) -> Response:
    """Create an additional key, and show it once. Source: facts 1.4."""
    name = (await visit.field("key_name")).strip()
    if not name:
        wrong = {"key_name": "Enter a name for the key, such as where it is used."}
        return await app_page(desk, visit, typed=Typed({}, wrong))
    api = await desk.parts.apis.partner(visit.partner.id)
    try:
        response = await api.form("POST", f"/partner/app/{visit.app.id}/apikey", {"name": name})
    except ApiResponseError as error:
        typed = Typed({"key_name": name}, {"key_name": words_of(error)})
        return await app_page(desk, visit, typed=typed)
    return await app_page(desk, visit, shown=Shown("key", response["apiKey"]["apiKey"]))


async def mint_token(desk: PageTools, visit: PageRequest) -> Response:
    """Create an app token that expires, and show it once. Source: facts 1.5."""
    name, hours = (await visit.field("token_name")).strip(), await visit.field("hours", "24")
    if not name:
        wrong = {"token_name": "Enter a name for the token that no other active token has."}
        return await app_page(desk, visit, typed=Typed({"hours": hours}, wrong))
    life_ms = {"1": HOUR_MS + _MARGIN_MS, "4": 4 * HOUR_MS, "12": 12 * HOUR_MS}.get(hours, 24 * HOUR_MS)
    fields = {"name": name, "expiry": str(desk.parts.clock.now_ms() + life_ms)}
    api = await desk.parts.apis.partner(visit.partner.id)
    try:
        response = await api.form("POST", f"/partner/app/{visit.app.id}/token", fields)
    except ApiResponseError as error:
        typed = Typed({"token_name": name, "hours": hours}, {"token_name": words_of(error)})
        return await app_page(desk, visit, typed=typed)
    return await app_page(desk, visit, shown=Shown("minted", response["token"]))


def _page_of(visit: PageRequest) -> str:
    return _PAGE.format(app_id=visit.app.id)


def _word(flag: bool) -> str:
    return "true" if flag else "false"
