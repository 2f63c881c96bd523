"""Direct calls: requests that only ask or set something at the operator, each with the type of its response.

The operator's answer is the partner's (decision 0026). What we interpret is a field of a response; what the partner or
the administrator gets as the operator shows it is called `raw`. An adapter implements the calls that its operator has,
and answers all others with `not_offered`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Generic, TypeVar

from waypost.domain.outcome import Rejected, Unavailable, Uncertain

Response = TypeVar("Response", covariant=True)


@dataclass(frozen=True, slots=True)
class NotOffered:
    """The operator has no such call."""

    text: str


Failure = Rejected | Unavailable | Uncertain | NotOffered
"""A direct call that has no response. `Uncertain`: it may have been carried out."""


class OperatorCall(Generic[Response]):
    """Base of all direct calls; the parameter is the type of the response."""

    __slots__ = ()


def not_offered(request: OperatorCall[Any]) -> NotOffered:
    """Return the outcome of a call that the operator does not have."""
    return NotOffered(f"this operator does not offer {type(request).__name__}")


@dataclass(frozen=True, slots=True)
class Raw:
    """An object that the partner gets as the operator shows it."""

    raw: dict[str, Any]


@dataclass(frozen=True, slots=True)
class RawList:
    """A list that the partner gets as the operator shows it."""

    raw: list[Any]


@dataclass(frozen=True, slots=True)
class Done:
    """The operator has answered; `reason` is its explanation where it did not do what was asked."""

    success: bool = True
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something at the operator that is not as it should be.

    Attributes:
        is_serious: messages fail because of it.
        text: what it is.
        remedy: what the administrator can do about it; `{account}` stands for the operator account's id.
    """

    is_serious: bool
    text: str
    remedy: str


# Numbers and business accounts ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NumberStatus:
    """The state of one number.

    Attributes:
        can_send: the operator's word for whether it may send messages.
        errors: what keeps it from sending, as the operator shows it.
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
    """The state of a number, for the partner."""

    number_id: str


@dataclass(frozen=True, slots=True)
class OperatorNumber:
    """One number of a business account.

    Attributes:
        shown: the phone number as the operator writes it.
        per_second: the messages a second that the operator accepts from it; None: not known.
        summary: quality and limits in one line, for the administrator.
        problems: what is wrong with it.
        raw: for the administrator, who sees what the operator shows.
    """

    id: str
    shown: str
    per_second: int | None = None
    summary: str = ""
    problems: Sequence[Problem] = ()
    raw: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class ListNumbers(OperatorCall[Sequence[OperatorNumber]]):
    """All numbers of a business account."""

    business_account_id: str


@dataclass(frozen=True, slots=True)
class BusinessStatus:
    """The state of a business account, for the partner.

    Attributes:
        status: ACTIVE, or the operator's word for what it is instead.
        ownership: the operator's word for who owns it.
    """

    status: str
    ownership: str = ""


@dataclass(frozen=True, slots=True)
class GetBusinessStatus(OperatorCall[BusinessStatus]):
    """The state of a business account, for the partner."""

    business_account_id: str


@dataclass(frozen=True, slots=True)
class OperatorBusiness:
    """A business account as the operator has it.

    Attributes:
        namespace: of its templates; empty: the operator does not tell.
        review: the operator's word where its review did not approve the account; empty: it did, or does not tell.
    """

    name: str
    namespace: str
    review: str = ""


@dataclass(frozen=True, slots=True)
class GetBusinessAccount(OperatorCall[OperatorBusiness]):
    """A business account, for the administrator."""

    business_account_id: str


@dataclass(frozen=True, slots=True)
class TokenStatus:
    """The state of our token.

    Attributes:
        reason: why it is not valid.
        missing_permissions: that the service needs.
        expires_at_s: since the epoch; 0: never, or not told.
    """

    is_valid: bool
    reason: str = ""
    missing_permissions: Sequence[str] = ()
    expires_at_s: int = 0


@dataclass(frozen=True, slots=True)
class CheckToken(OperatorCall[TokenStatus | None]):
    """The state of the operator account's own token; None: the operator tells nothing of tokens."""


# Webhooks -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WebhookSubscription:
    """Who receives a business account's webhooks.

    Attributes:
        subscriber: our name at the operator.
        is_subscribed: it sends them to us.
        others: who else is subscribed.
        urls: of ours, by number id, where they go; under the empty id for all other numbers. Empty: not told.
    """

    subscriber: str
    is_subscribed: bool
    others: Sequence[str] = ()
    urls: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class GetSubscription(OperatorCall[WebhookSubscription]):
    """Where a business account's webhooks go."""

    business_account_id: str


@dataclass(frozen=True, slots=True)
class Subscribe(OperatorCall[Done]):
    """Have a business account's webhooks sent to us. The operator may first check that the URL answers its handshake."""

    business_account_id: str
    url: str


@dataclass(frozen=True, slots=True)
class Unsubscribe(OperatorCall[Done]):
    """Have a business account's webhooks sent to us no more."""

    business_account_id: str


# Templates ------------------------------------------------------------------------------------------------------------


class TemplateDetail(StrEnum):
    """How much of each template a list has: nothing but its id, name, language and status, or more."""

    STATUS = "status"
    REVIEW = "category, quality and reason of a rejection too"
    TEXTS = "body and footer too"


@dataclass(frozen=True, slots=True)
class OperatorTemplate:
    """A template as the operator has it.

    Attributes:
        language: with an underscore or a hyphen.
        status: the operator's word in upper case, such as APPROVED.
        is_being_deleted: it is gone, or about to be.
        category: as in `Category`; empty: not told.
        quality: GREEN, YELLOW, RED or UNKNOWN; empty: not told.
        body: its text; None: not told, or it has none.
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


@dataclass(frozen=True, slots=True)
class ListTemplates(OperatorCall[Sequence[OperatorTemplate]]):
    """All templates of a business account, or those of one name; a list that is not whole is `Unavailable`."""

    business_account_id: str
    detail: TemplateDetail
    name: str | None = None


@dataclass(frozen=True, slots=True)
class GetTemplate(OperatorCall[OperatorTemplate]):
    """One template."""

    template_id: str


@dataclass(frozen=True, slots=True)
class UnpauseTemplate(OperatorCall[Done]):
    """Allow a template again that the operator paused."""

    template_id: str


@dataclass(frozen=True, slots=True)
class ReadyButton:
    """A button of a library template; `kind` in upper case, as in `ButtonKind`."""

    kind: str
    text: str = ""
    url: str = ""
    phone_number: str = ""


@dataclass(frozen=True, slots=True)
class LibraryTemplate:
    """A ready template of the operator's library; `examples` are the values of its body's variables."""

    body: str
    examples: Sequence[str] = ()
    header: str = ""
    topic: str = ""
    buttons: Sequence[ReadyButton] = ()


@dataclass(frozen=True, slots=True)
class ListLibrary(OperatorCall[RawList]):
    """The operator's ready templates; an empty filter does not count."""

    name: str = ""
    industry: str = ""
    language: str = ""
    topic: str = ""
    usecase: str = ""


@dataclass(frozen=True, slots=True)
class GetLibraryTemplate(OperatorCall[LibraryTemplate | None]):
    """One ready template; None: the library has none of this name in this language."""

    name: str
    language: str


@dataclass(frozen=True, slots=True)
class CreatedTemplate:
    """A template that the operator has made; `status` is its word in upper case."""

    id: str
    status: str = ""


@dataclass(frozen=True, slots=True)
class CreateFromLibrary(OperatorCall[CreatedTemplate]):
    """Make a template from a ready one; `button_inputs` go as the partner gave them."""

    business_account_id: str
    name: str
    language: str
    category: str
    library_name: str
    button_inputs: Sequence[Mapping[str, Any]] = ()


# Business profile, block list, components of chats --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BusinessProfile:
    """What a number shows of its business; empty: not set."""

    about: str = ""
    address: str = ""
    description: str = ""
    email: str = ""
    vertical: str = ""
    websites: Sequence[str] = ()
    picture_url: str = ""


@dataclass(frozen=True, slots=True)
class GetProfile(OperatorCall[BusinessProfile]):
    """The business profile of a number."""

    number_id: str


@dataclass(frozen=True, slots=True)
class SetProfile(OperatorCall[Done]):
    """Change the business profile of a number; None leaves a field as it is.

    Attributes:
        picture: the handle of an uploaded sample; empty: no picture.
    """

    number_id: str = ""
    about: str | None = None
    address: str | None = None
    websites: Sequence[str] | None = None
    description: str | None = None
    email: str | None = None
    vertical: str | None = None
    picture: str | None = None


@dataclass(frozen=True, slots=True)
class BlockResult:
    """Which users the operator has blocked or unblocked.

    Attributes:
        users: their phone numbers, in digits.
        failure: the operator's words about the first user for whom it failed; None: it did for none.
        raw: for the partner.
    """

    users: frozenset[str]
    failure: str | None
    raw: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Block(OperatorCall[BlockResult]):
    """Block users of a number."""

    number_id: str
    users: Sequence[str]


@dataclass(frozen=True, slots=True)
class Unblock(OperatorCall[BlockResult]):
    """Unblock users of a number."""

    number_id: str
    users: Sequence[str]


@dataclass(frozen=True, slots=True)
class ListBlocked(OperatorCall[Raw]):
    """One page of a number's block list; the cursors are the operator's."""

    number_id: str
    limit: str = ""
    after: str = ""
    before: str = ""


@dataclass(frozen=True, slots=True)
class GetComponents(OperatorCall[Raw]):
    """Ice breakers, commands and welcome message of a number."""

    number_id: str


@dataclass(frozen=True, slots=True)
class SetComponents(OperatorCall[Done]):
    """Change ice breakers, commands or welcome message of a number; None leaves one as it is.

    Attributes:
        commands: name and description of each.
        prompts: the ice breakers.
    """

    number_id: str
    enable_welcome_message: bool | None = None
    commands: Sequence[tuple[str, str]] | None = None
    prompts: Sequence[str] | None = None


@dataclass(frozen=True, slots=True)
class MarkRead(OperatorCall[Done]):
    """Show a received message as read, and perhaps that somebody is typing."""

    number_id: str
    message_id: str
    typing: bool = False


# Flows ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CreatedFlow:
    """A flow that the operator has made; the errors are for the partner."""

    id: str
    validation_errors: Any = ()


@dataclass(frozen=True, slots=True)
class CreateFlow(OperatorCall[CreatedFlow]):
    """Make a draft of a flow; an empty text is not sent."""

    business_account_id: str
    name: str
    categories: Sequence[str]
    clone_flow_id: str = ""
    endpoint_uri: str = ""
    flow_json: str = ""


@dataclass(frozen=True, slots=True)
class FindDraftFlow(OperatorCall[CreatedFlow | None]):
    """The draft with this name and these categories; None: there is none."""

    business_account_id: str
    name: str
    categories: Sequence[str]


@dataclass(frozen=True, slots=True)
class ListFlows(OperatorCall[RawList]):
    """The flows of a business account."""

    business_account_id: str


@dataclass(frozen=True, slots=True)
class GetFlow(OperatorCall[Raw]):
    """Fields of one flow, by the names of the partner API."""

    flow_id: str
    fields: Sequence[str]


@dataclass(frozen=True, slots=True)
class GetFlowOwner(OperatorCall[str]):
    """The id of the business account that a flow belongs to; empty: not told."""

    flow_id: str


@dataclass(frozen=True, slots=True)
class ChangeFlow(OperatorCall[Done]):
    """Change a draft; what is empty or None stays."""

    flow_id: str
    name: str | None = None
    categories: Sequence[str] | None = None
    clone_flow_id: str = ""
    endpoint_uri: str = ""
    flow_json: str = ""


@dataclass(frozen=True, slots=True)
class DeleteFlow(OperatorCall[Done]):
    """Delete a draft."""

    flow_id: str


@dataclass(frozen=True, slots=True)
class PublishFlow(OperatorCall[Done]):
    """Publish a draft."""

    flow_id: str


@dataclass(frozen=True, slots=True)
class DeprecateFlow(OperatorCall[Done]):
    """Take a published flow out of use."""

    flow_id: str


@dataclass(frozen=True, slots=True)
class ListFlowAssets(OperatorCall[RawList]):
    """The files of a flow."""

    flow_id: str


@dataclass(frozen=True, slots=True)
class FlowAssetsResult:
    """What the operator made of a flow's file; the errors are for the partner."""

    success: bool
    validation_errors: Any = ()


@dataclass(frozen=True, slots=True)
class PutFlowAssets(OperatorCall[FlowAssetsResult]):
    """Set the JSON of a draft."""

    flow_id: str
    file_name: str
    mime_type: str
    content: bytes


# Media ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OperatorMedium:
    """A medium that the operator has."""

    mime_type: str
    size_bytes: int | None


@dataclass(frozen=True, slots=True)
class GetMedium(OperatorCall[OperatorMedium]):
    """A medium of one number."""

    medium_id: str
    number_id: str


@dataclass(frozen=True, slots=True)
class DeleteMedium(OperatorCall[Done]):
    """Delete a medium of one number."""

    medium_id: str
    number_id: str
