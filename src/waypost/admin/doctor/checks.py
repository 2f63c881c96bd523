"""All checks of the doctor, run concurrently within a time limit."""

import asyncio
from collections.abc import Awaitable
from dataclasses import replace
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from waypost.admin.doctor.account_checks import (
    check_business_account,
    check_handshake,
    check_numbers,
    check_templates,
    check_token,
    check_usage,
    check_webhook_fields,
    check_webhook_subscription,
)
from waypost.admin.doctor.local import (
    CheckResult,
    CheckState,
    check_connections,
    check_damage,
    check_files,
    check_media,
    check_onboarding,
    check_processes,
    check_receivers,
    check_simulator,
    check_store,
    check_waits,
    failure,
    ok,
    warning,
)
from waypost.admin.operation import AdminOperations
from waypost.admin.operator_accounts import AccountOverview, account_overviews
from waypost.admin.provisioning import AdminContext
from waypost.domain.errors import resource_not_found
from waypost.wire.responses import response

ACCOUNT_CHECKS_TIMEOUT_S: Final = 30
"""For all checks of one operator account; each of its calls takes at most 10 s."""


operation = AdminOperations()


class DoctorQuery(msgspec.Struct):
    """The partner whose accounts to examine, or one operator account; all if both are absent."""

    partner_id: Annotated[int | None, Meta(description="Only its accounts.")] = None
    operator_account_id: Annotated[str, Meta(description="Only this account.")] = ""


@operation("GET", "/admin/doctor", response(results=list[CheckResult]))
async def run_doctor(context: AdminContext, query: DoctorQuery) -> dict[str, Any]:
    """Return the results of all checks, or of those that concern one partner or one operator account."""
    if query.partner_id is None and not query.operator_account_id:
        return {"results": await _run_checks(context)}
    overviews = await account_overviews(context)
    if query.operator_account_id:
        chosen = next((each for each in overviews if each.account.id == query.operator_account_id), None)
        if chosen is None:
            raise resource_not_found("operator account", "operator_account_id", query.operator_account_id)
        onboarding = await check_onboarding(context, operator_account_id=chosen.account.id)
        return {"results": [*await _check_account_in_time(context, chosen), *onboarding]}
    own = [
        replace(overview, businesses=businesses)
        for overview in overviews
        if (businesses := tuple(each for each in overview.businesses if each[0].partner_id == query.partner_id))
    ]
    # The usage of call limits names other partners' business accounts.
    groups = await asyncio.gather(*(_check_account_in_time(context, each, shows_usage=False) for each in own))
    onboarding = await check_onboarding(context, partner_id=query.partner_id)
    return {"results": [*(result for results in groups for result in results), *onboarding]}


async def _run_checks(context: AdminContext) -> list[CheckResult]:
    """Return every result: of the store, then of each operator account by id; only damage if it has any."""
    damage = await check_damage(context)
    if any(result.state is CheckState.WRONG for result in damage):
        return damage  # the others would read what is damaged
    overviews = await account_overviews(context)
    store, *accounts = await asyncio.gather(
        check_store(context), *(_check_account_in_time(context, overview) for overview in overviews)
    )
    if not overviews:
        fix_hint = "add one with: waypost account operator"
        store.append(warning("operator accounts", "there are none", fix_hint))
    store += await check_files(context)
    store += await check_processes(context)
    store += await check_connections(context)
    store += await check_media(context)
    store += await check_receivers(context)
    store += check_waits(context)
    onboarding = await check_onboarding(context)
    return [*damage, *store, *(result for results in accounts for result in results), *onboarding]


async def _check_account_in_time(
    context: AdminContext, overview: AccountOverview, *, shows_usage: bool = True
) -> list[CheckResult]:
    account = overview.account
    try:
        async with asyncio.timeout(ACCOUNT_CHECKS_TIMEOUT_S):
            results = await _check_account(context, overview)
    except TimeoutError:
        text = f"the checks took longer than {ACCOUNT_CHECKS_TIMEOUT_S} s"
        fix_hint = "check the connection to the operator, and run the doctor again"
        return [failure(account.id, text, fix_hint)]
    results = [*results, *(check_usage(context, account) if shows_usage else ())]
    if not overview.businesses:
        text = "has no business account now; `waypost app operator` switches an app to it"
        results.append(ok(account.id, text))
    return results


async def _check_account(context: AdminContext, overview: AccountOverview) -> list[CheckResult]:
    """Check the token first: if it does not work, every other call would only report the same error."""
    account = overview.account
    token = await check_token(context, account)
    checks: list[Awaitable[list[CheckResult]]] = [check_handshake(context, account)]
    if all(result.state is not CheckState.WRONG for result in token):
        checks += [check_webhook_fields(context, account)] if overview.businesses else []
        for owner, apps in overview.businesses:
            checks += [
                check_business_account(context, account, owner),
                check_numbers(context, account, owner, apps),
                check_webhook_subscription(context, account, owner, apps),
                check_templates(context, account, owner, apps),
            ]
    checks.append(check_simulator(account))
    groups = await asyncio.gather(*checks)
    return [*token, *(result for results in groups for result in results)]
