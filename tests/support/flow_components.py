"""A valid Flow with every component of Flow JSON 7.3: eight screens, from a list to the answers."""

import json
from typing import Any

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="  # one pixel
PAYLOAD_OF_START = {"greeting": "Hello"}
COLORS = [
    {"id": "red", "title": "Red", "description": "Warm", "metadata": "1", "color": "#ff0000"},
    {"id": "green", "title": "Green", "enabled": False},
    {"id": "blue", "title": "Blue"},
]


def screen(screen_id: str, *children: dict[str, Any], **members: Any) -> dict[str, Any]:
    """Return a screen with components."""
    layout = {"type": "SingleColumnLayout", "children": list(children)}
    return {"id": screen_id, "title": screen_id.title(), "layout": layout, **members}


def navigate(following: str, **payload: Any) -> dict[str, Any]:
    """Return an action that shows another screen."""
    return {"name": "navigate", "next": {"type": "screen", "name": following}, "payload": payload}


def footer(label: str, action: dict[str, Any], **members: Any) -> dict[str, Any]:
    """Return a Footer."""
    return {"type": "Footer", "label": label, "on-click-action": action, **members}


def text_data(name: str) -> dict[str, Any]:
    """Return the declaration of a text in the data of a screen."""
    return {name: {"type": "string", "__example__": "x"}}


def every_component_flow() -> dict[str, Any]:
    """Return the Flow."""
    return {"version": "7.3", "screens": [*_first_screens(), *_last_screens()]}


def every_component_text() -> str:
    """Return its JSON."""
    return json.dumps(every_component_flow(), indent=2)


def _first_screens() -> list[dict[str, Any]]:
    start = screen(
        "START",
        {
            "type": "NavigationList",
            "name": "topics",
            "label": "Topics",
            "description": "Choose one",
            "list-items": [
                {
                    "id": "all",
                    "main-content": {"title": "All of it", "description": "Eight screens", "metadata": "5 minutes"},
                    "start": {"image": PNG, "alt-text": "A dot"},
                    "end": {"title": "1", "description": "new"},
                    "badge": "New",
                    "tags": ["long", "whole"],
                    "on-click-action": navigate("TEXTS", **PAYLOAD_OF_START),
                },
                {
                    "id": "fields",
                    "main-content": {"title": "Fields"},
                    "on-click-action": navigate("TEXTS", greeting="Only fields"),
                },
            ],
        },
    )
    texts = screen(
        "TEXTS",
        {"type": "TextHeading", "text": "${data.greeting}"},
        {"type": "TextSubheading", "text": "`${data.greeting} ', you'`"},
        {"type": "TextBody", "text": "Some **bold** text", "markdown": True},
        {"type": "TextCaption", "text": "small", "font-weight": "italic", "strikethrough": True},
        {"type": "Image", "src": PNG, "alt-text": "A dot", "height": 40, "scale-type": "contain"},
        {
            "type": "ImageCarousel",
            "images": [{"src": PNG, "alt-text": "One"}, {"src": PNG, "alt-text": "Two"}],
            "aspect-ratio": "16:9",
        },
        {
            "type": "EmbeddedLink",
            "text": "Web site",
            "on-click-action": {"name": "open_url", "url": "https://example.com"},
        },
        footer("Terms", navigate("TERMS"), **{"left-caption": "1", "right-caption": "of 6"}),
        data=text_data("greeting"),
        title="`'Texts: ' ${data.greeting}`",
    )
    terms = screen(
        "TERMS",
        {"type": "RichText", "text": ["# Terms", "Read *all* of [them](https://example.com)."]},
        footer("Fields", navigate("FIELDS")),
    )
    fields = screen(
        "FIELDS",
        {
            "type": "Form",
            "name": "form",
            "init-values": {"city": "Oslo"},
            "children": [
                {"type": "TextInput", "name": "name", "label": "Name", "required": True, "min-chars": 2},
                {"type": "TextInput", "name": "email", "label": "E-mail", "input-type": "email"},
                {"type": "TextInput", "name": "city", "label": "City", "helper-text": "Where you live"},
                {"type": "TextInput", "name": "pin", "label": "PIN", "input-type": "passcode", "max-chars": 6},
                {"type": "TextInput", "name": "age", "label": "Age", "input-type": "number"},
                {
                    "type": "TextInput",
                    "name": "code",
                    "label": "Code",
                    "pattern": "[A-Z]{2}[0-9]+",
                    "helper-text": "AB12",
                },
                {"type": "TextArea", "name": "notes", "label": "Notes", "max-length": 20},
                {
                    "type": "If",
                    "condition": "${form.city} == 'Bergen'",
                    "then": [{"type": "TextInput", "name": "street", "label": "Street"}],
                    "else": [{"type": "TextBody", "text": "Not Bergen"}],
                },
            ],
        },
        footer("Choices", navigate("CHOICES", price="Choose a size")),
        sensitive=["email"],
    )
    return [start, texts, terms, fields]


def _last_screens() -> list[dict[str, Any]]:
    choices = screen(
        "CHOICES",
        {
            "type": "CheckboxGroup",
            "name": "colors",
            "label": "Colors",
            "description": "One or two",
            "required": True,
            "max-selected-items": 2,
            "data-source": COLORS,
        },
        {
            "type": "RadioButtonsGroup",
            "name": "size",
            "label": "Size",
            "data-source": [{"id": "s", "title": "Small"}, {"id": "l", "title": "Large"}],
            "on-select-action": {"name": "update_data", "payload": {"price": "`${form.size} ' costs 5'`"}},
        },
        {"type": "TextBody", "text": "${data.price}"},
        {
            "type": "ChipsSelector",
            "name": "tags",
            "label": "Tags",
            "data-source": [{"id": "new", "title": "Novel"}, {"id": "old", "title": "Antique"}],
        },
        {"type": "Dropdown", "name": "country", "label": "Country", "data-source": [{"id": "no", "title": "Norway"}]},
        {
            "type": "Switch",
            "value": "${form.country}",
            "cases": {
                "no": [{"type": "TextBody", "text": "Velkommen"}],
                "default": [{"type": "TextBody", "text": "Welcome"}],
            },
        },
        {
            "type": "OptIn",
            "name": "terms",
            "label": "I agree",
            "required": True,
            "on-click-action": {"name": "open_url", "url": "https://example.com/terms"},
        },
        footer("Dates", navigate("DATES", opinion="${form.colors}")),
        data=text_data("price"),
    )
    dates = screen(
        "DATES",
        {
            "type": "DatePicker",
            "name": "birthday",
            "label": "Birthday",
            "min-date": "1950-01-01",
            "max-date": "2020-12-31",
            "unavailable-dates": ["2000-01-01"],
        },
        {
            "type": "CalendarPicker",
            "name": "visit",
            "label": "Visit",
            "mode": "single",
            "include-days": ["Mon", "Tue"],
            "min-date": "2026-01-01",
            "max-date": "2026-12-31",
        },
        {
            "type": "CalendarPicker",
            "name": "stay",
            "title": "Stay",
            "description": "Two days to a week",
            "label": {"start-date": "Arrival", "end-date": "Departure"},
            "mode": "range",
            "min-days": 2,
            "max-days": 7,
        },
        footer("Photos", navigate("PHOTOS")),
        data={"opinion": {"type": "array", "items": {"type": "string"}, "__example__": ["red"]}},
    )
    photos = screen(
        "PHOTOS",
        {
            "type": "PhotoPicker",
            "name": "photos",
            "label": "Photos",
            "description": "Of the room",
            "min-uploaded-photos": 1,
            "max-uploaded-photos": 2,
            "max-file-size-kb": 100,
        },
        footer("Documents", navigate("DOCUMENTS")),
    )
    documents = screen(
        "DOCUMENTS",
        {
            "type": "DocumentPicker",
            "name": "documents",
            "label": "Documents",
            "max-uploaded-documents": 1,
            "allowed-mime-types": ["application/pdf", "text/plain"],
        },
        footer(
            "Send",
            {
                "name": "complete",
                "payload": {
                    "name": "${screen.FIELDS.form.name}",
                    "city": "${screen.FIELDS.form.city}",
                    "colors": "${screen.CHOICES.form.colors}",
                    "stay": "${screen.DATES.form.stay}",
                    "photos": "${screen.PHOTOS.form.photos}",
                    "documents": "${form.documents}",
                },
            },
        ),
        terminal=True,
    )
    return [choices, dates, photos, documents]
