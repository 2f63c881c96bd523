"""Applies the form of an edit to the existing draft."""

from dataclasses import replace
from typing import Any, Final

from waypost.domain.errors import ApiError, ErrorCode
from waypost.domain.templates.buttons import Card
from waypost.domain.templates.fields import CHANGEABLE_FIELDS, DRAFT_ATTRIBUTES, TemplateDraft
from waypost.domain.templates.template import add_type_button
from waypost.domain.templates.types import type_row
from waypost.wire.forms import Form
from waypost.wire.templates.drafts import read_draft

_MEDIA: Final = ("header_type", "media_url", "media_id", "example_media")  # of a card
_SAMPLES: Final = ("exampleMedia", "mediaId", "mediaUrl")  # one of them replaces the others
_READER_FIELDS: Final = ("elementName", "languageCode", "vertical", "category", "templateType", "content")
"""Fields of the draft that the form reader may need."""


def apply_edit(before: TemplateDraft, form: Form) -> TemplateDraft:
    """Return the draft with the fields of the form; a field that was sent empty is removed.

    `check_draft` checks the rules.

    Args:
        before: the existing draft.
        form: of the edit; unchangeable fields are ignored, as unknown ones are.

    Raises:
        ApiError: a field cannot be read, or the media of a carousel would change.
    """
    names = [name for name in CHANGEABLE_FIELDS if form.text(name) is not None]
    submitted = read_draft(_fill_form(before, form))
    if any(form.text(name) for name in _SAMPLES):
        names += _SAMPLES
    changes: dict[str, Any] = {DRAFT_ATTRIBUTES[name]: getattr(submitted, DRAFT_ATTRIBUTES[name]) for name in names}
    after = replace(before, **changes)
    if any(type_row(draft.template_type).has_cards for draft in (before, after)):
        after = replace(after, cards=_edited_cards(before, after, form))
    return add_type_button(after)


def _fill_form(before: TemplateDraft, form: Form) -> Form:
    """Return the form with its changeable fields, and the fields of the draft that its reader needs."""
    pairs: list[tuple[str, str]] = []
    for name in dict.fromkeys((*CHANGEABLE_FIELDS, *_READER_FIELDS)):
        value = form.text(name) if name in CHANGEABLE_FIELDS else None
        if value is None and name in _READER_FIELDS:
            value = getattr(before, DRAFT_ATTRIBUTES[name])
        if value is not None:
            pairs.append((name, value))
    return Form(pairs)


def _edited_cards(before: TemplateDraft, after: TemplateDraft, form: Form) -> tuple[Card, ...]:
    """Return the edited cards of a carousel with their present media, which cannot be changed.

    Raises:
        ApiError: the media would change. Source: facts 3.6.
    """
    old_cards, new_cards = before.cards or (), after.cards or ()
    if before.template_type != after.template_type:
        raise _carousel_media_error("templateType", f"stay {before.template_type}")
    if len(old_cards) != len(new_cards) or any(form.text(name) for name in _SAMPLES):
        raise _carousel_media_error("cards", f"be {len(old_cards)}")
    cards: list[Card] = []
    for index, (old, new) in enumerate(zip(old_cards, new_cards, strict=True)):
        media = {name: getattr(old, name) for name in _MEDIA}
        if any(getattr(new, name) not in (None, "", value) for name, value in media.items()):
            raise _carousel_media_error(f"cards[{index}]", "keep its media")
        cards.append(replace(new, **media))
    return tuple(cards)


def _carousel_media_error(field: str, requirement: str) -> ApiError:
    explanation = f"{field} must {requirement}: the media of a carousel cannot be changed."
    return ApiError(ErrorCode.FIELD_BROKEN, explanation, field=field)
