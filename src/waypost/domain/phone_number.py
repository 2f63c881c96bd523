"""Reading and writing phone numbers. Everywhere inside, a phone number is text of 8 to 15 digits."""

import re
from functools import lru_cache
from typing import Final

_GROUP: Final = "group:"  # before a group's id, where a message's destination is one
_PUNCTUATION: Final = str.maketrans("", "", "+ -()")
_DIGITS: Final = re.compile(r"[0-9]{8,15}", re.ASCII)


def read_phone_number(text: str) -> str | None:
    """The digits of a phone number, or None when the text is not one.

    `+`, spaces, hyphens and brackets are taken away; 8 to 15 digits must remain. Whether the
    number exists is for the operator to say.

    Source: decision 0084; facts 14 ("`+` or spaces in destination numbers").
    """
    digits = text.translate(_PUNCTUATION)
    return digits if _DIGITS.fullmatch(digits) else None


def group_destination(group_id: str) -> str:
    """The destination of a message to a group, told apart from every phone number and user id."""
    return _GROUP + group_id


def group_of(destination: str) -> str | None:
    """The group's id, or None where the destination is one person."""
    return destination.removeprefix(_GROUP) if destination.startswith(_GROUP) else None


@lru_cache(maxsize=16384)
def country_and_national(digits: str) -> tuple[str, str]:
    """Country code and national number, as a callback's `country_code` and `dial_code` want them.

    Numbers of no known country give an empty country code and all their digits.

    Source: facts 6.4: `dial_code` is the number without its country code.
    """
    import phonenumbers  # here, because its tables load only when the first sender is shown

    try:
        parsed = phonenumbers.parse("+" + digits)
    except phonenumbers.NumberParseException:
        return "", digits
    country = str(parsed.country_code)
    return country, digits.removeprefix(country)
