"""An edit's form laid over the draft that there is."""

from dataclasses import replace
from typing import Any, Final

from waypost.domain.errors import ApiError, ErrorCode
from waypost.domain.templates.cards import Card
from waypost.domain.templates.fields import ATTRIBUTES, CHANGEABLE, Draft
from waypost.domain.templates.template import completed
from waypost.domain.templates.types import type_row
from waypost.wire.forms import Form
from waypost.wire.templates.drafts import read_draft

_MEDIA: Final = ("header_type", "media_url", "media_id", "example_media")  # of a card
_SAMPLES: Final = ("exampleMedia", "mediaId", "mediaUrl")  # one of them takes the place of the others
_READ_WITH: Final = ("elementName", "languageCode", "vertical", "category", "templateType", "content")
"""What a reader of forms may need to know of the rest of the draft."""


def edited_draft(before: Draft, form: Form) -> Draft:
    """The draft with the fields of the form in place of its own; a field sent empty is taken away.

    Whether the outcome keeps the rules is for `check_draft` to say.

    Args:
        before: the draft that there is.
        form: of the edit; names that cannot be changed are left alone, as unknown fields are.

    Raises:
        Refused: a field that cannot be read, or a carousel's media are to change.
    """
    given = [name for name in CHANGEABLE if form.text(name) is not None]
    read = read_draft(_completed(before, form))
    if any(form.text(name) for name in _SAMPLES):
        given += _SAMPLES
    changes: dict[str, Any] = {ATTRIBUTES[name]: getattr(read, ATTRIBUTES[name]) for name in given}
    after = replace(before, **changes)
    if any(type_row(draft.template_type).has_cards for draft in (before, after)):
        after = replace(after, cards=_cards(before, after, form))
    return completed(after)


def _completed(before: Draft, form: Form) -> Form:
    """What the form has of the changeable fields, and what its reader may need beside them."""
    pairs: list[tuple[str, str]] = []
    for name in dict.fromkeys((*CHANGEABLE, *_READ_WITH)):
        value = form.text(name) if name in CHANGEABLE else None
        if value is None and name in _READ_WITH:
            value = getattr(before, ATTRIBUTES[name])
        if value is not None:
            pairs.append((name, value))
    return Form(pairs)


def _cards(before: Draft, after: Draft, form: Form) -> tuple[Card, ...]:
    """The edited cards of a carousel, with the media that they have: those cannot be changed.

    Raises:
        Refused: they are to change. Source: facts 3.6.
    """
    kept, given = before.cards or (), after.cards or ()
    if before.template_type != after.template_type:
        raise _not_these_media("templateType", f"stay {before.template_type}")
    if len(kept) != len(given) or any(form.text(name) for name in _SAMPLES):
        raise _not_these_media("cards", f"be {len(kept)}")
    cards: list[Card] = []
    for at, (old, new) in enumerate(zip(kept, given, strict=True)):
        media = {name: getattr(old, name) for name in _MEDIA}
        if any(getattr(new, name) not in (None, "", value) for name, value in media.items()):
            raise _not_these_media(f"cards[{at}]", "keep its media")
        cards.append(replace(new, **media))
    return tuple(cards)


def _not_these_media(field: str, must: str) -> ApiError:
    explanation = f"{field} must {must}: the media of a carousel cannot be changed."
    return ApiError(ErrorCode.FIELD_BROKEN, explanation, field=field)
