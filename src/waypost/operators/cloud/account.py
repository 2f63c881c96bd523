"""The fields of an operator account at the Cloud API."""

import re
from typing import Final

from waypost.domain.app import OperatorAccount
from waypost.operators.contract import AccountField

KIND: Final = "cloud"
VERSION: Final = "v25.0"
"""Of the operator's interface, where an account names none. Source: operator's facts 1."""

_VERSION: Final = re.compile(r"v[0-9]{1,3}\.[0-9]{1,3}")


def _is_visible(value: str) -> bool:
    """Whether it can travel in a header and in addresses."""
    return bool(value) and value.isascii() and value.isprintable() and " " not in value


def _is_typed(value: str) -> bool:
    return bool(value.strip()) and value.isprintable()


def _is_version(value: str) -> bool:
    return _VERSION.fullmatch(value) is not None


_VISIBLE: Final = "visible ASCII characters, without spaces"
_TYPED: Final = "text that can be typed"

# fmt: off
FIELDS: Final = (
    #            name            meaning                                       accepts      accepted
    AccountField("version",      "Of the operator's interface.",               _is_version, "such as v25.0", default=VERSION),
    AccountField("token",        "Of a system user; opens the operator's API.", _is_visible, _VISIBLE, is_secret=True),
    AccountField("app_id",       "The operator's id of your app.",             _is_visible, _VISIBLE),
    AccountField("app_secret",   "Signs its webhooks.",                        _is_typed,   _TYPED, is_secret=True),
    AccountField("verify_token", "For the webhook's handshake.",               _is_typed,   _TYPED, is_secret=True, is_made=True),
)
# fmt: on


def cloud_account(
    account_id: str,
    base_url: str,
    *,
    token: str,
    app_id: str,
    app_secret: str,
    verify_token: str,
    version: str = VERSION,
) -> OperatorAccount:
    """Return an operator account at the Cloud API."""
    fields = {
        "version": version,
        "token": token,
        "app_id": app_id,
        "app_secret": app_secret,
        "verify_token": verify_token,
    }
    return OperatorAccount(account_id, KIND, base_url, fields)
