"""Flows for the tests of the player: one with every component, and one that an endpoint powers."""

import base64
from typing import Any, Final

from tests.console.support.pictures import picture

PICTURE: Final = base64.b64encode(picture("bread")).decode()
OTHER_PICTURE: Final = base64.b64encode(picture("cake")).decode()
BREADS: Final = [
    {"id": "rye", "title": "Rye", "description": "1 kg, sourdough", "metadata": "4.20", "image": PICTURE, "alt-text": "Rye bread"},
    {"id": "wheat", "title": "Wheat", "description": "500 g"},
    {"id": "spelt", "title": "Spelt", "enabled": False},
]  # fmt: skip
TASTES: Final = [{"id": "sweet", "title": "Sweet"}, {"id": "salty", "title": "Salty"}, {"id": "sour", "title": "Sour"}]
EXTRAS: Final = [
    {"id": "jam", "title": "Jam", "color": "#a4241c"}, {"id": "butter", "title": "Butter", "color": "#f0d070"},
    {"id": "honey", "title": "Honey", "color": "#c98a1b"},
]  # fmt: skip


def _screen(screen_id: str, title: str, *children: dict[str, Any], **members: Any) -> dict[str, Any]:
    layout = {"type": "SingleColumnLayout", "children": list(children)}
    return {"id": screen_id, "title": title, "data": {}, "layout": layout, **members}


def _footer(label: str, following: str, **members: Any) -> dict[str, Any]:
    action = {"name": "navigate", "next": {"type": "screen", "name": following}, "payload": {}}
    return {"type": "Footer", "label": label, "on-click-action": action, **members}


def _navigate(following: str) -> dict[str, Any]:
    return {"name": "navigate", "next": {"type": "screen", "name": following}, "payload": {}}


_RICH: Final = [
    "# Our terms",
    "Be **kind** to the *bakers*, ~~never~~ always. See [the shop](https://meadow.test/terms).",
    "- Bread is warm",
    "- Cake is sweet",
    "| Day | Open |",
    "|---|---|",
    "| Sunday | 7 to 11 |",
]
ALL_COMPONENTS: Final[dict[str, Any]] = {
    "version": "7.3",
    "screens": [
        _screen(
            "WELCOME", "Welcome",
            {"type": "TextHeading", "text": "Fresh bread, every morning"},
            {"type": "TextSubheading", "text": "Order until midnight"},
            {"type": "TextBody", "text": "From **our oven** to your door", "markdown": True},
            {"type": "TextCaption", "text": "Prices include the bag", "font-weight": "italic"},
            {"type": "Image", "src": PICTURE, "alt-text": "A loaf of bread", "height": 120, "scale-type": "cover"},
            {"type": "ImageCarousel", "images": [
                {"src": PICTURE, "alt-text": "Bread"}, {"src": OTHER_PICTURE, "alt-text": "Cake"}]},
            {"type": "EmbeddedLink", "text": "Read the terms", "on-click-action": _navigate("TERMS")},
            _footer("Start", "TERMS", **{"left-caption": "5 minutes", "right-caption": "No cost"}),
        ),
        _screen("TERMS", "Terms", {"type": "RichText", "text": _RICH}, _footer("Agree", "ORDER")),
        _screen(
            "ORDER", "Your order",
            {"type": "TextInput", "name": "name", "label": "Name", "required": True, "min-chars": 2, "helper-text": "As on the bell"},
            {"type": "TextInput", "name": "mail", "label": "E-mail", "input-type": "email", "required": False},
            {"type": "TextArea", "name": "note", "label": "Note", "required": False},
            {"type": "RadioButtonsGroup", "name": "bread", "label": "Bread", "data-source": BREADS, "required": True},
            {"type": "CheckboxGroup", "name": "extras", "label": "Extras", "data-source": EXTRAS, "required": False, "max-selected-items": 2},
            {"type": "ChipsSelector", "name": "tastes", "label": "You like", "data-source": TASTES, "required": False},
            {"type": "Dropdown", "name": "size", "label": "Size", "required": True, "data-source": [
                {"id": "s", "title": "Small"}, {"id": "l", "title": "Large"}]},
            {"type": "If", "condition": "${form.size} == 'l'", "then": [
                {"type": "TextBody", "text": "A large loaf serves ten."}], "else": [
                {"type": "TextCaption", "text": "A small loaf serves four."}]},
            {"type": "Switch", "value": "${form.bread}", "cases": {
                "rye": [{"type": "TextCaption", "text": "Rye keeps for a week."}], "default": []}},
            {"type": "OptIn", "name": "agree", "label": "I accept the prices", "required": True,
             "on-click-action": {"name": "open_url", "url": "https://meadow.test/prices"}},
            _footer("Continue", "DAYS"),
        ),
        _screen(
            "DAYS", "Delivery",
            {"type": "DatePicker", "name": "day", "label": "First day", "required": True,
             "min-date": "2026-06-01", "max-date": "2026-12-31"},
            {"type": "CalendarPicker", "name": "holiday", "mode": "range", "title": "Holiday", "description": "No bread then",
             "label": {"start-date": "From", "end-date": "To"}},
            {"type": "PhotoPicker", "name": "photos", "label": "Your door", "min-uploaded-photos": 0, "max-uploaded-photos": 2},
            _footer("Continue", "PAPERS"),
        ),
        _screen(
            "PAPERS", "Documents",
            {"type": "DocumentPicker", "name": "papers", "label": "Voucher", "min-uploaded-documents": 0,
             "max-uploaded-documents": 1, "allowed-mime-types": ["application/pdf"]},
            _footer("Continue", "CHOICE"),
        ),
        _screen(
            "CHOICE", "How to pay",
            {"type": "NavigationList", "name": "pay", "label": "Ways", "list-items": [
                {"id": "cash", "main-content": {"title": "Cash", "description": "At the door", "metadata": "Coins welcome"},
                 "start": {"image": PICTURE, "alt-text": "Coins"}, "end": {"title": "4.20", "description": "a loaf"},
                 "badge": "Popular", "tags": ["Fast", "Free"], "on-click-action": _navigate("END")},
                {"id": "card", "main-content": {"title": "Card"}, "on-click-action": _navigate("END")},
            ]},
        ),
        _screen(
            "END", "Confirm",
            {"type": "TextBody", "text": "`'Thank you, ' ${screen.ORDER.form.name} '.'`"},
            {"type": "TextInput", "name": "code", "label": "Code", "input-type": "passcode", "required": True},
            {"type": "Footer", "label": "Order", "on-click-action": {"name": "complete", "payload": {
                "name": "${screen.ORDER.form.name}", "bread": "${screen.ORDER.form.bread}", "extras": "${screen.ORDER.form.extras}",
                "tastes": "${screen.ORDER.form.tastes}", "size": "${screen.ORDER.form.size}", "day": "${screen.DAYS.form.day}",
                "holiday": "${screen.DAYS.form.holiday}", "photos": "${screen.DAYS.form.photos}", "code": "${form.code}"}}},
            terminal=True, success=True, sensitive=["code"],
        ),
    ],
}  # fmt: skip
ALL_COMPONENTS["screens"][2]["sensitive"] = ["mail"]
