"""Members common to interactive messages: texts, headers and ids, read and checked against their limits."""

from typing import Any, Final

from waypost.base.json_values import object_or_none, text_or_none
from waypost.simulator.errors import GraphRefused, bad_parameter, message_refused
from waypost.simulator.media.references import Known, shown_media

HEADER_AT_MOST: Final = 60  # Source: facts 4.1


def missing(path: str) -> GraphRefused:
    """Return the error of a missing member."""
    return bad_parameter(f"The parameter interactive['{path}'] is required.")


def wrong(path: str, rule: str) -> GraphRefused:
    """Return the error of a member that violates a rule."""
    return message_refused(131009, f"interactive['{path}'] {rule}")


def text_of(content: dict[str, Any], member: str, at_most: int) -> str:
    """Return the text of a body or a footer; empty if there is none."""
    text = text_or_none((object_or_none(content.get(member)) or {}).get("text")) or ""
    if len(text) > at_most:
        raise wrong(f"{member}']['text", f"has at most {at_most} characters")
    return text


def checked_header(
    header: dict[str, Any], headers: tuple[str, ...], known: Known | None, path: str = "header"
) -> dict[str, Any]:
    """Check a header, and return it as the phone shows it: `format`, and its text or media.

    Args:
        header: the member as received.
        headers: the types it may have.
        known: what the sender may refer to; None: references are not checked.
        path: of the member, for error texts.
    """
    kind = text_or_none(header.get("type")) or ""
    if kind not in headers:
        raise wrong(f"{path}']['type", f"must be one of {', '.join(headers) or 'none'}")
    if kind == "text":
        text = text_or_none(header.get("text")) or ""
        if not 1 <= len(text) <= HEADER_AT_MOST:
            raise wrong(f"{path}']['text", f"has 1 to {HEADER_AT_MOST} characters")
        return {"format": "TEXT", "text": text}
    media = object_or_none(header.get(kind))
    if media is None:
        raise missing(f"{path}']['{kind}")
    return {"format": kind.upper(), kind: shown_media(kind, media, known)}


def sized(value: dict[str, Any], member: str, path: str, at_most: int) -> str:
    """Return a required text of limited length."""
    text = text_or_none(value.get(member))
    if not text:
        raise missing(f"{path}']['{member}")
    if len(text) > at_most:
        raise wrong(f"{path}']['{member}", f"has at most {at_most} characters")
    return text


def distinct(path: str, ids: list[str]) -> None:
    """Check that no id occurs twice."""
    if len(set(ids)) != len(ids):
        raise wrong(path, "has an id twice")
