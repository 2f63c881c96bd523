"""The operator page: the operator accounts of the partner's apps, and a health check."""

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from waypost.base.http.hosts import hostname_of, is_loopback
from waypost.client.api_client import ApiResponseError, ApiUnreachable
from waypost.console.page_request import PageRequest
from waypost.store.console.overview import last_webhook_ms


async def show_operator(request: PageRequest) -> Response:
    """Return the partner's operator accounts; with `check` in the query also the results of a health check.

    When the last webhook came is shown only of an account that is not shared with other partners.
    """
    partner_id = request.partner.id
    operator_accounts: list[dict[str, Any]] = []
    for account in await list_accounts(request):
        shared = account["business_accounts"]
        own = [one for one in shared if one["partner_id"] == partner_id]
        if own:
            is_sole = len(own) == len(shared)
            last_call_ms = await request.read(last_webhook_ms, account["id"]) if is_sole else None
            operator_accounts.append({**account, "business_accounts": own, "last_call_ms": last_call_ms})
    connected = {
        app["id"] for account in operator_accounts for one in account["business_accounts"] for app in one["apps"]
    }
    return await request.page(
        "settings/operator.html", operator_accounts=operator_accounts, is_local=is_local,
        results=await run_doctor(request, partner_id=partner_id) if request.query("check") else None,
        without=[app for app in request.apps if app.id not in connected],
    )  # fmt: skip


async def list_accounts(request: PageRequest) -> list[dict[str, Any]]:
    """Return every operator account as the admin API shows it, without secrets."""
    return (await request.admin("GET /admin/operator-accounts"))["operator_accounts"]


async def run_doctor(request: PageRequest, **checked: str | int) -> list[dict[str, Any]]:
    """Return the results of the doctor's checks of a partner or an account; an error is a result too."""
    try:
        return (await request.admin("GET /admin/doctor", **checked))["results"]
    except (ApiResponseError, ApiUnreachable) as error:
        return [{"subject": "Health check", "state": "wrong", "text": str(error), "fix_hint": "Try again in a moment."}]


def is_local(base_url: str) -> bool:
    """True if a base URL is on this machine: then it is a simulator's."""
    return is_loopback(hostname_of(base_url))


_OWN_IDS = ("business_account_id", "phone_number_id")
"""Ids at the new operator account, if they differ from those that the app had there or has now."""


async def show_switch(
    request: PageRequest,
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
    target = target or request.query("to")
    values = values or {name: request.query(name) for name in _OWN_IDS}
    accounts = await list_accounts(request)
    owned = request.app.business_account_id
    current = next((one for one in accounts if any(each["id"] == owned for each in one["business_accounts"])), None)
    others = [account for account in accounts if account is not current]
    chosen = next((other for other in others if other["id"] == target), None)
    preview: dict[str, Any] | None = None
    results: list[dict[str, Any]] = []
    problem = wrong.get("form", "")
    if chosen is not None:
        results = await run_doctor(request, operator_account_id=target)
        try:
            preview = await _switch(request, target, values, dry_run=True)
        except ApiResponseError as error:
            problem = problem or error.explanation or error.message
    return await request.page(
        "settings/operator_switch.html", 400 if wrong else 200,
        current=current, others=others, chosen=chosen, results=results, preview=preview, values=values, typed=typed,
        wrong={"typed": "", **wrong, "form": problem}, is_local=is_local,
    )  # fmt: skip


async def switch_app(request: PageRequest) -> Response:
    """Assign the app's business account to another operator account, if the app's name was typed."""
    app, target = request.app, await request.field("operator_account_id")
    values = {name: (await request.field(name)).strip() for name in _OWN_IDS}
    typed = (await request.field("typed")).strip()
    if typed != app.name:
        wrong = {"typed": f"Enter {app.name} to switch the app."}
        return await show_switch(request, target, values, typed=typed, wrong=wrong)
    submits = await request.is_checked("submit_templates")
    try:
        result = await _switch(request, target, values, submit_templates=submits)
    except ApiResponseError as error:
        wrong = {"form": error.explanation or error.message}
        return await show_switch(request, target, values, typed=typed, wrong=wrong)
    problems: list[str] = []
    if await request.is_checked("subscribe"):
        problem = await subscribe_account(request, result["business_account_id"])
        problems += [f"The operator did not subscribe this service to its webhooks: {problem}"] if problem else []
    if missing := len(result["templates_missing"]):
        problems.append(f"{missing} of its templates do not exist there.")
    notice = f"{app.name} now uses operator account {result['operator_account_id']}."
    kind = "warn" if problems else "good"
    return request.redirect(f"/apps/{app.id}/settings/operator", notice, hint=" ".join(problems), kind=kind)


async def _switch(request: PageRequest, target: str, values: Mapping[str, str], **options: bool) -> dict[str, Any]:
    return await request.admin(
        "PUT /admin/apps/{app_id}/operator", app_id=request.app.id, operator_account_id=target,
        **{name: value for name, value in values.items() if value}, **options,
    )  # fmt: skip


async def subscribe_account(request: PageRequest, account_id: str) -> str:
    """Subscribe this service to a business account's webhooks; return why that failed, or an empty text."""
    try:
        operation = "POST /admin/business-accounts/{account_id}/subscribe"
        await request.admin(operation, account_id=account_id)
    except ApiResponseError as error:
        return error.explanation or error.message
    return ""
