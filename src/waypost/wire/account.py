"""Wallet, usage, business profile and number in the formats of the partner API."""

import datetime
import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from waypost.domain.app import App
from waypost.domain.direct_calls.account import BusinessStatus, NumberStatus
from waypost.domain.direct_calls.profile import BusinessProfile, SetProfile
from waypost.domain.errors import ApiError, ErrorCode
from waypost.domain.partner import Wallet
from waypost.domain.templates.template import Category
from waypost.wire.forms import Form

MAX_REPORT_DAYS: Final = 92
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_EPOCH: Final = datetime.date(1970, 1, 1)

_ADDRESS: Final = ("addLine1", "addLine2", "city", "state", "pinCode", "country")
PROFILE_FIELDS: Final = (*_ADDRESS, "vertical", "website1", "website2", "desc", "profileEmail")


class BlockedUser(msgspec.Struct):
    """A user to block or unblock."""

    user: str


class ChatCommand(msgspec.Struct):
    """A command that users can choose. The operator checks its lengths."""

    command_name: str
    command_description: str


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


def read_days(from_text: str | None, to_text: str | None) -> tuple[int, int]:
    """Return the first and the last day of a report, in days since the epoch.

    Raises:
        ApiError: a date is missing or invalid, or the dates are in the wrong order or too far apart.
    """
    first, last = _read_day("from", from_text), _read_day("to", to_text)
    if not first <= last < first + MAX_REPORT_DAYS:
        raise ApiError(ErrorCode.FIELD_BROKEN, f"to must be from or at most {MAX_REPORT_DAYS - 1} days after it.")
    return first, last


def _read_day(name: str, text: str | None) -> int:
    if not text:
        raise ApiError(
            ErrorCode.FIELD_MISSING, f"Required request parameter '{name}' is not present: a date as YYYY-MM-DD."
        )
    if _DATE.fullmatch(text):
        try:
            return (datetime.date.fromisoformat(text) - _EPOCH).days
        except ValueError:
            pass
    raise ApiError(ErrorCode.FIELD_BROKEN, f"{name} must be a date as YYYY-MM-DD.")


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
) -> dict[str, Any]:
    """Return the usage of one day. This service charges nothing, so every fee is 0.

    Source: facts 13, `usage`; its members are those that clients read.
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
        "utility": by_category.get(Category.UTILITY, 0),
        "authentication": by_category.get(Category.AUTHENTICATION, 0),
        "currency": wallet.currency,
        "discount": 0,
        "gsFees": 0,
        "waFees": 0,
        "totalFees": 0,
        "cumulativeBill": 0,
    }


def read_profile(form: Form) -> SetProfile:
    """Return the profile change in a form, still without a number.

    The address lines are joined in their order; both web sites are one list.
    """
    lines = [form.text(name) for name in _ADDRESS]
    sites = [form.text(name) for name in ("website1", "website2")]
    return SetProfile(
        address=None if set(lines) == {None} else ", ".join(line.strip() for line in lines if line and line.strip()),
        websites=None if set(sites) == {None} else [site for site in sites if site],
        description=form.text("desc"),
        email=form.text("profileEmail"),
        vertical=form.text("vertical"),
    )


def profile_object(profile: BusinessProfile) -> dict[str, Any]:
    """Return the profile for the partner; unset fields are empty. Source: facts 13, `business/profile`."""
    first, second, *_ = (*profile.websites, "", "")
    return {
        "address": profile.address,
        "desc": profile.description,
        "profileEmail": profile.email,
        "vertical": profile.vertical,
        "website1": first,
        "website2": second,
    }


def business_account_info(app: App, number: NumberStatus, account: BusinessStatus) -> dict[str, Any]:
    """Return the operator's status of a number and its business account. Source: facts 13, `waba/info`."""
    return {
        "accountStatus": account.status,
        "dockerStatus": number.status,
        "messagingLimit": number.messaging_limit,
        "mmLiteStatus": "INELIGIBLE",  # this service does not send through MM Lite
        "ownershipType": account.ownership,
        "phone": app.phone_number,
        "phoneQuality": number.quality,
        "throughput": number.throughput,
        "verifiedName": number.verified_name,
        "wabaId": app.business_account_id,
        "canSendMessage": number.can_send,
        "errors": number.errors,
        "additionalInfo": [],
    }
