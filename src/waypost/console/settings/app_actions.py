"""What is done to one app and its credentials, through the doors that scripts use too."""

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
"""An hour must not have become less than one by the time the door looks."""
_PAGE: Final = "/apps/{app_id}/settings"

# fmt: off
ACTIONS: Final = (  # the address names the key
    #         path                                does          call                                            page   said
    ActionRow(_PAGE + "/keys/{key_id}/revoke",    "revoke one", "DELETE /partner/app/{app_id}/apikey/{key_id}", _PAGE, "The key is revoked; it opens nothing any more.", missing="The app has no such key."),
    ActionRow(_PAGE + "/tokens/{key_id}/revoke",  "revoke one", "POST /partner/app/{app_id}/token/revoke",      _PAGE, "The token is revoked; it opens nothing any more.",
              body=lambda fields: {"id": fields["key_id"]}, missing="The app has no such token."),
)
# fmt: on


async def change_app(desk: PageTools, visit: PageRequest) -> Response:
    """Change its name and preferences. Source: facts 2, `PUT /partner/app/{appId}`."""
    name = (await visit.field("name")).strip()
    fields = {
        "name": name,
        "templateMessaging": _word(await visit.flag("template_messaging")),
        "disableOptinPrefUrl": _word(await visit.flag("disable_optin_pref_url")),
    }
    door = await desk.parts.apis.partner(visit.partner.id)
    try:
        if not name:
            return await app_page(desk, visit, typed=Typed({"name": ""}, {"name": "Give the app a name."}))
        await door.form("PUT", f"/partner/app/{visit.app.id}", fields)
    except ApiResponseError as refused:
        typed = Typed({"name": name}, {"name": words_of(refused)})
        return await app_page(desk, visit, typed=typed)
    return desk.go(_page_of(visit), "The app is changed.")


async def delete_app(desk: PageTools, visit: PageRequest) -> Response:
    """Delete a sandbox app with what belongs to it, once its name has been typed."""
    typed = (await visit.field("typed")).strip()
    if typed != visit.app.name:
        wrong = {"typed": f"Type {visit.app.name} to delete the app."}
        return await app_page(desk, visit, typed=Typed({"typed": typed}, wrong))
    door = await desk.parts.apis.partner(visit.partner.id)
    await door.form("DELETE", f"/partner/app/{visit.app.id}", {})
    return desk.go("/settings/apps", f"The app {visit.app.name} is deleted.")


async def show_token(desk: PageTools, visit: PageRequest) -> Response:
    """Show the app token: it is derived, so that it can be shown again. Source: facts 1.4."""
    door = await desk.parts.apis.partner(visit.partner.id)
    told = await door.json("GET", f"/partner/app/{visit.app.id}/token")
    return await app_page(desk, visit, shown=Shown("token", told["token"]["token"]))


async def renew_token(desk: PageTools, visit: PageRequest) -> Response:
    """Revoke the app token at once, and show the next one."""
    told = await desk.parts.apis.admin.json("POST", f"/admin/apps/{visit.app.id}/token/revoke", {})
    said = "The app token before this one opens nothing any more."
    return await app_page(desk, visit, shown=Shown("token", told["app_token"], said))


async def make_key(desk: PageTools, visit: PageRequest) -> Response:
    """Make a second key, and show it this once. Source: facts 1.4."""
    name = (await visit.field("key_name")).strip()
    if not name:
        wrong = {"key_name": "Give the key a name, such as where it is used."}
        return await app_page(desk, visit, typed=Typed({}, wrong))
    door = await desk.parts.apis.partner(visit.partner.id)
    try:
        told = await door.form("POST", f"/partner/app/{visit.app.id}/apikey", {"name": name})
    except ApiResponseError as refused:
        typed = Typed({"key_name": name}, {"key_name": words_of(refused)})
        return await app_page(desk, visit, typed=typed)
    return await app_page(desk, visit, shown=Shown("key", told["apiKey"]["apiKey"]))


async def mint_token(desk: PageTools, visit: PageRequest) -> Response:
    """Make an app token that expires, and show it this once. Source: facts 1.5."""
    name, hours = (await visit.field("token_name")).strip(), await visit.field("hours", "24")
    if not name:
        wrong = {"token_name": "Give the token a name; no two active ones may have the same."}
        return await app_page(desk, visit, typed=Typed({"hours": hours}, wrong))
    life_ms = {"1": HOUR_MS + _MARGIN_MS, "4": 4 * HOUR_MS, "12": 12 * HOUR_MS}.get(hours, 24 * HOUR_MS)
    fields = {"name": name, "expiry": str(desk.parts.clock.now_ms() + life_ms)}
    door = await desk.parts.apis.partner(visit.partner.id)
    try:
        told = await door.form("POST", f"/partner/app/{visit.app.id}/token", fields)
    except ApiResponseError as refused:
        typed = Typed({"token_name": name, "hours": hours}, {"token_name": words_of(refused)})
        return await app_page(desk, visit, typed=typed)
    return await app_page(desk, visit, shown=Shown("minted", told["token"]))


def _page_of(visit: PageRequest) -> str:
    return _PAGE.format(app_id=visit.app.id)


def _word(flag: bool) -> str:
    return "true" if flag else "false"
