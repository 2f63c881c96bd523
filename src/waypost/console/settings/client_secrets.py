"""Client secrets: the passwords with which scripts log in to the API."""

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any, Final

from starlette.responses import Response

from waypost.base.clock import DAY_MS
from waypost.client.api_client import ApiResponseError
from waypost.console.actions import ActionRow
from waypost.console.page_tools import PageTools
from waypost.console.settings.field_errors import form_error
from waypost.console.web.page_request import PageRequest
from waypost.console.web.zones import DisplayZone
from waypost.store.accounts.credentials import CredentialKind, list_credentials

CLIENT_SECRETS_PATH: Final = "/settings/secrets"
EXPIRES_SOON_MS: Final = 14 * DAY_MS
SECRET_LIFETIMES: Final = (  # Source: facts 1.3; the vendor advises three months at most
    ("90", "in 90 days"),
    ("30", "in 30 days"),
    ("365", "in 1 year"),
    ("date", "on a date"),
    ("never", "never"),
)


async def show_secrets(tools: PageTools, page_request: PageRequest) -> Response:
    """List the secrets by id; no secret is shown a second time."""
    return await _page(tools, page_request)


async def make_secret(tools: PageTools, page_request: PageRequest) -> Response:
    """Create a secret, and show it on the response."""
    life = await page_request.field("life", "90")
    day = (await page_request.field("day")).strip()
    now_ms = tools.services.clock.now_ms()
    chosen = {"life": life, "day": day}
    if life == "date":
        expires_on_ms = _parse_day_end(day, page_request.zone)
        if expires_on_ms is None or expires_on_ms <= now_ms:
            wrong = {"day": "Enter a future date as YYYY-MM-DD."}
            return await _page(tools, page_request, chosen=chosen, wrong=wrong)
    elif life == "never":
        expires_on_ms = None
    elif life in dict(SECRET_LIFETIMES):
        expires_on_ms = now_ms + int(life) * DAY_MS
    else:
        return await _page(tools, page_request, chosen=chosen, wrong={"life": "Choose one of these options."})
    try:
        response = await tools.services.apis.admin.json(
            "POST", f"/admin/partners/{page_request.partner.id}/client-secrets", {"expires_on_ms": expires_on_ms}
        )
    except ApiResponseError as error:
        return await _page(tools, page_request, chosen=chosen, wrong={"life": form_error(error)})
    return await _page(tools, page_request, made=response["client_secret"])


def _revoked_tokens_notice(response: Mapping[str, Any]) -> str:
    revoked = int(response["tokens_ended"])
    if not revoked:
        return "It had no valid partner tokens."
    return f"{revoked} partner {'token' if revoked == 1 else 'tokens'} issued with it revoked."


REVOKE_CLIENT_SECRET: Final = ActionRow(
    f"{CLIENT_SECRETS_PATH}/{{secret_id}}/revoke",
    does="revoke a secret",
    call="DELETE /admin/partners/{partner_id}/client-secrets/{secret_id}",
    page=CLIENT_SECRETS_PATH,
    notice="Client secret {secret_id:.8} revoked.",
    hint=_revoked_tokens_notice,
    missing="You have no such client secret.",
)


def _parse_day_end(day: str, zone: DisplayZone) -> int | None:
    """Return the end of a day, in ms since the epoch; None if the text is not a date."""
    try:
        return zone.midnight_ms(date.fromisoformat(day) + timedelta(days=1))
    except (ValueError, OverflowError):
        return None


async def _page(
    tools: PageTools,
    page_request: PageRequest,
    *,
    made: str = "",
    chosen: dict[str, str] | None = None,
    wrong: dict[str, str] | None = None,
) -> Response:
    now_ms = tools.services.clock.now_ms()
    secrets = await tools.services.database.read(
        list_credentials, CredentialKind.CLIENT_SECRET, page_request.partner.id
    )
    return await tools.page(
        page_request, "settings/secrets.html", 400 if wrong else 200,
        secrets=[(secret, _secret_status(secret.expires_on_ms, now_ms)) for secret in reversed(secrets)],
        lives=SECRET_LIFETIMES, made=made, chosen=chosen or {"life": "90", "day": ""}, wrong=wrong or {},
    )  # fmt: skip


def _secret_status(expires_on_ms: int | None, now_ms: int) -> str:
    """Return the state of a secret, as its badge shows it."""
    if expires_on_ms is None:
        return "does not expire"
    if expires_on_ms <= now_ms:
        return "expired"
    return "expires soon" if expires_on_ms - now_ms < EXPIRES_SOON_MS else "valid"
