"""The form element of the editor that a violation belongs to."""

import re
from typing import Any, Final

from waypost.console.templates.draft_text import CardWriting, Writing

_OF_BUTTON: Final = re.compile(r"(?:cards\[(\d+)\]\.)?buttons(?:\[(\d+)\](?:\.(.+))?)?")
_OF_CARD: Final = re.compile(r"cards\[(\d+)\]\.(\w+)")

# fmt: off
ELEMENTS: Final = {  # fields that are not one control with the field's name
    "buttons":       "f-new-button-kind",
    "cards":         "f-add-card",
    "exampleMedia":  "f-file",
    "mediaId":       "f-file",
    "exampleHeader": "f-header-value",
}
_OF_BUTTONS: Final = {  # the same inside a button
    "package_name":   "apps",
    "signature_hash": "apps",
    "supported_apps": "apps",
}
# fmt: on


def element_of(field: str, writing: Writing) -> str:
    """Return the id of the control for the field of a violation.

    Args:
        field: such as `cards[1].buttons[0].url`.
        writing: the content of the editor.
    """
    if field == "example":
        return _missing("f-value-", writing.names, writing.values) or "f-content"
    if field == "content" and writing.is_code:
        return "f-category"
    if match := _OF_BUTTON.fullmatch(field):
        card, index, member = match[1], match[2], match[3] or ""
        prefix = "" if card is None else f"card-{card}-"
        if index is None:
            return f"f-{prefix}new-button-kind"
        name = re.split(r"[.\[]", member)[0]
        if name in ("", "type"):
            return f"{prefix}button-{index}"
        return f"f-{prefix}button-{index}-{_OF_BUTTONS.get(name, name)}"
    if match := _OF_CARD.fullmatch(field):
        return _of_card(int(match[1]), match[2], writing)
    return ELEMENTS.get(field, f"f-{field}")


def _of_card(at: int, member: str, writing: Writing) -> str:
    prefix = f"f-card-{at}-"
    if member == "sampleText":
        card = writing.cards[at] if at < len(writing.cards) else CardWriting()
        return _missing(f"{prefix}value-", card.names, card.values) or f"{prefix}body"
    return f"{prefix}file" if member in ("exampleMedia", "mediaId") else f"{prefix}{member}"


def _missing(prefix: str, names: list[str], values: dict[str, str]) -> str:
    """Return the id of the first missing value; of the first value if none is missing."""
    missing = [name for name in names if not values.get(name)]
    return f"{prefix}{(missing or names)[0]}" if names else ""


def noted(findings: list[dict[str, Any]], writing: Writing) -> dict[str, list[dict[str, Any]]]:
    """Return violations by form element, and set `element` of each."""
    by_element: dict[str, list[dict[str, Any]]] = {}
    for violation in findings:
        violation["element"] = element_of(violation["field"], writing)
        by_element.setdefault(violation["element"], []).append(violation)
    return by_element
