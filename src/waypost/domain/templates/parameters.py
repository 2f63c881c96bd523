"""Splits a send's flat list of parameters over the components of the stored template."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice

from waypost.domain.templates.buttons import ButtonKind, TemplateButton
from waypost.domain.templates.cards import Card
from waypost.domain.templates.fields import TemplateDraft
from waypost.domain.templates.variables import variable_count


@dataclass(frozen=True, slots=True)
class CardParameters:
    """The parameters of one card.

    Attributes:
        buttons: URL suffixes by the button's index within the card.
    """

    body: tuple[str, ...] = ()
    buttons: dict[int, str] = field(default_factory=dict[int, str])


@dataclass(frozen=True, slots=True)
class TemplateParameters:
    """The parameters of a template by component.

    Attributes:
        buttons: URL suffixes, offer codes or one-time codes by the index over all buttons.
        thumbnail: the product whose picture represents the catalogue; None: not given.
    """

    header: tuple[str, ...] = ()
    body: tuple[str, ...] = ()
    buttons: dict[int, str] = field(default_factory=dict[int, str])
    thumbnail: str | None = None
    cards: tuple[CardParameters, ...] = ()


def split_parameters(draft: TemplateDraft, params: Sequence[str]) -> TemplateParameters:
    """Split in this order: header, body, buttons, the thumbnail, then card by card.

    Buttons get theirs in this order: URL suffixes in button order, then the offer's code. A single
    parameter of an authentication template is used in the body and the button. Excess parameters go
    to the body, whose count the operator checks; missing ones are left out, so that it reports them.

    Source: facts 9.2, "param order", "AUTH", "LTO", "CATALOG", "PRODUCT".
    """
    one_time = [index for index, button in enumerate(draft.buttons) if button.kind is ButtonKind.OTP]
    if one_time and len(params) == 1:
        return TemplateParameters(body=(params[0],), buttons=dict.fromkeys(one_time, params[0]))
    buttons = parameter_button_indexes(draft.buttons)
    cards = [(variable_count(card.body), parameter_button_indexes(card.buttons)) for card in draft.cards or ()]
    card_count = sum(body_count + len(indexes) for body_count, indexes in cards)
    header_count, body_count = variable_count(draft.header), variable_count(draft.content)
    excess = len(params) - header_count - body_count - len(buttons) - card_count
    with_thumbnail = excess > 0 and has_thumbnail(draft)
    rest = iter(params)
    header = tuple(islice(rest, header_count))
    body = tuple(islice(rest, body_count + max(0, excess - with_thumbnail)))
    button_values = dict(zip(buttons, islice(rest, len(buttons)), strict=False))
    thumbnail = next(rest, None) if with_thumbnail else None
    return TemplateParameters(
        header,
        body,
        button_values,
        thumbnail,
        tuple(
            CardParameters(tuple(islice(rest, count)), dict(zip(indexes, islice(rest, len(indexes)), strict=False)))
            for count, indexes in cards
        ),
    )


def parameter_count_range(draft: TemplateDraft) -> tuple[int, int]:
    """Return the minimum and maximum number of a template's parameters.

    They differ where one may be omitted: a thumbnail, or the second copy of a one-time code.
    """
    count = variable_count(draft.header) + variable_count(draft.content)
    count += len(parameter_button_indexes(draft.buttons))
    count += sum(_card_parameter_count(card) for card in draft.cards or ())
    if any(button.kind is ButtonKind.OTP for button in draft.buttons):
        return min(1, count), count
    return count, count + has_thumbnail(draft)


def has_thumbnail(draft: TemplateDraft) -> bool:
    """True if a product's picture may represent the template's products."""
    return any(button.kind in (ButtonKind.CATALOG, ButtonKind.MPM) for button in draft.buttons)


def parameter_button_indexes(buttons: Sequence[TemplateButton]) -> list[int]:
    """Return the indexes of the buttons with a parameter, in the order of their parameters."""
    suffixes = [index for index, button in enumerate(buttons) if button.has_variable or button.kind is ButtonKind.OTP]
    codes = [index for index, button in enumerate(buttons) if button.kind is ButtonKind.COPY_CODE]
    return suffixes + codes


def _card_parameter_count(card: Card) -> int:
    return variable_count(card.body) + len(parameter_button_indexes(card.buttons))
