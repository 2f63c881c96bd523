"""What an operator can tell us, in our words."""

from dataclasses import dataclass
from typing import Any

from waypost.domain.message import MessageState


@dataclass(frozen=True, slots=True)
class StatusEvent:
    """A message has come further, or has failed.

    Attributes:
        message_id: ours, from the operator's callback data; None when it carried none.
        recipient: the operator's spelling of the recipient's phone number, where given.
        conversation: as the operator gave it; copied into the callback.
        pricing: likewise.
    """

    state: MessageState
    operator_message_id: str
    message_id: str | None
    recipient: str | None
    at_s: int
    code: int | None = None
    reason: str | None = None
    conversation: dict[str, Any] | None = None
    pricing: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class InboundEvent:
    """A recipient has written or tapped.

    Attributes:
        kind: `text` or `quick_reply`; any other is kept in the trace and called back to nobody.
        payload: what came back from a tapped button, as the operator said it.
        reply_to: the operator's id of the message this one answers.
    """

    kind: str
    operator_message_id: str
    phone_number_id: str
    sender: str | None
    sender_user_id: str | None
    sender_name: str
    at_s: int
    text: str = ""
    payload: str = ""
    reply_to: str | None = None
    forwarded: bool = False
    frequently_forwarded: bool = False


@dataclass(frozen=True, slots=True)
class ReviewEvent:
    """The operator has decided on a template, paused it, or the like.

    Attributes:
        status: the operator's word in upper case, such as APPROVED.
        language_code: with underscores, whatever the operator wrote.
    """

    business_account_id: str
    operator_template_id: str
    element_name: str
    language_code: str
    status: str
    reason: str | None = None
    description: str | None = None


@dataclass(frozen=True, slots=True)
class UnknownEvent:
    """Something this version does not know; kept in the trace."""

    what: str


Event = StatusEvent | InboundEvent | ReviewEvent | UnknownEvent
