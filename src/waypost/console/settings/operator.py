"""The operator page: the operator accounts of the partner's apps, and a health check."""

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

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


_OWN_IDS = ("business_account_id", "phone_number_id")
"""Ids at the new operator account, if they differ from those that the app had there or has now."""


async def show_switch(tools: PageTools, page_request: PageRequest) -> Response:
    """Return the operator accounts to choose from; with `to` in the query also its checks, and what would change."""
    target = page_request.query("to")
    values = {name: page_request.query(name) for name in _OWN_IDS}
    return await _page(tools, page_request, target, values)


async def switch_app(tools: PageTools, page_request: PageRequest) -> Response:
    """Assign the app's business account to another operator account, if the app's name was typed."""
    target = await page_request.field("operator_account_id")
    values = {name: (await page_request.field(name)).strip() for name in _OWN_IDS}
    typed = (await page_request.field("typed")).strip()
    if typed != page_request.app.name:
        wrong = {"typed": f"Enter {page_request.app.name} to switch the app."}
        return await _page(tools, page_request, target, values, typed=typed, wrong=wrong)
    submits = await page_request.is_checked("submit_templates")
    try:
        result = await _switch(tools, page_request, target, values, submit_templates=submits)
    except ApiResponseError as error:
        return await _page(tools, page_request, target, values, typed=typed, wrong={"form": _describe(error)})
    problems = (
        [await _subscribe(tools, result["business_account_id"])] if await page_request.is_checked("subscribe") else []
    )
    missing = len(result["templates_missing"])
    problems.append(f"{missing} of its templates do not exist there." if missing else "")
    hint = " ".join(problem for problem in problems if problem)
    return tools.redirect(
        f"/apps/{page_request.app.id}/settings/operator",
        f"{page_request.app.name} now uses operator account {result['operator_account_id']}.",
        hint=hint,
        kind="warn" if hint else "good",
    )


async def _page(
    tools: PageTools,
    page_request: PageRequest,
    target: str,
    values: dict[str, str],
    *,
    typed: str = "",
    wrong: dict[str, str] | None = None,
) -> Response:
    accounts = await list_accounts(tools)
    owned = page_request.app.business_account_id
    current = next(
        (account for account in accounts if any(one["id"] == owned for one in account["business_accounts"])), None
    )
    others = [
        {
            "id": account["id"],
            "base_url": account["base_url"],
            "is_simulator": is_local(account["base_url"]),
            "path": f"?{urlencode({'to': account['id']})}#checks",
        }
        for account in accounts
        if account is not current
    ]
    chosen = next((other for other in others if other["id"] == target), None)
    preview: dict[str, Any] | None = None
    results: list[dict[str, Any]] = []
    is_rejected = wrong is not None
    wrong = {"form": "", "typed": "", **(wrong or {})}
    if chosen is not None:
        results = await run_doctor(tools, {"operator_account_id": target})
        try:
            preview = await _switch(tools, page_request, target, values, dry_run=True)
        except ApiResponseError as error:
            wrong["form"] = wrong["form"] or _describe(error)
    return await tools.page(
        page_request, "settings/operator_switch.html", 400 if is_rejected else 200,
        current=current, is_current_simulator=current is not None and is_local(current["base_url"]),
        others=others, chosen=chosen, results=results, preview=preview, values=values, typed=typed, wrong=wrong,
        is_dev=tools.services.demo_partner_id is not None,
    )  # fmt: skip


async def _switch(
    tools: PageTools, page_request: PageRequest, target: str, values: dict[str, str], **options: bool
) -> dict[str, Any]:
    body = {"operator_account_id": target, **{name: value for name, value in values.items() if value}, **options}
    path = f"/admin/apps/{quote(page_request.app.id, safe='')}/operator"
    return await tools.services.apis.admin.json("PUT", path, body)


async def _subscribe(tools: PageTools, business_account_id: str) -> str:
    """Subscribe this service to the business account's webhooks; return why that failed, or an empty text."""
    path = f"/admin/business-accounts/{quote(business_account_id, safe='')}/subscribe"
    try:
        await tools.services.apis.admin.json("POST", path, {})
    except ApiResponseError as error:
        return f"The operator did not subscribe this service to its webhooks: {_describe(error)}"
    return ""


def _describe(error: ApiResponseError) -> str:
    return error.explanation or error.message
