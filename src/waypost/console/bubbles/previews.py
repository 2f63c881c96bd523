"""The view model of a message or template, built from the control API's JSON or from a draft."""

from dataclasses import dataclass, replace
from typing import Any, Final

from markupsafe import Markup

from waypost.base.json_values import integer_or_none, object_of, objects_in
from waypost.console.bubbles.buttons import (
    BUTTONS_SHOWN_OF_MORE,
    MAX_BUTTONS_SHOWN,
    ButtonView,
    ListSectionView,
    buttons_of,
    list_sections,
    not_requested_button,
)
from waypost.console.bubbles.formatting import Link, emoji_count, first_link, format_text, is_long
from waypost.console.bubbles.json_fields import text_of
from waypost.console.bubbles.media import Contact, LocationView, MediaView, contact_views, location_view, media_view
from waypost.console.bubbles.orders import facts_of_order, is_paid, items_of_order

_MEDIA_FORMATS: Final = ("IMAGE", "VIDEO", "DOCUMENT", "GIF")


@dataclass(frozen=True, slots=True)
class Header:
    """Header of a message: a text, a media file, a location or a product."""

    text: Markup | None = None
    medium: MediaView | None = None
    place: LocationView | None = None
    product: str = ""


@dataclass(frozen=True, slots=True)
class Offer:
    """A limited-time offer; `until_ms` is None if it is unknown or the offer does not expire."""

    text: Markup
    code: str
    until_ms: int | None
    expires: bool


@dataclass(frozen=True, slots=True)
class CardView:
    """A card of a carousel."""

    index: int
    header: Header | None
    text: Markup
    buttons: tuple[ButtonView, ...]


@dataclass(frozen=True, slots=True)
class Basket:
    """An order that a phone has sent or is to pay."""

    catalog_id: str
    lines: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True)
class MessageView:
    """The visible content of one message, without time and ticks.

    Attributes:
        emoji: number of emoji in a text of emoji only, or else 0.
        shown_buttons: the buttons under the message; `buttons` has all of them.
        rows: sections of a list message; then `buttons` is empty, and `list_label` opens the list.
        facts: names and values of a submitted form or an order.
        note: description of a message that cannot be shown.
    """

    header: Header | None
    text: Markup
    plain: str
    emoji: int
    is_long: bool
    preview: Link | None
    footer: str
    offer: Offer | None
    buttons: tuple[ButtonView, ...]
    shown_buttons: tuple[ButtonView, ...]
    rows: tuple[ListSectionView, ...]
    list_label: str
    cards: tuple[CardView, ...]
    contacts: tuple[Contact, ...]
    basket: Basket | None
    facts: tuple[tuple[str, str], ...]
    advert: tuple[str, str, str] | None
    note: str

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
    rows: tuple[ListSectionView, ...] = ()
    if buttons and all(button.kind == "LIST_ROW" for button in buttons):
        rows, buttons = list_sections(buttons, raw_buttons), ()
    if is_paid(shown):
        buttons = tuple(_mark_paid(button) for button in buttons)
    if _has_code(shown):
        buttons = (*buttons, not_requested_button())
    text = "" if _has_own_text(shown) else text_of(shown.get("text"))
    action = object_of(object_of(shown.get("interactive")).get("action"))
    emoji = emoji_count(text) if shown.get("type") == "text" else 0
    return MessageView(
        header=_header(shown, is_draft),
        text=format_text(text, marks_variables=is_draft),
        plain=text,
        emoji=emoji,
        is_long=is_long(text),
        preview=first_link(text) if _has_preview(shown) else None,
        footer=text_of(shown.get("footer")),
        offer=_offer(shown, buttons, is_draft),
        buttons=buttons,
        shown_buttons=buttons if len(buttons) <= MAX_BUTTONS_SHOWN else buttons[:BUTTONS_SHOWN_OF_MORE],
        rows=rows,
        list_label=text_of(action.get("button")) or "Choose",
        cards=tuple(_card(card, place, is_draft) for place, card in enumerate(objects_in(shown.get("cards")))),
        contacts=contact_views(shown.get("contacts")),
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


def _offer(shown: dict[str, Any], buttons: tuple[ButtonView, ...], is_draft: bool) -> Offer | None:
    offer = object_of(shown.get("limited_time_offer"))
    if not offer:
        return None
    return Offer(
        text=format_text(text_of(offer.get("text")), marks_variables=is_draft),
        code=next((button.value for button in buttons if button.kind == "COPY_CODE"), ""),
        until_ms=integer_or_none(offer.get("expiration_time_ms")),
        expires=offer.get("expires") is True,
    )


def _card(card: dict[str, Any], place: int, is_draft: bool) -> CardView:
    index = integer_or_none(card.get("index"))
    index = place if index is None else index
    return CardView(
        index=index,
        header=_header_of(object_of(card.get("header")), is_draft),
        text=format_text(text_of(card.get("text")), marks_variables=is_draft),
        buttons=buttons_of(card.get("buttons"), index),
    )


def _mark_paid(button: ButtonView) -> ButtonView:
    return replace(button, does="nothing", text="Paid") if button.does == "pay" else button


def _basket(shown: dict[str, Any]) -> Basket | None:
    to_pay = items_of_order(shown)
    if to_pay:
        return Basket("", tuple(to_pay))
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
    return Basket(text_of(order.get("catalog_id")), tuple(lines))


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


def _has_code(shown: dict[str, Any]) -> bool:
    return object_of(shown.get("template")).get("category") == "AUTHENTICATION"


def _has_own_text(shown: dict[str, Any]) -> bool:
    """True if the text only repeats a location or contact that is drawn."""
    return bool(shown.get("location") or shown.get("contacts"))


def _has_preview(shown: dict[str, Any]) -> bool:
    is_written = shown.get("direction") == "from_phone" and shown.get("type") == "text"
    return shown.get("preview_url") is True or is_written


def _note(shown: dict[str, Any]) -> str:
    unsupported = shown.get("unsupported")
    if unsupported is None:
        return ""
    kind = text_of(object_of(unsupported).get("type")) or "unknown"
    return f"Unsupported message type: the operator does not deliver it ({kind})."
