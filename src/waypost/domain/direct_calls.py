"""Direct calls: requests that only read or set something at the operator, each with its response type.

The partner gets the operator's response (decision 0026). Values that we interpret are fields of a response; what the
partner or the administrator gets unchanged is called `raw`. An adapter implements the calls that its operator has, and
returns `unsupported_call` for all others.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Generic, TypeVar

from waypost.domain.outcome import NotAccepted
from waypost.domain.templates.fields import TemplateDraft

Response = TypeVar("Response", covariant=True)


@dataclass(frozen=True, slots=True)
class CallNotOffered:
    """The operator does not have the call."""

    text: str


CallFailure = NotAccepted | CallNotOffered
"""The outcome of a direct call without a response. `OutcomeUncertain`: it may have been carried out."""


class OperatorCall(Generic[Response]):
    """Base class of the direct calls; the type parameter is the type of the response."""

    __slots__ = ()


def unsupported_call(request: OperatorCall[Any]) -> CallNotOffered:
    """Return the outcome of a call that the operator does not have."""
    return CallNotOffered(f"this operator does not offer {type(request).__name__}")


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


@dataclass(frozen=True, slots=True)
class OperatorMedium:
    """A medium that is stored at the operator."""

    mime_type: str
    size_bytes: int | None


@dataclass(frozen=True, slots=True)
class GetMedium(OperatorCall[OperatorMedium]):
    """Get a medium of one number."""

    medium_id: str
    number_id: str


@dataclass(frozen=True, slots=True)
class DeleteMedium(OperatorCall[CallResult]):
    """Delete a medium of one number."""

    medium_id: str
    number_id: str


@dataclass(frozen=True, slots=True)
class MarkRead(OperatorCall[CallResult]):
    """Mark a received message as read, optionally with a typing indicator."""

    number_id: str
    message_id: str
    typing: bool = False


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


class TemplateDetail(StrEnum):
    """The fields of each template in a list: id, name, language and status, or more."""

    STATUS = "status"
    REVIEW = "category, quality and reason of a rejection too"
    CONTENTS = "contents, category, quality and reason of a rejection too"
    TEXTS = "body and footer too"


@dataclass(frozen=True, slots=True)
class OperatorTemplate:
    """A template as the operator has it.

    Attributes:
        language: with an underscore or a hyphen.
        status: the operator's name of it in upper case, such as APPROVED.
        is_being_deleted: true if it is deleted or about to be.
        category: as in `Category`; empty: not given.
        quality: GREEN, YELLOW, RED or UNKNOWN; empty: not given.
        body: its text; None: not given, or it has none.
        draft: its contents as a draft of ours; None: not given.
        is_generated: true if the operator's Direct Send has generated it.
    """

    id: str
    name: str
    language: str
    status: str
    is_being_deleted: bool = False
    category: str = ""
    rejected_reason: str | None = None
    quality: str = ""
    body: str | None = None
    footer: str | None = None
    draft: TemplateDraft | None = None
    is_generated: bool = False


@dataclass(frozen=True, slots=True)
class ListTemplates(OperatorCall[Sequence[OperatorTemplate]]):
    """List all templates of a business account, or those of one name; an incomplete list is `OperatorUnavailable`."""

    business_account_id: str
    detail: TemplateDetail
    name: str | None = None


@dataclass(frozen=True, slots=True)
class GetTemplate(OperatorCall[OperatorTemplate]):
    """Get one template."""

    template_id: str


@dataclass(frozen=True, slots=True)
class UnpauseTemplate(OperatorCall[CallResult]):
    """End the operator's pause of a template."""

    template_id: str
