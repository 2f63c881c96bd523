"""Checks of a business account's numbers: each app's number exists, is registered, and has our throughput."""

from collections.abc import Sequence

from waypost.admin.doctor.check_result import Finding, State, ok, wrong
from waypost.admin.doctor.error_explanations import refused
from waypost.admin.operator_requests import NotTold, ask
from waypost.admin.provisioning import AdminContext
from waypost.domain.app import App, BusinessAccount, OperatorAccount
from waypost.domain.direct_calls import ListNumbers, OperatorNumber
from waypost.domain.phone_number import read_phone_number


async def look_at_numbers(
    context: AdminContext, account: OperatorAccount, owner: BusinessAccount, apps: Sequence[App]
) -> list[Finding]:
    """Check the number of each app; several results if a number has several problems."""
    about = f"{account.id}: numbers of {owner.id}"
    try:
        numbers = await ask(context.operators, account, ListNumbers(owner.id))
    except NotTold as error:
        return refused(about, account.id, error)
    return [result for app in apps for result in _look_at(context, account, app, numbers)]


def _look_at(
    context: AdminContext, account: OperatorAccount, app: App, numbers: Sequence[OperatorNumber]
) -> list[Finding]:
    about = f"{account.id}: number +{app.phone_number} of {app.name}"
    connect = f"waypost app connect {app.id} NUMBER NUMBER_ID {app.business_account_id}"
    number = {listed.id: listed for listed in numbers}.get(app.phone_number_id)
    if number is None:
        listed_numbers = ", ".join(f"{listed.id} ({listed.shown})" for listed in numbers) or "none"
        text = f"the operator has no number {app.phone_number_id}; it has {listed_numbers}"
        return [wrong(about, text, connect)]
    results: list[Finding] = []
    if read_phone_number(number.shown) not in (None, app.phone_number):
        text = f"{app.phone_number_id} is {number.shown} at the operator"
        results.append(wrong(about, text, connect))
    results += [
        Finding(about, State.WRONG if problem.is_serious else State.WARNING, problem.text, problem.remedy)
        for problem in number.problems
    ]
    results += _pace(context, app, number.per_second, about)
    return results or [ok(about, f"connected; {number.summary}")]


def _pace(context: AdminContext, app: App, theirs: int | None, about: str) -> list[Finding]:
    """Check that our throughput is not above the operator's: messages above it fail with an error."""
    ours = app.per_second or context.per_second
    if theirs is None or ours <= theirs:
        return []
    text = f"we send {ours} messages a second, and the operator accepts {theirs}"
    return [wrong(about, text, f"set per_second of the app, or WAYPOST_PER_SECOND, to {theirs}")]
