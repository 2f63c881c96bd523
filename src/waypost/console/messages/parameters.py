"""The parameters of a template message with the labels of their variables, for a line in a list."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from waypost.domain.templates.fields import TemplateDraft
from waypost.domain.templates.parameters import split_parameters
from waypost.domain.templates.variables import parameter_names

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
