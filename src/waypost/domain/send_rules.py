"""What the operator documents of sends and can be known at once: a table, for the service when it is strict.

Otherwise the operator refuses, and the message fails with the operator's code.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from waypost.domain.message import (
    Content,
    MediaRef,
    SessionList,
    SessionLocation,
    SessionLocationRequest,
    SessionMedia,
    SessionProducts,
    SessionQuickReply,
    SessionUrlButton,
    TemplateSend,
)
from waypost.domain.parameters import least_and_most
from waypost.domain.template import Draft, TemplateType


@dataclass(frozen=True, slots=True)
class Longest:
    """One row: the values of a field, and how long each may be.

    Attributes:
        of: gives every value that the row holds; a text has characters, a tuple has members.
    """

    content: type[Content]
    field: str
    of: Callable[[Any], Iterable[str | tuple[object, ...]]]
    at_most: int


def _choices(content: SessionList) -> Iterable[Any]:
    return (choice for section in content.sections for choice in section.choices)


# fmt: off
LONGEST: Final = (  # Source: operator's facts 2.3, "MPM at send", and 4.1
    Longest(SessionMedia,      "caption",              lambda c: [c.caption],                             1024),
    Longest(SessionList,       "title",                lambda c: [c.title],                                 60),
    Longest(SessionList,       "body",                 lambda c: [c.body],                                1024),
    Longest(SessionList,       "footer",               lambda c: [c.footer],                                60),
    Longest(SessionList,       "globalButtons.title",  lambda c: [c.button],                                20),
    Longest(SessionList,       "items",                lambda c: [c.sections],                              10),
    Longest(SessionList,       "items.title",          lambda c: [one.title for one in c.sections],         24),
    Longest(SessionList,       "items.options",        lambda c: [tuple(_choices(c))],                      10),
    Longest(SessionList,       "options.title",        lambda c: [one.title for one in _choices(c)],        24),
    Longest(SessionList,       "options.description",  lambda c: [one.description for one in _choices(c)],  72),
    Longest(SessionQuickReply, "content.text",         lambda c: [c.text],                                1024),
    Longest(SessionQuickReply, "content.header",       lambda c: [c.header],                                60),
    Longest(SessionQuickReply, "content.caption",      lambda c: [c.footer],                                60),
    Longest(SessionQuickReply, "options",              lambda c: [c.choices],                                3),
    Longest(SessionQuickReply, "options.title",        lambda c: [one.title for one in c.choices],          20),
    Longest(SessionProducts,   "header.text",          lambda c: [c.header],                                60),
    Longest(SessionProducts,   "body.text",            lambda c: [c.body],                                1024),
    Longest(SessionProducts,   "footer.text",          lambda c: [c.footer],                                60),
    Longest(SessionProducts,   "sections",             lambda c: [c.sections],                              10),
    Longest(SessionProducts,   "sections.title",       lambda c: [one.title for one in c.sections],         24),
    Longest(SessionProducts,   "sections.productList", lambda c: [_products(c.sections)],                   30),
    Longest(SessionUrlButton,  "body",                 lambda c: [c.body],                                1024),
    Longest(SessionUrlButton,  "footer",               lambda c: [c.footer],                                60),
    Longest(SessionUrlButton,  "display_text",         lambda c: [c.label],                                 20),
    Longest(SessionUrlButton,  "url",                  lambda c: [c.url],                                 2000),
    Longest(SessionLocationRequest, "body.text",       lambda c: [c.body],                                1024),
    Longest(TemplateSend,      "mpm.sections",         lambda c: [c.sections],                              10),
    Longest(TemplateSend,      "mpm.sections.title",   lambda c: [one.title for one in c.sections],         24),
    Longest(TemplateSend,      "mpm.products",         lambda c: [_products(c.sections)],                   30),
)
_OF_TYPE: Final = {  # the media that each type of template takes
    TemplateType.IMAGE:    "image",
    TemplateType.VIDEO:    "video",
    TemplateType.DOCUMENT: "document",
}
# fmt: on
_UNSENDABLE: Final = re.compile(r"[\n\r\t]| {5}")  # Source: operator's facts 4.2, 132018
_ADDRESS: Final = re.compile(r"https?://.+", re.DOTALL)


def _products(sections: tuple[Any, ...]) -> tuple[object, ...]:
    return tuple(product for section in sections for product in section.product_ids)


def postback_complaint(send: TemplateSend, draft: Draft) -> str | None:
    """What is wrong with the buttons that postback texts are given for, or None.

    Source: spec, `postbackTexts`: "`index` is the button index and starts from 0"; facts 9.2: over all
        buttons of the template, or of the card.
    """
    of_template = draft.cards or ()
    asked = [("postbackTexts", "template", send.postback_texts, len(draft.buttons))]
    for at, card in enumerate(send.cards):
        if card.postback_texts and at >= len(of_template):
            has = f"has {len(of_template)} cards" if of_template else "has no cards"
            return f"message.cards[{at}] must be a card of the template to have postbackTexts; it {has}"
        if card.postback_texts:
            field = f"message.cards[{at}].postbackTexts"
            asked.append((field, "card", card.postback_texts, len(of_template[at].buttons)))
    for field, of, postback_texts, count in asked:
        beyond = [index for index in postback_texts or () if index >= count]
        if beyond and not count:
            return f"{field} must be left out: the {of} has no buttons"
        if beyond:
            accepted = f"0 to {count - 1}" if count > 1 else "0"
            return f"{field} must name buttons of the {of}, index {accepted}; it names index {beyond[0]}"
    return None


def operators_complaint(content: Content) -> str | None:
    """What the operator will refuse in a message, or None: field, rule, and what it has."""
    name = "template" if isinstance(content, TemplateSend) else "message"
    for row in LONGEST:
        if isinstance(content, row.content):
            for value in row.of(content):
                if len(value) > row.at_most:
                    kind = "characters" if isinstance(value, str) else "entries"
                    return f"{name}.{row.field} must have at most {row.at_most} {kind}; it has {len(value)}"
    for media in _media_of(content):
        if media.link is not None and not _ADDRESS.fullmatch(media.link):
            return "message must name its medium by an address that begins with http:// or https://"
    if isinstance(content, SessionUrlButton) and not _ADDRESS.fullmatch(content.url):
        return "message.url must begin with http:// or https://"
    if isinstance(content, SessionLocation):
        place = content.place
        if not (-90 <= place.latitude <= 90 and -180 <= place.longitude <= 180):
            return "message.latitude must be within 90 degrees, and message.longitude within 180"
    return None


def _media_of(content: Content) -> list[MediaRef]:
    match content:
        case SessionMedia(media=media) | SessionQuickReply(media=media) | SessionUrlButton(media=media):
            return [media]
        case TemplateSend(media=media, cards=cards):
            return [media, *(card.media for card in cards)]
        case _:
            return []


def templates_complaint(send: TemplateSend, draft: Draft, *, now_ms: int) -> str | None:
    """What the operator will refuse because of the template, or None; the number of parameters first.

    Its status is no matter: it may be approved before the message's turn comes.

    Source: operator's facts 4.2; facts 9.2: all of it is otherwise only found later.
    """
    least, most = least_and_most(draft)
    if not least <= len(send.params) <= most:
        wanted = str(least) if least == most else f"{least} to {most}"
        return f"template.params must hold {wanted} values; it holds {len(send.params)}"
    if any(not value or _UNSENDABLE.search(value) for value in send.params):
        return "template.params must not be empty, nor hold line breaks, tabs or more than four spaces in a row"
    return _of_type(send, draft) or _of_offer(send, draft, now_ms)


def _of_type(send: TemplateSend, draft: Draft) -> str | None:
    kind = draft.template_type
    medium = next((name for of, name in _OF_TYPE.items() if of == kind), None)
    given = send.media_kind.value if send.media_kind else None
    if medium != given:
        if medium is None:
            return f"message.type must be text for a template of type {kind}"
        return f"message.{medium} is required for a template of type {kind}"
    if (kind == TemplateType.LOCATION) != (send.place is not None):
        return f"message.location must be there for LOCATION alone; the template is of type {kind}"
    if len(send.cards) != len(draft.cards or ()):
        return f"message.cards must hold {len(draft.cards or ())} cards; it holds {len(send.cards)}"
    if kind == TemplateType.PRODUCT and not any(one.product_ids for one in send.sections):
        return "template.mpm.sections is required for a template of type PRODUCT, with products"
    return None


def _of_offer(send: TemplateSend, draft: Draft, now_ms: int) -> str | None:
    if not draft.is_lto or not draft.has_expiration:
        return None
    if send.expiration_ms is None or send.expiration_ms <= now_ms:
        return "template.expiration is required for an offer that ends: milliseconds in the future"
    return None
