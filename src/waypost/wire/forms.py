"""The reader of all forms and JSON texts. It rejects what it cannot read, and never guesses.

UTF-8 is strict, JSON is at most 32 deep, U+0000 and unpaired surrogates are rejected, integers are within
64 bits, and a form has at most 200 fields. Source: decision 0077.
"""

import json
import re
from collections.abc import Sequence
from typing import Any, Final, TypeVar
from urllib.parse import unquote_to_bytes

import msgspec

from waypost.base.invalid_values import describe_invalid_value, describe_malformed_json
from waypost.domain.coercion import read_flag
from waypost.domain.errors import ApiError, ErrorCode, invalid_field, missing_parameter

MAX_DEPTH: Final = 32
FormBranch = dict[str, Any]
"""The value of a nested field: texts and branches by name."""

_NESTED_NAME: Final = re.compile(r"([^\[\]]+)((?:\[[^\[\]]*\])+)")
_encode_json: Final = msgspec.json.Encoder().encode


def join_parts(pairs: Sequence[tuple[str, str]]) -> dict[str, FormBranch]:
    """Return the nested fields by name, joined from their parts; other fields are omitted.

    Empty brackets are numbered. Where a part is both a text and a branch, the last one counts.

    Raises:
        ApiError: a name has more than 32 parts.
    """
    fields: dict[str, FormBranch] = {}
    for name, value in pairs:
        parts = _NESTED_NAME.fullmatch(name)
        if parts is None:
            continue
        path = parts[2][1:-1].split("][", MAX_DEPTH)
        if len(path) > MAX_DEPTH:
            raise ApiError(ErrorCode.UNREADABLE, f"The form's names must be nested at most {MAX_DEPTH} deep.")
        branch = fields.setdefault(parts[1], {})
        for step in path[:-1]:
            branch = _child_branch(branch, step)
        branch[path[-1] or str(len(branch))] = value
    return fields


def encode_branch(branch: FormBranch) -> str:
    """Return a nested field as JSON text; a branch whose names are all numbers is a list."""
    return _encode_json(_branch_value(branch)).decode()


def _child_branch(branch: FormBranch, part: str) -> FormBranch:
    name = part or str(len(branch))
    inner = branch.get(name)
    if not isinstance(inner, dict):
        inner = branch[name] = FormBranch()
    return inner  # pyright: ignore[reportUnknownVariableType]


def _branch_value(part: FormBranch | str) -> Any:
    if isinstance(part, str):
        return part
    if all(name.isascii() and name.isdigit() and len(name) < 10 for name in part):
        return [_branch_value(part[name]) for name in sorted(part, key=int)]
    return {name: _branch_value(inner) for name, inner in part.items()}


Decoded = TypeVar("Decoded")

MAX_FORM_FIELDS: Final = 200
MAX_BRACKETS: Final = 20_000
_STRING: Final = r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)'
"""A JSON string, or what begins one to the end of the text. It never backtracks: one pass over any input."""
_STRINGS: Final = re.compile(_STRING, re.DOTALL)
_STRINGS_AND_NUMBERS: Final = re.compile(
    rf"(?s:{_STRING})|-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?(?!\s*:)"
)
_LOSES_SPELLING: Final = re.compile(r"[0-9][.eE]|-0")
_MAY_LOSE_SPELLING: Final = re.compile(r"[\[:,\s](?:-0|-?[0-9]++[.eE])")
"""Such a number where one may stand, which skips ids in strings."""
_BRACKETS: Final = re.compile(r"[\[\]{}]")
_ODD_NUMBER: Final = re.compile(r"[0-9](?:[.eE]|[0-9]{18})")
"""Digits of a number that may lose its spelling, or have more than 64 bits: one pass finds that nearly no text has any.
It begins with a set, because the search for one is fast."""
_LONG_NUMBER: Final = re.compile(r"[0-9]{19}")
_INTEGERS: Final = re.compile(r"(?<![0-9.eE])-?[0-9]{19,}(?![0-9.eE])")
_GZIP: Final = b"\x1f\x8b"
_ESCAPED_NUL: Final = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


class Form:
    """The fields of a form. A field that is read as one value and was sent with two different ones is an error.

    A field may also be nested, as many clients write an object: `message[type]=text` and `params[0]=Ann`
    are joined to the JSON text of the field. A field under its plain name takes precedence.
    """

    __slots__ = ("_fields", "_pairs", "_parts", "_repeated")

    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        self._pairs = pairs
        self._fields = dict(pairs)
        self._parts: dict[str, FormBranch] | None = None
        self._repeated = (
            {name for name, value in pairs if self._fields[name] != value} if len(self._fields) != len(pairs) else None
        )

    def text(self, name: str) -> str | None:
        """Return a field; None when it is missing.

        Raises:
            ApiError: the field is nested too deeply, or has two values.
        """
        if self._repeated:
            self._reject_repeated(name)
        value = self._fields.get(name)
        if value is not None:
            return value
        parts = self._parts
        if parts is None:
            has_parts = "[" in "".join(self._fields)
            parts = self._parts = join_parts(self._pairs) if has_parts else {}
        return encode_branch(parts[name]) if name in parts else None

    def texts(self) -> dict[str, str]:
        """Return every field that is not empty, by name; nested fields are joined.

        Raises:
            ApiError: as `text`.
        """
        for name in self._repeated or ():
            self._reject_repeated(name)
        parts = join_parts(self._pairs) if "[" in "".join(self._fields) else {}
        whole = {name: encode_branch(part) for name, part in parts.items()}
        whole |= {name: text for name, text in self._fields.items() if _NESTED_NAME.fullmatch(name) is None}
        return {name: text for name, text in whole.items() if text}

    def all_values(self, *names: str) -> list[str]:
        """Return every value under one of the names, in order."""
        return [value for name, value in self._pairs if name in names]

    def required(self, name: str, accepted: str, kind: str = "String") -> str:
        """Return a required field; `kind` is its type in the error, as of `missing_parameter`.

        Raises:
            ApiError: it is missing, empty or blank.
        """
        value = self.text(name)
        if not value or value.isspace():
            raise missing_parameter(name, accepted, kind)
        return value

    def flag(self, name: str, default: bool = False) -> bool:
        """Return a field as a boolean.

        Raises:
            ApiError: it is neither true nor false, or has two values.
        """
        if self._repeated:
            self._reject_repeated(name)
        value = self._fields.get(name)
        if value is None or value == "":
            return default
        return read_flag(value, name)

    def _reject_repeated(self, name: str) -> None:
        """Raise an error if a field, or a part of it that is no item of a list, was sent with different values."""
        for repeated in self._repeated or ():
            is_part = repeated.startswith(f"{name}[") and "[]" not in repeated
            if (repeated == name and not name.endswith("[]")) or is_part:
                raise invalid_field(repeated[:100], "sent once; the form has it more than once, with different values")


def read_form(body: bytes) -> Form:
    """Read `application/x-www-form-urlencoded`.

    Raises:
        ApiError: it is not UTF-8, or has too many fields, or U+0000.
    """
    try:
        text = body.decode("utf-8", "strict")
        if text.count("&") >= MAX_FORM_FIELDS:
            raise ApiError(ErrorCode.UNREADABLE, f"The form must have at most {MAX_FORM_FIELDS} fields.")
        pairs: list[tuple[str, str]] = []
        for part in text.split("&"):
            name, _, value = part.partition("=")
            if "%" in part or "+" in part:
                name = _unescape(name) if "%" in name or "+" in name else name
                value = _unescape(value)
            if part:
                pairs.append((name, value))
    except UnicodeDecodeError as error:
        raise _not_utf8("The form", ", percent-encoded", body) from error
    if "%00" in text or "\0" in text:
        raise ApiError(ErrorCode.UNREADABLE, "The form must not contain the character U+0000.")
    return Form(pairs)


def _unescape(text: str) -> str:
    r"""Return a name or value without its escapes; a `%` that begins no escape stays.

    `%41` is decoded as Python's escape `\x41`, at once: `unquote_to_bytes` goes from escape to escape.

    Raises:
        UnicodeDecodeError: it is not UTF-8.
    """
    spaced = text.replace("+", " ")
    try:
        # Every backslash of the text is doubled, so `\\x` is the only escape; other bytes decode as Latin-1.
        characters = spaced.replace("\\", "\\\\").replace("%", "\\x").encode().decode("unicode_escape")
    except UnicodeDecodeError:  # a `%` without two hexadecimal digits
        return unquote_to_bytes(spaced).decode("utf-8", "strict")
    return characters.encode("latin-1").decode("utf-8", "strict")


def read_json(
    text: str, decoder: "msgspec.json.Decoder[Decoded]", *, name: str, accepted: str, has_texts: bool = False
) -> Decoded:
    """Decode a JSON text.

    Args:
        name: of the field, for the error.
        accepted: what would be accepted, for the error.
        has_texts: true if its numbers may be shown to a customer: one that would lose its spelling, such as 7.50,
            is decoded as a string. The types of the decoder must accept strings for numbers.

    Raises:
        ApiError: it is not JSON or of another type, is too deep, or has a character that cannot be stored.
    """
    has_odd_number = _ODD_NUMBER.search(text) is not None
    _check_text(text, name, has_odd_number)
    sent = text
    field = "" if " " in name else name  # `The body` is not a field name
    if has_texts and (has_odd_number or "-0" in text) and _MAY_LOSE_SPELLING.search(text):
        text = _STRINGS_AND_NUMBERS.sub(_quote_number, text)
    try:
        return decoder.decode(text)
    except msgspec.ValidationError as error:
        detail = mismatch(error, decoder.type, field)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        detail = f", as JSON text; it {_describe_malformed(sent)}"
    raise ApiError(ErrorCode.UNREADABLE, f"{name} must be {accepted}{detail}.", field=field, accepted=accepted)


def _describe_malformed(text: str) -> str:
    """Return where a text, as it was sent, stops to be JSON."""
    try:
        msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        return describe_malformed_json(error)
    return "is not valid JSON"


def mismatch(error: msgspec.ValidationError, expected: Any, field: str) -> str:
    """Return what is wrong with a JSON value, after what it must be: `: template.id is required`, or `, not a list`.

    Args:
        error: of decoding the value.
        expected: the type of the whole value.
        field: its name; empty: the value is the body.
    """
    invalid = describe_invalid_value(error, expected)
    if not invalid.path and ", not " in invalid.rule:
        return f", not {invalid.rule.partition(', not ')[2]}"
    dot = "." if field and invalid.path and not invalid.path.startswith("[") else ""
    rule = f"is not one of {invalid.accepted}" if invalid.rule == "is unknown" else invalid.rule
    return f": {f'{field}{dot}{invalid.path}' or 'it'} {rule}"


def read_json_body(body: bytes) -> dict[str, Any]:
    """Read a request's JSON body, which must be an object without two different values of one member.

    Members of nested objects may be repeated; then the last one counts.

    Raises:
        ApiError: as `read_json`, or a member has two values.
    """
    try:
        text = body.decode("utf-8", "strict")
    except UnicodeDecodeError as error:
        raise _not_utf8("The body", "", body) from error
    members = read_json(text, _object_decoder, name="The body", accepted="a JSON object")
    _reject_repeated_members(body)
    return members


def _reject_repeated_members(body: bytes) -> None:
    """Raise an error if an object has two different values of one member, which the decoder does not report.

    Only commas between members are left when those inside names and values are subtracted: a cheap count for every
    body, so that pairs are read in Python only if there are more members than names.
    """
    members = _members_decoder.decode(body)
    inside = sum(name.count(",") + bytes(value).count(b",") for name, value in members.items())
    if body.count(b",") - inside < max(len(members), 1):
        return
    pairs: list[tuple[str, Any]] = json.loads(body, object_pairs_hook=list)
    last = dict(pairs)
    for name, value in pairs:
        if last[name] != value:
            raise invalid_field(name[:100], "sent once; the body has it more than once, with different values")


def read_json_form(body: bytes) -> Form:
    """Read a request's JSON object as a form: each member that is not a string is JSON text, as it was written.

    Raises:
        ApiError: as `read_json`.
    """
    read_json_body(body)
    members = _members_decoder.decode(body)
    return Form(
        [
            (name, msgspec.json.decode(value) if value[:1] == b'"' else value.decode())
            for name, value in ((name, bytes(value)) for name, value in members.items())
            if value != b"null"
        ]
    )


def _not_utf8(name: str, more: str, body: bytes) -> ApiError:
    if body.startswith(_GZIP):
        return compressed_body_error("gzip")
    return ApiError(ErrorCode.UNREADABLE, f"{name} must be UTF-8{more}.")


def compressed_body_error(encoding: str) -> ApiError:
    """Return the error of a body with a content coding."""
    return ApiError(
        ErrorCode.UNREADABLE,
        f"The body must be sent uncompressed, without Content-Encoding or with identity; it is {encoding[:40]}.",
        field="Content-Encoding",
        accepted="identity",
    )


def _quote_number(match: "re.Match[str]") -> str:
    token = match[0]
    return f'"{token}"' if token[0] != '"' and _LOSES_SPELLING.search(token) else token


def _check_text(text: str, name: str, has_odd_number: bool) -> None:
    brackets = text.count("[") + text.count("{")
    if brackets > MAX_BRACKETS:
        raise ApiError(ErrorCode.UNREADABLE, f"{name} must hold at most {MAX_BRACKETS} lists and objects.")
    if brackets > MAX_DEPTH and nesting_depth(text) > MAX_DEPTH:
        raise ApiError(ErrorCode.UNREADABLE, f"{name} must be nested at most {MAX_DEPTH} deep.")
    if (
        has_odd_number
        and _LONG_NUMBER.search(text)
        and any(map(_is_too_long, _INTEGERS.findall(_STRINGS.sub("", text))))
    ):
        raise ApiError(ErrorCode.UNREADABLE, f"{name} must hold whole numbers within 64 bits.")
    if "\\u0000" in text and _ESCAPED_NUL.search(text):
        raise ApiError(ErrorCode.UNREADABLE, f"{name} must not contain the character U+0000.")


def _is_too_long(digits: str) -> bool:
    """True if an integer has more than 64 bits, its sign included; very long ones are not parsed."""
    return len(digits) > 20 or not -(2**63) <= int(digits) < 2**63


def nesting_depth(text: str) -> int:
    """Return the nesting depth of a JSON text; brackets inside strings do not count."""
    deepest = level = 0
    for char in _BRACKETS.findall(_STRINGS.sub("", text)):
        if char in "[{":
            level += 1
            deepest = max(deepest, level)
        else:
            level -= 1
    return deepest


_object_decoder: Final = msgspec.json.Decoder(dict[str, Any])
_members_decoder: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
