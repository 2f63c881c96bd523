"""What an operator can tell us, in our words."""

from dataclasses import dataclass, field
from typing import Any, cast

from waypost.domain.message import MessageState


@dataclass(frozen=True, slots=True)
class StatusEvent:
    """A message has come further, or has failed.

    Attributes:
        message_id: ours, from the operator's callback data; None when it carried none.
        recipient: the operator's spelling of the recipient's phone number, where given.
        recipient_user_id: the recipient's business-scoped id, where given.
        conversation: as the operator gave it; copied into the callback.
        pricing: likewise.
        raw: the status as the operator gave it, for version 3.
        is_of_group: the message went to a group, and this is about one of its members or all of them.
    """

    state: MessageState
    operator_message_id: str
    message_id: str | None
    recipient: str | None
    at_s: int
    recipient_user_id: str | None = None
    code: int | None = None
    reason: str | None = None
    conversation: dict[str, Any] | None = None
    pricing: dict[str, Any] | None = None
    raw: dict[str, Any] = field(default_factory=dict[str, Any])
    is_of_group: bool = False


@dataclass(frozen=True, slots=True)
class PaymentEvent:
    """A payment that a message asked for has come further; only version 3 tells of it.

    Attributes:
        message_id: ours, from the operator's callback data; None when it carried none.
        raw: the status as the operator gave it.

    Source: facts 4.4, `PAYMENTS`.
    """

    operator_message_id: str
    message_id: str | None
    raw: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class OddStatusEvent:
    """A status of a message that this version does not know, such as `warning`; only version 3 tells of it.

    Attributes:
        word: the operator's name of it.
        message_id: ours, from the operator's callback data; None when it carried none.
        raw: the status as the operator gave it.
    """

    word: str
    operator_message_id: str
    message_id: str | None
    raw: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class InboundEvent:
    """A recipient has written, tapped, answered or reacted.

    Attributes:
        kind: the operator's type: `text`, `image`, …, `button` (a template's quick reply), `reaction`,
            `order`, `location`, `contacts`, `system`, `unsupported`; of `interactive` its own type instead:
            `button_reply`, `list_reply`, `nfm_reply`, …
        content: the object under the name of its type, as the operator gave it; of `interactive` the
            inner object.
        reply_to: the operator's id of the message this one answers.
        referral: of an advertisement that it came from.
        raw: the whole message as the operator gave it, for version 3.
        contact: the operator's contact object of the sender, for version 3.
        group_id: of the group that it was written to; None where it was written to the business alone.
    """

    kind: str
    operator_message_id: str
    phone_number_id: str
    sender: str | None
    sender_user_id: str | None
    sender_name: str
    at_s: int
    content: Any = None
    reply_to: str | None = None
    forwarded: bool = False
    frequently_forwarded: bool = False
    referral: dict[str, Any] | None = None
    raw: dict[str, Any] = field(default_factory=dict[str, Any])
    contact: dict[str, Any] = field(default_factory=dict[str, Any])
    group_id: str | None = None

    @property
    def is_tap(self) -> bool:
        """Whether a template's quick-reply button was tapped."""
        return self.kind == "button"

    def text(self, name: str) -> str:
        """A text member of the content, or an empty one."""
        value = self.content.get(name) if isinstance(self.content, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        return value if isinstance(value, str) else ""


@dataclass(frozen=True, slots=True)
class ReviewEvent:
    """The operator has decided on a template, paused it, or the like.

    Attributes:
        status: the operator's word in upper case, such as APPROVED.
        language_code: with underscores, whatever the operator wrote.
        raw: `field`, `value` and the entry's `time` as the operator gave them, for version 3; empty where
            it is our own news.
        at_s: when it decided so, whole seconds since the epoch; 0 where it does not say.
    """

    business_account_id: str
    operator_template_id: str
    element_name: str
    language_code: str
    status: str
    reason: str | None = None
    description: str | None = None
    raw: dict[str, Any] = field(default_factory=dict[str, Any])
    at_s: int = 0


@dataclass(frozen=True, slots=True)
class QualityEvent:
    """A template's quality has changed; the operator's word in upper case, such as GREEN.

    Attributes:
        raw: `field` and `value` as the operator gave them, for version 3.
    """

    business_account_id: str
    operator_template_id: str
    element_name: str
    language_code: str
    quality: str
    raw: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class CategoryEvent:
    """The operator files a template under another category, or says that it will.

    Attributes:
        category: the one it has now, or had until now.
        next_category: the coming one (announced) or the new one (done).
        is_done: whether it has changed already.
        raw: `field` and `value` as the operator gave them, for version 3.
    """

    business_account_id: str
    operator_template_id: str
    element_name: str
    language_code: str
    category: str
    next_category: str
    is_done: bool
    raw: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class AccountEvent:
    """A change of a business account, one of its numbers, groups, calls or anything else.

    Attributes:
        field: the operator's name of the change, such as `account_update`; of the future, too.
        value: as the operator gave it, usually an object.
        phone_number_id: of one number, where the operator named it so.
        phone_number: of one number, digits, where it named that.
        other_account_id: of the business account that the value names, where the entry may name a portfolio.
        operator_template_id: of the template that it is about, if it is about one.
        time: of the entry, as the operator gave it; None where it gave none.
    """

    business_account_id: str
    field: str
    value: Any
    phone_number_id: str | None = None
    phone_number: str | None = None
    other_account_id: str | None = None
    operator_template_id: str | None = None
    time: Any = None

    @property
    def members(self) -> dict[str, Any]:
        """The members of the value; none where it is no object."""
        return cast("dict[str, Any]", self.value) if isinstance(self.value, dict) else {}


@dataclass(frozen=True, slots=True)
class UnknownEvent:
    """A body or a status that names nothing it could be called back for; kept as it came, and logged."""

    what: str


Event = (
    StatusEvent
    | PaymentEvent
    | OddStatusEvent
    | InboundEvent
    | ReviewEvent
    | QualityEvent
    | CategoryEvent
    | AccountEvent
    | UnknownEvent
)
