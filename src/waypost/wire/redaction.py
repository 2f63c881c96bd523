"""Redaction of messages: text is hidden until it is revealed, one-time codes always.

Used by lists, traces, callbacks, exports, pages and the admin API. The tables classify the members of a request
or of a callback's body; a member that is in no table is hidden.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast
from urllib.parse import parse_qsl, urlencode

from waypost.wire.callbacks.kinds import ACCOUNT_KINDS, TEMPLATE_KINDS

SHOWN_REQUEST_MEMBERS: Final = frozenset(  # of a request: addresses and types, no text
    {"source", "destination", "src.name", "to", "recipient_type", "messaging_product", "channel"}
    | {"type", "id", "index", "sandbox", "disablePreview", "encode"}
)
SHOWN_IN_TEXT: Final = frozenset(  # of a message in a callback: what identifies or classifies it
    {"id", "gsId", "gs_id", "message_id", "gs_template_id", "group_id", "phone_number_id", "display_phone_number"}
    | {"from", "from_user_id", "to", "wa_id", "user_id", "source", "sender_id", "messaging_product"}
    | {"type", "status", "timestamp", "mime_type", "contentType", "urlExpiry", "sha256", "action", "event"}
    | {"phase", "chunk_order", "progress"}
)
_OWN_EVENTS: Final = ("message", "billing", "user", "template", "account", "preference")
HIDDEN_IN_V2: Final = {  # by the envelope's `type`: members of its payload with text. Source: facts 6
    "message": frozenset({"payload", "referral"}),
    **{f"{name}-event": frozenset[str]() for name in _OWN_EVENTS},
}
SHOWN_IN_MESSAGES: Final = frozenset({"messaging_product", "metadata", "contacts", "statuses", "errors"})
"""Version 3: members of the field `messages` without text."""
SHOWN_FIELDS: Final = frozenset({*TEMPLATE_KINDS, *ACCOUNT_KINDS, "billing-event"})
"""Version 3: fields without people's text. In every other field, known or not, text is hidden."""
CODE_MEMBERS: Final = frozenset({"template"})
"""Members with possible one-time codes: templates that other applications have sent from the number."""
SHOWN_IN_LOG: Final = SHOWN_REQUEST_MEMBERS | (  # in the log of requests: states, and names that partners chose
    {"elementName", "category", "templateType", "languageCode", "vertical", "enableSample", "templateStatus"}
    | {"allowTemplateCategoryChange", "modes", "tag", "version", "active", "showOnUI", "doCheck", "status", "file_type"}
    | {"fields", "limit", "pageNo", "pageSize", "maxResult", "from", "date_from", "date_to", "recipient", "user"}
)
SECRET_MEMBERS: Final = frozenset(  # not even their length is shown in the log of requests
    {"password", "secret", "client_secret", "clientSecret", "token", "access_token", "accessToken", "authorization"}
    | {"apikey", "apiKey", "api_key", "key", "private_key", "passphrase", "pin", "code", "otp", "meta"}
)
SHOWN_IN_LOGGED_RESPONSE: Final = SHOWN_IN_LOG | (
    {"messageId", "appId", "partnerId", "handleId", "createdOn", "modifiedOn"}
)
SECRET_RESPONSE_MEMBERS: Final = SECRET_MEMBERS | {"link", "invite_link", "oauth_url", "preview_url"}
"""Addresses that let anybody in who has them, too."""
HIDDEN_SECRET: Final = "(hidden)"  # noqa: S105  stands for one
MAX_SHOWN_CHARS: Final = 200
"""Longer values are not shown in the log of requests, whatever their member."""
HIDDEN_CODE: Final = "(one-time code)"
_MIN_SEARCHED_CHARS: Final = 3
"""Shorter hidden texts are not searched for in a receiver's response: `OK` is in many."""


@dataclass(frozen=True, slots=True)
class TextVisibility:
    """The visibility of a message's text."""

    text: bool  # true if text is shown: it was revealed, or is always shown
    holds_code: bool = False  # true if the text has a one-time code, which is always hidden

    @property
    def is_open(self) -> bool:
        """True if the text of this message is shown."""
        return self.text and not self.holds_code


@dataclass(frozen=True, slots=True)
class RedactedBody:
    """The body of a callback."""

    text: str  # JSON; the exact body if nothing is hidden
    hidden: frozenset[str]  # the texts that are hidden

    def redact_response(self, response: str) -> str:
        """Return the receiver's response, or its length if it repeats a hidden text."""
        for text in self.hidden:
            if len(text) >= _MIN_SEARCHED_CHARS and (text in response or json.dumps(text)[1:-1] in response):
                return f"{_length_text(response)[:-1]}, not shown: it repeats text of the message)"
        return response


def redact_preview(text: str, visibility: TextVisibility) -> str:
    """Return a message's text for a list."""
    if not text or visibility.is_open:
        return text
    return HIDDEN_CODE if visibility.holds_code else _length_text(text)


def redact_request(request: str, visibility: TextVisibility) -> Any:
    """Return a request: whole if its text is shown, else masked."""
    return _parse_request(request) if visibility.is_open else mask_request(request)


def mask_request(request: str) -> Any:
    """Return a request in its structure, with lengths instead of texts.

    Args:
        request: a form or a JSON object as received; of anything else only the length is returned.
    """
    parsed = _parse_request(request)
    try:
        return _Masker(SHOWN_REQUEST_MEMBERS).mask(parsed) if isinstance(parsed, Mapping) else _length_text(request)
    except RecursionError:
        return _length_text(request)


def request_without_codes(request: str) -> str:
    """Return a request in its format, with `(6 characters)` instead of its values."""
    masked = mask_request(request)
    if not isinstance(masked, Mapping):
        return ""
    if request.lstrip().startswith("{"):
        return json.dumps(masked, ensure_ascii=False)
    members = cast("Mapping[str, Any]", masked)
    return urlencode({name: value if isinstance(value, str) else _json(value) for name, value in members.items()})


def mask_logged_request(request: str, visibility: TextVisibility) -> Any:
    """Return a request for the log of requests: secrets without their length, hidden texts as their length.

    Args:
        request: a form, a query or a JSON object as received; of anything else only the length is returned.
        visibility: what is shown of its texts; secrets never are.
    """
    return _mask_logged(request, _parse_request(request), visibility, SHOWN_IN_LOG, SECRET_MEMBERS)


def mask_logged_response(response: str, visibility: TextVisibility) -> Any:
    """Return the JSON of a response for the log of requests, masked likewise."""
    parsed = _parse_value(response)
    return _mask_logged(response, parsed, visibility, SHOWN_IN_LOGGED_RESPONSE, SECRET_RESPONSE_MEMBERS)


def _mask_logged(
    text: str, parsed: Any, visibility: TextVisibility, shown: frozenset[str], secrets: frozenset[str]
) -> Any:
    if not isinstance(parsed, (Mapping, list)):
        return _length_text(text)
    is_open = visibility.text
    code_members = CODE_MEMBERS if visibility.holds_code else frozenset[str]()
    max_shown_chars = None if is_open else MAX_SHOWN_CHARS
    masker = _Masker(
        shown, code_only=is_open, code_members=code_members, secrets=secrets, max_shown_chars=max_shown_chars
    )
    try:
        return masker.mask(cast("Any", parsed))
    except RecursionError:
        return _length_text(text)


def redact_body(body: str, visibility: TextVisibility) -> RedactedBody:
    """Return the body of a callback with hidden texts masked."""
    try:
        parsed = json.loads(body)
        masker = _Masker(SHOWN_IN_TEXT, code_only=visibility.is_open)
        masked_body = _mask_body(parsed, masker)
    except (ValueError, RecursionError):
        return RedactedBody(_json(_length_text(body)), frozenset({body}))
    return RedactedBody(_json(masked_body) if masker.hidden else body, frozenset(masker.hidden))


def redact_callback(callback: Mapping[str, Any], *, text: bool) -> dict[str, Any]:
    """Return a callback with its attempts from the store, with body and responses redacted.

    Adds `size_bytes` of the exact body, and `is_exact`, which is true if nothing is hidden.
    """
    body = redact_body(callback["body"], TextVisibility(text, callback["holds_code"]))
    return {
        **callback,
        "body": body.text,
        "size_bytes": len(callback["body"].encode()),
        "is_exact": not body.hidden,
        "attempts": [
            {**attempt, "response_body": body.redact_response(attempt["response_body"])}
            for attempt in callback["attempts"]
        ],
    }


def _mask_body(body: Any, masker: "_Masker") -> Any:
    match body:
        case {"version": 2, "type": str(), "payload": {**payload}}:
            hidden = HIDDEN_IN_V2.get(body["type"])
            if hidden is None:
                return {**body, "payload": masker.mask(payload)}
            return {**body, "payload": _mask_members(payload, hidden & payload.keys(), masker)}
        case {"entry": [*entries]}:
            return {**body, "entry": [_mask_entry(entry, masker) for entry in entries]}
        case _:
            return masker.mask(body)


def _mask_entry(entry: Any, masker: "_Masker") -> Any:
    match entry:
        case {"changes": [*changes]}:
            return {**entry, "changes": [_mask_change(change, masker) for change in changes]}
        case _:
            return masker.mask(entry)


def _mask_change(change: Any, masker: "_Masker") -> Any:
    match change:
        case {"field": "messages", "value": {**value}}:
            return {**change, "value": _mask_members(value, value.keys() - SHOWN_IN_MESSAGES, masker)}
        case {"field": str(field)} if field in SHOWN_FIELDS:
            return change
        case {"field": str(field), "value": value}:
            return {**change, "field": field, "value": masker.mask(value)}
        case _:
            return masker.mask(change)


def _mask_members(members: Mapping[str, Any], hidden: Any, masker: "_Masker") -> dict[str, Any]:
    """Return members, with those of these names masked."""
    return {name: masker.mask(value, name) if name in hidden else value for name, value in members.items()}


def _parse_request(request: str) -> Any:
    if request.lstrip().startswith("{"):
        return _parse_value(request)
    try:
        fields = parse_qsl(request, keep_blank_values=True, strict_parsing=True, max_num_fields=200)
    except ValueError:
        return request
    return {name: _parse_value(value) for name, value in fields}


def _parse_value(text: str) -> Any:
    try:
        return json.loads(text) if text.lstrip()[:1] in ("{", "[") else text
    except (ValueError, RecursionError):
        return text


class _Masker:
    """Replaces texts and numbers by their lengths, and collects the replaced texts.

    Args:
        shown: members whose values stay.
        code_only: hide only possible one-time codes.
        code_members: the members that may have them.
        secrets: members that are replaced whole, by a text that says nothing of them.
        max_shown_chars: longer texts are hidden in any member; None: no limit.
    """

    def __init__(
        self,
        shown: frozenset[str],
        *,
        code_only: bool = False,
        code_members: frozenset[str] = CODE_MEMBERS,
        secrets: frozenset[str] = frozenset(),
        max_shown_chars: int | None = None,
    ) -> None:
        self._shown = shown
        self._code_only = code_only
        self._code_members = code_members
        self._secrets = secrets
        self._max_shown_chars = max_shown_chars
        self.hidden: set[str] = set()

    def mask(self, value: Any, name: str = "", *, is_code: bool = False) -> Any:
        """Return a JSON value with hidden parts masked."""
        is_code = is_code or name in self._code_members
        if name in self._secrets and value not in (None, ""):
            return HIDDEN_SECRET
        if isinstance(value, Mapping):
            members = cast("Mapping[str, Any]", value)
            return {inner: self.mask(member, inner, is_code=is_code) for inner, member in members.items()}
        if isinstance(value, list):
            return [self.mask(item, is_code=is_code) for item in cast("list[Any]", value)]
        if value is None or isinstance(value, bool) or (name in self._shown and not self._is_too_long(value)):
            return value
        if (self._code_only and not is_code) or value == "":
            return value
        self.hidden.add(str(value))
        return _length_text(value) if isinstance(value, str) else "(number)"

    def _is_too_long(self, value: Any) -> bool:
        return self._max_shown_chars is not None and len(str(value)) > self._max_shown_chars


def _length_text(text: str) -> str:
    return f"({len(text)} {'character' if len(text) == 1 else 'characters'})"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
