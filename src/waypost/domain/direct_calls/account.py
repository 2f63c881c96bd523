"""Direct calls about numbers, business accounts and the access token."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from waypost.domain.direct_calls.call import OperatorCall, OperatorProblem


@dataclass(frozen=True, slots=True)
class NumberStatus:
    """The status of one number.

    Attributes:
        can_send: the operator's value for whether it may send messages.
        errors: why it cannot send, as received.
    """

    is_connected: bool
    status: str = ""
    verified_name: str = ""
    quality: str = ""
    throughput: str = ""
    messaging_limit: str = ""
    can_send: str = ""
    errors: Sequence[Any] = ()


@dataclass(frozen=True, slots=True)
class GetNumber(OperatorCall[NumberStatus]):
    """Get the status of a number, for the partner."""

    number_id: str


@dataclass(frozen=True, slots=True)
class OperatorNumber:
    """One number of a business account.

    Attributes:
        display_number: the phone number as the operator writes it.
        per_second: messages a second that the operator accepts from it; None: not known.
        summary: quality and limits in one line, for the administrator.
        problems: found in its status.
        raw: as received, for the administrator.
    """

    id: str
    display_number: str
    per_second: int | None = None
    summary: str = ""
    problems: Sequence[OperatorProblem] = ()
    raw: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class ListNumbers(OperatorCall[Sequence[OperatorNumber]]):
    """List all numbers of a business account."""

    business_account_id: str


@dataclass(frozen=True, slots=True)
class BusinessStatus:
    """The status of a business account, for the partner.

    Attributes:
        status: ACTIVE, or the operator's name of another status.
        ownership: the operator's name of the kind of owner.
        marketing_messages: whether its owner has accepted the terms for marketing messages, as the operator names it.
    """

    status: str
    ownership: str = ""
    marketing_messages: str = ""


@dataclass(frozen=True, slots=True)
class GetBusinessStatus(OperatorCall[BusinessStatus]):
    """Get the status of a business account, for the partner."""

    business_account_id: str


@dataclass(frozen=True, slots=True)
class OperatorBusiness:
    """A business account as the operator has it.

    Attributes:
        namespace: of its templates; empty: not given.
        review: the operator's review status of the account; empty: approved, or not given.
    """

    name: str
    namespace: str
    review: str = ""


@dataclass(frozen=True, slots=True)
class GetBusinessAccount(OperatorCall[OperatorBusiness]):
    """Get a business account, for the administrator."""

    business_account_id: str


@dataclass(frozen=True, slots=True)
class TokenStatus:
    """The status of our token.

    Attributes:
        reason: why it is not valid.
        missing_permissions: required by the service.
        expires_at_s: since the epoch; 0: never, or not given.
    """

    is_valid: bool
    reason: str = ""
    missing_permissions: Sequence[str] = ()
    expires_at_s: int = 0


@dataclass(frozen=True, slots=True)
class CheckToken(OperatorCall[TokenStatus | None]):
    """Get the status of the operator account's own token; None: the operator does not report it."""
