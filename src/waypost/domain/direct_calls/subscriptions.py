"""Direct calls about the subscription to an account's webhooks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from waypost.domain.direct_calls.call import CallResult, OperatorCall


@dataclass(frozen=True, slots=True)
class WebhookSubscription:
    """The webhook subscriptions of a business account.

    Attributes:
        subscriber: our name at the operator.
        is_subscribed: true if the operator sends the webhooks to us.
        others: the other subscribers.
        urls: our webhook URLs by number id; under the empty id for all other numbers. Empty: not given.
    """

    subscriber: str
    is_subscribed: bool
    others: Sequence[str] = ()
    urls: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class GetSubscription(OperatorCall[WebhookSubscription]):
    """Get the webhook subscriptions of a business account."""

    business_account_id: str


@dataclass(frozen=True, slots=True)
class MissingWebhookField:
    """A webhook field that we need and the operator does not send.

    Attributes:
        name: the operator's name of it.
        consequence: what is missing without it.
        is_serious: true if no message works without it.
    """

    name: str
    consequence: str
    is_serious: bool


@dataclass(frozen=True, slots=True)
class ListMissingFields(OperatorCall[Sequence[MissingWebhookField]]):
    """List the webhook fields that we need and are not subscribed to."""


@dataclass(frozen=True, slots=True)
class Subscribe(OperatorCall[CallResult]):
    """Subscribe us to a business account's webhooks. The operator may first check the URL with its handshake."""

    business_account_id: str
    url: str


@dataclass(frozen=True, slots=True)
class Unsubscribe(OperatorCall[CallResult]):
    """Unsubscribe us from a business account's webhooks."""

    business_account_id: str
