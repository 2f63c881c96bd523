"""Wallet, usage, business profile and number in responses."""

import datetime
from collections.abc import Mapping
from typing import Any, Final

from waypost.base.json_values import object_of
from waypost.domain.app import App
from waypost.domain.direct_calls import BusinessStatus, NumberStatus
from waypost.domain.event import LimitEvent
from waypost.domain.partner import Wallet
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
