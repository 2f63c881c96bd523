"""Business-scoped user ids: every phone's owner has one, encoded from the number and decodable.

Nothing is stored, so that a fleet of any size costs nothing, and the same phone has the same id in every run.

Source: facts 7.5.
"""

from functools import lru_cache
from typing import Final

# fmt: off
_COUNTRIES: Final = {  # the longest matching code counts; some of the operator's largest markets
    # code   country
    "1":   "US",
    "20":  "EG",
    "27":  "ZA",
    "31":  "NL",
    "33":  "FR",
    "34":  "ES",
    "39":  "IT",
    "44":  "GB",
    "49":  "DE",
    "52":  "MX",
    "54":  "AR",
    "55":  "BR",
    "57":  "CO",
    "62":  "ID",
    "90":  "TR",
    "91":  "IN",
    "92":  "PK",
    "234": "NG",
    "254": "KE",
    "966": "SA",
    "971": "AE",
    "972": "IL",
}
# fmt: on
_UNKNOWN_COUNTRY: Final = "ZZ"  # user-assigned in ISO 3166
_MODULUS: Final = 10**18
_FACTOR: Final = 774_596_669_241_483_377  # neither even nor a multiple of five
_INVERSE_FACTOR: Final = pow(_FACTOR, -1, _MODULUS)
_DIGITS: Final = 18
_LEADING_DIGIT: Final = "1"  # before the number, because one may begin with zeros


@lru_cache(maxsize=16_384)
def encode_user_id(phone: str) -> str:
    """Return the user id of a phone's owner, such as `US.349160025879411215`.

    Args:
        phone: 8 to 15 digits.
    """
    number = int(_LEADING_DIGIT + phone) * _FACTOR % _MODULUS
    return f"{_country_code(phone)}.{number:0{_DIGITS}d}"


def decode_user_id(user_id: str) -> str | None:
    """Return the digits of the phone with a user id made by `encode_user_id`; None for any other text."""
    digits = user_id[3:]
    if len(digits) != _DIGITS or not (digits.isascii() and digits.isdigit()):
        return None
    phone = str(int(digits) * _INVERSE_FACTOR % _MODULUS)[len(_LEADING_DIGIT) :]
    return phone if phone and encode_user_id(phone) == user_id else None


def _country_code(phone: str) -> str:
    codes = (phone[:length] for length in (3, 2, 1))
    return next((_COUNTRIES[code] for code in codes if code in _COUNTRIES), _UNKNOWN_COUNTRY)
