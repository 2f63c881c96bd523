"""Messages: one content for one destination, and its state after acceptance."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, NamedTuple, cast

from waypost.domain.session_messages.content import (
    NO_MEDIUM,
    Location,
    MediaKind,
    MediaRef,
    ProductSection,
    SessionContent,
)


class MessageKind(StrEnum):
    """The kind of a message in a callback of type `enqueued`."""

    SESSION = "session"
    TEMPLATE = "template"


class MessageState(StrEnum):
    """The state of a message. `lifecycle.py` has the table of transitions."""

    ACCEPTED = "accepted"
    UNCERTAIN = "uncertain"
    ENQUEUED = "enqueued"
    SENT = "sent"
    DELIVERED = "delivered"
    READ = "read"
    DELETED = "deleted"
    FAILED = "failed"


STATE_NAMES: Final = {state: state.value for state in MessageState}
STATES_BY_NAME: Final = {state.value: state for state in MessageState}
"""States as they are stored, and back: for the paths of every message, where `value` and a call of the enum cost."""


@dataclass(frozen=True, slots=True)
class CardSend:
    """One card of a carousel as sent."""

    media: MediaRef
    postback_texts: dict[int, str] = field(default_factory=dict[int, str])


@dataclass(frozen=True, slots=True)
class TemplateSend:
    """A template with its parameters. The stored template decides how they are split over its components.

    Source: spec, "Send template message with postback texts"; order from facts 9.2.
    """

    template_id: str
    params: tuple[str, ...] = ()  # values of the header's, the body's and the buttons' variables, then card by card
    postback_texts: dict[int, str] | None = None  # by button index, counted over all buttons from 0
    media_kind: MediaKind | None = None  # of a media header; None: not given
    media: MediaRef = NO_MEDIUM
    file_name: str = ""
    place: Location | None = None
    cards: tuple[CardSend, ...] = ()  # of a carousel
    card_media_kind: MediaKind | None = None  # image or video
    expiration_ms: int | None = None  # end of a limited-time offer; milliseconds since the epoch
    sections: tuple[ProductSection, ...] = ()  # of a PRODUCT template
    is_marketing: bool = False  # sent through the operator's API for marketing messages

    @property
    def shown_kind(self) -> str:
        """The kind of what is shown beside the text: of a medium, location, carousel, or text for nothing."""
        if self.media_kind is not None:
            return self.media_kind.value
        return "location" if self.place is not None else "carousel" if self.cards else "text"


@dataclass(frozen=True, slots=True)
class Passthrough:
    """A message in the operator's own format: everything that the partner sent.

    Source: spec, "Flow passthrough message"; facts 9.3.
    """

    type: str  # as in the body: `text`, `template`, …
    body: Any  # the object under the name of its type, unchanged; a list for contacts
    reply_to: str | None = None  # from `context.message_id`
    # every other member of the body, known here or not, unchanged: `to`, `category`, … None: accepted by an earlier
    # version, which did not store them
    members: dict[str, Any] | None = None
    is_marketing: bool = False  # sent through the operator's API for marketing messages


Content = SessionContent | TemplateSend | Passthrough


@dataclass(frozen=True, slots=True)
class Message:
    """A message as accepted."""

    id: str
    partner_id: int
    app_id: str
    source: str  # the app's phone number, digits
    # the recipient's phone number as sent by the partner, digits; of a passthrough to a business-scoped user id that
    # id, such as `US.1349`; to a group as `group_destination` writes it
    destination: str
    content: Content
    accepted_on_ms: int
    sandbox: bool = False  # as sent; stored and shown, without other effect (decision 0079)
    request: str = ""  # the form as received, for the trace; without credentials
    request_id: str = ""  # the client's id of the request; empty: it sent none

    @property
    def message_kind(self) -> MessageKind:
        """The kind, as in a callback of type `enqueued`."""
        return content_kind(self.content)


def content_kind(content: Content) -> MessageKind:
    """Return the kind of a content; a passthrough of type `template` is a template."""
    match content:
        case TemplateSend() | Passthrough(type="template"):
            return MessageKind.TEMPLATE
        case _:
            return MessageKind.SESSION


def reply_target_id(content: Content) -> str | None:
    """Return the id of the message that a content replies or reacts to, ours or the operator's; else None."""
    match content:
        case TemplateSend():
            return None
        case SessionContent():
            return content.reply_target_id
        case Passthrough(type="reaction", body={"message_id": str(message_id)}):
            return message_id
        case _:
            return content.reply_to


MEDIA_MEMBERS: Final = frozenset(kind.value for kind in MediaKind)
"""Members of the operator's bodies that contain media."""

PARTNER_DATA_MEMBERS: Final = frozenset({"flow_action_data", "flow_action_payload"})
"""Members that contain the partner's own data."""


def media_references(content: Content) -> tuple[str, ...]:
    """Return every media id in a message, ours and the operator's, in order; without links."""
    match content:
        case SessionContent():
            ids = [media.id for media in content.media_refs()]
        case TemplateSend(media=media, cards=cards):
            ids = [media.id, *(card.media.id for card in cards)]
        case Passthrough(type=kind, body=body):
            ids = _media_ids({kind: body})
    return tuple(media_id for media_id in ids if media_id)


def _media_ids(value: object) -> list[str | None]:
    match value:
        case dict():
            ids: list[str | None] = []
            for name, member in cast("dict[str, object]", value).items():
                if name in PARTNER_DATA_MEMBERS:
                    continue
                match member:
                    case {"id": str() | int() as id} if name in MEDIA_MEMBERS:
                        ids.append(str(id))
                    case _:
                        ids += _media_ids(member)
            return ids
        case list():
            return [media_id for item in cast("list[object]", value) for media_id in _media_ids(item)]
        case _:
            return []


class LoggedEvent(NamedTuple):
    """One step of a message."""

    name: str  # of the state, of the trace event, or of the callback's event
    end_ms: int | None  # when it was completed; None: it has not ended
    start_ms: int | None  # when it began; None: the step before it is not known
    destination: str  # the recipient's number; empty: not known
    # of a callback, False if it failed for good; None: it is not a callback, or has not ended
    delivered: bool | None = None
