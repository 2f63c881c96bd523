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
    """A problem with an account or a number at the operator."""

    is_serious: bool  # true if messages fail because of it
    text: str  # describes it
    fix_hint: str  # for the administrator; `{account}` stands for the operator account's id


@dataclass(frozen=True, slots=True)
class NumberStatus:
    """The status of one number."""

    is_connected: bool
    status: str = ""
    verified_name: str = ""
    quality: str = ""
    throughput: str = ""
    messaging_limit: str = ""
    can_send: str = ""  # the operator's value for whether it may send messages
    errors: Sequence[Any] = ()  # why it cannot send, as received


@dataclass(frozen=True, slots=True)
class GetNumber(OperatorCall[NumberStatus]):
    """Get the status of a number, for the partner."""

    number_id: str


@dataclass(frozen=True, slots=True)
class OperatorNumber:
    """One number of a business account."""

    id: str
    display_number: str  # the phone number as the operator writes it
    per_second: int | None = None  # messages a second that the operator accepts from it; None: not known
    summary: str = ""  # quality and limits in one line, for the administrator
    problems: Sequence[OperatorProblem] = ()  # found in its status
    is_registered: bool = True  # for sending
    is_on_business_app: bool = False  # a person uses it in the WhatsApp Business app, too; never registered by us
    raw: dict[str, Any] = field(default_factory=dict[str, Any])  # as received, for the administrator


@dataclass(frozen=True, slots=True)
class ListNumbers(OperatorCall[Sequence[OperatorNumber]]):
    """List all numbers of a business account."""

    business_account_id: str


@dataclass(frozen=True, slots=True)
class BusinessStatus:
    """The status of a business account, for the partner."""

    status: str  # ACTIVE, or the operator's name of another status
    ownership: str = ""  # the operator's name of the kind of owner
    # whether its owner has accepted the terms for marketing messages, as the operator names it
    marketing_messages: str = ""


@dataclass(frozen=True, slots=True)
class GetBusinessStatus(OperatorCall[BusinessStatus]):
    """Get the status of a business account, for the partner."""

    business_account_id: str


@dataclass(frozen=True, slots=True)
class OperatorBusiness:
    """A business account as the operator has it."""

    name: str
    namespace: str  # of its templates; empty: not given
    review: str = ""  # the operator's review status of the account; empty: approved, or not given


@dataclass(frozen=True, slots=True)
class GetBusinessAccount(OperatorCall[OperatorBusiness]):
    """Get a business account, for the administrator."""

    business_account_id: str


@dataclass(frozen=True, slots=True)
class TokenStatus:
    """The status of our token."""

    is_valid: bool
    reason: str = ""  # why it is not valid
    missing_permissions: Sequence[str] = ()  # required by the service
    expires_at_s: int = 0  # since the epoch; 0: never, or not given


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
    """The webhook subscriptions of a business account."""

    subscriber: str  # our name at the operator
    is_subscribed: bool  # true if the operator sends the webhooks to us
    others: Sequence[str] = ()  # the other subscribers
    # our webhook URLs by number id; under the empty id for all other numbers. Empty: not given.
    urls: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class GetSubscription(OperatorCall[WebhookSubscription]):
    """Get the webhook subscriptions of a business account."""

    business_account_id: str


@dataclass(frozen=True, slots=True)
class MissingWebhookField:
    """A webhook field that we need and the operator does not send."""

    name: str  # the operator's name of it
    consequence: str  # what is missing without it
    is_serious: bool  # true if no message works without it


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
    """A template as the operator has it."""

    id: str
    name: str
    language: str  # with an underscore or a hyphen
    status: str  # the operator's name of it in upper case, such as APPROVED
    is_being_deleted: bool = False  # true if it is deleted or about to be
    category: str = ""  # as in `Category`; empty: not given
    rejected_reason: str | None = None
    quality: str = ""  # GREEN, YELLOW, RED or UNKNOWN; empty: not given
    body: str | None = None  # its text; None: not given, or it has none
    footer: str | None = None
    draft: TemplateDraft | None = None  # its contents as a draft of ours; None: not given
    is_generated: bool = False  # true if the operator's Direct Send has generated it


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
