"""Checks of a carousel's cards, for the rows of the rule table."""

from collections.abc import Callable
from typing import Any

from waypost.domain.templates.cards import Card
from waypost.domain.templates.field_rules import Must, Wrong
from waypost.domain.templates.fields import Draft


def have_cards(low: int, high: int) -> Must:
    """Return a check of the number of cards."""

    def check(draft: Draft) -> Wrong | None:
        count = len(draft.cards or ())
        return None if low <= count <= high else Wrong(detail=f"there are {count}")

    return check


def each_card(member: str, is_right: Callable[[Card], bool]) -> Must:
    """Return a check that a condition holds for each card; `member` names the place."""

    def check(draft: Draft) -> Wrong | None:
        for index, card in enumerate(draft.cards or ()):
            if not is_right(card):
                return Wrong(f"[{index}].{member}")
        return None

    return check


def in_cards(member: str, rule: Must) -> Must:
    """Return a check that applies a check of body or buttons to each card."""

    def check(draft: Draft) -> Wrong | None:
        for index, card in enumerate(draft.cards or ()):
            failure = rule(_as_draft(card, draft))
            if failure is not None:
                return Wrong(f"[{index}].{member}{failure.place}", failure.detail)
        return None

    return check


def be_alike(member: str, of: Callable[[Card], Any]) -> Must:
    """Return a check that a value is the same in all cards."""

    def check(draft: Draft) -> Wrong | None:
        values = [of(card) for card in draft.cards or ()]
        different = next((index for index, value in enumerate(values) if value != values[0]), None)
        return None if different is None else Wrong(f"[{different}].{member}")

    return check


def have_a_card_sample(card: Card) -> bool:
    """True if the card has a URL, a media id or a handle of its medium."""
    samples = (card.media_url, card.media_id, card.example_media)
    return any(sample and sample.strip() for sample in samples)


def make_up(card: Card) -> list[Any]:
    """Return the kinds of a card's buttons in their order."""
    return [button.kind for button in card.buttons]


def _as_draft(card: Card, draft: Draft) -> Draft:
    return Draft(
        content=card.body, example=card.sample_text, buttons=card.buttons, parameter_format=draft.parameter_format
    )
