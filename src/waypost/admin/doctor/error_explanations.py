"""Check results from the operator's errors in direct calls."""

from waypost.admin.doctor.check_result import Finding, State
from waypost.admin.operator_requests import NotTold


def refused(about: str, account_id: str, told: NotTold) -> list[Finding]:
    """Return the result of a failed call, with the operator's own text; none if the operator has no such call."""
    if not told.is_offered:
        return []
    if told.code is None:
        text, fix_hint = (
            told.text,
            (
                "check that it is running and the connection to it works; if its address is wrong: "
                "waypost account operator {account} --base-url …"
            ),
        )
    elif told.problem is None:
        text = f"the operator returned an error: {told.text} ({told.code})"
        fix_hint = "look the code up in docs/reference/operator-codes.md"
    else:
        text, fix_hint = f"{told.problem.text}: {told.text} ({told.code})", told.problem.remedy
    is_serious = told.problem is None or told.problem.is_serious
    return [Finding(about, State.WRONG if is_serious else State.WARNING, text, fix_hint.format(account=account_id))]
