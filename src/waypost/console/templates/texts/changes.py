"""The differences between the last approved version of a template and a draft, field by field and word by word."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

from waypost.console.templates.texts.labels import FIELD_NAMES, KIND_LABELS
from waypost.domain.templates.buttons import TemplateButton
from waypost.domain.templates.fields import TEMPLATE_FIELDS, FieldFormat, TemplateDraft
from waypost.domain.templates.variables import named_examples

_TOKENS: Final = re.compile(r"\{\{[^{}]*\}\}|\w+|\s+|.", re.DOTALL)
_PARTS: Final = (FieldFormat.BUTTONS, FieldFormat.CARDS)
_UNCOMPARED: Final = ("enableSample", "example", "exampleHeader")
"""Fields that follow from others, and the samples, which are compared by their variables."""


@dataclass(frozen=True, slots=True)
class TextChange:
    """A part of a text; kind: `same`, `removed` or `added`."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field that differs.

    Attributes:
        label: as in the editor.
        parts: both versions in one, in order.
    """

    label: str
    parts: Sequence[TextChange]


def compare_drafts(approved: TemplateDraft, draft: TemplateDraft) -> list[FieldChange]:
    """Return the fields that differ, in the order of the table of fields, then buttons and cards."""
    before, after = dict(_texts(approved)), dict(_texts(draft))
    labels = [*after, *(label for label in before if label not in after)]
    return [
        FieldChange(label, compare_texts(before.get(label, ""), after.get(label, "")))
        for label in labels
        if before.get(label, "") != after.get(label, "")
    ]


def compare_texts(before: str, after: str) -> list[TextChange]:
    """Return two texts as one, with the words that were removed and added."""
    old, new = _TOKENS.findall(before), _TOKENS.findall(after)
    parts: list[TextChange] = []
    for kind, old_from, old_to, new_from, new_to in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            parts.append(TextChange("same", "".join(new[new_from:new_to])))
            continue
        if old_to > old_from:
            parts.append(TextChange("removed", "".join(old[old_from:old_to])))
        if new_to > new_from:
            parts.append(TextChange("added", "".join(new[new_from:new_to])))
    return parts


def _texts(draft: TemplateDraft) -> Iterator[tuple[str, str]]:
    """Yield the label and the text of each field."""
    for field in TEMPLATE_FIELDS:
        if field.format not in _PARTS and field.name not in _UNCOMPARED:
            yield FIELD_NAMES[field.name], _format_value(getattr(draft, field.attribute))
    yield FIELD_NAMES["exampleHeader"], _sample_values(draft.header, draft.example_header)
    yield FIELD_NAMES["example"], _sample_values(draft.content, draft.example)
    yield from _button_texts("Button", draft.buttons)
    for number, card in enumerate(draft.cards or (), 1):
        yield f"Card {number}, media", card.header_type
        yield f"Card {number}, text", card.body or ""
        yield f"Card {number}, sample", _sample_values(card.body, card.sample_text)
        yield from _button_texts(f"Card {number}, button", card.buttons)


def _button_texts(prefix: str, buttons: Sequence[TemplateButton]) -> Iterator[tuple[str, str]]:
    for number, button in enumerate(buttons, 1):
        details = (button.text, button.url, button.phone_number, *button.example, button.autofill_text, button.flow_id)
        yield f"{prefix} {number}", f"{KIND_LABELS[button.kind]}: {' · '.join(text for text in details if text)}"


def _sample_values(text: str | None, example: str | None) -> str:
    """Return the value of each variable that has one; a sample that does not fit the text as it is."""
    values = named_examples(text or "", example or "")
    if values is None:
        return example or ""
    given = {f"{{{{{name}}}}}": value for name, value in values.items()}
    return " · ".join(f"{name} {value}" for name, value in given.items() if value != name)


def _format_value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else ""
    return "" if value is None else str(value)
