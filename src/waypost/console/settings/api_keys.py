"""API keys of the account: credentials of the messaging API for every app of the partner."""

from typing import Final

from starlette.responses import Response

from waypost.console.actions import ActionRow
from waypost.console.page_tools import PageTools
from waypost.console.web.page_request import PageRequest
from waypost.store.accounts.credentials import CredentialKind, list_credentials

API_KEYS_PATH: Final = "/settings/keys"
MAX_KEY_NAME_CHARS: Final = 100
REVOKE_API_KEY: Final = ActionRow(
    f"{API_KEYS_PATH}/{{key_id}}/revoke", "revoke a key", "DELETE /admin/partners/{partner_id}/api-keys/{key_id}",
    API_KEYS_PATH, "API key {key_id:.8} revoked.", missing="You have no such API key.",
)  # fmt: skip


async def show_keys(tools: PageTools, page_request: PageRequest) -> Response:
    """List the keys by id; no key is shown a second time."""
    return await _page(tools, page_request)


async def make_key(tools: PageTools, page_request: PageRequest) -> Response:
    """Create a key, and show it on the response."""
    name = (await page_request.field("name")).strip()
    if not 1 <= len(name) <= MAX_KEY_NAME_CHARS:
        wrong = f"Enter a name of 1 to {MAX_KEY_NAME_CHARS} characters, such as where the key is used."
        return await _page(tools, page_request, name=name, wrong=wrong)
    response = await tools.services.apis.admin.json(
        "POST", f"/admin/partners/{page_request.partner.id}/api-keys", {"name": name}
    )
    return await _page(tools, page_request, made=response["api_key"])


async def _page(
    tools: PageTools, page_request: PageRequest, *, made: str = "", name: str = "", wrong: str = ""
) -> Response:
    keys = await tools.services.database.read(list_credentials, CredentialKind.API_KEY, page_request.partner.id)
    return await tools.page(
        page_request, "settings/keys.html", 400 if wrong else 200,
        keys=list(reversed(keys)), made=made, typed=name, wrong=wrong,
        address=tools.services.public_url,
    )  # fmt: skip
