"""Check results from the operator's errors in direct calls."""

from waypost.admin.doctor.check_result import CheckResult, CheckState
from waypost.admin.operator_requests import OperatorCallFailed


def failed_call_results(about: str, account_id: str, error: OperatorCallFailed) -> list[CheckResult]:
    """Return the result of a failed call, with the operator's own text; none if the operator has no such call."""
    if not error.is_offered:
        return []
    if error.code is None:
        text, fix_hint = (
            error.text,
            (
                "check that it is running and the connection to it works; if its address is wrong: "
                "waypost account operator {account} --base-url …"
            ),
        )
    elif error.problem is None:
        text = f"the operator returned an error: {error.text} ({error.code})"
        fix_hint = "look the code up in docs/reference/operator-codes.md"
    else:
        text, fix_hint = f"{error.problem.text}: {error.text} ({error.code})", error.problem.fix_hint
    is_serious = error.problem is None or error.problem.is_serious
    return [
        CheckResult(
            about, CheckState.WRONG if is_serious else CheckState.WARNING, text, fix_hint.format(account=account_id)
        )
    ]
