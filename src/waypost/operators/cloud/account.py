"""The fields of an operator account at the Cloud API."""

import re
from typing import Final

from waypost.domain.app import OperatorAccount
from waypost.operators.contract import AccountField

KIND: Final = "cloud"
DEFAULT_API_VERSION: Final = "v25.0"
"""The API version of an account that sets none. Source: operator's facts 1."""

_VERSION_PATTERN: Final = re.compile(r"v[0-9]{1,3}\.[0-9]{1,3}")


def _is_visible_ascii(value: str) -> bool:
    """True if a value can be used in a header and in a URL."""
    return bool(value) and value.isascii() and value.isprintable() and " " not in value


def _is_printable(value: str) -> bool:
    return bool(value.strip()) and value.isprintable()


def _is_version(value: str) -> bool:
    return _VERSION_PATTERN.fullmatch(value) is not None


_VISIBLE_ASCII_TEXT: Final = "visible ASCII characters, without spaces"
_PRINTABLE_TEXT: Final = "printable text"

CLOUD_ACCOUNT_FIELDS: Final = (
    # name, meaning, accepts, accepted
    AccountField("version", "API version of the operator.", _is_version, "such as v25.0", default=DEFAULT_API_VERSION),
    AccountField(
        "token",
        meaning="System user token for the operator's API.",
        accepts=_is_visible_ascii,
        accepted=_VISIBLE_ASCII_TEXT,
        is_secret=True,
    ),
    AccountField("app_id", "ID of your app at the operator.", _is_visible_ascii, _VISIBLE_ASCII_TEXT),
    AccountField("app_secret", "Signs the app's webhooks.", _is_printable, _PRINTABLE_TEXT, is_secret=True),
    AccountField(
        "verify_token",
        meaning="Verify token of the webhook handshake.",
        accepts=_is_printable,
        accepted=_PRINTABLE_TEXT,
        is_secret=True,
        is_generated=True,
    ),
)


def cloud_account(
    account_id: str,
    base_url: str,
    *,
    token: str,
    app_id: str,
    app_secret: str,
    verify_token: str,
    version: str = DEFAULT_API_VERSION,
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
