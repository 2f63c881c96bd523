"""What every interactive message is made of: texts, headers, ids; read and held against their limits."""

from typing import Any, Final

from waypost.base.json_values import object_or_none, text_or_none
from waypost.simulator.errors import GraphRefused, bad_parameter, message_refused
from waypost.simulator.media.references import Known, shown_media

HEADER_AT_MOST: Final = 60  # Source: facts 4.1


def missing(path: str) -> GraphRefused:
    """A member that must be there and is not."""
    return bad_parameter(f"The parameter interactive['{path}'] is required.")


def wrong(path: str, rule: str) -> GraphRefused:
    """A member that breaks a rule."""
    return message_refused(131009, f"interactive['{path}'] {rule}")


def text_of(content: dict[str, Any], member: str, at_most: int) -> str:
    """The text of a body or a footer; empty when there is none."""
    text = text_or_none((object_or_none(content.get(member)) or {}).get("text")) or ""
    if len(text) > at_most:
        raise wrong(f"{member}']['text", f"has at most {at_most} characters")
    return text


def checked_header(
    header: dict[str, Any], headers: tuple[str, ...], known: Known | None, path: str = "header"
) -> dict[str, Any]:
    """A header as the phone shows it: `format`, and its text or its medium.

    Args:
        header: the member as it came.
        headers: the types it may have.
        known: what the sender may refer to; None: nothing is looked up.
        path: where it is, as refusals spell it.
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
    """A text that must be there and may not be longer."""
    text = text_or_none(value.get(member))
    if not text:
        raise missing(f"{path}']['{member}")
    if len(text) > at_most:
        raise wrong(f"{path}']['{member}", f"has at most {at_most} characters")
    return text


def distinct(path: str, ids: list[str]) -> None:
    """Refuse an id that is there twice."""
    if len(set(ids)) != len(ids):
        raise wrong(path, "has an id twice")
