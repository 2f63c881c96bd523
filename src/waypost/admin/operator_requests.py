"""Direct calls to an operator for the administrator; a failed one explains the reason in one sentence."""

from typing import Final

from waypost.domain.app import OperatorAccount
from waypost.domain.direct_calls import CallNotOffered, OperatorCall, OperatorProblem, Response
from waypost.domain.errors import ApiError, ErrorCode
from waypost.domain.outcome import OperatorRejected, OperatorUnavailable, OutcomeUncertain
from waypost.operators.contract import Operators


class OperatorCallFailed(Exception):
    """The operator returned an error or no response.

    Attributes:
        code: the operator's error code; None without a response.
        text: the operator's error text, or the reason for the missing response.
        problem: what the code means for the operator account; None: nothing beyond the text.
        is_offered: True if the operator has such a call.
    """

    def __init__(
        self, code: int | None, text: str, problem: OperatorProblem | None = None, *, is_offered: bool = True
    ) -> None:
        super().__init__(text)
        self.code: Final = code
        self.text: Final = text
        self.problem: Final = problem
        self.is_offered: Final = is_offered

    def api_error(self) -> ApiError:
        """Return the failure as an error of our API."""
        if self.code is not None:
            return ApiError(ErrorCode.OPERATOR_REJECTED, f"The operator returned an error: {self.text}")
        return ApiError(
            ErrorCode.OPERATOR_UNAVAILABLE, f"The operator is unavailable now: {self.text}", retry_after_s=10
        )


async def call_operator(operators: Operators, account: OperatorAccount, request: OperatorCall[Response]) -> Response:
    """Make a direct call and return its response.

    Raises:
        OperatorCallFailed: the operator returned an error or no response.
    """
    operator = operators.adapter(account)
    match await operator.call(account, request):
        case OperatorRejected(code=code, text=text, operator_code=operator_code):
            error_code = code if operator_code is None else operator_code
            raise OperatorCallFailed(error_code, text, operator.explain(error_code))
        case CallNotOffered(text=text):
            raise OperatorCallFailed(0, text, is_offered=False)
        case OperatorUnavailable(code=code, text=text):
            raise OperatorCallFailed(code or None, text, operator.explain(code))
        case OutcomeUncertain(text=text):
            raise OperatorCallFailed(None, text)
        case response:
            return response
