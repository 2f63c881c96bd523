"""Direct calls about payments of orders, and about the payment configurations of a business account."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from waypost.domain.direct_calls.call import OperatorCall, RawObject


@dataclass(frozen=True, slots=True)
class GetPayment(OperatorCall[RawObject]):
    """Get the payment of an order, by the reference in the order."""

    number_id: str
    configuration: str
    reference_id: str


@dataclass(frozen=True, slots=True)
class RefundPayment(OperatorCall[RawObject]):
    """Refund a payment, whole or in part.

    Attributes:
        members: of the request, as the operator names them.
    """

    number_id: str
    members: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ListPaymentConfigurations(OperatorCall[RawObject]):
    """List the payment configurations of a business account."""

    business_account_id: str


@dataclass(frozen=True, slots=True)
class GetPaymentConfiguration(OperatorCall[RawObject]):
    """Get a payment configuration."""

    business_account_id: str
    name: str


@dataclass(frozen=True, slots=True)
class CreatePaymentConfiguration(OperatorCall[RawObject]):
    """Create a payment configuration; the response has the link that connects it to its gateway.

    Attributes:
        members: of the request, as the operator names them.
    """

    business_account_id: str
    members: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RenewPaymentLink(OperatorCall[RawObject]):
    """Create a new link for a payment configuration."""

    business_account_id: str
    name: str
    redirect_url: str


@dataclass(frozen=True, slots=True)
class RemovePaymentConfiguration(OperatorCall[RawObject]):
    """Remove a payment configuration."""

    business_account_id: str
    name: str
