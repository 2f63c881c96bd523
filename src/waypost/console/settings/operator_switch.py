"""The page that switches an app to another operator account: first the checks, then the confirmation."""

from typing import Any
from urllib.parse import quote, urlencode

from starlette.responses import Response

from waypost.client.api_client import ApiResponseError
from waypost.console.page_tools import PageTools
from waypost.console.settings.operator import is_local, list_accounts, run_doctor
from waypost.console.web.page_request import PageRequest

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
