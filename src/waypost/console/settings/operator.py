"""Who carries the partner's apps: the simulator or the Cloud API; whether that works, and how to switch."""

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
    """An operator account as far as it carries the partner's apps; no secret of it.

    Attributes:
        kind: of operator.
        version: of the operator's interface; None: its accounts have none.
        app_id: the operator's id of our app; None: it has none.
        is_simulator: it is on this machine.
        business_accounts: the partner's own, each with its apps.
        last_call_ms: when it last called us. None: not lately, or it carries others' too.
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
    """Each operator account of the partner's; with `look` what a health check has found."""
    accounts = await _accounts(desk)
    is_dev = desk.parts.demo_partner_id is not None
    carriers = [one for one in [await _carrier(desk, visit, a) for a in accounts] if one]
    findings = await _findings(desk, visit) if visit.query("look") else None
    connected = {app["id"] for one in carriers for b in one.business_accounts for app in b["apps"]}
    return await desk.page(
        visit, "settings/operator.html",
        carriers=carriers, findings=findings, is_dev=is_dev,
        choices=[(one["id"], one["id"]) for one in accounts] if is_dev else [],
        without=[app for app in visit.apps if app.id not in connected],
    )  # fmt: skip


async def switch_app(desk: PageTools, visit: PageRequest) -> Response:
    """Have another operator account carry the app's business account; at a demonstration only.

    Anywhere else it is the administrator's: operator accounts are not a partner's.
    """
    if desk.parts.demo_partner_id is None:
        raise NotThere("The administrator switches operators: waypost app operator.")
    wish = {
        "operator_account_id": await visit.field("operator_account_id"),
        "submit_templates": await visit.flag("submit_templates"),
    }
    told = await desk.parts.apis.admin.json("PUT", f"/admin/apps/{visit.app.id}/operator", wish)
    missing = len(told["templates_missing"])
    return desk.go(
        "/settings/operator",
        f"{told['operator_account_id']} carries {visit.app.name} now.",
        remedy=f"It does not have {missing} of your templates." if missing else "",
        kind="warn" if missing else "good",
    )


async def _accounts(desk: PageTools) -> list[dict[str, Any]]:
    told = await desk.parts.apis.admin.json("GET", "/admin/operator-accounts")
    return told["operator_accounts"]


async def _carrier(desk: PageTools, visit: PageRequest, account: dict[str, Any]) -> Carrier | None:
    everybodys = account["business_accounts"]
    own = [one for one in everybodys if one["partner_id"] == visit.partner.id]
    if not own:
        return None
    is_sole = len(own) == len(everybodys)
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
        return [{"about": "the check", "state": "wrong", "text": str(error), "remedy": "Try again in a moment."}]


def _is_local(base_url: str) -> bool:
    try:
        host = urlsplit(base_url).hostname or ""
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
