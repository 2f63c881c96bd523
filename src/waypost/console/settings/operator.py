"""The operator page: the operator accounts of the partner's apps, a health check, and switching."""

from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from starlette.responses import Response

from waypost.client.api_client import ApiResponseError, NotReached
from waypost.console.page_tools import PageTools
from waypost.console.web.not_found import NotThere
from waypost.console.web.page_request import PageRequest
from waypost.store.console.overview import last_call_of


@dataclass(frozen=True, slots=True)
class Carrier:
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


async def show_operator(desk: PageTools, visit: PageRequest) -> Response:
    """Return the partner's operator accounts; with `check` in the query also the results of a health check."""
    accounts = await _accounts(desk)
    is_dev = desk.parts.demo_partner_id is not None
    operator_accounts = [one for one in [await _carrier(desk, visit, account) for account in accounts] if one]
    results = await _findings(desk, visit) if visit.query("check") else None
    connected = {
        app["id"]
        for one in operator_accounts
        for business_account in one.business_accounts
        for app in business_account["apps"]
    }
    return await desk.page(
        visit, "settings/operator.html",
        operator_accounts=operator_accounts, results=results, is_dev=is_dev,
        choices=[(account["id"], account["id"]) for account in accounts] if is_dev else [],
        without=[app for app in visit.apps if app.id not in connected],
    )  # fmt: skip


async def switch_app(desk: PageTools, visit: PageRequest) -> Response:
    """Assign the app's business account to another operator account; in a demonstration only.

    Elsewhere only the administrator may: operator accounts do not belong to a partner.
    """
    if desk.parts.demo_partner_id is None:
        raise NotThere("Only the administrator can switch operators: waypost app operator.")
    body = {
        "operator_account_id": await visit.field("operator_account_id"),
        "submit_templates": await visit.flag("submit_templates"),
    }
    response = await desk.parts.apis.admin.json("PUT", f"/admin/apps/{visit.app.id}/operator", body)
    missing = len(response["templates_missing"])
    return desk.go(
        "/settings/operator",
        f"{visit.app.name} now uses operator account {response['operator_account_id']}.",
        remedy=f"{missing} of your templates do not exist there." if missing else "",
        kind="warn" if missing else "good",
    )


async def _accounts(desk: PageTools) -> list[dict[str, Any]]:
    response = await desk.parts.apis.admin.json("GET", "/admin/operator-accounts")
    return response["operator_accounts"]


async def _carrier(desk: PageTools, visit: PageRequest, account: dict[str, Any]) -> Carrier | None:
    business_accounts = account["business_accounts"]
    own = [one for one in business_accounts if one["partner_id"] == visit.partner.id]
    if not own:
        return None
    is_sole = len(own) == len(business_accounts)
    read = desk.parts.database.read
    return Carrier(
        account["id"],
        account["kind"],
        account["base_url"],
        account.get("version"),
        account.get("app_id"),
        account["callback_url"],
        _is_local(account["base_url"]),
        own,
        await read(last_call_of, account["id"]) if is_sole else None,
    )


async def _findings(desk: PageTools, visit: PageRequest) -> list[dict[str, Any]]:
    path = f"/admin/doctor?partner_id={visit.partner.id}"
    try:
        return (await desk.parts.apis.admin.json("GET", path))["findings"]
    except (ApiResponseError, NotReached) as error:
        return [{"about": "Health check", "state": "wrong", "text": str(error), "remedy": "Try again in a moment."}]


def _is_local(base_url: str) -> bool:
    try:
        host = urlsplit(base_url).hostname or ""
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
