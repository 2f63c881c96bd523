"""A send's flat list of parameters, split over the components of the stored template."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from waypost.domain.templates.buttons import Button, ButtonKind
from waypost.domain.templates.cards import Card
from waypost.domain.templates.fields import Draft
from waypost.domain.templates.variables import variable_count


@dataclass(frozen=True, slots=True)
class CardParameters:
    """What goes into one card.

    Attributes:
        buttons: by index within the card: the end of a URL.
    """

    body: tuple[str, ...] = ()
    buttons: dict[int, str] = field(default_factory=dict[int, str])


@dataclass(frozen=True, slots=True)
class Parameters:
    """What goes where.

    Attributes:
        buttons: by index over all buttons: the end of a URL, an offer's code, a one-time code.
        thumbnail: the product whose picture stands for the catalogue; None where none was given.
    """

    header: tuple[str, ...] = ()
    body: tuple[str, ...] = ()
    buttons: dict[int, str] = field(default_factory=dict[int, str])
    thumbnail: str | None = None
    cards: tuple[CardParameters, ...] = ()


def split(draft: Draft, params: Sequence[str]) -> Parameters:
    """Header variables, body variables, button variables, the thumbnail, then card by card.

    Buttons take theirs in this order: the ends of URLs as the buttons stand, then the offer's code. A
    single parameter of an authentication template goes to the body and to the button. What is too much
    goes to the body, whose count the operator checks; what is missing is left out, for it to complain.

    Source: facts 9.2, "param order", "AUTH", "LTO", "CATALOG", "PRODUCT".
    """
    one_time = [at for at, one in enumerate(draft.buttons) if one.kind is ButtonKind.OTP]
    if one_time and len(params) == 1:
        return Parameters(body=(params[0],), buttons=dict.fromkeys(one_time, params[0]))
    buttons = button_places(draft.buttons)
    cards = [(variable_count(card.body), button_places(card.buttons)) for card in draft.cards or ()]
    in_cards = sum(body + len(places) for body, places in cards)
    in_header, in_body = variable_count(draft.header), variable_count(draft.content)
    left = len(params) - in_header - in_body - len(buttons) - in_cards
    takes_thumbnail = left > 0 and has_thumbnail(draft)
    rest = _Taking(params)
    header = rest.take(in_header)
    body = rest.take(in_body + max(0, left - takes_thumbnail))
    given = dict(zip(buttons, rest.take(len(buttons)), strict=False))
    thumbnail = next(iter(rest.take(1)), None) if takes_thumbnail else None
    return Parameters(
        header,
        body,
        given,
        thumbnail,
        tuple(
            CardParameters(rest.take(in_card), dict(zip(places, rest.take(len(places)), strict=False)))
            for in_card, places in cards
        ),
    )


def least_and_most(draft: Draft) -> tuple[int, int]:
    """How many parameters a template takes at least, and at most.

    They differ where one may be left out: a thumbnail, or the second writing of a one-time code.
    """
    count = variable_count(draft.header) + variable_count(draft.content)
    count += len(button_places(draft.buttons))
    count += sum(_in_card(card) for card in draft.cards or ())
    if any(one.kind is ButtonKind.OTP for one in draft.buttons):
        return min(1, count), count
    return count, count + has_thumbnail(draft)


def has_thumbnail(draft: Draft) -> bool:
    """Whether a product's picture may stand for the template's products."""
    return any(one.kind in (ButtonKind.CATALOG, ButtonKind.MPM) for one in draft.buttons)


def button_places(buttons: Sequence[Button]) -> list[int]:
    """The indexes of the buttons that take a parameter, in the order in which they take theirs."""
    ends = [at for at, one in enumerate(buttons) if one.has_variable or one.kind is ButtonKind.OTP]
    codes = [at for at, one in enumerate(buttons) if one.kind is ButtonKind.COPY_CODE]
    return ends + codes


def _in_card(card: Card) -> int:
    return variable_count(card.body) + len(button_places(card.buttons))


class _Taking:
    """Parameters, taken from the front; where they end, fewer."""

    def __init__(self, params: Sequence[str]) -> None:
        self._params = tuple(params)
        self._at = 0

    def take(self, count: int) -> tuple[str, ...]:
        taken = self._params[self._at : self._at + count]
        self._at += len(taken)
        return taken
