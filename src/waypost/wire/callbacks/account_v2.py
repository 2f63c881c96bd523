"""Version 2 bodies of events of a business account, its numbers and its users."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, cast

from waypost.domain.app import App
from waypost.domain.event import AccountEvent
from waypost.wire.callbacks.callback_v2 import account_envelope

AccountValue = dict[str, Any]


@dataclass(frozen=True, slots=True)
class AccountKind:
    """A row of the table of account events.

    Attributes:
        type: of the callback.
        inner_type: `payload.type`.
        payload: returns the inner `payload`; None where version 2 has no format for the event.
    """

    type: str
    inner_type: str
    payload: Callable[[AccountValue, int], AccountValue | None]


def account_body(app: App, at_ms: int, event: AccountEvent) -> bytes | None:
    """Return the body of an account event; None where version 2 has no format for it.

    Source: facts 6.6, 6.8.
    """
    kind = V2_ACCOUNT_KINDS.get(event.field)
    inner = None if kind is None else kind.payload(event.members, at_ms)
    if kind is None or inner is None:
        return None
    if event.field == "user_preferences" and app.preferences.user_ids:
        inner = _add_user_ids(inner, event.members)
    return account_envelope(app, at_ms, kind.type, {"type": kind.inner_type, "payload": inner})


def live_body(app: App, at_ms: int, namespace: str) -> bytes:
    """Return the body for an app that is live now; `waId` is the business account. Source: ledger row 30."""
    inner = {"status": "live", "waId": app.business_account_id, "namespace": namespace}
    return account_envelope(app, at_ms, "onboarding-event", {"type": "docker-status-event", "payload": inner})


def _review(value: AccountValue, at_ms: int) -> AccountValue:
    """Return the decision in lower case, and its day. Source: ledger row 20."""
    return {"status": _text(value, "decision").lower(), "actionDate": _date(at_ms)}


def _date(at_ms: int) -> str:
    """Return the day of a time by UTC, such as `January 31,2021`. Source: ledger row 20."""
    day = datetime.fromtimestamp(at_ms / 1000, UTC)
    return f"{MONTHS[day.month - 1]} {day.day},{day.year}"


def _status(value: AccountValue, at_ms: int) -> AccountValue | None:
    """Return the status of the account itself, with the names of version 2."""
    event = _text(value, "event").upper()
    ban = _object(value.get("ban_info"))
    state = _text(ban, "waba_ban_state").upper()
    match event:
        case "ACCOUNT_VIOLATION":
            kind = _text(_object(value.get("violation_info")), "violation_type")
            return {"status": "ACCOUNT_VIOLATION", "violation_type": kind}
        case "DISABLED_UPDATE":
            status = BAN_STATES.get(state, "DISABLE")
            return {"status": status, "actionDate": _text(ban, "waba_ban_date") or _date(at_ms)}
        case "VERIFIED_ACCOUNT" | "ACCOUNT_VERIFIED":
            return {"status": "ACCOUNT_VERIFIED"}
        case "ACCOUNT_RESTRICTION" | "ACCOUNT_RESTRICTED":
            restrictions = [_object(item) for item in _items(value.get("restriction_info"))]
            shown_restrictions = [
                {"restrictionType": _text(item, "restriction_type"), "expiration": item.get("expiration")}
                for item in restrictions
            ]
            return {"status": "ACCOUNT_RESTRICTED", "restrictionInfo": shown_restrictions}
        case "ACCOUNT_DELETED":
            return {"status": "ACCOUNT_DISABLE", "actionDate": _date(at_ms)}
        case "AD_ACCOUNT_LINKED":
            linked = _object(value.get("waba_info"))
            names = ("waba_id", "owner_business_id", "ad_account_id")
            return {"status": event, **{name: _text(linked, name) for name in names}}
        case _:
            return None


def _display_name(value: AccountValue, _: int) -> AccountValue:
    decision = _text(value, "decision").lower()
    reason = _text(value, "rejection_reason")
    payload: AccountValue = {"status": decision}
    if reason and reason.upper() != "NONE":
        payload["rejectedReason"] = reason
    return payload


def _tier(value: AccountValue, _: int) -> AccountValue:
    return {
        "event": _text(value, "event").lower(),
        "oldLimit": _text(value, "old_limit"),
        "currentLimit": _text(value, "current_limit"),
    }


def _capability(value: AccountValue, _: int) -> AccountValue:
    return {
        "maxDailyConversationPerPhone": _first_present(
            value, "max_daily_conversation_per_phone", "max_daily_conversations_per_business"
        ),
        "maxPhoneNumbersPerBusiness": _first_present(
            value, "max_phone_numbers_per_business", "max_phone_numbers_per_waba"
        ),
    }


def _preferences(value: AccountValue, _: int) -> AccountValue:
    """Return the preferences; a user without a number is named by the user id, as the sender of a message is."""
    preferences = [_object(item) for item in _items(value.get("user_preferences"))]
    return {"user_preferences": [_preference(item) for item in preferences]}


def _preference(item: AccountValue) -> AccountValue:
    names = ("detail", "category", "value", "timestamp")
    return {"wa_id": item.get("wa_id") or item.get("user_id"), **{name: item.get(name) for name in names}}


def _add_user_ids(inner: AccountValue, value: AccountValue) -> AccountValue:
    """Return the payload of preferences with the user ids of the same items. Source: public page "BSUID"."""
    items = [_object(item) for item in _items(value.get("user_preferences"))]
    shown = [
        shown_item | {name: item[given] for name, given in _USER_ID_MEMBERS.items() if item.get(given)}
        for shown_item, item in zip(inner["user_preferences"], items, strict=True)
    ]
    return {"user_preferences": shown}


def _first_present(value: AccountValue, *names: str) -> Any:
    return next((value[name] for name in names if name in value), None)


def _text(value: AccountValue, name: str) -> str:
    member = value.get(name)
    return "" if member is None else str(member)


def _object(value: Any) -> AccountValue:
    return cast(AccountValue, value) if isinstance(value, dict) else {}


def _items(value: Any) -> list[Any]:
    return cast(list[Any], value) if isinstance(value, list) else []


MONTHS: Final = (  # in English, whatever the language of the process
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_USER_ID_MEMBERS: Final = {"userid": "user_id", "parent_user_id": "parent_user_id"}  # Source: public page "BSUID"
BAN_STATES: Final = {  # the operator's ban states. Source: facts 6.6, status-event; their pairing is ours
    "SCHEDULE_FOR_DISABLE": "ACCOUNT_DISABLE",
    "DISABLE": "DISABLE",
    "REINSTATE": "REINSTATE",
}
V2_ACCOUNT_KINDS: Final = {  # Source: facts 6.6, 6.8
    # the operator's field, type, inner type, payload
    "account_review_update": AccountKind("account-event", "review-event", _review),
    "account_update": AccountKind("account-event", "status-event", _status),
    "phone_number_name_update": AccountKind("account-event", "pndn-event", _display_name),
    "phone_number_quality_update": AccountKind("account-event", "tier-event", _tier),
    "business_capability_update": AccountKind("account-event", "capability-event", _capability),
    "user_preferences": AccountKind("preference-event", "user_preferences", _preferences),
}
