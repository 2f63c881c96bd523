"""All looks, side by side, within a time."""

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
"""For all looks at one operator account; each of its calls takes at most ten."""


async def examine(context: AdminContext) -> list[Finding]:
    """Every finding: of the store first, then of each operator account in the order of their ids."""
    known = await standings(context)
    store, *accounts = await asyncio.gather(look_at_store(context), *(_examine_account(context, one) for one in known))
    if not known:
        remedy = "add one with: waypost account operator"
        store.append(warning("operator accounts", "there are none", remedy))
    store += await look_at_files(context)
    store += await look_at_processes(context)
    store += await look_at_receivers(context)
    return [*store, *(finding for findings in accounts for finding in findings)]


async def examine_for(context: AdminContext, partner_id: int) -> list[Finding]:
    """What concerns one partner: the operator accounts that carry its business accounts, and nobody else's.

    How much of an account's calls is used up is left out: others' business accounts are named in it.
    """
    own = [
        replace(standing, businesses=businesses)
        for standing in await standings(context)
        if (businesses := tuple((owner, apps) for owner, apps in standing.businesses if owner.partner_id == partner_id))
    ]
    found = await asyncio.gather(*(_examine_account(context, one, shows_usage=False) for one in own))
    return [finding for findings in found for finding in findings]


async def _examine_account(context: AdminContext, standing: Standing, *, shows_usage: bool = True) -> list[Finding]:
    account = standing.account
    try:
        async with asyncio.timeout(WITHIN_S):
            found = await _look_at_all(context, standing)
    except TimeoutError:
        text = f"the looks took longer than {WITHIN_S} s"
        remedy = "check the line to the operator, and look again"
        return [wrong(account.id, text, remedy)]
    findings = [*found, *(look_at_usage(context, account) if shows_usage else ())]
    if not standing.businesses:
        text = "carries no business account now; `waypost app operator` switches an app to it"
        findings.append(ok(account.id, text))
    return findings


async def _look_at_all(context: AdminContext, standing: Standing) -> list[Finding]:
    """The token first: where it does not work, each further question would only say so again."""
    account = standing.account
    token = await look_at_token(context, account)
    looks: list[Awaitable[list[Finding]]] = [look_at_handshake(context, account)]
    if all(finding.state is not State.WRONG for finding in token):
        for owner, apps in standing.businesses:
            looks += [
                look_at_business(context, account, owner),
                look_at_numbers(context, account, owner, apps),
                look_at_subscription(context, account, owner, apps),
                look_at_templates(context, account, owner, apps),
            ]
    looks.append(look_at_simulator(account))
    found = await asyncio.gather(*looks)
    return [*token, *(finding for findings in found for finding in findings)]
