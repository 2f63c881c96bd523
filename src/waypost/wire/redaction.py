"""Redaction of messages: text is hidden until it is revealed, one-time codes always.

Used by lists, traces, callbacks, exports, pages and the admin API. The tables classify the members of a request
or of a callback's body; a member that is in no table is hidden.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast
from urllib.parse import parse_qsl, urlencode

from waypost.wire.callbacks.kinds import ACCOUNT, TEMPLATE

# fmt: off
SHOWN: Final = frozenset({  # members of a request with addresses and types, and without text
    "channel", "source", "destination", "src.name", "sandbox", "disablePreview", "encode", "type", "id",
    "messaging_product", "recipient_type", "to", "index",
})
SHOWN_IN_TEXT: Final = frozenset({  # members of a message in a callback that identify or classify it
    "id", "gsId", "gs_id", "message_id", "gs_template_id", "from", "from_user_id", "to", "wa_id", "user_id", "group_id",
    "source", "sender_id", "timestamp", "type", "status", "mime_type", "contentType", "urlExpiry", "sha256",
    "messaging_product", "phone_number_id", "display_phone_number", "phase", "chunk_order", "progress", "action", "event",
})
HIDDEN_IN_V2: Final = {  # by the envelope's `type`: members of its payload with text. Source: facts 6
    "message":          frozenset({"payload", "referral"}),
    "message-event":    frozenset[str](),
    "billing-event":    frozenset[str](),
    "user-event":       frozenset[str](),
    "template-event":   frozenset[str](),
    "account-event":    frozenset[str](),
    "preference-event": frozenset[str](),
}
SHOWN_IN_MESSAGES: Final = frozenset({  # version 3: members of the field `messages` without text
    "messaging_product", "metadata", "contacts", "statuses", "errors",
})
SHOWN_FIELDS: Final = frozenset({*TEMPLATE, *ACCOUNT, "billing-event"})
"""Version 3: fields without people's text. In every other field, known or not, text is hidden."""
CODES: Final = frozenset({"template"})
"""Members with possible one-time codes: templates that other applications have sent from the number."""
# fmt: on
CODE: Final = "(one-time code)"
_SHORT: Final = 3
"""Shorter hidden texts are not searched for in a receiver's response: `OK` is in many."""


@dataclass(frozen=True, slots=True)
class Sight:
    """The visibility of a message's text.

    Attributes:
        text: true if text is shown: it was revealed, or is always shown.
        holds_code: true if the text has a one-time code, which is always hidden.
    """

    text: bool
    holds_code: bool = False

    @property
    def is_open(self) -> bool:
        """True if the text of this message is shown."""
        return self.text and not self.holds_code


@dataclass(frozen=True, slots=True)
class ShownBody:
    """The body of a callback.

    Attributes:
        text: JSON; the exact body if nothing is hidden.
        hidden: the texts that are hidden.
    """

    text: str
    hidden: frozenset[str]

    def answer(self, answer: str) -> str:
        """Return the receiver's response, or its length if it repeats a hidden text."""
        for text in self.hidden:
            if len(text) >= _SHORT and (text in answer or json.dumps(text)[1:-1] in answer):
                return f"{_length(answer)[:-1]}, not shown: it repeats text of the message)"
        return answer


def shown_line(text: str, sight: Sight) -> str:
    """Return a message's text for a list."""
    if not text or sight.is_open:
        return text
    return CODE if sight.holds_code else _length(text)


def shown_request(request: str, sight: Sight) -> Any:
    """Return a request: whole if its text is shown, else masked."""
    return _parsed(request) if sight.is_open else redacted(request)


def redacted(request: str) -> Any:
    """Return a request in its structure, with lengths instead of texts.

    Args:
        request: a form or a JSON object as received; of anything else only the length is returned.
    """
    parsed = _parsed(request)
    try:
        return _Shape(SHOWN).of(parsed) if isinstance(parsed, Mapping) else _length(request)
    except RecursionError:
        return _length(request)


def request_without_codes(request: str) -> str:
    """Return a request in its format, with `(6 characters)` instead of its values."""
    masked = redacted(request)
    if not isinstance(masked, Mapping):
        return ""
    if request.lstrip().startswith("{"):
        return json.dumps(masked, ensure_ascii=False)
    members = cast("Mapping[str, Any]", masked)
    return urlencode({name: value if isinstance(value, str) else _json(value) for name, value in members.items()})


def shown_body(body: str, sight: Sight) -> ShownBody:
    """Return the body of a callback with hidden texts masked."""
    try:
        parsed = json.loads(body)
        masker = _Shape(SHOWN_IN_TEXT, code_only=sight.is_open)
        masked_body = _masked(parsed, masker)
    except (ValueError, RecursionError):
        return ShownBody(_json(_length(body)), frozenset({body}))
    return ShownBody(_json(masked_body) if masker.hidden else body, frozenset(masker.hidden))


def shown_callback(callback: Mapping[str, Any], *, text: bool) -> dict[str, Any]:
    """Return a callback with its attempts from the store, with body and responses redacted.

    Adds `size_bytes` of the exact body, and `is_exact`, which is true if nothing is hidden.
    """
    body = shown_body(callback["body"], Sight(text, callback["holds_code"]))
    return {
        **callback,
        "body": body.text,
        "size_bytes": len(callback["body"].encode()),
        "is_exact": not body.hidden,
        "attempts": [{**attempt, "answer": body.answer(attempt["answer"])} for attempt in callback["attempts"]],
    }


def _masked(body: Any, shape: "_Shape") -> Any:
    match body:
        case {"version": 2, "type": str(), "payload": {**payload}}:
            hidden = HIDDEN_IN_V2.get(body["type"])
            if hidden is None:
                return {**body, "payload": shape.of(payload)}
            return {**body, "payload": _with(payload, hidden & payload.keys(), shape)}
        case {"entry": [*entries]}:
            return {**body, "entry": [_entry(entry, shape) for entry in entries]}
        case _:
            return shape.of(body)


def _entry(entry: Any, shape: "_Shape") -> Any:
    match entry:
        case {"changes": [*changes]}:
            return {**entry, "changes": [_change(change, shape) for change in changes]}
        case _:
            return shape.of(entry)


def _change(change: Any, shape: "_Shape") -> Any:
    match change:
        case {"field": "messages", "value": {**value}}:
            return {**change, "value": _with(value, value.keys() - SHOWN_IN_MESSAGES, shape)}
        case {"field": str(field)} if field in SHOWN_FIELDS:
            return change
        case {"field": str(field), "value": value}:
            return {**change, "field": field, "value": shape.of(value)}
        case _:
            return shape.of(change)


def _with(members: Mapping[str, Any], hidden: Any, shape: "_Shape") -> dict[str, Any]:
    """Return members, with those of these names masked."""
    return {name: shape.of(value, name) if name in hidden else value for name, value in members.items()}


def _parsed(request: str) -> Any:
    if request.lstrip().startswith("{"):
        return _value(request)
    try:
        fields = parse_qsl(request, keep_blank_values=True, strict_parsing=True, max_num_fields=200)
    except ValueError:
        return request
    return {name: _value(value) for name, value in fields}


def _value(text: str) -> Any:
    try:
        return json.loads(text) if text.lstrip()[:1] in ("{", "[") else text
    except (ValueError, RecursionError):
        return text


class _Shape:
    """Replaces texts and numbers by their lengths, and collects the replaced texts.

    Args:
        shown: members whose values stay.
        code_only: hide only possible one-time codes.
    """

    def __init__(self, shown: frozenset[str], *, code_only: bool = False) -> None:
        self._shown = shown
        self._code_only = code_only
        self.hidden: set[str] = set()

    def of(self, value: Any, name: str = "", *, is_code: bool = False) -> Any:
        """Return a JSON value with hidden parts masked."""
        is_code = is_code or name in CODES
        if isinstance(value, Mapping):
            members = cast("Mapping[str, Any]", value)
            return {inner: self.of(member, inner, is_code=is_code) for inner, member in members.items()}
        if isinstance(value, list):
            return [self.of(item, is_code=is_code) for item in cast("list[Any]", value)]
        if value is None or isinstance(value, bool) or name in self._shown:
            return value
        if (self._code_only and not is_code) or value == "":
            return value
        self.hidden.add(str(value))
        return _length(value) if isinstance(value, str) else "(number)"


def _length(text: str) -> str:
    return f"({len(text)} {'character' if len(text) == 1 else 'characters'})"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
