"""Flows of our own: one with each component per version, and a small one that tests change."""

import base64
import json
from copy import deepcopy
from typing import Any, Final, cast

from waypost.flow_json.components import COMPONENTS
from waypost.flow_json.versions import Version

PICTURE: Final = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(8)).decode()
DROP: Final = object()
"""A change that takes a member or an item away."""


def footer(following: str, payload: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return a Footer that leads to a screen."""
    following_screen = {"type": "screen", "name": following}
    action = {"name": "navigate", "next": following_screen, "payload": payload or {}}
    return {"type": "Footer", "label": "Go on", "on-click-action": action}


def finish(payload: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return a Footer that completes the Flow."""
    return {"type": "Footer", "label": "Done", "on-click-action": {"name": "complete", "payload": payload or {}}}


def screen(screen_id: str, *children: dict[str, Any], **members: Any) -> dict[str, Any]:
    """Return a screen."""
    layout = {"type": "SingleColumnLayout", "children": list(children)}
    return {"id": screen_id, "title": f"Screen {screen_id}", **members, "layout": layout}


OPTIONS: Final = [{"id": "one", "title": "First"}, {"id": "two", "title": "Second"}]
_CLICK: Final = {"name": "navigate", "next": {"type": "screen", "name": "END"}, "payload": {}}
# One of each type; Form, If and Switch are built around others.
BODIES: Final[dict[str, dict[str, Any]]] = {
    "TextHeading": {"text": "Welcome"},
    "TextSubheading": {"text": "Please read"},
    "TextBody": {"text": "A few questions", "font-weight": "bold", "strikethrough": False},
    "TextCaption": {"text": "Small print", "visible": True},
    "RichText": {"text": ["# Terms", "- be kind"]},
    "Image": {"src": PICTURE, "width": 100, "height": 80, "scale-type": "cover", "aspect-ratio": 1.5, "alt-text": "A dot"},
    "ImageCarousel": {"images": [{"src": PICTURE, "alt-text": "A dot"}], "aspect-ratio": "4:3", "scale-type": "contain"},
    "EmbeddedLink": {"text": "Skip", "on-click-action": _CLICK},
    "TextInput": {"name": "who", "label": "Name", "input-type": "text", "min-chars": 2, "max-chars": 9, "helper-text": "Yours"},
    "TextArea": {"name": "why", "label": "Reason", "max-length": 200, "required": False, "enabled": True},
    "CheckboxGroup": {
        "name": "many", "label": "Several", "data-source": OPTIONS, "min-selected-items": 1, "max-selected-items": 2,
    },
    "RadioButtonsGroup": {"name": "one", "label": "Choose", "data-source": OPTIONS, "required": True},
    "ChipsSelector": {"name": "chips", "label": "Interests", "data-source": OPTIONS, "max-selected-items": 1},
    "Dropdown": {"name": "drop", "label": "Choose", "data-source": OPTIONS},
    "OptIn": {"name": "agreed", "label": "I agree", "on-click-action": _CLICK},
    "DatePicker": {"name": "day", "label": "Day"},
    "CalendarPicker": {
        "name": "days",
        "mode": "range",
        "title": "Stay",
        "label": {"start-date": "From", "end-date": "To"},
        "init-value": {"start-date": "2026-05-01", "end-date": "2026-05-03"},
        "min-days": 1,
        "max-days": 9,
        "include-days": ["Mon", "Tue"],
    },
    "PhotoPicker": {"name": "photos", "label": "Photos", "max-uploaded-photos": 3, "photo-source": "camera"},
    "DocumentPicker": {"name": "papers", "label": "Papers", "allowed-mime-types": ["application/pdf"]},
    "Footer": {"label": "Go on", "left-caption": "a", "right-caption": "b", "on-click-action": _CLICK},
    "NavigationList": {
        "name": "list",
        "list-items": [
            {
                "id": "a",
                "main-content": {"title": "Insurance", "description": "Home"},
                "start": {"image": PICTURE},
                "end": {"title": "9"},
                "tags": ["new"],
                "on-click-action": _CLICK,
            },
        ],
    },
}  # fmt: skip


_TOGETHER: Final = (
    ("TextHeading", "TextSubheading", "TextBody", "TextCaption", "Image", "ImageCarousel", "EmbeddedLink"),
    ("TextInput", "TextArea", "CheckboxGroup", "RadioButtonsGroup", "ChipsSelector", "Dropdown", "OptIn"),
    ("DatePicker", "CalendarPicker", "PhotoPicker"),
    ("DocumentPicker",),
    ("RichText",),
    ("NavigationList",),
)


def all_components(version: Version) -> dict[str, Any]:
    """Return a Flow with each component that a version has; RichText comes with the version that lets a Footer beside."""
    screens: list[dict[str, Any]] = []
    for names in _TOGETHER:
        bodies = [{"type": name, **BODIES[name]} for name in names if COMPONENTS[name].since <= version]
        if not bodies or (names == ("RichText",) and version < (6, 3)):
            continue
        if names != _TOGETHER[0] and version < (4, 0):
            bodies = [{"type": "Form", "name": "form", "children": bodies}]
        following = f"S_{chr(ord('A') + len(screens) + 1)}"
        screens.append(
            screen(following.replace(following[-1], chr(ord(following[-1]) - 1)), *bodies, footer(following))
        )
    if screens[-1]["layout"]["children"][0]["type"] == "NavigationList":
        screens[-1]["layout"]["children"].pop()
    last = f"S_{chr(ord('A') + len(screens))}"
    branches = _branches() if version >= (4, 0) else []
    screens.append(screen(last, *branches, {"type": "Footer", **BODIES["Footer"]}))
    screens.append(screen("END", {"type": "Form", "name": "form", "children": [finish()]}, terminal=True))
    return deepcopy({"version": f"{version[0]}.{version[1]}", "screens": screens})


def _branches() -> list[dict[str, Any]]:
    text = {"type": "TextBody", "text": "Shown by a branch"}
    choice = {"type": "Dropdown", "name": "kind", "label": "Kind", "data-source": OPTIONS}
    return [
        choice,
        {"type": "If", "condition": "${form.kind} == 'one'", "then": [text], "else": [text]},
        {"type": "Switch", "value": "${form.kind}", "cases": {"one": [text], "two": [text]}},
    ]


def simple() -> dict[str, Any]:
    """Return a Flow of two screens, which tests change."""
    return {
        "version": "7.3",
        "screens": [
            screen(
                "START",
                {"type": "TextHeading", "text": "Welcome"},
                {"type": "TextBody", "text": "${data.hint}"},
                {"type": "TextInput", "name": "who", "label": "Name"},
                footer("END", {"who": "${form.who}"}),
                data={
                    "hint": {"type": "string", "__example__": "A hint"},
                    "count": {"type": "number", "__example__": 3},
                    "shown": {"type": "boolean", "__example__": True},
                    "names": {"type": "array", "items": {"type": "string"}, "__example__": ["Ann"]},
                    "person": {
                        "type": "object",
                        "properties": {"name": {"type": "string"}},
                        "__example__": {"name": "Ann"},
                    },
                },
            ),
            screen(
                "END",
                {"type": "TextBody", "text": "${data.who}"},
                finish({"who": "${data.who}"}),
                terminal=True,
                data={"who": {"type": "string", "__example__": "Ann"}},
            ),
        ],
    }


def changed(flow: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Return a Flow in which members and items are replaced, added or dropped: of each its path, with slashes."""
    result = deepcopy(flow)
    for path, value in changes.items():
        *way, last = steps(path)
        place: Any = result  # a dict or a list
        for step in way:
            place = place[step]
        if value is DROP:
            del place[last]
        elif isinstance(place, list) and last == len(cast("list[Any]", place)):
            cast("list[Any]", place).append(deepcopy(value))
        else:
            place[last] = deepcopy(value)
    return result


def steps(path: str) -> list[Any]:
    """Return the steps of a path."""
    return [int(step) if step.isdecimal() else step for step in path.split("/")]


def line_of(flow: dict[str, Any], path: str) -> int:
    """Return the line on which a value stands, if the Flow is written by `text_of`."""
    mark = "@@here@@"
    text = text_of(changed(flow, {path: mark})) if path else text_of(flow)
    return text[: text.index(mark)].count("\n") + 1 if path else 1


def text_of(flow: Any) -> str:
    """Return the text of a Flow."""
    return json.dumps(flow, indent=2, ensure_ascii=False)
