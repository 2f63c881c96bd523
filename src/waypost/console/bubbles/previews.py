"""A template draft as its recipient will see it, filled with its samples; variables without one stay."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from markupsafe import Markup

from waypost.base.json_values import integer_or_none, object_of, objects_in
from waypost.console.bubbles.buttons import (
    BUTTONS_SHOWN_OF_MORE,
    MAX_BUTTONS_SHOWN,
    NOT_REQUESTED,
    ButtonView,
    buttons_of,
    list_sections,
)
from waypost.console.bubbles.formatting import Link, emoji_count, first_link, format_text, is_long
from waypost.console.bubbles.items import (
    MediaView,
    contact_view,
    facts_of_order,
    is_paid,
    items_of_order,
    location_view,
    media_view,
    text_of,
)
from waypost.domain.templates.buttons import ButtonKind, Card, TemplateButton
from waypost.domain.templates.fields import TemplateDraft
from waypost.domain.templates.offers import offer_preview
from waypost.domain.templates.rendering import COPY_OFFER_LABEL, product_header, render_body, render_footer
from waypost.domain.templates.template import Category, add_type_button, sample_reference
from waypost.domain.templates.types import HeaderFormat, type_row
from waypost.domain.templates.variables import named_examples, split_at_variables, variable_names

SampleFinder = Callable[[str], str]
"""Returns the path of a sample file by its handle id or media id; empty if there is none."""

CODE: Final = "123456"
_UNNAMED: Final = {ButtonKind.OTP: "Copy code", ButtonKind.COPY_CODE: COPY_OFFER_LABEL}


def draft_message(
    draft: TemplateDraft, *, media_url: str = "", find: SampleFinder | None = None, until_ms: int | None = None
) -> dict[str, Any]:
    """Return a draft as a message, in the format of the control API's messages.

    Missing parts of an unfinished draft are left out.

    Args:
        draft: a stored draft, or one in the editor.
        media_url: path of the header's sample; takes precedence over `find`.
        find: returns the path of a sample of the header or a card.
        until_ms: expiry of its offer; None: an offer that expires is shown without a time.
    """
    draft = add_type_button(draft)
    is_code = draft.category == Category.AUTHENTICATION
    shown: dict[str, Any] = {
        "type": "template",
        "template": {
            "name": draft.element_name or "",
            "language": draft.language_code,
            "category": draft.category or "",
        },
        "text": _fill_samples(render_body(draft), None, {"1": CODE})
        if is_code
        else _fill_samples(draft.content, draft.example),
    }
    header = None if is_code else _draft_header(draft, media_url, find)
    if header is not None:
        shown["header"] = header
    footer = render_footer(draft)
    if footer:
        shown["footer"] = footer
    shown |= offer_preview(draft, until_ms)
    if draft.is_call_permission_request:
        shown["buttons"] = [{"index": 0, "type": "CALL_PERMISSION", "text": "Choose preference"}]
    elif draft.buttons:
        shown["buttons"] = _buttons(draft.buttons)
    if type_row(draft.template_type).has_cards:
        shown["cards"] = [_draft_card(place, card, find) for place, card in enumerate(draft.cards or ())]
    return shown


def _draft_header(draft: TemplateDraft, media_url: str, find: SampleFinder | None) -> dict[str, Any] | None:
    match type_row(draft.template_type).header:
        case HeaderFormat.MEDIUM:
            return _medium(str(draft.template_type), draft, media_url, find)
        case HeaderFormat.LOCATION:
            location = {"name": "Location set when sending", "address": ""}
            return {"format": "LOCATION", "location": location}
        case HeaderFormat.FIRST_LINE:
            return {"format": "TEXT", "text": product_header(draft.content or "")}
        case HeaderFormat.TEXT | HeaderFormat.NONE:
            text = draft.header
            return {"format": "TEXT", "text": _fill_samples(text, draft.example_header)} if text else None


def _medium(kind: str, part: TemplateDraft | Card, media_url: str, find: SampleFinder | None) -> dict[str, Any]:
    sample = sample_reference(part)
    url = media_url or (find(sample) if find is not None and sample else "")
    medium = {"url": url} if url else {}
    if part.media_url and not url:
        medium["link"] = part.media_url
    return {"format": kind, kind.lower(): medium}


def _draft_card(place: int, card: Card, find: SampleFinder | None) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "index": place,
        "header": _medium(card.header_type or "IMAGE", card, "", find),
        "text": _fill_samples(card.body, card.sample_text),
    }
    return shown | ({"buttons": _buttons(card.buttons)} if card.buttons else {})


def _buttons(buttons: tuple[TemplateButton, ...]) -> list[dict[str, Any]]:
    return [{"index": place, **_draft_button(button)} for place, button in enumerate(buttons)]


def _draft_button(button: TemplateButton) -> dict[str, Any]:
    shown: dict[str, Any] = {"type": button.kind.value, "text": button.text or _UNNAMED.get(button.kind, "")}
    match button.kind:
        case ButtonKind.URL:
            shown["url"] = _url(button)
        case ButtonKind.PHONE_NUMBER:
            shown["phone_number"] = button.phone_number
        case ButtonKind.COPY_CODE:
            shown |= {"text": COPY_OFFER_LABEL, "code": next(iter(button.example), "")}
        case ButtonKind.OTP:
            shown |= {"otp_type": button.otp_type, "code": CODE}
            if button.autofill_text:
                shown["autofill_text"] = button.autofill_text
        case ButtonKind.FLOW:
            shown |= {"flow_id": button.flow_id, "screen": button.navigate_screen}
        case ButtonKind.QUICK_REPLY:
            shown["payload"] = button.text
        case ButtonKind.MPM | ButtonKind.CATALOG:
            pass
    return shown


def _url(button: TemplateButton) -> str:
    """Return the URL with its sample, which is a whole URL or the variable's value."""
    if not button.has_variable:
        return button.url
    sample = next(iter(button.example), button.suffix)
    if sample.startswith(("http://", "https://")):
        return sample
    before, *after = split_at_variables(button.url)
    return before + sample + "".join(after[:1])


def _fill_samples(text: str | None, example: str | None, values: dict[str, str] | None = None) -> str:
    """Return a text with its samples in place of its variables."""
    text = text or ""
    names = variable_names(text)
    if not names:
        return text
    if values is None:
        values = named_examples(text, example or "") if example else None
    if values is None and len(set(names)) == 1 and example:  # as the operator adapter sends it
        values = {names[0]: example}
    first, *texts = split_at_variables(text)
    filled = [first]
    for name, text_after in zip(names, texts, strict=True):
        filled += [(values or {}).get(name, "{{" + name + "}}"), text_after]
    return "".join(filled)


_MEDIA_FORMATS: Final = ("IMAGE", "VIDEO", "DOCUMENT", "GIF")


@dataclass(frozen=True, slots=True)
class Header:
    """Header of a message: a text, a media file, a location or a product."""

    text: Markup | None = None
    medium: MediaView | None = None
    place: dict[str, Any] | None = None
    product: str = ""


@dataclass(frozen=True, slots=True)
class MessageView:
    """The visible content of one message, without time and ticks."""

    header: Header | None
    text: Markup
    plain: str
    emoji: int  # number of emoji in a text of emoji only, or else 0
    is_long: bool
    preview: Link | None
    footer: str
    offer: dict[str, Any] | None  # a limited-time offer: `text`, `code`, `expires`, and `until_ms` if it is known
    buttons: tuple[ButtonView, ...]
    shown_buttons: tuple[ButtonView, ...]  # the buttons under the message; `buttons` has all of them
    # sections of a list message; then `buttons` is empty, and `list_label` opens the list
    rows: tuple[tuple[str, list[ButtonView]], ...]
    list_label: str
    cards: tuple[dict[str, Any], ...]  # of a carousel: `index`, `header`, `text` and `buttons`
    contacts: tuple[dict[str, Any], ...]
    # an order that a phone has sent or is to pay: `catalog_id`, and `lines` of name, quantity and price
    basket: dict[str, Any] | None
    facts: tuple[tuple[str, str], ...]  # names and values of a submitted form or an order
    advert: tuple[str, str, str] | None
    note: str  # description of a message that cannot be shown

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to show, as in an empty draft."""
        return not (self.plain or self.header or self.footer or self.offer or self.buttons or self.cards)


def message_view(shown: dict[str, Any], *, is_draft: bool = False) -> MessageView:
    """Return the view of a message.

    Args:
        shown: item of a phone's messages, or a result of `draft_message`.
        is_draft: True to highlight variables without a sample.
    """
    raw_buttons = shown.get("buttons")
    buttons = buttons_of(raw_buttons)
    rows: tuple[tuple[str, list[ButtonView]], ...] = ()
    if buttons and all(button.kind == "LIST_ROW" for button in buttons):
        rows, buttons = list_sections(buttons, raw_buttons), ()
    if is_paid(shown):
        buttons = tuple(
            replace(button, does="nothing", text="Paid") if button.does == "pay" else button for button in buttons
        )
    if object_of(shown.get("template")).get("category") == "AUTHENTICATION":  # the channel adds it under one-time codes
        buttons = (*buttons, ButtonView(0, "NOT_REQUESTED", "reply", "", NOT_REQUESTED))
    # A text that only repeats a location or contact that is drawn is left out.
    text = "" if shown.get("location") or shown.get("contacts") else text_of(shown.get("text"))
    is_written = shown.get("direction") == "from_phone" and shown.get("type") == "text"
    action = object_of(object_of(shown.get("interactive")).get("action"))
    emoji = emoji_count(text) if shown.get("type") == "text" else 0
    return MessageView(
        header=_header(shown, is_draft),
        text=format_text(text, marks_variables=is_draft),
        plain=text,
        emoji=emoji,
        is_long=is_long(text),
        preview=first_link(text) if is_written or shown.get("preview_url") is True else None,
        footer=text_of(shown.get("footer")),
        offer=_offer(shown, buttons, is_draft),
        buttons=buttons,
        shown_buttons=buttons if len(buttons) <= MAX_BUTTONS_SHOWN else buttons[:BUTTONS_SHOWN_OF_MORE],
        rows=rows,
        list_label=text_of(action.get("button")) or "Choose",
        cards=tuple(_card(card, place, is_draft) for place, card in enumerate(objects_in(shown.get("cards")))),
        contacts=tuple(contact_view(card) for card in objects_in(shown.get("contacts"))),
        basket=_basket(shown),
        facts=_facts(shown),
        advert=_advert(shown),
        note=_note(shown),
    )


def _header(shown: dict[str, Any], is_draft: bool) -> Header | None:
    media = object_of(shown.get("media"))
    if media:
        return Header(medium=media_view(text_of(media.get("kind")), media))
    if shown.get("location"):
        return Header(place=location_view(shown.get("location")))
    return _header_of(object_of(shown.get("header")), is_draft)


def _header_of(header: dict[str, Any], is_draft: bool) -> Header | None:
    kind = text_of(header.get("format"))
    member = header.get(kind.lower())
    if kind in _MEDIA_FORMATS:
        return Header(medium=media_view(kind.lower(), member))
    if kind == "LOCATION":
        return Header(place=location_view(member))
    if kind == "PRODUCT":
        return Header(product=text_of(object_of(member).get("product_retailer_id")) or "Product")
    text = text_of(header.get("text"))
    return Header(text=format_text(text, marks_variables=is_draft)) if text else None


def _offer(shown: dict[str, Any], buttons: tuple[ButtonView, ...], is_draft: bool) -> dict[str, Any] | None:
    offer = object_of(shown.get("limited_time_offer"))
    if not offer:
        return None
    return {
        "text": format_text(text_of(offer.get("text")), marks_variables=is_draft),
        "code": next((button.value for button in buttons if button.kind == "COPY_CODE"), ""),
        "until_ms": integer_or_none(offer.get("expiration_time_ms")),
        "expires": offer.get("expires") is True,
    }


def _card(card: dict[str, Any], place: int, is_draft: bool) -> dict[str, Any]:
    index = integer_or_none(card.get("index"))
    index = place if index is None else index
    return {
        "index": index,
        "header": _header_of(object_of(card.get("header")), is_draft),
        "text": format_text(text_of(card.get("text")), marks_variables=is_draft),
        "buttons": buttons_of(card.get("buttons"), index),
    }


def _basket(shown: dict[str, Any]) -> dict[str, Any] | None:
    to_pay = items_of_order(shown)
    if to_pay:
        return {"catalog_id": "", "lines": to_pay}
    order = object_of(shown.get("order"))
    if not order:
        return None
    lines = [
        (
            text_of(item.get("product_retailer_id")),
            text_of(item.get("quantity")),
            f"{text_of(item.get('item_price'))} {text_of(item.get('currency'))}".strip(),
        )
        for item in objects_in(order.get("product_items"))
    ]
    return {"catalog_id": text_of(order.get("catalog_id")), "lines": lines}


def _facts(shown: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    response = object_of(shown.get("response"))
    filled = object_of(response.get("values")) or response
    if not filled:
        return facts_of_order(shown)
    return tuple((name, text_of(value) or str(value)) for name, value in filled.items())


def _advert(shown: dict[str, Any]) -> tuple[str, str, str] | None:
    """Return headline, text and URL of the ad that the person tapped before writing."""
    advert = object_of(shown.get("referral"))
    if not advert:
        return None
    return text_of(advert.get("headline")), text_of(advert.get("body")), text_of(advert.get("source_url"))


def _note(shown: dict[str, Any]) -> str:
    unsupported = shown.get("unsupported")
    if unsupported is None:
        return ""
    kind = text_of(object_of(unsupported).get("type")) or "unknown"
    return f"Unsupported message type: the operator does not deliver it ({kind})."
