"""One line about a callback of version 2: its event, its id and whom it is about."""

from collections.abc import Mapping
from typing import Any, Final

from waypost.base.json_values import object_or_none, text_or_none

_BY_TYPE: Final = ("message-event", "template-event", "account-event", "user-event", "onboarding-event")
"""Types whose payload has the name of the event as its own type."""


def event_names(callback: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names that `--events` accepts for a callback: its event, and its type."""
    kind = text_or_none(callback.get("type")) or ""
    payload = object_or_none(callback.get("payload")) or {}
    event = text_or_none(payload.get("type"))
    return (event, kind) if event else (kind,)


def summarise(callback: Mapping[str, Any]) -> str:
    """Return event, id and other end of a callback, for people."""
    kind = text_or_none(callback.get("type")) or ""
    payload = object_or_none(callback.get("payload")) or {}
    name, *_ = event_names(callback)
    shown = name if kind in _BY_TYPE or name == kind else f"{kind} ({name})"
    ids = (payload.get("gsId"), payload.get("id"), payload.get("elementName"))
    people = (payload.get("destination"), payload.get("source"), payload.get("phone"))
    about = next((text for text in ids if text_or_none(text)), "")
    person = next((text for text in people if text_or_none(text)), "")
    return "  ".join(part for part in (f"{shown:<20}", str(about), str(person)) if part).rstrip()
