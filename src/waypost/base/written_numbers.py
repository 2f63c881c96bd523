"""JSON whose numbers keep their spelling: what a control call gives within a free object is shown as it was written.

A form's value 7.50 reaches the business as 7.50, and not as 7.5, and so does a price of the operator's webhook.
Members with a declared type are ordinary numbers.
"""

import re
from functools import cache
from typing import Any, Final, Literal

import msgspec

_NOT_ASCII: Final = re.compile(r"[^\x00-\x7e]+")


class WrittenNumber(float):
    """A number with a decimal point or an exponent, as it was written."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> "WrittenNumber":
        """Return the number that a text spells."""
        number = super().__new__(cls, text)
        number.text = text
        return number

    def __str__(self) -> str:
        """Return the text."""
        return self.text


@cache
def json_decoder(type_: Any = Any) -> "msgspec.json.Decoder[Any]":
    """Return a decoder for a type whose undeclared numbers are `WrittenNumber`."""
    return msgspec.json.Decoder(type_, float_hook=WrittenNumber)


def _encode_number(value: object) -> msgspec.Raw:
    """Return the text of a `WrittenNumber`, which the encoder does not know.

    Raises:
        NotImplementedError: it is of another type: msgspec's way to reject what has no JSON form.
    """
    if not isinstance(value, WrittenNumber):
        raise NotImplementedError(f"values of type {type(value)} have no JSON form")
    return msgspec.Raw(value.text.encode())


def json_encoder(*, order: Literal["sorted"] | None = None) -> msgspec.json.Encoder:
    """Return an encoder of values that `json_decoder` has read."""
    return msgspec.json.Encoder(enc_hook=_encode_number, order=order)


encode_json: Final = json_encoder().encode


def ascii_json(value: Any) -> str:
    """Return compact JSON with all non-ASCII characters escaped. Source: operator's facts 7.1."""
    text = encode_json(value).decode()
    return text if text.isascii() and "\x7f" not in text else _NOT_ASCII.sub(_escape, text)


def _escape(characters: "re.Match[str]") -> str:
    units = characters[0].encode("utf-16-be")
    return "".join(f"\\u{units[index]:02x}{units[index + 1]:02x}" for index in range(0, len(units), 2))
