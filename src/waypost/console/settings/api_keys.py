"""API keys of the account: credentials of the messaging API for every app of the partner."""

from typing import Final

from starlette.responses import Response

from waypost.console.actions import ActionRow
from waypost.console.page_tools import PageTools
from waypost.console.web.page_request import PageRequest
from waypost.store.accounts.credentials import CredentialKind, credentials_of

PATH: Final = "/settings/keys"
LONGEST_NAME: Final = 100
REVOKE: Final = ActionRow(
    f"{PATH}/{{key_id}}/revoke", "revoke a key", "DELETE /admin/partners/{partner_id}/api-keys/{key_id}",
    PATH, "API key {key_id:.8} revoked.", missing="You have no such API key.",
)  # fmt: skip


async def show_keys(desk: PageTools, visit: PageRequest) -> Response:
    """List the keys by id; no key is shown a second time."""
    return await _page(desk, visit)


async def make_key(desk: PageTools, visit: PageRequest) -> Response:
    """Create a key, and show it on the response."""
    name = (await visit.field("name")).strip()
    if not 1 <= len(name) <= LONGEST_NAME:
        wrong = f"Enter a name of 1 to {LONGEST_NAME} characters, such as where the key is used."
        return await _page(desk, visit, name=name, wrong=wrong)
    response = await desk.parts.apis.admin.json("POST", f"/admin/partners/{visit.partner.id}/api-keys", {"name": name})
    return await _page(desk, visit, made=response["api_key"])


async def _page(desk: PageTools, visit: PageRequest, *, made: str = "", name: str = "", wrong: str = "") -> Response:
    keys = await desk.parts.database.read(credentials_of, CredentialKind.API_KEY, visit.partner.id)
    return await desk.page(
        visit, "settings/keys.html", 400 if wrong else 200,
        keys=list(reversed(keys)), made=made, typed=name, wrong=wrong,
        address=desk.parts.public_url,
    )  # fmt: skip
