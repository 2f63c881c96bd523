"""Members common to interactive messages: texts, headers and ids, read and checked against their limits."""

from typing import Any, Final

from waypost.base.json_values import object_or_none, text_or_none
from waypost.simulator.errors import GraphApiError, bad_parameter, message_error
from waypost.simulator.media.references import KnownReferences, render_media

MAX_HEADER_CHARS: Final = 60  # Source: facts 4.1


def missing_error(path: str) -> GraphApiError:
    """Return the error of a missing member."""
    return bad_parameter(f"The parameter interactive['{path}'] is required.")


def invalid_error(path: str, rule: str) -> GraphApiError:
    """Return the error of a member that violates a rule."""
    return message_error(131009, f"interactive['{path}'] {rule}")


def read_text(content: dict[str, Any], member: str, max_chars: int) -> str:
    """Return the text of a body or a footer; empty if there is none."""
    text = text_or_none((object_or_none(content.get(member)) or {}).get("text")) or ""
    if len(text) > max_chars:
        raise invalid_error(f"{member}']['text", f"has at most {max_chars} characters")
    return text


def render_interactive_header(
    header: dict[str, Any], headers: tuple[str, ...], references: KnownReferences | None, path: str = "header"
) -> dict[str, Any]:
    """Check a header, and return it as the phone shows it: `format`, and its text or media.

    Args:
        header: the member as received.
        headers: the types it may have.
        references: what the sender may refer to; None: references are not checked.
        path: of the member, for error texts.
    """
    kind = text_or_none(header.get("type")) or ""
    if kind not in headers:
        raise invalid_error(f"{path}']['type", f"must be one of {', '.join(headers) or 'none'}")
    if kind == "text":
        text = text_or_none(header.get("text")) or ""
        if not 1 <= len(text) <= MAX_HEADER_CHARS:
            raise invalid_error(f"{path}']['text", f"has 1 to {MAX_HEADER_CHARS} characters")
        return {"format": "TEXT", "text": text}
    media = object_or_none(header.get(kind))
    if media is None:
        raise missing_error(f"{path}']['{kind}")
    return {"format": kind.upper(), kind: render_media(kind, media, references)}


def require_text(value: dict[str, Any], member: str, path: str, max_chars: int) -> str:
    """Return a required text of limited length."""
    text = text_or_none(value.get(member))
    if not text:
        raise missing_error(f"{path}']['{member}")
    if len(text) > max_chars:
        raise invalid_error(f"{path}']['{member}", f"has at most {max_chars} characters")
    return text


def check_distinct(path: str, ids: list[str]) -> None:
    """Check that no id occurs twice."""
    if len(set(ids)) != len(ids):
        raise invalid_error(path, "has an id twice")
