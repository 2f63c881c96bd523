"""Objects of interactive messages: their members, read and checked against their limits."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from waypost.base.http.hosts import is_web_url
from waypost.base.json_values import object_of, object_or_none, objects_in, text_or_none
from waypost.simulator.apis.errors import GraphApiError, message_error
from waypost.simulator.apis.parameters import is_missing
from waypost.simulator.media.references import KnownReferences, render_media

MAX_HEADER_CHARS: Final = 60  # Source: facts 4.1
MAX_LABEL_CHARS: Final = 20  # Source: facts 4.1
_MAX_URL_CHARS: Final = 2000
_MAX_ID_CHARS: Final = 256  # Source: facts 4.1

Buttons = list[dict[str, Any]]
"""Buttons as a phone shows them: `type`, `text`, and their action."""


@dataclass(frozen=True)
class InteractiveObject:
    """An object within an interactive message.

    Its methods raise GraphApiError 100 for a member that is missing, and 131009 for one that is wrong or too long.
    """

    name: str  # in errors, as in `interactive['action']`; that of a list's objects is the list's
    members: dict[str, Any]
    references: KnownReferences | None  # what the message may refer to; None: anything

    def missing(self, member: str) -> GraphApiError:
        """Return the error of a missing member."""
        return is_missing(f"{self.name}['{member}']")

    def invalid(self, member: str, rule: str) -> GraphApiError:
        """Return the error of a member that violates a rule."""
        return message_error(131009, f"{self.name}['{member}'] {rule}")

    def text(self, member: str) -> str:
        """Return a text; empty if there is none."""
        return text_or_none(self.members.get(member)) or ""

    def require_text(self, member: str, max_chars: int) -> str:
        """Return a required text of limited length."""
        text = self.text(member)
        if not text or text.isspace():
            raise self.missing(member)
        if len(text) > max_chars:
            raise self.invalid(member, f"has at most {max_chars} characters")
        return text

    def require_url(self, member: str) -> str:
        """Return a required URL of a button."""
        url = self.require_text(member, _MAX_URL_CHARS)
        if not is_web_url(url):
            raise self.invalid(member, "must be a valid URL that begins with http:// or https://")
        return url

    def require_one_of(self, member: str, accepted: Sequence[str]) -> str:
        """Return a required text that is one of several."""
        text = self.require_text(member, 64)
        if text not in accepted:
            raise self.invalid(member, f"must be one of {', '.join(accepted)}")
        return text

    def object(self, member: str) -> "InteractiveObject":
        """Return an object; an empty one if there is none."""
        return InteractiveObject(f"{self.name}['{member}']", object_of(self.members.get(member)), self.references)

    def find_object(self, member: str) -> "InteractiveObject | None":
        """Return an object; None if there is none."""
        return None if object_or_none(self.members.get(member)) is None else self.object(member)

    def require_object(self, member: str) -> "InteractiveObject":
        """Return a required object."""
        found = self.find_object(member)
        if found is None:
            raise self.missing(member)
        return found

    def require_objects(self, member: str) -> "list[InteractiveObject]":
        """Return the objects of a required list."""
        found = objects_in(self.members.get(member))
        if not found:
            raise self.missing(member)
        return [InteractiveObject(f"{self.name}['{member}']", members, self.references) for members in found]

    def check_distinct(self, member: str, ids: Sequence[str], what: str = "an id") -> None:
        """Check that no id, or title, occurs twice in a list."""
        if len(set(ids)) != len(ids):
            raise self.invalid(member, f"has {what} twice")


def read_text(content: dict[str, Any], member: str, max_chars: int) -> str:
    """Return the text of the body or footer of a message, or of one of its cards; empty if there is none."""
    text = text_or_none(object_of(content.get(member)).get("text")) or ""
    if len(text) > max_chars:
        raise message_error(131009, f"interactive['{member}']['text'] has at most {max_chars} characters")
    return text


def render_interactive_header(header: InteractiveObject, headers: Sequence[str]) -> dict[str, Any]:
    """Check a header, and return it as the phone shows it: `format`, and its text or media."""
    kind = header.text("type")
    if kind not in headers:
        raise header.invalid("type", f"must be one of {', '.join(headers) or 'none'}")
    if kind == "text":
        text = header.text("text")
        if text.isspace() or not 1 <= len(text) <= MAX_HEADER_CHARS:
            raise header.invalid("text", f"has 1 to {MAX_HEADER_CHARS} characters")
        return {"format": "TEXT", "text": text}
    media = header.require_object(kind)
    return {"format": kind.upper(), kind: render_media(kind, media.members, header.references)}


def reply_button(button: InteractiveObject, member: str, kind: str) -> dict[str, Any]:
    """Return a button with a title of 20 characters and an id of 256, which are in this member."""
    reply = InteractiveObject(button.name, object_of(button.members.get(member)), button.references)
    title = reply.require_text("title", MAX_LABEL_CHARS)
    return {"type": kind, "text": title, "payload": reply.require_text("id", _MAX_ID_CHARS)}


def link_button(parameters: InteractiveObject) -> dict[str, Any]:
    """Return the button that opens a URL."""
    url = parameters.require_url("url")
    return {"type": "URL", "text": parameters.require_text("display_text", MAX_LABEL_CHARS), "url": url}
