"""The result of one check, and the results that the operator's errors in direct calls lead to."""

from dataclasses import dataclass
from enum import StrEnum

from waypost.admin.operator_requests import OperatorCallFailed


class CheckState(StrEnum):
    """The severity: `wrong` prevents something from working, `warning` soon may or should be known."""

    OK = "ok"
    WARNING = "warning"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One line of the report. No secret is ever part of it.

    Attributes:
        subject: the subject of the check, such as `operator account cloud`.
        text: the result in one sentence.
        fix_hint: how to fix it; empty if there is nothing to fix.
    """

    subject: str
    state: CheckState
    text: str
    fix_hint: str = ""


def ok(subject: str, text: str) -> CheckResult:
    """Return the result of a passed check."""
    return CheckResult(subject, CheckState.OK, text)


def warning(subject: str, text: str, fix_hint: str) -> CheckResult:
    """Return a result that does not prevent anything from working but should be known."""
    return CheckResult(subject, CheckState.WARNING, text, fix_hint)


def failure(subject: str, text: str, fix_hint: str) -> CheckResult:
    """Return the result of a failed check."""
    return CheckResult(subject, CheckState.WRONG, text, fix_hint)


def failed_call_results(subject: str, account_id: str, error: OperatorCallFailed) -> list[CheckResult]:
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
            subject, CheckState.WRONG if is_serious else CheckState.WARNING, text, fix_hint.format(account=account_id)
        )
    ]
