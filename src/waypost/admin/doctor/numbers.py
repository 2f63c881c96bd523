"""Checks of a business account's numbers: each app's number exists, is registered, and has our throughput."""

from collections.abc import Sequence

from waypost.admin.doctor.check_result import CheckResult, CheckState, failed_call_results, failure, ok
from waypost.admin.operator_requests import OperatorCallFailed, call_operator
from waypost.admin.provisioning import AdminContext
from waypost.domain.app import App, BusinessAccount, OperatorAccount
from waypost.domain.direct_calls import ListNumbers, OperatorNumber
from waypost.domain.phone_number import read_phone_number


async def check_numbers(
    context: AdminContext, account: OperatorAccount, owner: BusinessAccount, apps: Sequence[App]
) -> list[CheckResult]:
    """Check the number of each app; several results if a number has several problems."""
    subject = f"{account.id}: numbers of {owner.id}"
    try:
        numbers = await call_operator(context.operators, account, ListNumbers(owner.id))
    except OperatorCallFailed as error:
        return failed_call_results(subject, account.id, error)
    return [result for app in apps for result in _check_number(context, account, app, numbers)]


def _check_number(
    context: AdminContext, account: OperatorAccount, app: App, numbers: Sequence[OperatorNumber]
) -> list[CheckResult]:
    subject = f"{account.id}: number +{app.phone_number} of {app.name}"
    connect = f"waypost app connect {app.id} NUMBER NUMBER_ID {app.business_account_id}"
    number = {listed.id: listed for listed in numbers}.get(app.phone_number_id)
    if number is None:
        listed_numbers = ", ".join(f"{listed.id} ({listed.display_number})" for listed in numbers) or "none"
        text = f"the operator has no number {app.phone_number_id}; it has {listed_numbers}"
        return [failure(subject, text, connect)]
    results: list[CheckResult] = []
    if read_phone_number(number.display_number) not in (None, app.phone_number):
        text = f"{app.phone_number_id} is {number.display_number} at the operator"
        results.append(failure(subject, text, connect))
    results += [
        CheckResult(
            subject, CheckState.WRONG if problem.is_serious else CheckState.WARNING, problem.text, problem.fix_hint
        )
        for problem in number.problems
    ]
    results += _check_throughput(context, app, number.per_second, subject)
    return results or [ok(subject, f"connected; {number.summary}")]


def _check_throughput(context: AdminContext, app: App, operator_limit: int | None, subject: str) -> list[CheckResult]:
    """Check that our throughput is not above the operator's: messages above it fail with an error."""
    ours = app.per_second or context.per_second
    if operator_limit is None or ours <= operator_limit:
        return []
    text = f"we send {ours} messages a second, and the operator accepts {operator_limit}"
    return [failure(subject, text, f"set per_second of the app, or WAYPOST_PER_SECOND, to {operator_limit}")]
