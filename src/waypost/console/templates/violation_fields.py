"""Where on the editor's page a finding belongs: the element that mends it."""

import re
from typing import Any, Final

from waypost.console.templates.draft_text import CardWriting, Writing

_OF_BUTTON: Final = re.compile(r"(?:cards\[(\d+)\]\.)?buttons(?:\[(\d+)\](?:\.(.+))?)?")
_OF_CARD: Final = re.compile(r"cards\[(\d+)\]\.(\w+)")

# fmt: off
ELEMENTS: Final = {  # fields that are shown otherwise than as one control of their name
    "buttons":       "f-new-button-kind",
    "cards":         "f-add-card",
    "exampleMedia":  "f-file",
    "mediaId":       "f-file",
    "exampleHeader": "f-header-value",
}
_OF_BUTTONS: Final = {  # likewise inside a button
    "package_name":   "apps",
    "signature_hash": "apps",
    "supported_apps": "apps",
}
# fmt: on


def element_of(field: str, writing: Writing) -> str:
    """The id of the control that a finding's field is written in.

    Args:
        field: such as `cards[1].buttons[0].url`.
        writing: what is written.
    """
    if field == "example":
        return _missing("f-value-", writing.names, writing.values) or "f-content"
    if field == "content" and writing.is_code:
        return "f-category"
    if found := _OF_BUTTON.fullmatch(field):
        card, at, member = found[1], found[2], found[3] or ""
        prefix = "" if card is None else f"card-{card}-"
        if at is None:
            return f"f-{prefix}new-button-kind"
        name = re.split(r"[.\[]", member)[0]
        if name in ("", "type"):
            return f"{prefix}button-{at}"
        return f"f-{prefix}button-{at}-{_OF_BUTTONS.get(name, name)}"
    if found := _OF_CARD.fullmatch(field):
        return _of_card(int(found[1]), found[2], writing)
    return ELEMENTS.get(field, f"f-{field}")


def _of_card(at: int, member: str, writing: Writing) -> str:
    prefix = f"f-card-{at}-"
    if member == "sampleText":
        card = writing.cards[at] if at < len(writing.cards) else CardWriting()
        return _missing(f"{prefix}value-", card.names, card.values) or f"{prefix}body"
    return f"{prefix}file" if member in ("exampleMedia", "mediaId") else f"{prefix}{member}"


def _missing(prefix: str, names: list[str], values: dict[str, str]) -> str:
    """The first value that is missing; the first one where none is."""
    without = [name for name in names if not values.get(name)]
    return f"{prefix}{(without or names)[0]}" if names else ""


def noted(findings: list[dict[str, Any]], writing: Writing) -> dict[str, list[dict[str, Any]]]:
    """Findings by the element that mends them; each is given `element`."""
    by_element: dict[str, list[dict[str, Any]]] = {}
    for one in findings:
        one["element"] = element_of(one["field"], writing)
        by_element.setdefault(one["element"], []).append(one)
    return by_element
