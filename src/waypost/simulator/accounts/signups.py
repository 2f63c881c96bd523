"""Storing in-app signups, the links with which a user consents to messages; in memory, written through to the file."""

import asyncio
from collections.abc import Callable
from typing import Any, Final

import msgspec

from waypost.base.http.hosts import is_web_url
from waypost.base.ids import Ids
from waypost.base.json_values import object_or_none
from waypost.simulator.errors import bad_parameter
from waypost.simulator.keyed_store import CachedKeyedValues
from waypost.simulator.store import Store

_PROMO_CODE_VARIABLE: Final = "{{promo_code}}"
_MAX_URL_CHARS: Final = 2000
_MAX_PROMO_CODE_CHARS: Final = 50


class Signup(msgspec.Struct, frozen=True):
    """A signup of an account; `promo_code`, `display_name` and `website_url` are empty if it has none."""

    signup_id: str
    waba_id: str
    signup_message: str
    confirmation_message: str
    privacy_policy_url: str
    website_url: str = ""
    promo_code: str = ""
    display_name: str = ""
    status: str = "ACTIVE"


def _has_length(at_most: int) -> Callable[[str], bool]:
    return lambda text: len(text.strip()) >= 1 and len(text) <= at_most


def _is_url(*schemes: str) -> Callable[[str], bool]:
    return lambda text: len(text) <= _MAX_URL_CHARS and is_web_url(text) and text.lower().startswith(schemes)


def _is_promo_code(text: str) -> bool:
    return len(text) <= _MAX_PROMO_CODE_CHARS and text.isascii() and text.isalnum()


def _is_status(text: str) -> bool:
    return text in ("ACTIVE", "DISABLED")


# fmt: off
_RULES: Final[dict[str, tuple[Callable[[str], bool], str]]] = {  # Source: the operator's page "In-app signup"
    "signup_message":       (_has_length(300),               "1 to 300 characters"),
    "confirmation_message": (_has_length(300),               "1 to 300 characters"),
    "privacy_policy_url":   (_is_url("http://", "https://"), "a URL that begins with http:// or https://"),
    "website_url":          (_is_url("https://"),            "a URL that begins with https://"),
    "promo_code":           (_is_promo_code,                 "1 to 50 letters and digits"),
    "display_name":         (_has_length(256),               "1 to 256 characters"),
    "status":               (_is_status,                     "ACTIVE or DISABLED"),
}
# fmt: on
_REQUIRED: Final = ("signup_message", "confirmation_message", "privacy_policy_url")
_FIXED: Final = "privacy_policy_url"


class Signups:
    """Every signup of every account. Changes run one at a time."""

    def __init__(self, store: Store, ids: Ids) -> None:
        self._ids = ids
        self._changes = asyncio.Lock()
        self._signups = CachedKeyedValues(store, "signup", Signup)
        self.by_id = self._signups.all

    def account_signups(self, waba_id: str) -> list[Signup]:
        """Return an account's signups, oldest first."""
        return [signup for signup in self.by_id.values() if signup.waba_id == waba_id]

    async def create(self, waba_id: str, fields: dict[str, Any]) -> Signup:
        """Create an active signup.

        The owner of an account accepts the terms with its first signup. Source: the operator's page "In-app signup".

        Raises:
            GraphApiError: 100, a parameter is missing or invalid, or the terms were not accepted.
        """
        for name in _REQUIRED:
            if fields.get(name) is None:
                raise bad_parameter(f"The parameter {name} is required.")
        members = _read_members({name: value for name, value in fields.items() if name != "status"})
        policy = _read_policy(fields.get("policy"))
        async with self._changes:
            if not policy and not self.account_signups(waba_id):
                raise bad_parameter("The parameter policy is required for the first signup: {tos, accepted: true}.")
            signup = Signup("8" + self._ids.digits(15), waba_id, **members)  # 16 digits, below 2^53
            _check_promo_code(signup)
            await self._signups.save(signup, signup.signup_id)
        return signup

    async def update(self, signup_id: str, fields: dict[str, Any]) -> None:
        """Change a signup's texts, promo code or status; absent members stay.

        Raises:
            GraphApiError: 100, a parameter is invalid, nothing is to be changed, or the URL of the privacy policy is.
        """
        if _FIXED in fields:
            raise bad_parameter(f"Param {_FIXED} cannot be changed after creation.")
        members = _read_members(fields)
        if not members:
            raise bad_parameter(f"One of {', '.join(name for name in _RULES if name != _FIXED)} is required.")
        async with self._changes:
            signup = msgspec.structs.replace(self.by_id[signup_id], **members)
            _check_promo_code(signup)
            await self._signups.save(signup, signup_id)


def _read_members(fields: dict[str, Any]) -> dict[str, str]:
    """Return the members of a signup that a request has; null is absent."""
    members = {name: fields[name] for name in _RULES if fields.get(name) is not None}
    for name, value in members.items():
        is_valid, rule = _RULES[name]
        if not isinstance(value, str) or not is_valid(value):
            raise bad_parameter(f"Param {name} must be {rule}.")
    return members


def _read_policy(value: object) -> bool:
    """True if the terms are accepted, False if there is no `policy`."""
    if value is None:
        return False
    policy = object_or_none(value)
    if policy is None or not isinstance(policy.get("tos"), str) or policy.get("accepted") is not True:
        raise bad_parameter("Param policy must be {tos, accepted} with the URL of the terms and true.")
    return True


def _check_promo_code(signup: Signup) -> None:
    """Check that a message with the placeholder has a code to fill in. Source: the operator's page "In-app signup"."""
    if _PROMO_CODE_VARIABLE in signup.confirmation_message and not signup.promo_code:
        raise bad_parameter(
            f"The parameter promo_code is required with {_PROMO_CODE_VARIABLE} in confirmation_message."
        )
