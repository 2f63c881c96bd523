"""Events that an operator reports in its webhooks, decoded; the body of a webhook as received, and the items in it."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, NamedTuple, cast

from waypost.domain.message import MessageState

_EMPTY: Final[Mapping[str, Any]] = MappingProxyType({})
AI_CATEGORY: Final = "general_purpose_ai"
"""The price category of messages of AI providers. Source: ledger row 33; operator's facts 7.3."""


class StatusEvent(NamedTuple):
    """The status of a message has changed.

    Attributes:
        message_id: ours, from the operator's callback data; None when it carried none.
        recipient: the operator's spelling of the recipient's phone number, where given.
        recipient_user_id: the recipient's business-scoped id, where given.
        conversation: as received; copied into the callback.
        pricing: as `conversation`.
        raw: the status as received, for version 3.
        is_of_group: the message was sent to a group; the status is about one member or all of them.
        phone_number_id: of the number that sent the message.
        contact: the operator's contact object of the recipient, for version 3.
        recipient_parent_id: the recipient's id in a group of linked portfolios, where given.
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
    raw: Mapping[str, Any] = _EMPTY
    is_of_group: bool = False
    phone_number_id: str = ""
    contact: Mapping[str, Any] = _EMPTY
    recipient_parent_id: str | None = None

    @property
    def is_ai_price(self) -> bool:
        """True if it has the price of an AI provider's message, not sent by this service. Source: ledger row 33."""
        return self.state is MessageState.SENT and (self.pricing or {}).get("category") == AI_CATEGORY


@dataclass(frozen=True, slots=True)
class PaymentEvent:
    """The status of a payment that a message requested has changed; in version 3 only.

    Attributes:
        message_id: ours, from the operator's callback data; None when it carried none.
        raw: the status as received.

    Source: facts 4.4, `PAYMENTS`.
    """

    operator_message_id: str
    message_id: str | None
    raw: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class OtherStatusEvent:
    """A message status that this version does not know, such as `warning`; in callbacks of version 3 only.

    Attributes:
        status: the operator's name of it.
        message_id: ours, from the operator's callback data; None when it carried none.
        raw: the status as received.
    """

    status: str
    operator_message_id: str
    message_id: str | None
    raw: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class InboundEvent:
    """A recipient has sent a message, tapped a button, replied or reacted.

    Attributes:
        kind: the operator's type: `text`, `image`, …, `button` (a template's quick reply), `reaction`,
            `order`, `location`, `contacts`, `system`, `unsupported`; of `interactive` its own type instead:
            `button_reply`, `list_reply`, `nfm_reply`, …
        content: the object under the name of its type, as received; of `interactive` the inner object.
        reply_to: the operator's id of the message that this one replies to.
        referral: the advertisement that it came from.
        raw: the whole message as received, for version 3.
        contact: the operator's contact object of the sender, for version 3.
        group_id: of the group that it was sent to; None: it was sent to the business.
        sender_parent_id: the sender's id in a group of linked portfolios, where given.
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
    sender_parent_id: str | None = None

    @property
    def is_tap(self) -> bool:
        """True if a quick-reply button of a template was tapped."""
        return self.kind == "button"

    def text(self, name: str) -> str:
        """Return a text member of the content; empty where there is none."""
        value = cast("dict[str, Any]", self.content).get(name) if isinstance(self.content, dict) else None
        return value if isinstance(value, str) else ""


@dataclass(frozen=True, slots=True)
class ReviewEvent:
    """The operator has changed the status of a template.

    Attributes:
        status: the operator's name of it, in upper case, such as APPROVED.
        language_code: with underscores, even if the operator wrote hyphens.
        raw: `field`, `value` and the entry's `time` as received, for version 3; empty for an event of
            our own.
        at_s: time of the decision, whole seconds since the epoch; 0: not given.
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
    """A template's quality has changed; `quality` is the operator's value in upper case, such as GREEN.

    Attributes:
        raw: `field` and `value` as received, for version 3.
    """

    business_account_id: str
    operator_template_id: str
    element_name: str
    language_code: str
    quality: str
    raw: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class CategoryEvent:
    """The operator has changed the category of a template, or has announced the change.

    Attributes:
        category: the present one, or the previous one when the change is done.
        next_category: the announced one, or the new one when the change is done.
        is_done: true if the category has changed already.
        raw: `field` and `value` as received, for version 3.
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
        field: the operator's name of the change, such as `account_update`; may be unknown to this version.
        value: as received, usually an object.
        phone_number_id: of the number, where the operator sent its id.
        phone_number: of the number, digits, where the operator sent that.
        other_account_id: of the business account in the value, where the entry may name a portfolio.
        operator_template_id: of the template, if it is about one.
        time: of the entry, as received; None: not given.
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
        """The members of the value; empty where it is not an object."""
        return cast("dict[str, Any]", self.value) if isinstance(self.value, dict) else {}


@dataclass(frozen=True, slots=True)
class LimitEvent:
    """A change of a number's quality or messaging limit; the names are the operator's, empty: not given."""

    event: str
    old_limit: str
    current_limit: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class UnknownEvent:
    """A body or status for which no callback can be made; stored as received, and logged."""

    description: str


Event = (
    StatusEvent
    | PaymentEvent
    | OtherStatusEvent
    | InboundEvent
    | ReviewEvent
    | QualityEvent
    | CategoryEvent
    | AccountEvent
    | UnknownEvent
)


REPETITION_MS: Final = 3_600_000
"""An undated item that comes once more within this time is a repetition. Source: decision 0060."""
UNREADABLE_MARK: Final = b"\0"
"""First byte of the payload of an item that could not be read; no JSON text begins with it."""


class WebhookItem(NamedTuple):
    """One status, message or template change.

    Attributes:
        dedupe_key: the same when the operator sends the same item again.
        concurrency_group: the business number, or the business account.
        ordering_key: the user or the template that it is about.
        path: its position in the body.
        payload: JSON of the item with the members of the body that surround it; of an item that cannot be read,
            the mark and a body with this item alone, its bytes unchanged, to be split once more.
        defect: why the item cannot be read; None for one that can.
        is_undated: nothing in it says when it happened, so that an equal one much later is another event.
        read_event: returns the event of the payload, where what it says has been read already.
    """

    dedupe_key: str
    concurrency_group: str
    ordering_key: str
    path: str
    payload: bytes
    defect: str | None = None
    is_undated: bool = False
    read_event: Callable[[], "Event"] | None = None


@dataclass(frozen=True, slots=True)
class InboundWebhook:
    """The body of a webhook, stored once, and its items."""

    id: str
    operator_account_id: str
    received_on_ms: int
    body: bytes
    items: tuple[WebhookItem, ...]


def unreadable_group(account_id: str) -> str:
    """Return the concurrency group of what cannot be read and names neither number nor business account."""
    return f"unreadable {account_id}"


def unreadable_item(group: str, path: str, body: bytes, defect: str) -> WebhookItem:
    """Return the item of a body, or of a part of one, that cannot be read: it becomes a dead letter.

    Args:
        group: the business number or the business account; `unreadable_group` where it names neither.
        path: its position in the body that was received.
        body: as the operator sent it; of a part, a body that has this part alone.
        defect: why it cannot be read, without its content.
    """
    # Not the key of the item itself: the operator may send it once more, whole.
    digest = hashlib.sha256(path.encode() + b" " + body).hexdigest()[:32]
    return WebhookItem(f"unreadable {digest}", group, f"unreadable {digest}", path, UNREADABLE_MARK + body, defect)


def unreadable_body(payload: bytes) -> bytes | None:
    """Return the body in the payload of an item that could not be read; None for the payload of another item."""
    return payload[len(UNREADABLE_MARK) :] if payload.startswith(UNREADABLE_MARK) else None
