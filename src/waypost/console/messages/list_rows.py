"""The parameters of a template message with the labels of their variables, for a line in a list."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from waypost.console.messages.filters import MESSAGE_KINDS, encode_cursor
from waypost.domain.message import TemplateSend
from waypost.domain.session_messages.plain import SessionMedia
from waypost.domain.templates.fields import TemplateDraft
from waypost.domain.templates.rendering import split_parameters
from waypost.domain.templates.template import Template
from waypost.domain.templates.variables import parameter_names
from waypost.store.encoding import decode_retained_content, short_text
from waypost.store.messages.lists import MessageCursor
from waypost.wire.redaction import TextVisibility, redact_preview

MAX_LISTED_PARAMETERS: Final = 6
MAX_PARAMETER_CHARS: Final = 40


@dataclass(frozen=True, slots=True)
class LabelledParameter:
    """One parameter; `label` is such as `{{1}}`, `Header {{1}}` or `Button 2`."""

    label: str
    value: str


def label_parameters(draft: TemplateDraft, params: Sequence[str]) -> list[LabelledParameter]:
    """Return the first parameters of a send, labelled by the template's current version, with shortened values."""
    labelled = [*_labelled(draft, params)][:MAX_LISTED_PARAMETERS]
    return [LabelledParameter(label, _shorten(value)) for label, value in labelled]


def _labelled(draft: TemplateDraft, params: Sequence[str]) -> Iterator[tuple[str, str]]:
    split = split_parameters(draft, params)
    yield from _text_parameters("Header ", draft.header, split.header)
    yield from _text_parameters("", draft.content, split.body)
    for index, value in split.buttons.items():
        yield f"Button {index + 1}", value
    if split.thumbnail is not None:
        yield "Thumbnail", split.thumbnail
    for number, (card, values) in enumerate(zip(draft.cards or (), split.cards, strict=False), 1):
        yield from _text_parameters(f"Card {number} ", card.body, values.body)
        for index, value in values.buttons.items():
            yield f"Card {number}, button {index + 1}", value


def _text_parameters(prefix: str, text: str | None, values: Sequence[str]) -> Iterator[tuple[str, str]]:
    names = parameter_names(text)
    for index, value in enumerate(values):
        name = names[index] if index < len(names) else str(index + 1)
        yield f"{prefix}{{{{{name}}}}}", value


def _shorten(value: str) -> str:
    line = " ".join(value[: MAX_PARAMETER_CHARS * 4].split())
    return line if len(line) <= MAX_PARAMETER_CHARS else line[: MAX_PARAMETER_CHARS - 1].rstrip() + "…"


_LABELS: Final = {stored: label for _, all_stored, label in MESSAGE_KINDS for stored in all_stored}
MAX_PREVIEW_CHARS: Final = 120
MAX_COUNTED_CHARS: Final = 100_000
"""Maximum characters that are counted of a hidden text."""
FINAL_STATES: Final = frozenset({"read", "deleted"})


@dataclass(frozen=True, slots=True)
class MessageListRow:
    """One message of a list.

    Attributes:
        cursor: cursor of the row.
        name: the recipient's; empty if it never wrote.
        what: name of the template, or the message type.
        parameters: those of a template, unless they are hidden.
        text: beginning of any other content, or its length if hidden; empty if there is none or it was deleted.
    """

    id: str
    cursor: str
    destination: str
    name: str
    what: str
    is_template: bool
    parameters: Sequence[LabelledParameter]
    text: str
    state: str
    unconfirmed: bool
    code: int | None
    reason: str
    sandbox: bool
    accepted_on_ms: int
    changed_on_ms: int

    @property
    def is_final(self) -> bool:
        """True if the status cannot change any more."""
        return self.state in FINAL_STATES or (self.state == "failed" and not self.unconfirmed)


@dataclass(frozen=True, slots=True)
class MessageListContext:
    """The templates and names that the rows of a list refer to.

    Attributes:
        templates: by id.
        names: of recipients, by number or business-scoped id.
        show_text: true if texts are shown without a reveal.
    """

    show_text: bool
    templates: Mapping[str, Template] = field(default_factory=dict[str, Template])
    names: Mapping[str, str] = field(default_factory=dict[str, str])


def message_rows(rows: Iterable[Mapping[str, Any]], context: MessageListContext) -> list[MessageListRow]:
    """Return list rows from rows of the store."""
    return [_message_row(row, context) for row in rows]


def kind_label(kind: str, content: bytes = b"") -> str:
    """Return the label of a stored kind; with the content, of a medium's own kind, such as `Image`."""
    stored = decode_retained_content(kind, content) if kind == SessionMedia.stored_as else None
    return stored.kind.capitalize() if isinstance(stored, SessionMedia) else _LABELS.get(kind, kind)


def _message_row(row: Mapping[str, Any], context: MessageListContext) -> MessageListRow:
    sight = TextVisibility(context.show_text, row["holds_code"])
    template = context.templates.get(row["template_id"] or "")
    parameters = _parameters(row, template) if sight.is_open else ()
    chars = MAX_PREVIEW_CHARS if sight.is_open else MAX_COUNTED_CHARS
    return MessageListRow(
        id=row["id"],
        cursor=encode_cursor(MessageCursor(row["accepted_on_ms"], row["id"])),
        destination=row["destination"],
        name=context.names.get(row["destination"], ""),
        what=kind_label(row["kind"], row["content"]) if template is None else template_label(template),
        is_template=bool(row["template_id"]),
        parameters=parameters,
        text="" if parameters else redact_preview(short_text(row["content"], chars), sight),
        state=row["state"],
        unconfirmed=row["unconfirmed"],
        code=row["code"],
        reason=row["reason"] or "",
        sandbox=row["sandbox"],
        accepted_on_ms=row["accepted_on_ms"],
        changed_on_ms=row["changed_on_ms"],
    )


def template_label(template: Template) -> str:
    """Return the name and the language of a template."""
    return f"{template.draft.element_name} ({template.draft.language_code})"


def _parameters(row: Mapping[str, Any], template: Template | None) -> Sequence[LabelledParameter]:
    content = decode_retained_content(row["kind"], row["content"]) if template is not None else None
    if template is None or not isinstance(content, TemplateSend):
        return ()
    return label_parameters(template.draft, content.params)
