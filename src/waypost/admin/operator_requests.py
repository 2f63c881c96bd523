"""Questions to an operator on the administrator's behalf: the answer, or in one sentence why there is none."""

from typing import Final

from waypost.domain.app import OperatorAccount
from waypost.domain.direct_calls import NotOffered, OperatorCall, Problem, Response
from waypost.domain.errors import ApiError, ErrorCode
from waypost.domain.outcome import Rejected, Unavailable, Uncertain
from waypost.operators.contract import Operators


class NotTold(Exception):
    """The operator refused, or did not answer.

    Attributes:
        code: of the refusal; None where there was no answer.
        text: the operator's words, or what became of the call.
        problem: what the code says about the operator account; None: nothing more than the text.
        is_offered: the operator has such a call.
    """

    def __init__(self, code: int | None, text: str, problem: Problem | None = None, *, is_offered: bool = True) -> None:
        super().__init__(text)
        self.code: Final = code
        self.text: Final = text
        self.problem: Final = problem
        self.is_offered: Final = is_offered

    def refusal(self) -> ApiError:
        """The same as the answer of a door."""
        if self.code is not None:
            return ApiError(ErrorCode.OPERATOR_REFUSED, f"The operator refuses: {self.text}")
        return ApiError(
            ErrorCode.OPERATOR_UNAVAILABLE, f"The operator cannot be asked now: {self.text}", retry_after_s=10
        )


async def ask(operators: Operators, account: OperatorAccount, request: OperatorCall[Response]) -> Response:
    """Make a direct call.

    Raises:
        NotTold: there is no answer.
    """
    operator = operators.of(account)
    match await operator.call(account, request):
        case Rejected(code=code, text=text, operator_code=own):
            known = code if own is None else own
            raise NotTold(known, text, operator.explain(known))
        case NotOffered(text=text):
            raise NotTold(0, text, is_offered=False)
        case Unavailable(code=code, text=text):
            raise NotTold(code or None, text, operator.explain(code))
        case Uncertain(text=text):
            raise NotTold(None, text)
        case response:
            return response
