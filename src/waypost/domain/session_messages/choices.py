"""Session messages with choices or one button: lists, quick replies, a URL to open, a request for a location."""

from dataclasses import dataclass
from itertools import count
from typing import Any, ClassVar, Final

from waypost.domain.coercion import Text, coerce_text
from waypost.domain.errors import ApiError, ErrorCode
from waypost.domain.session_messages.content import (
    NO_MEDIUM,
    Body,
    Choice,
    FieldLimit,
    HeaderMediumObject,
    HeaderObject,
    MediaKind,
    MediaRef,
    SendContext,
    SessionContent,
    TextObject,
    interactive_body,
    is_http_url,
    media_header,
    missing_member,
    read_media_ref,
    text_header,
    unwrap_text,
)

_REFERENCE: Final = "waypost-reply"


def choice_reference(message_id: str, number: int) -> str:
    """Return the id of a choice: a reference to our message, of at most 64 characters.

    It is never the postback text: the operator rejects a message with two equal ids, and two choices of
    one message may have the same postback text.

    Args:
        message_id: ours.
        number: of the choice, counted from 1 over all sections.
    """
    return f"{_REFERENCE}:{message_id}:{number}"


def is_choice_reference(text: str) -> bool:
    """True if a returned id is such a reference."""
    return text.partition(":")[0] == _REFERENCE


@dataclass(slots=True)
class OptionObject:
    """A choice, or the label of a list's button."""

    title: Text | None = None
    description: Text | None = None
    postbackText: Text | None = None  # noqa: N815  the wire's name, as below


@dataclass(slots=True)
class ListItemObject:
    """A section of a list."""

    title: Text | None = None
    subtitle: Text | None = None
    options: list[OptionObject] | None = None


@dataclass(slots=True)
class ListShape:
    """Members of a list message."""

    msgid: Text | None = None
    title: Text | None = None
    body: Text | TextObject | None = None
    footer: Text | TextObject | None = None
    globalButtons: list[OptionObject] | None = None  # noqa: N815
    items: list[ListItemObject] | None = None


@dataclass(frozen=True, slots=True)
class ListSection:
    """A titled part of a list."""

    title: str
    subtitle: str
    choices: tuple[Choice, ...]


@dataclass(frozen=True, slots=True)
class SessionList(SessionContent):
    """A list of choices, numbered from 1 over all sections.

    Source: facts 9.1, `list`; 6.4, `list_reply`.
    """

    wire_types: ClassVar = ("list",)
    stored_as: ClassVar = "list"
    kind_label: ClassVar = "List"
    shape: ClassVar = ListShape
    # fmt: off
    limits: ClassVar = (
        FieldLimit("title",               lambda c: [c.title],                                               60),
        FieldLimit("body",                lambda c: [c.body],                                                1024),
        FieldLimit("footer",              lambda c: [c.footer],                                              60),
        FieldLimit("globalButtons.title", lambda c: [c.button],                                              20),
        FieldLimit("items",               lambda c: [c.sections],                                            10),
        FieldLimit("items.title",         lambda c: [section.title for section in c.sections],               24),
        FieldLimit("items.options",       lambda c: [c.numbered_choices()],                                  10),
        FieldLimit("options.title",       lambda c: [choice.title for choice in c.numbered_choices()],       24),
        FieldLimit("options.description", lambda c: [choice.description for choice in c.numbered_choices()], 72),
    )
    # fmt: on

    body: str
    button: str
    sections: tuple[ListSection, ...]
    title: str = ""
    footer: str = ""
    sender_id: str = ""  # the sender's own `msgid`; returned as the reply's `id`
    reply_to: str | None = None

    @classmethod
    def read(cls, members: ListShape, wire_type: str, reply_to: str | None) -> "SessionList":
        body, button = unwrap_text(members.body), coerce_text((members.globalButtons or [OptionObject()])[0].title)
        if not body.strip():
            raise missing_member("body", "the text of the message")
        if not button.strip():
            raise missing_member("globalButtons[0].title", "the label of the button that opens the list")
        sections = tuple(
            ListSection(
                coerce_text(item.title), coerce_text(item.subtitle), _choices(item.options, f"items[{index}].options")
            )
            for index, item in enumerate(members.items or [])
        )
        if not any(section.choices for section in sections):
            raise missing_member("items", 'a list such as [{"title":"...","options":[{"type":"text","title":"..."}]}]')
        return cls(
            body,
            button,
            sections,
            title=coerce_text(members.title),
            footer=unwrap_text(members.footer),
            sender_id=coerce_text(members.msgid),
            reply_to=reply_to,
        )

    def operator_body(self, context: SendContext) -> tuple[str, Any]:
        numbers = count(1)
        sections: list[Body] = [
            ({"title": section.title} if section.title else {})
            | {
                "rows": [
                    {"id": choice_reference(context.message_id, next(numbers)), "title": choice.title}
                    | ({"description": choice.description} if choice.description else {})
                    for choice in section.choices
                ]
            }
            for section in self.sections
        ]
        action: Body = {"button": self.button, "sections": sections}
        return interactive_body("list", action, text_header(self.title), self.body, self.footer)

    def numbered_choices(self) -> tuple[Choice, ...]:
        return tuple(choice for section in self.sections for choice in section.choices)


@dataclass(slots=True)
class QuickReplyObject:
    """The content above the quick replies."""

    type: str = "text"
    header: Text | None = None
    text: Text | None = None
    caption: Text | None = None
    url: str | None = None
    originalUrl: str | None = None  # noqa: N815
    id: Text | None = None
    filename: Text | None = None


@dataclass(slots=True)
class QuickReplyShape:
    """Members of a quick reply message."""

    msgid: Text | None = None
    content: QuickReplyObject | None = None
    options: list[OptionObject] | None = None


# fmt: off
_CONTENT_TYPES: Final = {  # Source: facts 9.1, `quick_reply`, content.type
    "text":     None,
    "image":    MediaKind.IMAGE,
    "video":    MediaKind.VIDEO,
    "file":     MediaKind.DOCUMENT,
    "document": MediaKind.DOCUMENT,
}
# fmt: on


@dataclass(frozen=True, slots=True)
class SessionQuickReply(SessionContent):
    """A text or medium with up to three reply buttons. Choices are numbered from 1.

    Source: facts 9.1, `quick_reply`; 6.4, `button_reply`.
    """

    wire_types: ClassVar = ("quick_reply",)
    stored_as: ClassVar = "quick_reply"
    kind_label: ClassVar = "Quick replies"
    shape: ClassVar = QuickReplyShape
    # fmt: off
    limits: ClassVar = (
        FieldLimit("content.text",    lambda c: [c.text],                               1024),
        FieldLimit("content.header",  lambda c: [c.header],                             60),
        FieldLimit("content.caption", lambda c: [c.footer],                             60),
        FieldLimit("options",         lambda c: [c.choices],                            3),
        FieldLimit("options.title",   lambda c: [choice.title for choice in c.choices], 20),
    )
    # fmt: on

    text: str
    choices: tuple[Choice, ...]
    header: str = ""  # a text; only without a medium
    footer: str = ""
    media_kind: MediaKind | None = None  # image, video or document; None: no medium
    media: MediaRef = NO_MEDIUM
    file_name: str = ""
    sender_id: str = ""
    reply_to: str | None = None

    @classmethod
    def read(cls, members: QuickReplyShape, wire_type: str, reply_to: str | None) -> "SessionQuickReply":
        content = members.content or QuickReplyObject()
        kind = content.type.strip().lower()
        if kind not in _CONTENT_TYPES:
            raise ApiError(ErrorCode.FIELD_BROKEN, "message.content.type must be one of text, image, video, file.")
        text = coerce_text(content.text)
        if not text.strip():
            raise missing_member("content.text", "the text above the buttons")
        choices = _choices(members.options, "options")
        if not choices:
            raise missing_member("options", '[{"type":"text","title":"..."}]')
        media_kind, media = _CONTENT_TYPES[kind], NO_MEDIUM
        if media_kind is not None:
            link = content.url or content.originalUrl
            media = read_media_ref(content.id, link, "content.url", f"an address, or message.content.id, of the {kind}")
        return cls(
            text,
            choices,
            header=coerce_text(content.header),
            footer=coerce_text(content.caption),
            media_kind=media_kind,
            media=media,
            file_name=coerce_text(content.filename),
            sender_id=coerce_text(members.msgid),
            reply_to=reply_to,
        )

    def operator_body(self, context: SendContext) -> tuple[str, Any]:
        header = text_header(self.header)
        if self.media_kind is not None:
            header = media_header(self.media_kind, self.media, context.copies, self.file_name)
        buttons: list[Body] = [
            {"type": "reply", "reply": {"id": choice_reference(context.message_id, number), "title": choice.title}}
            for number, choice in enumerate(self.choices, 1)
        ]
        return interactive_body("button", {"buttons": buttons}, header, self.text, self.footer)

    def media_refs(self) -> tuple[MediaRef, ...]:
        return (self.media,)

    def numbered_choices(self) -> tuple[Choice, ...]:
        return self.choices


def _choices(options: list[OptionObject] | None, path: str) -> tuple[Choice, ...]:
    choices: list[Choice] = []
    for index, option in enumerate(options or []):
        title, postback = coerce_text(option.title), option.postbackText
        if not title.strip():
            raise missing_member(f"{path}[{index}].title", "the text of the choice")
        postback_text = None if postback is None else coerce_text(postback)
        choices.append(Choice(title, postback_text, coerce_text(option.description)))
    return tuple(choices)


@dataclass(slots=True)
class UrlButtonShape:
    """Members of a message with a URL button."""

    body: Text | TextObject | None = None
    header: Text | HeaderObject | None = None
    footer: Text | TextObject | None = None
    display_text: Text | None = None
    url: str | None = None


@dataclass(frozen=True, slots=True)
class SessionUrlButton(SessionContent):
    """A text with one button that opens a URL.

    Source: public page "Session messages", `cta_url`.
    """

    wire_types: ClassVar = ("cta_url",)
    stored_as: ClassVar = "cta_url"
    kind_label: ClassVar = "URL button"
    shape: ClassVar = UrlButtonShape
    # fmt: off
    limits: ClassVar = (
        FieldLimit("body",         lambda c: [c.body],   1024),
        FieldLimit("footer",       lambda c: [c.footer], 60),
        FieldLimit("display_text", lambda c: [c.label],  20),
        FieldLimit("url",          lambda c: [c.url],    2000),
    )
    # fmt: on

    body: str
    label: str  # of the button
    url: str
    footer: str = ""
    media_kind: MediaKind | None = None  # of the header, image or video; None: no medium
    media: MediaRef = NO_MEDIUM
    reply_to: str | None = None

    @classmethod
    def read(cls, members: UrlButtonShape, wire_type: str, reply_to: str | None) -> "SessionUrlButton":
        body, label, url = unwrap_text(members.body), coerce_text(members.display_text), (members.url or "").strip()
        if not body.strip():
            raise missing_member("body", "the text of the message")
        if not label.strip():
            raise missing_member("display_text", "the label of the button")
        if not url:
            raise missing_member("url", "the address that the button opens")
        media_kind, media = _header_medium(members.header)
        return cls(body, label, url, unwrap_text(members.footer), media_kind, media, reply_to)

    def operator_body(self, context: SendContext) -> tuple[str, Any]:
        header: Body | None = None
        if self.media_kind is not None:
            header = media_header(self.media_kind, self.media, context.copies)
        parameters = {"display_text": self.label, "url": self.url}
        action: Body = {"name": "cta_url", "parameters": parameters}
        return interactive_body("cta_url", action, header, self.body, self.footer)

    def media_refs(self) -> tuple[MediaRef, ...]:
        return (self.media,)

    def operator_error(self) -> str | None:
        return None if is_http_url(self.url) else "message.url must begin with http:// or https://"


@dataclass(slots=True)
class LocationActionObject:
    """The action of a location request's button."""

    name: Text | None = None


@dataclass(slots=True)
class LocationRequestShape:
    """Members of a location request."""

    body: Text | TextObject | None = None
    action: LocationActionObject | None = None


_SEND_LOCATION: Final = "send_location"


@dataclass(frozen=True, slots=True)
class SessionLocationRequest(SessionContent):
    """A text with a button that shares the recipient's location.

    Source: public page "Session messages", `location_request_message`.
    """

    wire_types: ClassVar = ("location_request_message",)
    stored_as: ClassVar = "location_request"
    kind_label: ClassVar = "Location request"
    shape: ClassVar = LocationRequestShape
    limits: ClassVar = (FieldLimit("body.text", lambda c: [c.body], 1024),)

    body: str
    reply_to: str | None = None

    @classmethod
    def read(cls, members: LocationRequestShape, wire_type: str, reply_to: str | None) -> "SessionLocationRequest":
        body = unwrap_text(members.body)
        if not body.strip():
            raise missing_member("body.text", "the text of the message")
        name = coerce_text(members.action.name) if members.action else _SEND_LOCATION
        if name != _SEND_LOCATION:
            raise ApiError(ErrorCode.FIELD_BROKEN, f"message.action.name must be {_SEND_LOCATION}.")
        return cls(body, reply_to)

    def operator_body(self, context: SendContext) -> tuple[str, Any]:
        return interactive_body("location_request_message", {"name": _SEND_LOCATION}, None, self.body, "")


def _header_medium(header: Text | HeaderObject | None) -> tuple[MediaKind | None, MediaRef]:
    """Return kind and medium of a header; None and no medium where there is no header.

    Raises:
        ApiError: the header has another type, or lacks its medium.
    """
    if header is None or header == "":
        return None, NO_MEDIUM
    header_object = header if isinstance(header, HeaderObject) else HeaderObject()
    kind = coerce_text(header_object.type).strip().lower()
    if kind not in ("image", "video"):
        raise ApiError(ErrorCode.FIELD_BROKEN, f'message.header.type must be image or video; it is "{kind[:20]}".')
    medium = header_object.image if kind == "image" else header_object.video
    if medium is None:
        medium = HeaderMediumObject(header_object.id, header_object.url or header_object.originalUrl)
    name = f"header.{kind}.link"
    accepted = f"an address, or message.header.{kind}.id, of the {kind}"
    return MediaKind(kind), read_media_ref(medium.id, medium.link, name, accepted)
