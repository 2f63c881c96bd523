"""Checks of a carousel's cards, for the rows of the rule table."""

from collections.abc import Callable
from typing import Any

from waypost.domain.templates.cards import Card
from waypost.domain.templates.field_rules import RuleCheck, RuleFailure
from waypost.domain.templates.fields import TemplateDraft


def has_card_count(low: int, high: int) -> RuleCheck:
    """Return a check of the number of cards."""

    def check(draft: TemplateDraft) -> RuleFailure | None:
        count = len(draft.cards or ())
        return None if low <= count <= high else RuleFailure(detail=f"there {'is' if count == 1 else 'are'} {count}")

    return check


def each_card(member: str, is_valid: Callable[[Card], bool]) -> RuleCheck:
    """Return a check that a condition holds for each card; `member` names the place."""

    def check(draft: TemplateDraft) -> RuleFailure | None:
        for index, card in enumerate(draft.cards or ()):
            if not is_valid(card):
                return RuleFailure(f"[{index}].{member}")
        return None

    return check


def each_card_passes(member: str, draft_check: RuleCheck) -> RuleCheck:
    """Return a check that applies a check of body or buttons to each card."""

    def check(draft: TemplateDraft) -> RuleFailure | None:
        for index, card in enumerate(draft.cards or ()):
            failure = draft_check(_card_draft(card, draft))
            if failure is not None:
                return RuleFailure(f"[{index}].{member}{failure.place}", failure.detail)
        return None

    return check


def same_in_all_cards(member: str, value_of: Callable[[Card], Any]) -> RuleCheck:
    """Return a check that a value is the same in all cards."""

    def check(draft: TemplateDraft) -> RuleFailure | None:
        values = [value_of(card) for card in draft.cards or ()]
        different = next((index for index, value in enumerate(values) if value != values[0]), None)
        return None if different is None else RuleFailure(f"[{different}].{member}")

    return check


def has_card_sample(card: Card) -> bool:
    """True if the card has a URL, a media id or a handle of its medium."""
    samples = (card.media_url, card.media_id, card.example_media)
    return any(sample and sample.strip() for sample in samples)


def button_kinds(card: Card) -> list[Any]:
    """Return the kinds of a card's buttons in their order."""
    return [button.kind for button in card.buttons]


def _card_draft(card: Card, draft: TemplateDraft) -> TemplateDraft:
    return TemplateDraft(
        content=card.body, example=card.sample_text, buttons=card.buttons, parameter_format=draft.parameter_format
    )
