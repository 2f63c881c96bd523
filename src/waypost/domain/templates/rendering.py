"""Rendering of a template: the text of its record, the texts that the operator supplies, and a send's parameters."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final
from urllib.parse import quote

from waypost.domain.templates.buttons import ButtonKind, TemplateButton
from waypost.domain.templates.field_rules import SECURITY_SENTENCE
from waypost.domain.templates.fields import TemplateDraft
from waypost.domain.templates.offers import offer_text
from waypost.domain.templates.template import Category
from waypost.domain.templates.variables import EMOJI, split_at_variables, variable_count

CODE_SENTENCE: Final = "*{{1}}* is your verification code."
OTP_URL: Final = "https://www.whatsapp.com/otp/code/"
COPY_OFFER_LABEL: Final = "Copy offer code"
MAX_HEADER_CHARS: Final = 60  # Source: operator's facts 2.3


def flatten_template(draft: TemplateDraft) -> str:
    """Return the record's `data`: header, body, offer and footer on separate lines, buttons after ` | `.

    Source: spec, "Template record", data; construction from facts 3.2; clients split at `| [` and
    at commas (facts 17).
    """
    lines = [draft.header, render_body(draft), offer_text(draft), render_footer(draft)]
    return " | ".join(
        ["\n".join(line for line in lines if line), *(render_button(button, draft) for button in draft.buttons)]
    )


def render_button(button: TemplateButton, draft: TemplateDraft | None = None) -> str:
    """Return a button for `data`: `[text]`, or `[text,value]` where it opens or copies something.

    Args:
        draft: its template; the URL of an OTP button contains the code's lifetime.

    Source: facts 3.2.
    """
    match button.kind:
        case ButtonKind.URL:
            return f"[{button.text},{button.url}]"
        case ButtonKind.PHONE_NUMBER:
            return f"[{button.text},{button.phone_number}]"
        case ButtonKind.COPY_CODE:
            return f"[{COPY_OFFER_LABEL},{{{{1}}}}]"
        case ButtonKind.OTP:
            minutes = draft.code_expiration_minutes if draft else None
            query = "&".join(f"{name}={quote(value, safe='')}" for name, value in _otp_query(button, minutes))
            return f"[{button.text},{OTP_URL}?{query}&code=otp{{{{1}}}}]"
        case _:
            return f"[{button.text}]"


def render_body(draft: TemplateDraft) -> str:
    """Return the body that a recipient gets; of AUTHENTICATION the operator's, whatever was submitted.

    Source: facts 3.2, AUTH; decision 0016.
    """
    if draft.category != Category.AUTHENTICATION:
        return draft.content or ""
    return f"{CODE_SENTENCE} {SECURITY_SENTENCE}" if draft.add_security_recommendation else CODE_SENTENCE


def render_footer(draft: TemplateDraft) -> str | None:
    """Return the footer; of AUTHENTICATION the sentence about the code's lifetime, if one was given.

    Source: spec, "Create template", codeExpirationMinutes; wording from facts 3.2.
    """
    if draft.category != Category.AUTHENTICATION:
        return draft.footer
    minutes = draft.code_expiration_minutes
    if minutes is None:
        return None
    return f"This code expires in {minutes} minute{'' if minutes == 1 else 's'}."


def _otp_query(button: TemplateButton, minutes: int | None) -> Iterator[tuple[str, str]]:
    """Yield the query of the URL that the operator makes of an OTP button. Source: facts 3.2, AUTH."""
    yield "otp_type", button.otp_type
    if button.autofill_text:
        yield "cta_display_name", button.autofill_text
    for app in button.supported_apps:
        yield "package_name", app.package_name
        yield "signature_hash", app.signature_hash
    if minutes is not None:
        yield "code_expiration_minutes", str(minutes)


def product_header(content: str) -> str:
    """Return the header of a PRODUCT template for the operator, which requires one; the spec forbids it.

    It is the first line of the body, at most 60 characters, without variables, emoji and formatting, because
    a variable in the header would need a parameter that no sender gives.

    Source: decision 0017.
    """
    line = " ".join(split_at_variables(content.strip().partition("\n")[0]))
    plain = re.sub(r"\s+", " ", re.sub(rf"[*_~`]|{EMOJI}", "", line))
    plain = re.sub(r" (?=[,.;:!?])", "", plain).strip(" ,;:")  # left by a removed variable
    return plain[:MAX_HEADER_CHARS].strip() or "Items"


@dataclass(frozen=True, slots=True)
class CardParameters:
    """The parameters of one card."""

    body: tuple[str, ...] = ()
    # URL suffixes by the button's index within the card
    buttons: dict[int, str] = field(default_factory=dict[int, str])


@dataclass(frozen=True, slots=True)
class TemplateParameters:
    """The parameters of a template by component."""

    header: tuple[str, ...] = ()
    body: tuple[str, ...] = ()
    # URL suffixes, offer codes or one-time codes by the index over all buttons
    buttons: dict[int, str] = field(default_factory=dict[int, str])
    thumbnail: str | None = None  # the product whose picture represents the catalogue; None: not given
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
    count += sum(
        (variable_count(card.body) + len(parameter_button_indexes(card.buttons))) for card in draft.cards or ()
    )
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
