"""Messages: one thing for one destination, from acceptance on."""

from dataclasses import dataclass
from enum import StrEnum


class MessageKind(StrEnum):
    """The kinds of message."""

    SESSION = "session"
    TEMPLATE = "template"


class MessageState(StrEnum):
    """Where a message stands. Which event or outcome moves it is a table in `lifecycle.py`."""

    ACCEPTED = "accepted"
    UNCERTAIN = "uncertain"
    ENQUEUED = "enqueued"
    SENT = "sent"
    DELIVERED = "delivered"
    READ = "read"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class SessionText:
    """A free-form text.

    Attributes:
        reply_to: id of the message this one answers: ours, or the operator's.

    Source: spec, "Send session text message", message object.
    """

    text: str
    preview_url: bool = False
    reply_to: str | None = None


@dataclass(frozen=True, slots=True)
class TemplateSend:
    """A template with its parameters.

    Attributes:
        params: values of the header's, the body's and the buttons' variables, in this order.
        postback_texts: by button index, counted over all buttons from 0.

    Source: spec, "Send template message with postback texts"; order from facts 9.2.
    """

    template_id: str
    params: tuple[str, ...] = ()
    postback_texts: dict[int, str] | None = None


Content = SessionText | TemplateSend


@dataclass(frozen=True, slots=True)
class Message:
    """A message as accepted.

    Attributes:
        source: the app's phone number, digits.
        destination: the recipient's phone number as sent by the partner, digits.
        sandbox: as sent; kept and shown, no other effect (design 12.13).
        request: the form as it came, for the trace; it holds no credential.
    """

    id: str
    partner_id: int
    app_id: str
    source: str
    destination: str
    content: Content
    accepted_on_ms: int
    sandbox: bool = False
    request: str = ""

    @property
    def kind(self) -> MessageKind:
        """Session or template, as a callback of type `enqueued` names it."""
        return (
            MessageKind.SESSION if isinstance(self.content, SessionText) else MessageKind.TEMPLATE
        )
