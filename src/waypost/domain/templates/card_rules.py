"""What a carousel's cards must be: the functions that the rows of the rule table are made of."""

from collections.abc import Callable
from typing import Any

from waypost.domain.templates.cards import Card
from waypost.domain.templates.field_rules import Must, Wrong
from waypost.domain.templates.fields import Draft


def have_cards(low: int, high: int) -> Must:
    """There are so many cards."""

    def must(draft: Draft) -> Wrong | None:
        count = len(draft.cards or ())
        return None if low <= count <= high else Wrong(detail=f"there are {count}")

    return must


def each_card(member: str, is_right: Callable[[Card], bool]) -> Must:
    """Each card is right in that member."""

    def must(draft: Draft) -> Wrong | None:
        for at, card in enumerate(draft.cards or ()):
            if not is_right(card):
                return Wrong(f"[{at}].{member}")
        return None

    return must


def in_cards(member: str, rule: Must) -> Must:
    """A rule of a message's body or buttons, held by each card."""

    def must(draft: Draft) -> Wrong | None:
        for at, card in enumerate(draft.cards or ()):
            wrong = rule(_as_draft(card, draft))
            if wrong is not None:
                return Wrong(f"[{at}].{member}{wrong.place}", wrong.detail)
        return None

    return must


def be_alike(member: str, of: Callable[[Card], Any]) -> Must:
    """All cards are as the first one in that member."""

    def must(draft: Draft) -> Wrong | None:
        found = [of(card) for card in draft.cards or ()]
        other = next((at for at, one in enumerate(found) if one != found[0]), None)
        return None if other is None else Wrong(f"[{other}].{member}")

    return must


def have_a_card_sample(card: Card) -> bool:
    """An address, a media id or a handle of the card's medium."""
    samples = (card.media_url, card.media_id, card.example_media)
    return any(one and one.strip() for one in samples)


def make_up(card: Card) -> list[Any]:
    """The kinds of a card's buttons in their order."""
    return [button.kind for button in card.buttons]


def _as_draft(card: Card, draft: Draft) -> Draft:
    return Draft(
        content=card.body, example=card.sample_text, buttons=card.buttons, parameter_format=draft.parameter_format
    )
