"""Messages: one thing for one destination, from acceptance on."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, cast

from waypost.domain.session_messages.content import (
    NO_MEDIUM,
    MediaKind,
    MediaRef,
    Place,
    ProductSection,
    SessionContent,
)


class MessageKind(StrEnum):
    """How a callback of type `enqueued` names a message."""

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
    DELETED = "deleted"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class CardSend:
    """One card of a carousel as sent."""

    media: MediaRef
    postback_texts: dict[int, str] = field(default_factory=dict[int, str])


@dataclass(frozen=True, slots=True)
class TemplateSend:
    """A template with its parameters. They are split over its components by the stored template.

    Attributes:
        params: values of the header's, the body's and the buttons' variables, then card by card.
        postback_texts: by button index, counted over all buttons from 0.
        media_kind: of a media header; None where none was given.
        cards: of a carousel.
        card_media_kind: image or video.
        expiration_ms: when a limited-time offer ends; milliseconds since the epoch.
        sections: of a PRODUCT template.

    Source: spec, "Send template message with postback texts"; order from facts 9.2.
    """

    template_id: str
    params: tuple[str, ...] = ()
    postback_texts: dict[int, str] | None = None
    media_kind: MediaKind | None = None
    media: MediaRef = NO_MEDIUM
    file_name: str = ""
    place: Place | None = None
    cards: tuple[CardSend, ...] = ()
    card_media_kind: MediaKind | None = None
    expiration_ms: int | None = None
    sections: tuple[ProductSection, ...] = ()


@dataclass(frozen=True, slots=True)
class Passthrough:
    """A message in the operator's own words: what the partner sent, all of it.

    Attributes:
        type: as in the body: `text`, `template`, …
        body: the object under the name of its type, untouched; a list for contacts.
        reply_to: from `context.message_id`.
        members: every other member of the body, known here or not, untouched: `to`, `category`, …
            None where a version that kept none of them has accepted the message.

    Source: spec, "Flow passthrough message"; facts 9.3.
    """

    type: str
    body: Any
    reply_to: str | None = None
    members: dict[str, Any] | None = None


Content = SessionContent | TemplateSend | Passthrough


@dataclass(frozen=True, slots=True)
class Message:
    """A message as accepted.

    Attributes:
        source: the app's phone number, digits.
        destination: the recipient's phone number as sent by the partner, digits; of a passthrough to
            a business-scoped user id that id, such as `US.1349`; to a group as `group_destination` has it.
        sandbox: as sent; kept and shown, no other effect (decision 0079).
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
        return kind_of(self.content)


def kind_of(content: Content) -> MessageKind:
    """Session or template; a passthrough is what its type says."""
    match content:
        case TemplateSend() | Passthrough(type="template"):
            return MessageKind.TEMPLATE
        case _:
            return MessageKind.SESSION


def reply_to_of(content: Content) -> str | None:
    """The id of the message that this one answers or reacts to: ours, or the operator's; else None."""
    match content:
        case TemplateSend():
            return None
        case SessionContent():
            return content.answered_id
        case Passthrough(type="reaction", body={"message_id": str(message_id)}):
            return message_id
        case _:
            return content.reply_to


MEDIA_MEMBERS: Final = frozenset(kind.value for kind in MediaKind)
"""Under these names the operator's bodies hold media."""

PARTNERS_DATA: Final = frozenset({"flow_action_data", "flow_action_payload"})
"""Under these names they hold what is the partner's alone."""


def media_references(content: Content) -> tuple[str, ...]:
    """Every media id that a message holds, ours and the operator's, in order; links are none."""
    match content:
        case SessionContent():
            found = [media.id for media in content.media_refs()]
        case TemplateSend(media=media, cards=cards):
            found = [media.id, *(card.media.id for card in cards)]
        case Passthrough(type=kind, body=body):
            found = _ids_in({kind: body})
    return tuple(one for one in found if one)


def _ids_in(value: object) -> list[str | None]:
    match value:
        case dict():
            found: list[str | None] = []
            for name, member in cast("dict[str, object]", value).items():
                if name in PARTNERS_DATA:
                    continue
                match member:
                    case {"id": str() | int() as id} if name in MEDIA_MEMBERS:
                        found.append(str(id))
                    case _:
                        found += _ids_in(member)
            return found
        case list():
            return [one for item in cast("list[object]", value) for one in _ids_in(item)]
        case _:
            return []
