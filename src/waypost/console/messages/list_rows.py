"""Rows of the list of messages: the kind of each, a preview of its content, and the parameters of a template."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from waypost.console.page_request import PageRequest
from waypost.domain.message import TemplateSend
from waypost.domain.session_messages import SESSION_KINDS
from waypost.domain.session_messages.plain import SessionMedia
from waypost.domain.templates.fields import TemplateDraft
from waypost.domain.templates.rendering import split_parameters
from waypost.domain.templates.template import Template
from waypost.domain.templates.variables import parameter_names
from waypost.store.encoding import decode_retained_content, short_text
from waypost.store.messages.recipients import recipient_names
from waypost.store.templates.templates import templates_by_ids
from waypost.wire.redaction import TextVisibility, redact_preview

MESSAGE_KINDS: Final = (  # query value, stored kinds, label
    ("template", ("template", "template_passthrough", "marketing_template", "marketing_passthrough"), "Template"),
    *((kind.stored_as, (kind.stored_as,), kind.kind_label) for kind in SESSION_KINDS),
    ("passthrough", ("passthrough",), "Passthrough"),
)
MAX_LISTED_PARAMETERS: Final = 6
MAX_PARAMETER_CHARS: Final = 40


class LabelledParameter(NamedTuple):
    """One parameter; `label` is such as `{{1}}`, `Header {{1}}` or `Button 2`."""

    label: str
    value: str


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


async def read_list_rows(
    request: PageRequest, app_id: str, rows: Sequence[dict[str, Any]], *, show_text: bool = False
) -> list[dict[str, Any]]:
    """Return rows as `search_messages` returns them with what lists show of them.

    Each gets `name`, the recipient's, empty if it never wrote; `what`, the name of the template, or the message type;
    `template`, its name and language; `parameters`, those of a template, unless they are hidden; and `text`, the
    beginning of any other content, or its length if hidden, empty if there is none or it was deleted.

    Args:
        show_text: true if they were revealed.
    """
    ids = {row["template_id"] for row in rows if row["template_id"]}
    found = await request.read(templates_by_ids, ids) if ids else {}
    own = {id: one for id, one in found.items() if one.partner_id == request.partner.id}  # noqa: A001
    names = await request.read(recipient_names, app_id, {row["destination"] for row in rows}) if rows else {}
    show_text = show_text or request.services.show_text
    return [
        {
            **row,
            "name": names.get(row["destination"], ""),
            **_describe_content(row, own.get(row["template_id"] or ""), TextVisibility(show_text, row["holds_code"])),
        }
        for row in rows
    ]


def is_final(row: Mapping[str, Any]) -> bool:
    """True if the status of a message cannot change any more."""
    return row["state"] in FINAL_STATES or (row["state"] == "failed" and not row["unconfirmed"])


def _describe_content(row: Mapping[str, Any], template: Template | None, sight: TextVisibility) -> dict[str, Any]:
    parameters = _parameters(row, template) if sight.is_open else ()
    chars = MAX_PREVIEW_CHARS if sight.is_open else MAX_COUNTED_CHARS
    label = "" if template is None else f"{template.draft.element_name} ({template.draft.language_code})"
    return {
        "what": label or kind_label(row["kind"], row["content"]),
        "template": label or row["template_id"],
        "parameters": parameters,
        "text": "" if parameters else redact_preview(short_text(row["content"], chars), sight),
    }


def kind_label(kind: str, content: bytes = b"") -> str:
    """Return the label of a stored kind; with the content, of a medium's own kind, such as `Image`."""
    stored = decode_retained_content(kind, content) if kind == SessionMedia.stored_as else None
    return stored.kind.capitalize() if isinstance(stored, SessionMedia) else _LABELS.get(kind, kind)


def _parameters(row: Mapping[str, Any], template: Template | None) -> Sequence[LabelledParameter]:
    """Return the first parameters of a send, labelled by the template's current version, with shortened values."""
    content = decode_retained_content(row["kind"], row["content"]) if template is not None else None
    if template is None or not isinstance(content, TemplateSend):
        return ()
    labelled = [*_labelled(template.draft, content.params)][:MAX_LISTED_PARAMETERS]
    return [LabelledParameter(label, _shorten(value)) for label, value in labelled]
