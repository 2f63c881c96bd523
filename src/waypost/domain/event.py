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
    """The status of a message has changed."""

    state: MessageState
    operator_message_id: str
    message_id: str | None  # ours, from the operator's callback data; None when it carried none
    recipient: str | None  # the operator's spelling of the recipient's phone number, where given
    at_s: int
    recipient_user_id: str | None = None  # the recipient's business-scoped id, where given
    code: int | None = None
    reason: str | None = None
    conversation: dict[str, Any] | None = None  # as received; copied into the callback
    pricing: dict[str, Any] | None = None  # as `conversation`
    raw: Mapping[str, Any] = _EMPTY  # the status as received, for version 3
    is_of_group: bool = False  # the message was sent to a group; the status is about one member or all of them
    phone_number_id: str = ""  # of the number that sent the message
    contact: Mapping[str, Any] = _EMPTY  # the operator's contact object of the recipient, for version 3
    recipient_parent_id: str | None = None  # the recipient's id in a group of linked portfolios, where given

    @property
    def is_ai_price(self) -> bool:
        """True if it has the price of an AI provider's message, not sent by this service. Source: ledger row 33."""
        return self.state is MessageState.SENT and (self.pricing or {}).get("category") == AI_CATEGORY


@dataclass(frozen=True, slots=True)
class PaymentEvent:
    """The status of a payment that a message requested has changed; in version 3 only.

    Source: facts 4.4, `PAYMENTS`.
    """

    operator_message_id: str
    message_id: str | None  # ours, from the operator's callback data; None when it carried none
    raw: dict[str, Any] = field(default_factory=dict[str, Any])  # the status as received


@dataclass(frozen=True, slots=True)
class OtherStatusEvent:
    """A message status that this version does not know, such as `warning`; in callbacks of version 3 only."""

    status: str  # the operator's name of it
    operator_message_id: str
    message_id: str | None  # ours, from the operator's callback data; None when it carried none
    raw: dict[str, Any] = field(default_factory=dict[str, Any])  # the status as received


@dataclass(frozen=True, slots=True)
class InboundEvent:
    """A recipient has sent a message, tapped a button, replied or reacted."""

    # the operator's type: `text`, `image`, …, `button` (a template's quick reply), `reaction`, `order`, `location`,
    # `contacts`, `system`, `unsupported`; of `interactive` its own type instead: `button_reply`, `list_reply`,
    # `nfm_reply`, …
    kind: str
    operator_message_id: str
    phone_number_id: str
    sender: str | None
    sender_user_id: str | None
    sender_name: str
    at_s: int
    content: Any = None  # the object under the name of its type, as received; of `interactive` the inner object
    reply_to: str | None = None  # the operator's id of the message that this one replies to
    forwarded: bool = False
    frequently_forwarded: bool = False
    referral: dict[str, Any] | None = None  # the advertisement that it came from
    raw: dict[str, Any] = field(default_factory=dict[str, Any])  # the whole message as received, for version 3
    # the operator's contact object of the sender, for version 3
    contact: dict[str, Any] = field(default_factory=dict[str, Any])
    group_id: str | None = None  # of the group that it was sent to; None: it was sent to the business
    sender_parent_id: str | None = None  # the sender's id in a group of linked portfolios, where given

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
    """The operator has changed the status of a template."""

    business_account_id: str
    operator_template_id: str
    element_name: str
    language_code: str  # with underscores, even if the operator wrote hyphens
    status: str  # the operator's name of it, in upper case, such as APPROVED
    reason: str | None = None
    description: str | None = None
    # `field`, `value` and the entry's `time` as received, for version 3; empty for an event of our own
    raw: dict[str, Any] = field(default_factory=dict[str, Any])
    at_s: int = 0  # time of the decision, whole seconds since the epoch; 0: not given


@dataclass(frozen=True, slots=True)
class QualityEvent:
    """A template's quality has changed; `quality` is the operator's value in upper case, such as GREEN."""

    business_account_id: str
    operator_template_id: str
    element_name: str
    language_code: str
    quality: str
    raw: dict[str, Any] = field(default_factory=dict[str, Any])  # `field` and `value` as received, for version 3


@dataclass(frozen=True, slots=True)
class CategoryEvent:
    """The operator has changed the category of a template, or has announced the change."""

    business_account_id: str
    operator_template_id: str
    element_name: str
    language_code: str
    category: str  # the present one, or the previous one when the change is done
    next_category: str  # the announced one, or the new one when the change is done
    is_done: bool  # true if the category has changed already
    raw: dict[str, Any] = field(default_factory=dict[str, Any])  # `field` and `value` as received, for version 3


@dataclass(frozen=True, slots=True)
class AccountEvent:
    """A change of a business account, one of its numbers, groups, calls or anything else."""

    business_account_id: str
    field: str  # the operator's name of the change, such as `account_update`; may be unknown to this version
    value: Any  # as received, usually an object
    phone_number_id: str | None = None  # of the number, where the operator sent its id
    phone_number: str | None = None  # of the number, digits, where the operator sent that
    other_account_id: str | None = None  # of the business account in the value, where the entry may name a portfolio
    operator_template_id: str | None = None  # of the template, if it is about one
    time: Any = None  # of the entry, as received; None: not given

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
    """One status, message or template change."""

    dedupe_key: str  # the same when the operator sends the same item again
    concurrency_group: str  # the business number, or the business account
    ordering_key: str  # the user or the template that it is about
    path: str  # its position in the body
    # JSON of the item with the members of the body that surround it; of an item that cannot be read, the mark and a
    # body with this item alone, its bytes unchanged, to be split once more
    payload: bytes
    defect: str | None = None  # why the item cannot be read; None for one that can
    is_undated: bool = False  # nothing in it says when it happened, so that an equal one much later is another event
    # returns the event of the payload, where what it says has been read already
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
