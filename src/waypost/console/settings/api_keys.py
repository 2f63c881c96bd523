"""API keys of the account: they open the messaging API for every app of the partner."""

from typing import Final
from urllib.parse import quote

from starlette.responses import Response

from waypost.console.desk import Desk
from waypost.console.settings.refusals import known_or
from waypost.console.visit import Visit
from waypost.store.credentials import CredentialKind, credentials_of

PATH: Final = "/settings/keys"
LONGEST_NAME: Final = 100


async def show_keys(desk: Desk, visit: Visit) -> Response:
    """By their ids; none is shown twice."""
    return await _page(desk, visit)


async def make_key(desk: Desk, visit: Visit) -> Response:
    """Make one, and show it on the answer."""
    name = (await visit.field("name")).strip()
    if not 1 <= len(name) <= LONGEST_NAME:
        said = f"Give a name of 1 to {LONGEST_NAME} characters, such as where the key is used."
        return await _page(desk, visit, name=name, wrong=said)
    told = await desk.parts.doors.admin.json("POST", f"/admin/partners/{visit.partner.id}/api-keys", {"name": name})
    return await _page(desk, visit, made=told["api_key"])


async def revoke_key(desk: Desk, visit: Visit) -> Response:
    """Revoke one at once."""
    key_id = str(visit.path["key_id"])
    with known_or("You have no such API key."):
        await desk.parts.doors.admin.json(
            "DELETE", f"/admin/partners/{visit.partner.id}/api-keys/{quote(key_id, safe='')}"
        )
    return desk.go(PATH, f"The API key {key_id[:8]} is revoked; it opens nothing any more.")


async def _page(desk: Desk, visit: Visit, *, made: str = "", name: str = "", wrong: str = "") -> Response:
    keys = await desk.parts.database.read(credentials_of, CredentialKind.API_KEY, visit.partner.id)
    return await desk.page(
        visit, "settings/keys.html", 400 if wrong else 200,
        keys=list(reversed(keys)), made=made, typed=name, wrong=wrong,
        address=desk.parts.public_url,
    )  # fmt: skip
