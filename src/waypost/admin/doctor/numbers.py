"""The numbers of a business account: each app's is there, registered, and as fast as we believe."""

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
    """One line for each app's number; several where several things are not as they should be."""
    about = f"{account.id}: numbers of {owner.id}"
    try:
        numbers = await ask(context.operators, account, ListNumbers(owner.id))
    except NotTold as error:
        return refused(about, account.id, error)
    return [finding for app in apps for finding in _look_at(context, account, app, numbers)]


def _look_at(
    context: AdminContext, account: OperatorAccount, app: App, numbers: Sequence[OperatorNumber]
) -> list[Finding]:
    about = f"{account.id}: number +{app.phone_number} of {app.name}"
    connect = f"waypost app connect {app.id} NUMBER NUMBER_ID {app.business_account_id}"
    number = {one.id: one for one in numbers}.get(app.phone_number_id)
    if number is None:
        there = ", ".join(f"{one.id} ({one.shown})" for one in numbers) or "none"
        text = f"the operator has no number {app.phone_number_id}; it has {there}"
        return [wrong(about, text, connect)]
    findings: list[Finding] = []
    if read_phone_number(number.shown) not in (None, app.phone_number):
        text = f"{app.phone_number_id} is {number.shown} at the operator"
        findings.append(wrong(about, text, connect))
    findings += [
        Finding(about, State.WRONG if one.is_serious else State.WARNING, one.text, one.remedy)
        for one in number.problems
    ]
    findings += _pace(context, app, number.per_second, about)
    return findings or [ok(about, f"connected; {number.summary}")]


def _pace(context: AdminContext, app: App, theirs: int | None, about: str) -> list[Finding]:
    """Our pace must not be above the operator's: what is above comes back with an error."""
    ours = app.per_second or context.per_second
    if theirs is None or ours <= theirs:
        return []
    text = f"we send {ours} a second, and the operator takes {theirs}"
    return [wrong(about, text, f"set per_second of the app, or WAYPOST_PER_SECOND, to {theirs}")]
