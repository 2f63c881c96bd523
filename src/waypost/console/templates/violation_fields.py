"""The form element of the editor that a violation belongs to."""

import re
from typing import Any, Final

from waypost.console.templates.draft_text import CardContent, EditorContent

_BUTTON_FIELD: Final = re.compile(r"(?:cards\[(\d+)\]\.)?buttons(?:\[(\d+)\](?:\.(.+))?)?")
_CARD_FIELD: Final = re.compile(r"cards\[(\d+)\]\.(\w+)")

# fmt: off
ELEMENT_BY_FIELD: Final = {  # fields that are not one control with the field's name
    "buttons":       "f-new-button-kind",
    "cards":         "f-add-card",
    "exampleMedia":  "f-file",
    "mediaId":       "f-file",
    "exampleHeader": "f-header-value",
}
_ELEMENT_BY_BUTTON_FIELD: Final = {  # the same inside a button
    "package_name":   "apps",
    "signature_hash": "apps",
    "supported_apps": "apps",
}
# fmt: on


def find_element(field: str, content: EditorContent) -> str:
    """Return the id of the control for the field of a violation.

    Args:
        field: such as `cards[1].buttons[0].url`.
        content: the content of the editor.
    """
    if field == "example":
        return _first_missing("f-value-", content.names, content.values) or "f-content"
    if field == "content" and content.is_code:
        return "f-category"
    if match := _BUTTON_FIELD.fullmatch(field):
        card, index, member = match[1], match[2], match[3] or ""
        prefix = "" if card is None else f"card-{card}-"
        if index is None:
            return f"f-{prefix}new-button-kind"
        name = re.split(r"[.\[]", member)[0]
        if name in ("", "type"):
            return f"{prefix}button-{index}"
        return f"f-{prefix}button-{index}-{_ELEMENT_BY_BUTTON_FIELD.get(name, name)}"
    if match := _CARD_FIELD.fullmatch(field):
        return _find_card_element(int(match[1]), match[2], content)
    return ELEMENT_BY_FIELD.get(field, f"f-{field}")


def _find_card_element(index: int, member: str, content: EditorContent) -> str:
    prefix = f"f-card-{index}-"
    if member == "sampleText":
        card = content.cards[index] if index < len(content.cards) else CardContent()
        return _first_missing(f"{prefix}value-", card.names, card.values) or f"{prefix}body"
    return f"{prefix}file" if member in ("exampleMedia", "mediaId") else f"{prefix}{member}"


def _first_missing(prefix: str, names: list[str], values: dict[str, str]) -> str:
    """Return the id of the first missing value; of the first value if none is missing."""
    missing = [name for name in names if not values.get(name)]
    return f"{prefix}{(missing or names)[0]}" if names else ""


def group_by_element(violations: list[dict[str, Any]], content: EditorContent) -> dict[str, list[dict[str, Any]]]:
    """Return violations by form element, and set `element` of each."""
    by_element: dict[str, list[dict[str, Any]]] = {}
    for violation in violations:
        violation["element"] = find_element(violation["field"], content)
        by_element.setdefault(violation["element"], []).append(violation)
    return by_element
