"""Session messages with choices: lists and quick replies."""

from dataclasses import dataclass
from typing import Any, ClassVar, Final

from waypost.domain.coercion import Text, as_text
from waypost.domain.errors import ApiError, ErrorCode
from waypost.domain.session_messages.content import (
    NO_MEDIUM,
    Body,
    Choice,
    Limit,
    MediaKind,
    MediaRef,
    SendContext,
    SessionContent,
    TextObject,
    interactive_body,
    media_header,
    media_ref,
    missing,
    text_header,
    text_of,
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

    Attributes:
        sender_id: the sender's own `msgid`; returned as the reply's `id`.

    Source: facts 9.1, `list`; 6.4, `list_reply`.
    """

    wire_types: ClassVar = ("list",)
    stored_as: ClassVar = "list"
    kind_label: ClassVar = "List"
    shape: ClassVar = ListShape
    # fmt: off
    limits: ClassVar = (
        Limit("title",               lambda c: [c.title],                                                  60),
        Limit("body",                lambda c: [c.body],                                                 1024),
        Limit("footer",              lambda c: [c.footer],                                                 60),
        Limit("globalButtons.title", lambda c: [c.button],                                                 20),
        Limit("items",               lambda c: [c.sections],                                               10),
        Limit("items.title",         lambda c: [section.title for section in c.sections],                  24),
        Limit("items.options",       lambda c: [c.numbered_choices()],                                     10),
        Limit("options.title",       lambda c: [choice.title for choice in c.numbered_choices()],          24),
        Limit("options.description", lambda c: [choice.description for choice in c.numbered_choices()], 72),
    )
    # fmt: on

    body: str
    button: str
    sections: tuple[ListSection, ...]
    title: str = ""
    footer: str = ""
    sender_id: str = ""
    reply_to: str | None = None

    @classmethod
    def read(cls, given: ListShape, wire_type: str, reply_to: str | None) -> "SessionList":
        body, button = text_of(given.body), as_text((given.globalButtons or [OptionObject()])[0].title)
        if not body.strip():
            raise missing("body", "the text of the message")
        if not button.strip():
            raise missing("globalButtons[0].title", "the label of the button that opens the list")
        sections = tuple(
            ListSection(as_text(item.title), as_text(item.subtitle), _choices(item.options, f"items[{index}].options"))
            for index, item in enumerate(given.items or [])
        )
        if not any(section.choices for section in sections):
            raise missing("items", "at least one with options")
        return cls(
            body,
            button,
            sections,
            title=as_text(given.title),
            footer=text_of(given.footer),
            sender_id=as_text(given.msgid),
            reply_to=reply_to,
        )

    def operator_body(self, context: SendContext) -> tuple[str, Any]:
        number = 0
        sections: list[Body] = []
        for section in self.sections:
            rows: list[Body] = []
            for choice in section.choices:
                number += 1
                row: Body = {"id": choice_reference(context.message_id, number), "title": choice.title}
                if choice.description:
                    row["description"] = choice.description
                rows.append(row)
            section_body: Body = {"title": section.title} if section.title else {}
            sections.append(section_body | {"rows": rows})
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

    Attributes:
        header: a text; only without a medium.
        media_kind: image, video or document; None: no medium.

    Source: facts 9.1, `quick_reply`; 6.4, `button_reply`.
    """

    wire_types: ClassVar = ("quick_reply",)
    stored_as: ClassVar = "quick_reply"
    kind_label: ClassVar = "Quick replies"
    shape: ClassVar = QuickReplyShape
    # fmt: off
    limits: ClassVar = (
        Limit("content.text",    lambda c: [c.text],                           1024),
        Limit("content.header",  lambda c: [c.header],                           60),
        Limit("content.caption", lambda c: [c.footer],                           60),
        Limit("options",         lambda c: [c.choices],                           3),
        Limit("options.title",   lambda c: [choice.title for choice in c.choices], 20),
    )
    # fmt: on

    text: str
    choices: tuple[Choice, ...]
    header: str = ""
    footer: str = ""
    media_kind: MediaKind | None = None
    media: MediaRef = NO_MEDIUM
    file_name: str = ""
    sender_id: str = ""
    reply_to: str | None = None

    @classmethod
    def read(cls, given: QuickReplyShape, wire_type: str, reply_to: str | None) -> "SessionQuickReply":
        content = given.content or QuickReplyObject()
        kind = content.type.strip().lower()
        if kind not in _CONTENT_TYPES:
            raise ApiError(ErrorCode.FIELD_BROKEN, "message.content.type must be one of text, image, video, file.")
        text = as_text(content.text)
        if not text.strip():
            raise missing("content.text", "the text above the buttons")
        choices = _choices(given.options, "options")
        if not choices:
            raise missing("options", '[{"type":"text","title":"..."}]')
        media_kind, media = _CONTENT_TYPES[kind], NO_MEDIUM
        if media_kind is not None:
            link = content.url or content.originalUrl
            media = media_ref(content.id, link, "content.url", f"an address, or message.content.id, of the {kind}")
        return cls(
            text,
            choices,
            header=as_text(content.header),
            footer=as_text(content.caption),
            media_kind=media_kind,
            media=media,
            file_name=as_text(content.filename),
            sender_id=as_text(given.msgid),
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


def _choices(given: list[OptionObject] | None, at: str) -> tuple[Choice, ...]:
    return tuple(_choice(option, f"{at}[{index}]") for index, option in enumerate(given or []))


def _choice(given: OptionObject, at: str) -> Choice:
    title = as_text(given.title)
    if not title.strip():
        raise missing(f"{at}.title", "the text of the choice")
    postback = given.postbackText
    return Choice(title, None if postback is None else as_text(postback), as_text(given.description))
