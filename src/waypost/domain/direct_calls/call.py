"""Direct calls: requests that only read or set something at the operator, each with its response type.

The partner gets the operator's response (decision 0026). Values that we interpret are fields of a response; what the
partner or the administrator gets unchanged is called `raw`. An adapter implements the calls that its operator has, and
returns `unsupported_call` for all others.
"""

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from waypost.domain.outcome import OperatorRejected, OperatorUnavailable, OutcomeUncertain

Response = TypeVar("Response", covariant=True)


@dataclass(frozen=True, slots=True)
class CallNotOffered:
    """The operator does not have the call."""

    text: str


CallFailure = OperatorRejected | OperatorUnavailable | OutcomeUncertain | CallNotOffered
"""The outcome of a direct call without a response. `OutcomeUncertain`: it may have been carried out."""


class OperatorCall(Generic[Response]):
    """Base class of the direct calls; the type parameter is the type of the response."""

    __slots__ = ()


def unsupported_call(request: OperatorCall[Any]) -> CallNotOffered:
    """Return the outcome of a call that the operator does not have."""
    return CallNotOffered(f"this operator does not offer {type(request).__name__}")


@dataclass(frozen=True, slots=True)
class RawList:
    """A list that the partner gets unchanged from the operator."""

    raw: list[Any]


@dataclass(frozen=True, slots=True)
class CallResult:
    """The operator's result of a call; `reason` is its explanation where it was not successful."""

    success: bool = True
    reason: str = ""


@dataclass(frozen=True, slots=True)
class OperatorProblem:
    """A problem with an account or a number at the operator.

    Attributes:
        is_serious: true if messages fail because of it.
        text: describes it.
        fix_hint: for the administrator; `{account}` stands for the operator account's id.
    """

    is_serious: bool
    text: str
    fix_hint: str
