"""Wallet, usage, business profile and number, as the partner API shows them."""

import datetime
import re
from collections.abc import Mapping
from typing import Any, Final, cast

import msgspec

from waypost.domain.app import App
from waypost.domain.partner import Wallet
from waypost.domain.phone_number import read_phone_number
from waypost.domain.refusals import Reason, Refused
from waypost.domain.template import Category
from waypost.wire.forms import Form

MOST_DAYS: Final = 92
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_EPOCH: Final = datetime.date(1970, 1, 1)

# fmt: off
_ADDRESS: Final = ("addLine1", "addLine2", "city", "state", "pinCode", "country")
_PROFILE: Final = {  # Source: facts 13, `business/profile`; the operator's page "Business profiles"
    # the partner's  the operator's
    "desc":          "description",
    "profileEmail":  "email",
    "vertical":      "vertical",
}
# fmt: on
PROFILE_FIELDS: Final = (*_ADDRESS, "vertical", "website1", "website2", "desc", "profileEmail")


class BlockedUser(msgspec.Struct):
    """One of the users to block or unblock."""

    user: str


class ChatCommand(msgspec.Struct):
    """A command that users can pick. Its lengths are the operator's matter."""

    command_name: str
    command_description: str


def changed_by_block(told: Mapping[str, Any], done: str) -> set[str]:
    """The phone numbers that the operator has blocked or unblocked, by its answer.

    Args:
        told: the answer.
        done: `added_users` or `removed_users`.
    """
    return {
        phone for one in _users_of(told, done) if (phone := read_phone_number(str(one.get("wa_id") or ""))) is not None
    }


def failure_of_block(told: Mapping[str, Any]) -> str | None:
    """What the operator says of the first user that it could not block or unblock; None: it could all."""
    for one in _users_of(told, "failed_users"):
        match one.get("errors"):
            case [{"error_data": {"details": str(details)}}, *_]:
                return details
            case [{"message": str(message)}, *_]:
                return message
            case _:
                return "The operator could not block or unblock the user."
    return None


def _users_of(told: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    match told.get("block_users"):
        case {**members}:
            found = members.get(name)
        case _:
            found = None
    listed = cast("list[Any]", found) if isinstance(found, list) else []
    return [cast("dict[str, Any]", one) for one in listed if isinstance(one, dict)]


def messaging_wallet_answer(wallet: Wallet) -> dict[str, Any]:
    """The balance as the older messaging API shows it. Source: public clients, which read `balance`."""
    return {"status": "success", "balance": wallet.balance}


def wallet_answer(wallet: Wallet) -> dict[str, Any]:
    """The balance, as it is set. Source: facts 13."""
    return {
        "status": "success",
        "walletResponse": {
            "currency": wallet.currency,
            "currentBalance": wallet.balance,
            "overDraftLimit": wallet.overdraft_limit,
        },
    }


def read_days(from_text: str | None, to_text: str | None) -> tuple[int, int]:
    """The days of a report, both included, counted from the epoch.

    Raises:
        Refused: a date is missing or none, they are the wrong way round, or too far apart.
    """
    first, last = _day("from", from_text), _day("to", to_text)
    if not first <= last < first + MOST_DAYS:
        raise Refused(Reason.FIELD_BROKEN, f"to must be from or at most {MOST_DAYS - 1} days after it.")
    return first, last


def _day(name: str, text: str | None) -> int:
    if not text:
        raise Refused(
            Reason.FIELD_MISSING, f"Required request parameter '{name}' is not present: a date as YYYY-MM-DD."
        )
    if _DATE.fullmatch(text):
        try:
            return (datetime.date.fromisoformat(text) - _EPOCH).days
        except ValueError:
            pass
    raise Refused(Reason.FIELD_BROKEN, f"{name} must be a date as YYYY-MM-DD.")


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
    """One day of use. Nobody is charged here, so every fee is 0.

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


def read_profile(form: Form) -> dict[str, Any]:
    """The members of the operator's profile that a form sets.

    The lines of the address become one, in their order; both web sites are one list.
    """
    changes: dict[str, Any] = {"messaging_product": "whatsapp"}
    lines = [form.text(name) for name in _ADDRESS]
    if any(line is not None for line in lines):
        changes["address"] = ", ".join(line.strip() for line in lines if line and line.strip())
    sites = [form.text(name) for name in ("website1", "website2")]
    if any(site is not None for site in sites):
        changes["websites"] = [site for site in sites if site]
    for ours, theirs in _PROFILE.items():
        value = form.text(ours)
        if value is not None:
            changes[theirs] = value
    return changes


def profile_object(profile: Mapping[str, Any]) -> dict[str, Any]:
    """The operator's profile as the partner sees it; what is not set is empty."""
    sites = [site for site in _list(profile.get("websites")) if isinstance(site, str)]
    return {
        "address": profile.get("address", ""),
        **{ours: profile.get(theirs, "") for ours, theirs in _PROFILE.items()},
        "website1": sites[0] if sites else "",
        "website2": sites[1] if len(sites) > 1 else "",
    }


def business_account_info(app: App, number: Mapping[str, Any], account: Mapping[str, Any]) -> dict[str, Any]:
    """What the operator says of a number and its business account. Source: facts 13, `waba/info`."""
    health = _object(number.get("health_status"))
    entities = [_object(entity) for entity in _list(health.get("entities"))]
    errors = [error for entity in entities for error in _list(entity.get("errors"))]
    throughput = _object(number.get("throughput"))
    return {
        "accountStatus": account_status(account),
        "dockerStatus": number.get("status", ""),
        "messagingLimit": number.get("whatsapp_business_manager_messaging_limit", ""),
        "mmLiteStatus": "INELIGIBLE",  # nothing here sends through MM Lite
        "ownershipType": account.get("ownership_type", ""),
        "phone": app.phone_number,
        "phoneQuality": number.get("quality_rating", ""),
        "throughput": throughput.get("level", ""),
        "verifiedName": number.get("verified_name", ""),
        "wabaId": app.business_account_id,
        "canSendMessage": health.get("can_send_message", ""),
        "errors": errors,
        "additionalInfo": [],
    }


def account_status(account: Mapping[str, Any]) -> str:
    """ACTIVE, or what the operator's review of the account says otherwise."""
    review = account.get("account_review_status", "")
    return "ACTIVE" if review == "APPROVED" else str(review)


def _object(value: Any) -> dict[str, Any]:
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return cast(list[Any], value) if isinstance(value, list) else []
