"""Version 2 bodies of what the operator says of a business account, its numbers and its users."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, cast

from waypost.domain.app import App
from waypost.domain.event import AccountEvent
from waypost.wire.callbacks.callback_v2 import envelope

Value = dict[str, Any]


@dataclass(frozen=True, slots=True)
class AccountKind:
    """One row.

    Attributes:
        type: of the callback.
        inner_type: `payload.type`.
        payload: makes the inner `payload`; None where version 2 has no words for what was said.
    """

    type: str
    inner_type: str
    payload: Callable[[Value, int], Value | None]


def account_body(app: App, at_ms: int, event: AccountEvent) -> bytes | None:
    """What the operator says of an account; None where version 2 has no shape for it.

    Source: facts 6.6, 6.8.
    """
    kind = KINDS.get(event.field)
    inner = None if kind is None else kind.payload(event.members, at_ms)
    if kind is None or inner is None:
        return None
    return envelope(app, at_ms, kind.type, {"type": kind.inner_type, "payload": inner})


def _review(value: Value, at_ms: int) -> Value:
    return {"status": _text(value, "decision"), "actionDate": at_ms}


def _status(value: Value, at_ms: int) -> Value | None:
    """What became of the account itself: the operator's event in the words of version 2."""
    named = _text(value, "event").upper()
    ban = _object(value.get("ban_info"))
    state = _text(ban, "waba_ban_state").upper()
    match named:
        case "ACCOUNT_VIOLATION":
            kind = _text(_object(value.get("violation_info")), "violation_type")
            return {"status": "ACCOUNT_VIOLATION", "violation_type": kind}
        case "DISABLED_UPDATE":
            word = BANS.get(state, "DISABLE")
            return {"status": word, "actionDate": _text(ban, "waba_ban_date") or at_ms}
        case "VERIFIED_ACCOUNT" | "ACCOUNT_VERIFIED":
            return {"status": "ACCOUNT_VERIFIED"}
        case "ACCOUNT_RESTRICTION" | "ACCOUNT_RESTRICTED":
            restrictions = [_object(one) for one in _items(value.get("restriction_info"))]
            shown = [
                {"restrictionType": _text(one, "restriction_type"), "expiration": one.get("expiration")}
                for one in restrictions
            ]
            return {"status": "ACCOUNT_RESTRICTED", "restrictionInfo": shown}
        case "ACCOUNT_DELETED":
            return {"status": "ACCOUNT_DISABLE", "actionDate": at_ms}
        case "AD_ACCOUNT_LINKED":
            linked = _object(value.get("waba_info"))
            names = ("waba_id", "owner_business_id", "ad_account_id")
            return {"status": named, **{name: _text(linked, name) for name in names}}
        case _:
            return None


def _display_name(value: Value, _: int) -> Value:
    decision = _text(value, "decision").lower()
    reason = _text(value, "rejection_reason")
    shown: Value = {"status": decision}
    if reason and reason.upper() != "NONE":
        shown["rejectedReason"] = reason
    return shown


def _tier(value: Value, _: int) -> Value:
    return {
        "event": _text(value, "event").lower(),
        "oldLimit": _text(value, "old_limit"),
        "currentLimit": _text(value, "current_limit"),
    }


def _capability(value: Value, _: int) -> Value:
    return {
        "maxDailyConversationPerPhone": _first(
            value, "max_daily_conversation_per_phone", "max_daily_conversations_per_business"
        ),
        "maxPhoneNumbersPerBusiness": _first(value, "max_phone_numbers_per_business", "max_phone_numbers_per_waba"),
    }


def _preferences(value: Value, _: int) -> Value:
    names = ("wa_id", "detail", "category", "value", "timestamp")
    given = [_object(one) for one in _items(value.get("user_preferences"))]
    return {"user_preferences": [{name: one.get(name) for name in names} for one in given]}


def _first(value: Value, *names: str) -> Any:
    return next((value[name] for name in names if name in value), None)


def _text(value: Value, name: str) -> str:
    found = value.get(name)
    return "" if found is None else str(found)


def _object(value: Any) -> Value:
    return cast(Value, value) if isinstance(value, dict) else {}


def _items(value: Any) -> list[Any]:
    return cast(list[Any], value) if isinstance(value, list) else []


# fmt: off
BANS: Final = {  # the operator's ban states. Source: facts 6.6, status-event; their pairing is ours
    "SCHEDULE_FOR_DISABLE": "ACCOUNT_DISABLE",
    "DISABLE":              "DISABLE",
    "REINSTATE":            "REINSTATE",
}
KINDS: Final = {  # Source: facts 6.6, 6.8
    # the operator's field                      type                inner type          payload
    "account_review_update":       AccountKind("account-event",    "review-event",     _review),
    "account_update":              AccountKind("account-event",    "status-event",     _status),
    "phone_number_name_update":    AccountKind("account-event",    "pndn-event",       _display_name),
    "phone_number_quality_update": AccountKind("account-event",    "tier-event",       _tier),
    "business_capability_update":  AccountKind("account-event",    "capability-event", _capability),
    "user_preferences":            AccountKind("preference-event", "user_preferences", _preferences),
}
# fmt: on
