"""The operator's documented limits of sends, which the service checks at once when it is strict.

Otherwise the operator rejects the message, which fails with the operator's code.
"""

import re
from typing import Final

from waypost.domain.message import Content, TemplateSend
from waypost.domain.session_messages.content import FieldLimit, SessionContent, is_http_url, location_error
from waypost.domain.session_messages.plain import all_products
from waypost.domain.templates.fields import TemplateDraft
from waypost.domain.templates.offers import offer_error
from waypost.domain.templates.rendering import parameter_count_range
from waypost.domain.templates.types import HeaderFormat, TemplateType, type_row

# fmt: off
TEMPLATE_LIMITS: Final = (  # Source: operator's facts 2.3, "MPM at send"; session messages: in their classes
    FieldLimit("mpm.sections",       lambda c: [c.sections],                              10),
    FieldLimit("mpm.sections.title", lambda c: [section.title for section in c.sections], 24),
    FieldLimit("mpm.products",       lambda c: [all_products(c.sections)],                30),
)
# fmt: on
_UNSENDABLE: Final = re.compile(r"[\n\r\t]| {5}")  # Source: operator's facts 4.2, 132018


def postback_error(send: TemplateSend, draft: TemplateDraft) -> str | None:
    """Return why postback texts do not fit the template's buttons; None: they do.

    Source: spec, `postbackTexts`: "`index` is the button index and starts from 0"; facts 9.2: over all
        buttons of the template, or of the card.
    """
    cards = draft.cards or ()
    entries = [("postbackTexts", "template", send.postback_texts, len(draft.buttons))]
    for position, card in enumerate(send.cards):
        if card.postback_texts and position >= len(cards):
            has = f"has {len(cards)} cards" if cards else "has no cards"
            return f"message.cards[{position}] must be a card of the template to have postbackTexts; it {has}"
        if card.postback_texts:
            field = f"message.cards[{position}].postbackTexts"
            entries.append((field, "card", card.postback_texts, len(cards[position].buttons)))
    for field, owner, postback_texts, count in entries:
        beyond = [index for index in postback_texts or () if index >= count]
        if beyond and not count:
            return f"{field} must be left out: the {owner} has no buttons"
        if beyond:
            accepted = f"0 to {count - 1}" if count > 1 else "0"
            return f"{field} must name buttons of the {owner}, index {accepted}; it names index {beyond[0]}"
    return None


def operator_limit_error(content: Content) -> str | None:
    """Return why the operator will reject a message: field, rule, actual value; None: it will not."""
    match content:
        case SessionContent():
            name, limits, media = "message", content.limits, content.media_refs()
        case TemplateSend():
            name, limits, media = "template", TEMPLATE_LIMITS, (content.media, *(card.media for card in content.cards))
        case _:
            return None
    for limit in limits:
        for value in limit.values(content):
            if len(value) > limit.max_length:
                kind = "characters" if isinstance(value, str) else "entries"
                return f"{name}.{limit.field} must have at most {limit.max_length} {kind}; it has {len(value)}"
    if any(medium.link is not None and not is_http_url(medium.link) for medium in media):
        return "message must name its medium by an address that begins with http:// or https://"
    if isinstance(content, SessionContent):
        return content.operator_error()
    return None if content.place is None else location_error(content.place, "message.location")


def template_send_error(send: TemplateSend, draft: TemplateDraft, *, now_ms: int) -> str | None:
    """Return why a send does not fit its template, the number of parameters first; None: it does.

    The template's status is ignored: it may be approved before the message is sent.

    Source: operator's facts 4.2; facts 9.2: all of it is otherwise only found later.
    """
    least, most = parameter_count_range(draft)
    if not least <= len(send.params) <= most:
        expected = str(least) if least == most else f"{least} to {most}"
        return f"template.params must hold {expected} {'value' if most == 1 else 'values'}; it holds {len(send.params)}"
    if any(not value or _UNSENDABLE.search(value) for value in send.params):
        return "template.params must not be empty, nor hold line breaks, tabs or more than four spaces in a row"
    return _type_error(send, draft) or offer_error(send, draft, now_ms)


def _type_error(send: TemplateSend, draft: TemplateDraft) -> str | None:
    kind = draft.template_type
    row = type_row(kind)
    media_name = send.media_kind.value if send.media_kind else None
    if row.medium is not None and row.medium.name != media_name:
        return f"message.{row.medium.name} is required for a template of type {kind}"
    if row.medium is None and media_name is not None:
        return f"message.type must be text for a template of type {kind}"
    if (row.header is HeaderFormat.LOCATION) != (send.place is not None):
        if send.place is None:
            return f"message.location is required for a template of type {kind}"
        return (
            f"message.location must be left out: it is for templates of type LOCATION, and this one is of type {kind}"
        )
    if len(send.cards) != len(draft.cards or ()):
        return f"message.cards must hold {len(draft.cards or ())} cards; it holds {len(send.cards)}"
    if kind == TemplateType.PRODUCT and not any(section.product_ids for section in send.sections):
        return "template.mpm.sections is required for a template of type PRODUCT, with products"
    return None
