"""All checks of the doctor, run concurrently within a time limit."""

import asyncio
from collections.abc import Awaitable
from dataclasses import replace
from typing import Final

from waypost.admin.doctor.accounts import look_at_business, look_at_token, look_at_usage
from waypost.admin.doctor.check_result import Finding, State, ok, warning, wrong
from waypost.admin.doctor.local import look_at_files, look_at_processes, look_at_simulator, look_at_store
from waypost.admin.doctor.numbers import look_at_numbers
from waypost.admin.doctor.receivers import look_at_receivers
from waypost.admin.doctor.templates import look_at_templates
from waypost.admin.doctor.webhook import look_at_handshake, look_at_subscription
from waypost.admin.operator_accounts import Standing, standings
from waypost.admin.provisioning import AdminContext

WITHIN_S: Final = 30
"""For all checks of one operator account; each of its calls takes at most 10 s."""


async def examine(context: AdminContext) -> list[Finding]:
    """Return every result: of the store first, then of each operator account, ordered by id."""
    overviews = await standings(context)
    store, *accounts = await asyncio.gather(
        look_at_store(context), *(_examine_account(context, overview) for overview in overviews)
    )
    if not overviews:
        fix_hint = "add one with: waypost account operator"
        store.append(warning("operator accounts", "there are none", fix_hint))
    store += await look_at_files(context)
    store += await look_at_processes(context)
    store += await look_at_receivers(context)
    return [*store, *(result for results in accounts for result in results)]


async def examine_for(context: AdminContext, partner_id: int) -> list[Finding]:
    """Return the results that concern one partner: the operator accounts of its own business accounts.

    Usage of call limits is omitted, because it names other partners' business accounts.
    """
    own_overviews = [
        replace(overview, businesses=businesses)
        for overview in await standings(context)
        if (businesses := tuple((owner, apps) for owner, apps in overview.businesses if owner.partner_id == partner_id))
    ]
    groups = await asyncio.gather(
        *(_examine_account(context, overview, shows_usage=False) for overview in own_overviews)
    )
    return [result for results in groups for result in results]


async def _examine_account(context: AdminContext, standing: Standing, *, shows_usage: bool = True) -> list[Finding]:
    account = standing.account
    try:
        async with asyncio.timeout(WITHIN_S):
            results = await _look_at_all(context, standing)
    except TimeoutError:
        text = f"the checks took longer than {WITHIN_S} s"
        fix_hint = "check the connection to the operator, and run the doctor again"
        return [wrong(account.id, text, fix_hint)]
    results = [*results, *(look_at_usage(context, account) if shows_usage else ())]
    if not standing.businesses:
        text = "has no business account now; `waypost app operator` switches an app to it"
        results.append(ok(account.id, text))
    return results


async def _look_at_all(context: AdminContext, standing: Standing) -> list[Finding]:
    """Check the token first: if it does not work, every other call would only report the same error."""
    account = standing.account
    token = await look_at_token(context, account)
    checks: list[Awaitable[list[Finding]]] = [look_at_handshake(context, account)]
    if all(result.state is not State.WRONG for result in token):
        for owner, apps in standing.businesses:
            checks += [
                look_at_business(context, account, owner),
                look_at_numbers(context, account, owner, apps),
                look_at_subscription(context, account, owner, apps),
                look_at_templates(context, account, owner, apps),
            ]
    checks.append(look_at_simulator(account))
    groups = await asyncio.gather(*checks)
    return [*token, *(result for results in groups for result in results)]
