"""JSON values without a declared type: what they are, and the empty values of inputs."""

from typing import Any


def is_list(value: object) -> bool:
    """Return True for a JSON array."""
    return isinstance(value, list)


def is_object(value: object) -> bool:
    """Return True for a JSON object."""
    return isinstance(value, dict)


def empty_value(component: dict[str, Any]) -> Any:
    """Return the value of an input that was not filled in, as it is sent.

    The sources do not show it: a text for texts, single selections and days, a list for the others.
    """
    match component.get("type"):
        case "CheckboxGroup" | "ChipsSelector" | "PhotoPicker" | "DocumentPicker":
            return []
        case "OptIn":
            return False
        case "CalendarPicker" if component.get("mode") == "range":
            return {}
        case _:
            return ""
