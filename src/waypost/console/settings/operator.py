"""The operator page: the operator accounts of the partner's apps, and a health check."""

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from waypost.base.http.hosts import hostname_of, is_loopback
from waypost.client.api_client import ApiResponseError, ApiUnreachable
from waypost.console.page_tools import PageTools
from waypost.console.web.page_request import PageRequest
from waypost.store.console.overview import last_webhook_ms


async def show_operator(tools: PageTools, page_request: PageRequest) -> Response:
    """Return the partner's operator accounts; with `check` in the query also the results of a health check.

    When the last webhook came is shown only of an account that is not shared with other partners.
    """
    partner_id = page_request.partner.id
    operator_accounts: list[dict[str, Any]] = []
    for account in await list_accounts(tools):
        shared = account["business_accounts"]
        own = [one for one in shared if one["partner_id"] == partner_id]
        if own:
            is_sole = len(own) == len(shared)
            last_call_ms = await tools.services.database.read(last_webhook_ms, account["id"]) if is_sole else None
            operator_accounts.append({**account, "business_accounts": own, "last_call_ms": last_call_ms})
    connected = {
        app["id"] for account in operator_accounts for one in account["business_accounts"] for app in one["apps"]
    }
    return await tools.page(
        page_request, "settings/operator.html", operator_accounts=operator_accounts, is_local=is_local,
        results=await run_doctor(tools, partner_id=partner_id) if page_request.query("check") else None,
        without=[app for app in page_request.apps if app.id not in connected],
    )  # fmt: skip


async def list_accounts(tools: PageTools) -> list[dict[str, Any]]:
    """Return every operator account as the admin API shows it, without secrets."""
    return (await tools.services.apis.admin.call("GET /admin/operator-accounts"))["operator_accounts"]


async def run_doctor(tools: PageTools, **checked: str | int) -> list[dict[str, Any]]:
    """Return the results of the doctor's checks of a partner or an account; an error is a result too."""
    try:
        return (await tools.services.apis.admin.call("GET /admin/doctor", **checked))["results"]
    except (ApiResponseError, ApiUnreachable) as error:
        return [{"subject": "Health check", "state": "wrong", "text": str(error), "fix_hint": "Try again in a moment."}]


def is_local(base_url: str) -> bool:
    """True if a base URL is on this machine: then it is a simulator's."""
    return is_loopback(hostname_of(base_url))


_OWN_IDS = ("business_account_id", "phone_number_id")
"""Ids at the new operator account, if they differ from those that the app had there or has now."""


async def show_switch(
    tools: PageTools,
    page_request: PageRequest,
    target: str = "",
    values: Mapping[str, str] = {},
    *,
    typed: str = "",
    wrong: Mapping[str, str] = {},
) -> Response:
    """Return the operator accounts to choose from; with a target also its checks, and what would change.

    Args:
        target: the account that a rejected form named; empty: `to` of the query.
        values: ids at the target; empty: those of the query.
    """
    target = target or page_request.query("to")
    values = values or {name: page_request.query(name) for name in _OWN_IDS}
    accounts = await list_accounts(tools)
    owned = page_request.app.business_account_id
    current = next((one for one in accounts if any(each["id"] == owned for each in one["business_accounts"])), None)
    others = [account for account in accounts if account is not current]
    chosen = next((other for other in others if other["id"] == target), None)
    preview: dict[str, Any] | None = None
    results: list[dict[str, Any]] = []
    problem = wrong.get("form", "")
    if chosen is not None:
        results = await run_doctor(tools, operator_account_id=target)
        try:
            preview = await _switch(tools, page_request, target, values, dry_run=True)
        except ApiResponseError as error:
            problem = problem or error.explanation or error.message
    return await tools.page(
        page_request, "settings/operator_switch.html", 400 if wrong else 200,
        current=current, others=others, chosen=chosen, results=results, preview=preview, values=values, typed=typed,
        wrong={"typed": "", **wrong, "form": problem}, is_local=is_local,
    )  # fmt: skip


async def switch_app(tools: PageTools, page_request: PageRequest) -> Response:
    """Assign the app's business account to another operator account, if the app's name was typed."""
    app, target = page_request.app, await page_request.field("operator_account_id")
    values = {name: (await page_request.field(name)).strip() for name in _OWN_IDS}
    typed = (await page_request.field("typed")).strip()
    if typed != app.name:
        wrong = {"typed": f"Enter {app.name} to switch the app."}
        return await show_switch(tools, page_request, target, values, typed=typed, wrong=wrong)
    submits = await page_request.is_checked("submit_templates")
    try:
        result = await _switch(tools, page_request, target, values, submit_templates=submits)
    except ApiResponseError as error:
        wrong = {"form": error.explanation or error.message}
        return await show_switch(tools, page_request, target, values, typed=typed, wrong=wrong)
    problems: list[str] = []
    if await page_request.is_checked("subscribe"):
        problem = await subscribe_account(tools, result["business_account_id"])
        problems += [f"The operator did not subscribe this service to its webhooks: {problem}"] if problem else []
    if missing := len(result["templates_missing"]):
        problems.append(f"{missing} of its templates do not exist there.")
    notice = f"{app.name} now uses operator account {result['operator_account_id']}."
    kind = "warn" if problems else "good"
    return tools.redirect(f"/apps/{app.id}/settings/operator", notice, hint=" ".join(problems), kind=kind)


async def _switch(
    tools: PageTools, page_request: PageRequest, target: str, values: Mapping[str, str], **options: bool
) -> dict[str, Any]:
    return await tools.services.apis.admin.call(
        "PUT /admin/apps/{app_id}/operator", app_id=page_request.app.id, operator_account_id=target,
        **{name: value for name, value in values.items() if value}, **options,
    )  # fmt: skip


async def subscribe_account(tools: PageTools, account_id: str) -> str:
    """Subscribe this service to a business account's webhooks; return why that failed, or an empty text."""
    try:
        operation = "POST /admin/business-accounts/{account_id}/subscribe"
        await tools.services.apis.admin.call(operation, account_id=account_id)
    except ApiResponseError as error:
        return error.explanation or error.message
    return ""
