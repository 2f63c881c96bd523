"""One simulated phone: its owner and its behaviour.

Every owner has a business-scoped user id, encoded from the number and decodable. Nothing is stored, so that a fleet of
any size costs nothing, and the same phone has the same id in every run. Source: facts 7.5.
"""

from functools import lru_cache
from typing import Any, Final

import msgspec

READ_ON_REQUEST: Final = -1


class SimulatedPhone(msgspec.Struct, frozen=True, omit_defaults=True):
    """One simulated phone."""

    phone: str
    name: str  # the owner's profile name
    deliver_after_ms: int | None = None  # from `sent` to `delivered`; None: as in the settings
    # from `delivered` to `read`; None: as in the settings; `READ_ON_REQUEST`: not automatically
    read_after_ms: int | None = None
    # the WhatsApp id, if it differs from the number, as in Brazil and Mexico; businesses see it in place of the number,
    # and reach the phone by both. Source: facts 4.3.
    wa_id: str = ""
    user_id: str = ""  # the business-scoped user id; empty: businesses see none
    username: str = ""  # shown next to the profile name; may be empty
    shows_number: bool = True  # whether every business sees the number; if not, there is a user id
    parent_user_id: str = ""  # the id in a group of linked portfolios; empty: businesses see none
    # the businesses that know the number although it is hidden: the id of each number of theirs, and the time of the
    # last contact by the phone's number
    number_known: tuple[tuple[str, int], ...] = ()
    condition: str = ""  # why messages fail on it, one of `conditions.PHONE_CONDITIONS`; empty: they do not fail
    sends_read_receipts: bool = True  # whether businesses get `read` statuses
    has_chat_open: bool = False  # whether messages are read when they arrive; `delivered` is skipped then
    is_offline: bool = False  # whether nothing arrives until it is online again
    has_blocked: tuple[str, ...] = ()  # the ids of the business numbers that its owner has blocked
    stopped_marketing_of: tuple[str, ...] = ()  # the ids of the business numbers whose marketing its owner has stopped
    seed: str = ""  # for the random choices of its script
    script: str = ""  # the steps of its own script, as JSON; empty if it has none

    @property
    def whatsapp_id(self) -> str:
        """The digits by which businesses see the phone."""
        return self.wa_id or self.phone

    def contact(self) -> dict[str, Any]:
        """Return the phone's owner as webhooks name a sender. Source: facts 7.2, 7.5."""
        profile = {"name": self.name} | ({"username": self.username} if self.username else {})
        return {"profile": profile, **self.identity_members("wa_id", "user_id")}

    def identity_members(self, number_name: str, user_id_name: str) -> dict[str, str]:
        """Return the number and the user id that businesses see, under the given names."""
        members = {number_name: self.whatsapp_id} if self.shows_number else {}
        members |= {user_id_name: self.user_id} if self.user_id else {}
        parent_name = user_id_name.replace("user_id", "parent_user_id")
        return members | ({parent_name: self.parent_user_id} if self.parent_user_id else {})


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
    """Return the user id of a phone's owner, such as `US.349160025879411215`."""
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
