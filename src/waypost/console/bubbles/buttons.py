"""Buttons of a message bubble: a table with the look and the tap behaviour of each kind."""

from dataclasses import dataclass, replace
from typing import Any, Final

from waypost.base.json_values import integer_or_none, objects_in
from waypost.console.bubbles.formatting import safe_link
from waypost.console.bubbles.items import money, text_of

MAX_BUTTONS_SHOWN: Final = 3
"""If there are more, a handset shows `BUTTONS_SHOWN_OF_MORE` of them and "See all options"."""
BUTTONS_SHOWN_OF_MORE: Final = 2
NOT_REQUESTED: Final = "I didn't request a code"


BUTTON_BEHAVIOURS: Final = {  # Source: decision 0057; kinds as in the simulator's tables of buttons
    # does: `reply`, `link`, `copy`, or the sheet of `bubble.html` that opens; icon of ui.html; default label; and the
    # member of the button that is opened, copied or called
    "QUICK_REPLY": ("reply", "reply", "", ""),
    "REPLY": ("reply", "reply", "", ""),
    "LIST_ROW": ("reply", "", "", ""),
    "NOT_REQUESTED": ("reply", "warn", NOT_REQUESTED, ""),
    "URL": ("link", "link", "Open", "url"),
    "PHONE_NUMBER": ("call", "call", "Call", "phone_number"),
    "VOICE_CALL": ("call", "call", "Call now", ""),
    "COPY_CODE": ("copy", "copy", "Copy offer code", "code"),
    "OTP": ("copy", "copy", "Copy code", "code"),
    "FLOW": ("flow", "form", "Open", ""),
    "ADDRESS": ("address", "form", "Provide address", ""),
    "CALL_PERMISSION": ("permission", "call", "Choose preference", ""),
    "CATALOG": ("items", "bag", "View catalog", ""),
    "MPM": ("items", "bag", "View items", ""),
    "SPM": ("items", "bag", "View", ""),
    "PRODUCT": ("items", "bag", "View", ""),
    "LOCATION_REQUEST": ("place", "place", "Send location", ""),
    "REVIEW_AND_PAY": ("pay", "bag", "Review and pay", ""),
    "REQUEST_CONTACT_INFO": ("contact", "person", "Share contact info", ""),
}

_ANY_ADDRESS: Final = (("name", "Name"), ("phone_number", "Phone number"), ("address", "Address"), ("city", "City"))
ADDRESS_FIELDS: Final = {  # Source: the operator's page "Address messages": by country
    "IN": (
        *_ANY_ADDRESS,
        ("in_pin_code", "PIN code"),
        ("house_number", "Flat or house number"),
        ("floor_number", "Floor"),
        ("tower_number", "Tower"),
        ("building_name", "Building"),
        ("landmark_area", "Landmark or area"),
        ("state", "State"),
    ),
    "SG": (*_ANY_ADDRESS, ("sg_post_code", "Post code"), ("unit_number", "Unit number")),
}


@dataclass(frozen=True, slots=True)
class ButtonView:
    """One button."""

    index: int  # index by which it is tapped
    kind: str  # type in the message
    does: str  # see `BUTTON_BEHAVIOURS`
    icon: str
    text: str
    value: str = ""  # URL, code or number that is opened, copied or called
    description: str = ""
    note: str = ""  # remark for the console's user
    catalog_id: str = ""
    items: tuple[dict[str, str], ...] = ()  # products of a catalog or product list: `id` and `section`
    fields: tuple[tuple[str, str], ...] = ()  # names and labels of an address form
    card: int | None = None  # index of the card; None: under the message


def buttons_of(value: object, card: int | None = None) -> tuple[ButtonView, ...]:
    """Return the buttons of a message or of a card."""
    return tuple(_button(raw, place, card) for place, raw in enumerate(objects_in(value)))


def list_sections(buttons: tuple[ButtonView, ...], value: object) -> tuple[tuple[str, list[ButtonView]], ...]:
    """Return the sections of a list message: titles and buttons.

    Args:
        value: the same buttons as received.
    """
    sections: dict[str, list[ButtonView]] = {}
    for button, raw in zip(buttons, objects_in(value), strict=True):
        sections.setdefault(text_of(raw.get("section")), []).append(button)
    return tuple(sections.items())


def _button(raw: dict[str, Any], place: int, card: int | None) -> ButtonView:
    name = text_of(raw.get("type"))
    does, icon, label, member = BUTTON_BEHAVIOURS.get(name, ("nothing", "", "", ""))
    index = integer_or_none(raw.get("index"))
    view = ButtonView(
        index=place if index is None else index,
        kind=name,
        does=does,
        icon=icon,
        text=text_of(raw.get("text")) or label or name.replace("_", " ").capitalize(),
        value=text_of(raw.get(member)) if member else "",
        description=text_of(raw.get("description")),
        note=_note(name, raw),
        catalog_id=text_of(raw.get("catalog_id")),
        items=_items(raw),
        fields=ADDRESS_FIELDS.get(text_of(raw.get("country")), _ANY_ADDRESS) if does == "address" else (),
        card=card,
    )
    if view.does == "link" and safe_link(view.value) is None:
        return replace(view, does="nothing", note=view.note or f"Not a link that can be opened: {view.value}")
    return view


def _items(raw: dict[str, Any]) -> tuple[dict[str, str], ...]:
    items = [
        {"id": text_of(item.get("product_retailer_id")), "section": text_of(section.get("title"))}
        for section in objects_in(raw.get("sections"))
        for item in objects_in(section.get("product_items"))
    ]
    single_id = text_of(raw.get("product_retailer_id")) or text_of(raw.get("thumbnail_product_retailer_id"))
    return tuple(items) or (({"id": single_id, "section": ""},) if single_id else ())


def _note(name: str, raw: dict[str, Any]) -> str:
    match name, text_of(raw.get("otp_type")).upper():
        case "OTP", "ONE_TAP":
            return "One tap: the app receives the code. Without the app, the code is copied."
        case "OTP", "ZERO_TAP":
            return "Zero tap: the app receives the code automatically. Without the app, the code is copied."
        case "REVIEW_AND_PAY", _:
            total = money(raw.get("amount"), text_of(raw.get("currency")))
            return f"{total} for order {text_of(raw.get('reference_id'))}."
        case "VOICE_CALL", _:
            minutes = integer_or_none(raw.get("ttl_minutes"))
            return f"Calls are possible for {minutes} minutes." if minutes else ""
        case _:
            return ""
