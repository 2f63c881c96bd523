"""Members common to interactive messages: texts, headers and ids, read and checked against their limits."""

from typing import Any, Final

from waypost.base.http.hosts import is_web_url
from waypost.base.json_values import object_or_none, text_or_none
from waypost.simulator.apis.errors import GraphApiError, bad_parameter, message_error
from waypost.simulator.media.references import KnownReferences, render_media

MAX_HEADER_CHARS: Final = 60  # Source: facts 4.1
_MAX_URL_CHARS: Final = 2000


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
    """Check a header, and return it as the phone shows it: `format`, and its text or media."""
    kind = text_or_none(header.get("type")) or ""
    if kind not in headers:
        raise invalid_error(f"{path}']['type", f"must be one of {', '.join(headers) or 'none'}")
    if kind == "text":
        text = text_or_none(header.get("text")) or ""
        if text.isspace() or not 1 <= len(text) <= MAX_HEADER_CHARS:
            raise invalid_error(f"{path}']['text", f"has 1 to {MAX_HEADER_CHARS} characters")
        return {"format": "TEXT", "text": text}
    media = object_or_none(header.get(kind))
    if media is None:
        raise missing_error(f"{path}']['{kind}")
    return {"format": kind.upper(), kind: render_media(kind, media, references)}


def require_text(value: dict[str, Any], member: str, path: str, max_chars: int) -> str:
    """Return a required text of limited length."""
    text = text_or_none(value.get(member))
    if not text or text.isspace():
        raise missing_error(f"{path}']['{member}")
    if len(text) > max_chars:
        raise invalid_error(f"{path}']['{member}", f"has at most {max_chars} characters")
    return text


def require_url(value: dict[str, Any], member: str, path: str) -> str:
    """Return a required URL of a button."""
    url = require_text(value, member, path, _MAX_URL_CHARS)
    if not is_web_url(url):
        raise invalid_error(f"{path}']['{member}", "must be a valid URL that begins with http:// or https://")
    return url


def check_distinct(path: str, ids: list[str], what: str = "an id") -> None:
    """Check that no id, or title, occurs twice."""
    if len(set(ids)) != len(ids):
        raise invalid_error(path, f"has {what} twice")


def check_reply_buttons(path: str, buttons: list[dict[str, Any]]) -> None:
    """Check the titles and ids of one bubble's reply buttons.

    Source: the operator's pages "Interactive reply buttons messages" (unique titles and ids),
    "Messages API" (no space at either end of an id).
    """
    check_distinct(path, [button["payload"] for button in buttons])
    check_distinct(path, [button["text"] for button in buttons], "a title, which must be unique,")
    if any(button["payload"] != button["payload"].strip() for button in buttons):
        raise invalid_error(path, "has an id with a space at its beginning or end")
