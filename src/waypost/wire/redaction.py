"""What people may see of a message, in one place: text is hidden until it is revealed, one-time codes always.

Lists, traces, callbacks, exports, pages and the admin API ask here. The tables say which members of a request
or of a callback's body hold what people write; a member that no table names is hidden.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast
from urllib.parse import parse_qsl, urlencode

from waypost.wire.callbacks.kinds import ACCOUNT, TEMPLATE

# fmt: off
SHOWN: Final = frozenset({  # members of a request that say where it goes and what it is, and never what it says
    "channel", "source", "destination", "src.name", "sandbox", "disablePreview", "encode", "type", "id",
    "messaging_product", "recipient_type", "to", "index",
})
SHOWN_IN_TEXT: Final = frozenset({  # members of what somebody wrote, in a callback, that name or classify it
    "id", "gsId", "gs_id", "message_id", "gs_template_id", "from", "from_user_id", "to", "wa_id", "user_id", "group_id",
    "source", "sender_id", "timestamp", "type", "status", "mime_type", "contentType", "urlExpiry", "sha256",
    "messaging_product", "phone_number_id", "display_phone_number", "phase", "chunk_order", "progress", "action", "event",
})
HIDDEN_IN_V2: Final = {  # by the envelope's `type`: members of its payload that hold text. Source: facts 6
    "message":          frozenset({"payload", "referral"}),
    "message-event":    frozenset[str](),
    "billing-event":    frozenset[str](),
    "user-event":       frozenset[str](),
    "template-event":   frozenset[str](),
    "account-event":    frozenset[str](),
    "preference-event": frozenset[str](),
}
SHOWN_IN_MESSAGES: Final = frozenset({  # version 3: members of the field `messages` that hold no text
    "messaging_product", "metadata", "contacts", "statuses", "errors",
})
SHOWN_FIELDS: Final = frozenset({*TEMPLATE, *ACCOUNT, "billing-event"})
"""Version 3: fields in which nobody writes. In every other one, known or not, text is hidden."""
CODES: Final = frozenset({"template"})
"""Members whose values may be one-time codes: templates that others have sent from the number."""
# fmt: on
CODE: Final = "(one-time code)"
_SHORT: Final = 3
"""Hidden texts that are shorter are not looked for in a receiver's answer: `OK` is in many."""


@dataclass(frozen=True, slots=True)
class Sight:
    """What of a message is shown.

    Attributes:
        text: whether text is: it was revealed, or is shown to everybody.
        holds_code: whether the text has a one-time code; then it is hidden all the same.
    """

    text: bool
    holds_code: bool = False

    @property
    def is_open(self) -> bool:
        """Whether the text of this message is shown."""
        return self.text and not self.holds_code


@dataclass(frozen=True, slots=True)
class ShownBody:
    """The body of a callback.

    Attributes:
        text: JSON; the exact text where nothing is hidden.
        hidden: the texts that are not shown.
    """

    text: str
    hidden: frozenset[str]

    def answer(self, answer: str) -> str:
        """What the receiver answered; not where that repeats what is hidden."""
        for one in self.hidden:
            if len(one) >= _SHORT and (one in answer or json.dumps(one)[1:-1] in answer):
                return f"{_length(answer)[:-1]}, not shown: it repeats text of the message)"
        return answer


def shown_line(text: str, sight: Sight) -> str:
    """What a list shows of a message's text."""
    if not text or sight.is_open:
        return text
    return CODE if sight.holds_code else _length(text)


def shown_request(request: str, sight: Sight) -> Any:
    """A request as it is shown: whole, or as `redacted` gives it."""
    return _parsed(request) if sight.is_open else redacted(request)


def redacted(request: str) -> Any:
    """A request with the shape it had, and in place of what people write how long it was.

    Args:
        request: a form or a JSON object as it came; what is neither is a number of characters.
    """
    parsed = _parsed(request)
    try:
        return _Shape(SHOWN).of(parsed) if isinstance(parsed, Mapping) else _length(request)
    except RecursionError:
        return _length(request)


def request_without_codes(request: str) -> str:
    """A request of the form it had, with `(6 characters)` in the places of its values."""
    shape = redacted(request)
    if not isinstance(shape, Mapping):
        return ""
    if request.lstrip().startswith("{"):
        return json.dumps(shape, ensure_ascii=False)
    fields = cast("Mapping[str, Any]", shape)
    return urlencode({name: one if isinstance(one, str) else _json(one) for name, one in fields.items()})


def shown_body(body: str, sight: Sight) -> ShownBody:
    """The body of a callback as it is shown."""
    try:
        parsed = json.loads(body)
        shape = _Shape(SHOWN_IN_TEXT, code_only=sight.is_open)
        masked = _masked(parsed, shape)
    except (ValueError, RecursionError):
        return ShownBody(_json(_length(body)), frozenset({body}))
    return ShownBody(_json(masked) if shape.hidden else body, frozenset(shape.hidden))


def shown_callback(callback: Mapping[str, Any], *, text: bool) -> dict[str, Any]:
    """A callback with its attempts, as the store gives it, with what may be shown of its body and of the answers.

    It has `size_bytes` of the exact body, and `is_exact`: whether the body is shown whole.
    """
    body = shown_body(callback["body"], Sight(text, callback["holds_code"]))
    return {
        **callback,
        "body": body.text,
        "size_bytes": len(callback["body"].encode()),
        "is_exact": not body.hidden,
        "attempts": [{**one, "answer": body.answer(one["answer"])} for one in callback["attempts"]],
    }


def _masked(body: Any, shape: "_Shape") -> Any:
    match body:
        case {"version": 2, "type": str(), "payload": {**payload}}:
            hidden = HIDDEN_IN_V2.get(body["type"])
            if hidden is None:
                return {**body, "payload": shape.of(payload)}
            return {**body, "payload": _with(payload, hidden & payload.keys(), shape)}
        case {"entry": [*entries]}:
            return {**body, "entry": [_entry(one, shape) for one in entries]}
        case _:
            return shape.of(body)


def _entry(entry: Any, shape: "_Shape") -> Any:
    match entry:
        case {"changes": [*changes]}:
            return {**entry, "changes": [_change(one, shape) for one in changes]}
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
    """Members, with those of these names masked."""
    return {name: shape.of(one, name) if name in hidden else one for name, one in members.items()}


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
    """Puts lengths in the places of texts and numbers, and remembers which texts those were.

    Args:
        shown: members whose values stay.
        code_only: hide what may be a one-time code, and nothing else.
    """

    def __init__(self, shown: frozenset[str], *, code_only: bool = False) -> None:
        self._shown = shown
        self._code_only = code_only
        self.hidden: set[str] = set()

    def of(self, value: Any, name: str = "", *, is_code: bool = False) -> Any:
        """A value of JSON, with what it has in place of what is hidden."""
        is_code = is_code or name in CODES
        if isinstance(value, Mapping):
            members = cast("Mapping[str, Any]", value)
            return {inner: self.of(one, inner, is_code=is_code) for inner, one in members.items()}
        if isinstance(value, list):
            return [self.of(one, is_code=is_code) for one in cast("list[Any]", value)]
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
