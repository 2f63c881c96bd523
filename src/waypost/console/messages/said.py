"""What a message says to whoever gets it: a template's own words with the values in their places."""

from collections.abc import Iterator, Sequence
from typing import Any

from waypost.domain.message import TemplateSend
from waypost.domain.parameters import split
from waypost.domain.rendering import body_of, footer_of
from waypost.domain.template import Draft, Template
from waypost.domain.variables import variables, without_variables
from waypost.store.contents import kept_content_of
from waypost.store.message_words import words_of
from waypost.wire.redaction import CODE


def said_by(row: Any, template: Template | None, *, holds_code: bool = False) -> list[str]:
    """The parts of a message that people read, one below the other; none where they are kept no longer.

    Args:
        row: with `kind` and `content`.
        template: the one that was sent, as it stands now; it may have been edited since.
        holds_code: whether its values may be one-time codes; they are left out then.
    """
    content = kept_content_of(row.kind, row.content)
    if isinstance(content, TemplateSend) and template is not None:
        params = [CODE] * len(content.params) if holds_code else content.params
        return [part for part in _parts(template.draft, params) if part]
    if holds_code:
        return [CODE]
    return words_of(row.content)


def _parts(draft: Draft, params: Sequence[str]) -> Iterator[str]:
    given = split(draft, params)
    yield _filled(draft.header or "", given.header)
    yield _filled(body_of(draft), given.body)
    yield footer_of(draft) or ""
    for card, values in zip(draft.cards or (), given.cards, strict=False):
        yield _filled(card.body or "", values.body)
    if draft.buttons:
        yield "  ".join(f"[{button.text}]" for button in draft.buttons if button.text)


def _filled(text: str, values: Sequence[str]) -> str:
    """A text with values in the places of its variables, by their numbers; one without a value stays as it is."""
    names = variables(text)
    in_order = sorted(dict.fromkeys(names), key=lambda name: (not name.isdecimal(), len(name), name))
    known = dict(zip(in_order, values, strict=False))
    first, *pieces = without_variables(text)
    filled = (known.get(name, f"{{{{{name}}}}}") + piece for name, piece in zip(names, pieces, strict=True))
    return first + "".join(filled)
