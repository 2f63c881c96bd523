"""Reading and writing of phone numbers. Inside the service a phone number is a text of 8 to 15 digits."""

import re
from functools import lru_cache
from typing import Final

_GROUP: Final = "group:"  # prefix of a destination that is a group
_PUNCTUATION: Final = str.maketrans("", "", "+ -()")
_DIGITS: Final = re.compile(r"[0-9]{8,15}", re.ASCII)


def read_phone_number(text: str) -> str | None:
    """Return the digits of a phone number; None when the text is not one.

    `+`, spaces, hyphens and brackets are removed; 8 to 15 digits must remain. Only the operator
    knows whether the number exists.

    Source: decision 0084; facts 14 ("`+` or spaces in destination numbers").
    """
    digits = text.translate(_PUNCTUATION)
    return digits if _DIGITS.fullmatch(digits) else None


def read_recipient_number(text: str) -> str | None:
    """Return the digits of a phone number that a message may go to; None also where the first is 0.

    Source: spec, "Errors", Invalid Destination; E.164: no country code begins with 0.
    """
    digits = read_phone_number(text)
    return None if digits is None or digits.startswith("0") else digits


def describe_recipient(text: str) -> str:
    """Return what a recipient's number must be, for the error about a text that is none."""
    accepted = "a phone number of 8 to 15 digits with its country code"
    return f"{accepted}, which does not begin with 0" if read_phone_number(text) else accepted


def group_destination(group_id: str) -> str:
    """Return the destination of a message to a group, distinct from every phone number and user id."""
    return _GROUP + group_id


def parse_group_id(destination: str) -> str | None:
    """Return the group id of a destination; None where it is a person."""
    return destination.removeprefix(_GROUP) if destination.startswith(_GROUP) else None


def region_of(digits: str) -> str:
    """Return the code of a number's country, such as IN; empty if it has none."""
    import phonenumbers  # as below

    try:
        return phonenumbers.region_code_for_number(phonenumbers.parse("+" + digits)) or ""
    except phonenumbers.NumberParseException:
        return ""


@lru_cache(maxsize=16384)
def country_and_national(digits: str) -> tuple[str, str]:
    """Return country code and national number, for a callback's `country_code` and `dial_code`.

    A number of no known country has an empty country code and all its digits.

    Source: facts 6.4: `dial_code` is the number without its country code.
    """
    import phonenumbers  # here, because its tables take time to load and are not always needed

    try:
        parsed = phonenumbers.parse("+" + digits)
    except phonenumbers.NumberParseException:
        return "", digits
    country = str(parsed.country_code)
    return country, digits.removeprefix(country)
