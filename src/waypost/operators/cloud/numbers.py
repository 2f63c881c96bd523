"""Phone numbers at the operator: their state and their problems."""

import re
from dataclasses import dataclass
from typing import Any, Final

from waypost.base.json_values import list_of, object_of
from waypost.domain.app import SHARED_PER_SECOND, OperatorAccount
from waypost.domain.direct_calls import NumberStatus, OperatorNumber, OperatorProblem
from waypost.operators.cloud.tolerant_json import parse_text
from waypost.operators.contract import AccountField

CONNECTED: Final = ("CONNECTED", "MIGRATED")  # Source: partner's facts 13, `health`


@dataclass(frozen=True, slots=True)
class _NumberCheck:
    field: str
    good_values: tuple[str, ...]
    is_serious: bool
    name: str
    fix_hint: str


_CHECKS: Final = (  # Source: operator's facts 1, "Phone node", and 8; its page "Phone numbers"
    # field, good values, serious, name, fix hint
    _NumberCheck(
        "platform_type",
        ("CLOUD_API",),
        True,
        "platform",
        "register the number for the Cloud API in the operator's console",
    ),
    _NumberCheck("status", ("CONNECTED",), True, "status", "register or verify the number in the operator's console"),
    _NumberCheck(
        "code_verification_status",
        ("VERIFIED",),
        False,
        "verification",
        "verify the number by code in the operator's console",
    ),
    _NumberCheck(
        "name_status",
        ("APPROVED", "AVAILABLE_WITHOUT_REVIEW"),
        False,
        "display name",
        "set a display name in the operator's console",
    ),
    _NumberCheck(
        "quality_rating",
        ("GREEN", "UNKNOWN", "NA"),
        False,
        "quality",
        "send fewer unwanted messages; the messaging limit follows the quality",
    ),
)
_STATUS_FIX_HINTS: Final = {  # by status, where the fix is not to register the number
    "BANNED": "read the operator's notices, and request a review in its console",
    "RESTRICTED": "read the operator's notices, and request a review in its console",
    "FLAGGED": "send fewer unwanted messages: the number has a week to recover its quality",
    "RATE_LIMITED": "wait: it cannot message more people today",
    "DELETED": "add the number again in the operator's console, or connect the app to another: waypost app connect",
    "MIGRATED": "connect the app to the number's new id: waypost app connect",
}
THROUGHPUT: Final = {"STANDARD": 80, "HIGH": 1000}  # messages a second. Source: operator's facts 8
"""Of a number that is used through the API alone, by its level."""
_WEBHOOK_URL_PRECEDENCE: Final = ("phone_number", "whatsapp_business_account", "application")
"""Precedence of the webhook URLs that a number can have. Source: operator's facts 7.1, "One callback per app"."""


def number_status(response: dict[str, Any]) -> NumberStatus:
    """Return the state of one number. Source: operator's facts 1, "Phone node"."""
    health = object_of(response.get("health_status"))
    status = parse_text(response.get("status"))
    return NumberStatus(
        is_connected=status in CONNECTED,
        status=status,
        verified_name=parse_text(response.get("verified_name")),
        quality=parse_text(response.get("quality_rating")),
        throughput=_throughput_level(response),
        messaging_limit=parse_text(response.get("whatsapp_business_manager_messaging_limit")),
        can_send=parse_text(health.get("can_send_message")),
        errors=[
            error for entity in list_of(health.get("entities")) for error in list_of(object_of(entity).get("errors"))
        ],
    )


def operator_number(number: dict[str, Any]) -> OperatorNumber:
    """Return one number of a list, with its problems."""
    level = _throughput_level(number)
    quality = parse_text(number.get("quality_rating")) or "not reported"
    limit = parse_text(number.get("whatsapp_business_manager_messaging_limit")) or "not reported"
    is_on_business_app = number.get("is_on_biz_app") is True
    return OperatorNumber(
        id=parse_text(number.get("id")),
        display_number=parse_text(number.get("display_phone_number")),
        per_second=SHARED_PER_SECOND if is_on_business_app else THROUGHPUT.get(level),
        summary=f"quality {quality}, throughput {level or 'not reported'}, messaging limit {limit}",
        problems=[
            OperatorProblem(
                check.is_serious, f"its {check.name} is {value}", _STATUS_FIX_HINTS.get(value, check.fix_hint)
            )
            for check in _CHECKS
            if (value := parse_text(number.get(check.field))) and value not in check.good_values
        ],
        is_registered=parse_text(number.get("status")) == "CONNECTED"
        and parse_text(number.get("platform_type")) in ("CLOUD_API", ""),
        is_on_business_app=is_on_business_app,
        raw=number,
    )


def webhook_url(number: dict[str, Any]) -> str:
    """Return a number's webhook URL; empty if the operator does not report it."""
    urls = object_of(number.get("webhook_configuration"))
    return next((parse_text(urls[name]) for name in _WEBHOOK_URL_PRECEDENCE if urls.get(name)), "")


def _throughput_level(number: dict[str, Any]) -> str:
    return parse_text(object_of(number.get("throughput")).get("level"))


KIND: Final = "cloud"
DEFAULT_API_VERSION: Final = "v25.0"
"""The API version of an account that sets none. Source: operator's facts 1."""


def _is_visible_ascii(value: str) -> bool:
    """True if a value can be used in a header and in a URL."""
    return bool(value) and value.isascii() and value.isprintable() and " " not in value


def _is_printable(value: str) -> bool:
    return bool(value.strip()) and value.isprintable()


_VISIBLE_ASCII_TEXT: Final = "visible ASCII characters, without spaces"
_PRINTABLE_TEXT: Final = "printable text"

CLOUD_ACCOUNT_FIELDS: Final = (
    # name, meaning, accepts, accepted
    AccountField(
        "version",
        "API version of the operator.",
        lambda value: re.fullmatch(r"v[0-9]{1,3}\.[0-9]{1,3}", value) is not None,
        "such as v25.0",
        default=DEFAULT_API_VERSION,
    ),
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
