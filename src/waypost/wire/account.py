"""Wallet, usage, business profile and number in responses, and the partner token, a signed JWT (decision 0063)."""

import datetime
import json
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from waypost.base.encryption import SecretBox
from waypost.base.json_values import object_of
from waypost.domain.app import App
from waypost.domain.direct_calls import BusinessStatus, NumberStatus
from waypost.domain.event import LimitEvent
from waypost.domain.partner import PARTNER_TOKEN_LIFE_MS, Partner, Wallet
from waypost.domain.templates.template import Category

_EPOCH: Final = datetime.date(1970, 1, 1)

# fmt: off
_DOCKER_STATUSES: Final = frozenset({"CONNECTED", "DISCONNECTED", "FLAGGED", "PENDING", "RESTRICTED", "UNKNOWN"})
_DOCKER_STATUS_OF: Final = {  # other statuses of the operator, as documented ones. Source: ledger 1.9, `waba/info`
    "MIGRATED":     "DISCONNECTED",
    "DELETED":      "DISCONNECTED",
    "BANNED":       "RESTRICTED",
    "RATE_LIMITED": "RESTRICTED",
    "UNVERIFIED":   "PENDING",
}
# fmt: on
_ERROR_MEMBERS: Final = ("error_code", "error_description", "possible_solution")
_QUALITIES: Final = ("GREEN", "YELLOW", "RED")


def messaging_wallet_object(wallet: Wallet) -> dict[str, Any]:
    """Return the balance in the format of the older messaging API. Source: public clients, which read `balance`."""
    return {"status": "success", "balance": wallet.balance}


def wallet_object(wallet: Wallet) -> dict[str, Any]:
    """Return the balance, as configured. Source: facts 13."""
    return {
        "status": "success",
        "walletResponse": {
            "currency": wallet.currency,
            "currentBalance": wallet.balance,
            "overDraftLimit": wallet.overdraft_limit,
        },
    }


def usage_item(
    app: App,
    wallet: Wallet,
    day: int,
    *,
    incoming: int,
    texts: int,
    media: int,
    templates: int,
    media_templates: int,
    by_category: Mapping[Category, int],
    marketing_api: int,
) -> dict[str, Any]:
    """Return the usage of one day. This service charges nothing, so every fee is 0.

    Nor does it know which messages the operator counts as free or international: those counts are 0.

    Source: ledger 1.9, `usage`; facts 13.
    """
    return {
        "appId": app.id,
        "appName": app.name,
        "date": (_EPOCH + datetime.timedelta(days=day)).isoformat(),
        "incomingMsg": incoming,
        "outgoingMsg": texts,
        "outgoingMediaMsg": media,
        "templateMsg": templates,
        "templateMediaMsg": media_templates,
        "totalMsg": incoming + texts + media + templates + media_templates,
        "marketing": by_category.get(Category.MARKETING, 0),
        "mmLiteMarketing": marketing_api,
        "utility": by_category.get(Category.UTILITY, 0),
        "service": texts + media,
        "freeUtility": 0,
        "internationalAuthentication": 0,
        "authentication": by_category.get(Category.AUTHENTICATION, 0),
        "currency": wallet.currency,
        "discount": 0,
        "fep": 0,
        "ftc": 0,
        "gsCap": app.preferences.cap,
        "gsFees": 0,
        "waFees": 0,
        "totalFees": 0,
        "cumulativeBill": 0,
    }


def ratings_object(event: LimitEvent, quality: str) -> dict[str, Any]:
    """Return the last change of a number's limit, with its quality in the documented spelling.

    Source: ledger 1.9, `ratings`; facts 13.
    """
    return {
        "oldLimit": event.old_limit,
        "currentLimit": event.current_limit,
        "event": event.event.lower(),
        "eventTime": event.at_ms,
        "phoneQuality": quality.capitalize() if quality in _QUALITIES else "Unknown",
    }


def business_account_info(app: App, number: NumberStatus, account: BusinessStatus) -> dict[str, Any]:
    """Return the operator's status of a number and its business account, in the documented values.

    Source: ledger 1.9, `waba/info`; C36; facts 13. The documents do not name the member with the number's id.
    """
    return {
        "accountStatus": "BANNED" if number.status == "BANNED" else account.status,
        "dockerStatus": number.status
        if number.status in _DOCKER_STATUSES
        else _DOCKER_STATUS_OF.get(number.status, "UNKNOWN"),
        "messagingLimit": number.messaging_limit or "NOT_SET",
        "mmLiteStatus": account.marketing_messages or "INELIGIBLE",
        "ownershipType": account.ownership,
        "phone": app.phone_number,
        "phoneNumberId": app.phone_number_id,
        "phoneQuality": number.quality if number.quality in _QUALITIES else "UNKNOWN",
        "throughput": number.throughput or "NOT_APPLICABLE",
        "verifiedName": number.verified_name,
        "wabaId": app.business_account_id,
        "canSendMessage": number.can_send,
        "errors": [  # their codes are texts
            {name: str(object_of(error).get(name, "")) for name in _ERROR_MEMBERS} for error in number.errors
        ],
        "additionalInfo": [],
    }


if TYPE_CHECKING:
    from jwt import PyJWS

ALGORITHM: Final = "HS256"
ISSUER: Final = "auth0"  # as in the public service. Source: ledger 1.1
_HEADER: Final = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9."
"""The beginning of every token of ours: `{"alg":"HS256","typ":"JWT"}`, and no other member."""


def issue_partner_token(secret_box: SecretBox, partner: Partner, *, jti: str, now_ms: int) -> str:
    """Return a partner token with the documented claims, signed with a key derived from the instance key.

    Args:
        jti: makes each token unique, also within one second.

    Source: ledger 1.1: `payload` (JSON text), `iss`, `iat`, `exp` = `iat` + 24 hours.
    """
    issued_s = now_ms // 1000
    payload = {"id": partner.id, "admin": partner.admin, "email": partner.email}
    claims = {
        "payload": json.dumps(payload, separators=(",", ":")),
        "iss": ISSUER,
        "iat": issued_s,
        "exp": issued_s + PARTNER_TOKEN_LIFE_MS // 1000,
        "jti": jti,
    }
    text = json.dumps(claims, separators=(",", ":"))
    return _jws().encode(text.encode(), secret_box.partner_token_key(), ALGORITHM)


def is_partner_token(secret_box: SecretBox, token: str) -> bool:
    """True if a text is a token of `issue_partner_token`; the store knows if it is still valid.

    A token with another header is rejected before it is decoded, so that it can name neither another
    algorithm nor another key.
    """
    if not token.startswith(_HEADER):
        return False
    from jwt import PyJWTError

    for key in secret_box.partner_token_keys():
        try:
            _jws().decode_complete(token, key, [ALGORITHM])
        except (PyJWTError, ValueError):  # or text that is not UTF-8
            continue
        return True
    return False


@cache
def _jws() -> "PyJWS":
    from jwt import PyJWS  # here, because it takes 25 ms, which only a process with logins needs

    return PyJWS([ALGORITHM])
