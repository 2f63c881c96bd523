"""What an operator's refusal of a direct call says about the account that made it."""

from waypost.admin.doctor.check_result import Finding, State
from waypost.admin.operator_requests import NotTold


def refused(about: str, account_id: str, told: NotTold) -> list[Finding]:
    """The finding that an unanswered call makes, in the operator's own words; none where it has no such call."""
    if not told.is_offered:
        return []
    if told.code is None:
        text, remedy = (
            told.text,
            (
                "see that it is up and the line to it is good; if its address is wrong: "
                "waypost account operator {account} --base-url …"
            ),
        )
    elif told.problem is None:
        text = f"the operator refuses: {told.text} ({told.code})"
        remedy = "look the code up in docs/reference/operator-codes.md"
    else:
        text, remedy = f"{told.problem.text}: {told.text} ({told.code})", told.problem.remedy
    is_serious = told.problem is None or told.problem.is_serious
    return [Finding(about, State.WRONG if is_serious else State.WARNING, text, remedy.format(account=account_id))]
