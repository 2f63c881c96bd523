"""The operator page: the operator accounts of the partner's apps, and a health check."""

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlencode, urlsplit

from starlette.responses import Response

from waypost.client.api_client import ApiResponseError, ApiUnreachable
from waypost.console.page_tools import PageTools
from waypost.console.web.page_request import PageRequest
from waypost.store.console.overview import last_webhook_ms


@dataclass(frozen=True, slots=True)
class PartnerOperatorAccount:
    """An operator account with the partner's business accounts, without secrets.

    Attributes:
        kind: of operator.
        version: of the operator's API; None: its accounts have none.
        app_id: the operator's id of our app; None: it has none.
        is_simulator: its base URL is on this machine.
        business_accounts: the partner's own, each with its apps.
        last_call_ms: last webhook from it. None: not recently, or it is shared with other partners.
    """

    id: str
    kind: str
    base_url: str
    version: str | None
    app_id: str | None
    callback_url: str
    is_simulator: bool
    business_accounts: list[dict[str, Any]]
    last_call_ms: int | None


async def show_operator(tools: PageTools, page_request: PageRequest) -> Response:
    """Return the partner's operator accounts; with `check` in the query also the results of a health check."""
    accounts = await list_accounts(tools)
    is_dev = tools.services.demo_partner_id is not None
    operator_accounts = [
        one for one in [await _partner_account(tools, page_request, account) for account in accounts] if one
    ]
    query = {"partner_id": page_request.partner.id}
    results = await run_doctor(tools, query) if page_request.query("check") else None
    connected = {
        app["id"]
        for one in operator_accounts
        for business_account in one.business_accounts
        for app in business_account["apps"]
    }
    return await tools.page(
        page_request, "settings/operator.html",
        operator_accounts=operator_accounts, results=results, is_dev=is_dev,
        without=[app for app in page_request.apps if app.id not in connected],
    )  # fmt: skip


async def list_accounts(tools: PageTools) -> list[dict[str, Any]]:
    """Return every operator account as the admin API shows it, without secrets."""
    response = await tools.services.apis.admin.json("GET", "/admin/operator-accounts")
    return response["operator_accounts"]


async def _partner_account(
    tools: PageTools, page_request: PageRequest, account: dict[str, Any]
) -> PartnerOperatorAccount | None:
    business_accounts = account["business_accounts"]
    own = [one for one in business_accounts if one["partner_id"] == page_request.partner.id]
    if not own:
        return None
    is_sole = len(own) == len(business_accounts)
    read = tools.services.database.read
    return PartnerOperatorAccount(
        account["id"],
        account["kind"],
        account["base_url"],
        account.get("version"),
        account.get("app_id"),
        account["callback_url"],
        is_local(account["base_url"]),
        own,
        await read(last_webhook_ms, account["id"]) if is_sole else None,
    )


async def run_doctor(tools: PageTools, query: Mapping[str, str | int]) -> list[dict[str, Any]]:
    """Return the results of the doctor's checks that a query selects; an error is a result too."""
    path = f"/admin/doctor?{urlencode(query)}"
    try:
        return (await tools.services.apis.admin.json("GET", path))["results"]
    except (ApiResponseError, ApiUnreachable) as error:
        return [{"subject": "Health check", "state": "wrong", "text": str(error), "fix_hint": "Try again in a moment."}]


def is_local(base_url: str) -> bool:
    """True if a base URL is on this machine: then it is a simulator's."""
    try:
        host = urlsplit(base_url).hostname or ""
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
