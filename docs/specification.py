"""The sections of the specification page, which citations refer to, from `docs/sources/statements.toml`."""

from collections.abc import Iterable
from typing import Final

from docs.statements import Statement, statements

# fmt: off
PARTS: Final = {  # subheadings, each with the keys of its statements, or their prefix with a final hyphen
    "Location message":         ("partner-send-location",),
    "Create template, rule 1":  ("create-category-types",),
    "Create template, rule 2":  ("create-on-premises",),
    "Create template, rule 3":  ("create-cards-type",),
    "Create template, rule 4":  ("create-lto-fields",),
    "Create template, rule 5":  ("create-added-",),
    "Button shapes":            ("create-button-",),
    "Card object":              ("create-card", "create-card-"),
    "Upload media, handle id":  ("upload-handle-", "upload-file", "upload-type"),
    "Upload media, media id":   ("upload-id-",),
    "Authentication, rule 1":   ("auth-partner-token", "auth-token-life"),
    "Authentication, rule 2":   ("auth-first-password", "auth-changed-password"),
    "Errors, rule 1":           ("error-category",),
}
ALIASES: Final = {  # other names under which a heading is cited
    "Partner account":          ("Partner account (login response)",),
    "Template record":          ("Resources and their fields",),
    "Message submission":       ("Message submission result",),
    "Send session text message": ("message object",),
    "Send template message with postback texts": ("postbackTexts", "Send template message"),
    "Send template message through the partner API": (
        "Send template message (image, location)", "Send template message (image, location) through the partner API",
    ),
    "Create template, rule 5":  ("Rules by type, 5", "Rules by type"),
    "Card object":              ("Card object (CAROUSEL)",),
    "Authentication, rule 1":   ("Authentication, 1",),
}
# fmt: on


def grouped() -> list[tuple[int, str, list[Statement]]]:
    """Return level, heading and statements; the subheadings of a section follow its other statements."""
    groups: list[tuple[int, str, list[Statement]]] = []
    everything = statements()
    for section in dict.fromkeys(one.section for one in everything):
        own = [one for one in everything if one.section == section]
        by_part = {name: [one for one in own if _is_among(one.key, keys)] for name, keys in PARTS.items()}
        others = [one for one in own if not any(one in part for part in by_part.values())]
        groups.append((2, section, others))
        groups += [(3, name, part) for name, part in by_part.items() if part]
    return groups


def rows(part: Iterable[Statement]) -> list[tuple[str, str]]:
    """Return a table row for each statement: its text, and what Waypost does."""
    return [(one.says, f"{one.verdict}: {one.does}" if one.does else one.verdict) for one in part]


def _is_among(key: str, keys: tuple[str, ...]) -> bool:
    return key in keys or key.startswith(tuple(one for one in keys if one.endswith("-")))
