"""Problems of an operator account that the error codes of direct calls point to, for the administrator."""

from typing import Final

from waypost.domain.direct_calls.call import OperatorProblem

_PERMISSIONS: Final = tuple(range(200, 300))

_PROBLEMS: Final = (  # Source: operator's facts 1, 5.2
    # codes, serious, meaning, fix hint
    (
        (0, 190),
        OperatorProblem(
            True,
            text="the token is no longer valid",
            fix_hint="create a new token for the system user, then: waypost account token {account}",
        ),
    ),
    (
        (3, 10, *_PERMISSIONS),
        OperatorProblem(
            True,
            text="the token lacks a permission",
            fix_hint=(
                "give it whatsapp_business_messaging and whatsapp_business_management, then: waypost account "
                "token {account}"
            ),
        ),
    ),
    (
        (33, 100, 803),
        OperatorProblem(
            True,
            text="the operator has no such object, or does not show it to this token",
            fix_hint="check the id, and that the system user has been assigned the business account with full control",
        ),
    ),
    (
        (368, 131031),
        OperatorProblem(
            True, text="the operator has blocked the account", fix_hint="read its notices in the operator's console"
        ),
    ),
    (
        (4, 17, 613, 80007, 80008, 130429),
        OperatorProblem(False, text="the operator accepts no more calls for now", fix_hint="wait; nothing is lost"),
    ),
    ((1, 2, 131000, 131016), OperatorProblem(False, "the operator is not available", "wait, then check again")),
)
_BY_CODE: Final = {code: problem for codes, problem in _PROBLEMS for code in codes}


def explain(code: int) -> OperatorProblem | None:
    """Return the problem that the error code of a direct call points to; None if the code has no more to explain."""
    return _BY_CODE.get(code)
