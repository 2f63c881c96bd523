"""Messages: one thing for one destination, from acceptance on."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, cast


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


class MediaKind(StrEnum):
    """The kinds of media, in the operator's words; the wire's `file` is a document.

    A GIF is only a template's header, and never uploaded.
    """

    IMAGE = "image"
    VIDEO = "video"
    AUDIO = "audio"
    DOCUMENT = "document"
    STICKER = "sticker"
    GIF = "gif"


@dataclass(frozen=True, slots=True)
class MediaRef:
    """Where a message's medium is: exactly one of the two.

    Attributes:
        id: a media id, ours or the operator's own.
        link: fetched by the operator, not by us.
    """

    id: str | None = None
    link: str | None = None


NO_MEDIUM: Final = MediaRef()
"""Where there is none; one for all, because making one costs as much as reading a short field."""


@dataclass(frozen=True, slots=True)
class SessionText:
    """A free-form text.

    Attributes:
        reply_to: id of the message this one answers: ours, or the operator's. So in every kind.

    Source: spec, "Send session text message", message object.
    """

    text: str
    preview_url: bool = False
    reply_to: str | None = None


@dataclass(frozen=True, slots=True)
class SessionMedia:
    """An image, video, audio, document or sticker. Source: facts 9.1."""

    kind: MediaKind
    media: MediaRef
    caption: str = ""
    file_name: str = ""
    reply_to: str | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """A location. Degrees; names may be empty."""

    latitude: float
    longitude: float
    name: str = ""
    address: str = ""


@dataclass(frozen=True, slots=True)
class SessionLocation:
    """A location. Source: facts 9.1."""

    place: Place
    reply_to: str | None = None


@dataclass(frozen=True, slots=True)
class SessionContacts:
    """Contact cards, in the operator's shape. Source: facts 9.1, `contact`; operator's facts 4.1."""

    contacts: list[dict[str, Any]]
    reply_to: str | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """One option that the recipient can choose.

    Attributes:
        postback_text: what its choice calls back; None where the sender gave none.
    """

    title: str
    postback_text: str | None = None
    description: str = ""


@dataclass(frozen=True, slots=True)
class ListSection:
    """A titled part of a list."""

    title: str
    subtitle: str
    choices: tuple[Choice, ...]


@dataclass(frozen=True, slots=True)
class SessionList:
    """A list to choose from. Choices are numbered from 1 through all sections.

    Attributes:
        sender_id: the sender's own `msgid`; comes back as the reply's `id`.

    Source: facts 9.1, `list`; 6.4, `list_reply`.
    """

    body: str
    button: str
    sections: tuple[ListSection, ...]
    title: str = ""
    footer: str = ""
    sender_id: str = ""
    reply_to: str | None = None


@dataclass(frozen=True, slots=True)
class SessionQuickReply:
    """A text or medium with up to three reply buttons. Choices are numbered from 1.

    Attributes:
        header: a text above; only where there is no medium.
        media_kind: image, video or document; None where there is no medium.

    Source: facts 9.1, `quick_reply`; 6.4, `button_reply`.
    """

    text: str
    choices: tuple[Choice, ...]
    header: str = ""
    footer: str = ""
    media_kind: MediaKind | None = None
    media: MediaRef = NO_MEDIUM
    file_name: str = ""
    sender_id: str = ""
    reply_to: str | None = None


@dataclass(frozen=True, slots=True)
class ProductSection:
    """A titled part of a product list; products by their id in the catalogue."""

    title: str
    product_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SessionProducts:
    """One product, a list of products, or the whole catalogue.

    Attributes:
        sub_type: `product`, `product_list` or `catalog_message`.

    Source: facts 9.1, `product_details`.
    """

    sub_type: str
    catalog_id: str = ""
    product_id: str = ""
    header: str = ""
    body: str = ""
    footer: str = ""
    sections: tuple[ProductSection, ...] = ()
    thumbnail_id: str = ""
    reply_to: str | None = None


@dataclass(frozen=True, slots=True)
class SessionUrlButton:
    """A text with one button that opens a URL.

    Attributes:
        label: of the button.
        media_kind: image or video, above the text; None where there is no medium.

    Source: public page "Session messages", `cta_url`.
    """

    body: str
    label: str
    url: str
    footer: str = ""
    media_kind: MediaKind | None = None
    media: MediaRef = NO_MEDIUM
    reply_to: str | None = None


@dataclass(frozen=True, slots=True)
class SessionReaction:
    """A reaction to a message.

    Attributes:
        emoji: empty removes the reaction.
        message_id: of the message reacted to: ours, or the operator's.

    Source: public page "Session messages", `reaction`.
    """

    emoji: str
    message_id: str


@dataclass(frozen=True, slots=True)
class SessionLocationRequest:
    """A text with a button that shares the recipient's location.

    Source: public page "Session messages", `location_request_message`.
    """

    body: str
    reply_to: str | None = None


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


Content = (
    SessionText
    | SessionMedia
    | SessionLocation
    | SessionContacts
    | SessionList
    | SessionQuickReply
    | SessionProducts
    | SessionUrlButton
    | SessionReaction
    | SessionLocationRequest
    | TemplateSend
    | Passthrough
)


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
        case SessionReaction(message_id=message_id):
            return message_id
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
        case SessionMedia(media=media) | SessionQuickReply(media=media) | SessionUrlButton(media=media):
            found = [media.id]
        case TemplateSend(media=media, cards=cards):
            found = [media.id, *(card.media.id for card in cards)]
        case Passthrough(type=kind, body=body):
            found = _ids_in({kind: body})
        case _:
            found = []
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
