"""Callback bodies of version 2: of messages, of received messages, and of accounts."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from waypost.base.json_values import boolean_of, list_of, object_of
from waypost.base.written_numbers import encode_json
from waypost.domain.app import App
from waypost.domain.event import AccountEvent, InboundEvent, StatusEvent
from waypost.domain.message import MessageKind, MessageState
from waypost.domain.phone_number import country_and_national
from waypost.domain.postback import InboundContext
from waypost.wire.callbacks.kinds import ACCOUNT_KINDS, INBOUND_KINDS


def deductions(event: StatusEvent) -> dict[str, Any]:
    """Return the `deductions` of a billing event: pricing model, category, and if it is billable.

    Source: facts 6.7; operator's facts 7.3, pricing.
    """
    pricing = event.pricing or {}
    category = pricing.get("category")
    body: dict[str, Any] = {
        "type": pricing.get("type") or category,
        "model": pricing.get("pricing_model"),
        "source": "whatsapp",
        "billable": boolean_of(pricing.get("billable"), default=True),
        "category": category,
    }
    origin = (event.conversation or {}).get("origin")
    if object_of(origin).get("type") == "free_entry_point":
        body["conversationType"] = "FTC"
    return body


def envelope(app: App, at_ms: int, type: str, payload: dict[str, Any]) -> bytes:
    """Return the whole body; a member of an enum is encoded as its value. Source: spec, "Events"; facts 6.1."""
    return encode_json(
        {"app": app.name, "phone": app.phone_number, "timestamp": at_ms, "version": 2, "type": type, "payload": payload}
    )


def account_envelope(app: App, at_ms: int, type: str, payload: dict[str, Any]) -> bytes:
    """Return the whole body of an event of the account, which names the app by its id too. Source: ledger row 30."""
    names = {"app": app.name, "appId": app.id, "phone": app.phone_number}
    return encode_json({**names, "timestamp": at_ms, "version": 2, "type": type, "payload": payload})


def enqueued_body(
    app: App, at_ms: int, *, message_id: str, operator_message_id: str, kind: MessageKind, destination: str
) -> bytes:
    """Return the body for a message that the operator accepted; `id` is ours. Source: facts 6.2."""
    payload = {
        "id": message_id,
        "type": "enqueued",
        "destination": destination,
        "payload": {"whatsappMessageId": operator_message_id, "type": kind},
    }
    return envelope(app, at_ms, "message-event", payload)


def failed_body(
    app: App, at_ms: int, *, message_id: str, operator_message_id: str | None, destination: str, code: int, reason: str
) -> bytes:
    """Return the body for a failed message; `id` is the operator's if the operator had accepted it, else ours.

    Source: facts 6.2, the two rows `failed`.
    """
    payload = {
        **_ids(message_id, operator_message_id),
        "type": "failed",
        "destination": destination,
        "payload": {"code": code, "reason": reason},
    }
    return envelope(app, at_ms, "message-event", payload)


def status_body(app: App, at_ms: int, event: StatusEvent, *, message_id: str, destination: str) -> bytes:
    """Return the body of `sent`, `delivered`, `read` or `deleted`: `id` is the operator's, `gsId` ours.

    Price and conversation are in `sent` only, whichever statuses contain them at the operator. The user id is
    there if the app has enabled it.

    Source: facts 6.2; ledger row 9.
    """
    payload: dict[str, Any] = {
        **_ids(message_id, event.operator_message_id),
        "type": event.state,
        "destination": destination,
        "payload": {"ts": event.at_s},
    }
    with_price = event.state is MessageState.SENT
    if with_price and event.conversation:
        payload["conversation"] = _conversation(event.conversation)
    if with_price and event.pricing:
        pricing = event.pricing
        payload["pricing"] = {"policy": pricing.get("pricing_model"), "category": pricing.get("category")}
        payload["pricing"] |= {"type": pricing["type"]} if "type" in pricing else {}
    if app.preferences.user_ids and event.recipient_user_id:
        payload["userId"] = event.recipient_user_id
    return envelope(app, at_ms, "message-event", payload)


def mismatch_body(
    app: App, at_ms: int, *, operator_message_id: str, message_id: str | None, phone: str, operator_phone: str
) -> bytes:
    """Return the body for a recipient with another number at the operator. Source: facts 6.2, `mismatch`.

    Args:
        operator_message_id: of the message that showed it.
        message_id: ours, if we sent that message.
        phone: the previous number, or the partner's.
        operator_phone: the operator's.
    """
    payload: dict[str, Any] = {"id": operator_message_id}
    if message_id is not None:
        payload["gsId"] = message_id
    payload |= {"type": "mismatch", "destination": phone, "payload": {"wa_id": operator_phone, "phone": phone}}
    return envelope(app, at_ms, "message-event", payload)


def billing_body(app: App, at_ms: int, event: StatusEvent, *, message_id: str | None, destination: str) -> bytes:
    """Return the body for a price; without an id of ours it is an AI provider's. Source: facts 6.7; ledger row 33."""
    references = {"id": event.operator_message_id}
    if message_id is not None:
        references["gsId"] = message_id
    references["destination"] = destination
    conversation = (event.conversation or {}).get("id")
    if conversation:
        references["conversationId"] = conversation
    payload = {"deductions": deductions(event), "references": references}
    return envelope(app, at_ms, "billing-event", payload)


def user_body(app: App, at_ms: int, *, phone: str, type: str) -> bytes:
    """Return the body for a user who has opted in or out. Source: facts 6.3."""
    return envelope(app, at_ms, "user-event", {"phone": phone, "type": type})


def check_body(app: App, at_ms: int) -> bytes:
    """Return the body of the ping of a URL at registration. Source: facts 4.5."""
    return user_body(app, at_ms, phone="callbackSetPhone", type="sandbox-start")


def _ids(message_id: str, operator_message_id: str | None) -> dict[str, str]:
    if operator_message_id is None:
        return {"id": message_id}
    return {"id": operator_message_id, "gsId": message_id}


def _conversation(conversation: dict[str, Any]) -> dict[str, Any]:
    body: dict[str, Any] = {"id": conversation.get("id")}
    expires = str(conversation.get("expiration_timestamp", ""))
    if expires.isdecimal():
        body["expiresAt"] = int(expires)
    origin = conversation.get("origin")
    if isinstance(origin, dict):
        body["type"] = origin.get("type")  # pyright: ignore[reportUnknownMemberType]
    return body


Payload = dict[str, Any]


def inbound_body(app: App, at_ms: int, event: InboundEvent, context: InboundContext) -> bytes | None:
    """Return the body of a recipient's message; None where version 2 has no format for it.

    Args:
        app: the app of the number that received it.
        at_ms: now; the operator's time has whole seconds and would run backwards.

    Source: spec, "Events"; ledger row 36; facts 6.4 (`context.id` is the operator's id, `context.gsId` ours).
    """
    kind = INBOUND_KINDS.get(event.kind)
    if kind is None or event.kind not in V2_INBOUND_PAYLOADS:
        return None
    make_payload = V2_INBOUND_PAYLOADS[event.kind]
    phone = event.sender or event.sender_user_id or ""
    country_code, national = country_and_national(event.sender) if event.sender else ("", "")
    payload: Payload = {"id": event.operator_message_id, "source": phone, "type": kind.inner_type}
    if make_payload is not None:
        payload["payload"] = make_payload(event, context)
    names = {"phone": phone, "name": event.sender_name, "country_code": country_code, "dial_code": national}
    if app.preferences.user_ids and event.sender_user_id:
        names["userId"] = event.sender_user_id
    payload["sender"] = names
    reply_context: Payload = {}
    if event.reply_to is not None or event.forwarded or event.frequently_forwarded:
        ids = {"id": event.reply_to, "gsId": context.reply_target_id}
        reply_context = {name: value for name, value in ids.items() if value is not None}
        reply_context |= {"forwarded": event.forwarded, "frequently_forwarded": event.frequently_forwarded}
    if event.kind == "order":
        reply_context |= _order_context(event)
    if reply_context:
        payload["context"] = reply_context
    if event.referral:
        payload["referral"] = event.referral
    return envelope(app, at_ms, kind.type, payload)


def _text(event: InboundEvent, _: InboundContext) -> Payload:
    return {"text": event.text("body")}


def _tap(event: InboundEvent, context: InboundContext) -> Payload:
    payload: Payload = {"text": event.text("text"), "type": "button"}
    if context.postback_text is not None:
        payload["postbackText"] = context.postback_text
    return payload


def _choice(event: InboundEvent, context: InboundContext) -> Payload:
    """Return the choice. Its `id` is the partner's `msgid`, empty without one. Source: facts 6.4."""
    title, reply = event.text("title"), context.reply
    number = None if reply is None else reply.number
    payload: Payload = {
        "title": title,
        "id": reply.sender_id if reply else "",
        "reply": title if number is None else f"{title} {number}",
    }
    if reply is not None and reply.postback_text is not None:
        payload["postbackText"] = reply.postback_text
    return payload


def _medium(event: InboundEvent, context: InboundContext) -> Payload:
    payload: Payload = {}
    if event.text("caption"):
        payload["caption"] = event.text("caption")
    if event.kind == "document":
        payload["name"] = event.text("filename")
    if context.media is not None:
        payload["url"] = context.media.url
    payload["contentType"] = event.text("mime_type")
    if context.media is not None:
        payload["urlExpiry"] = context.media.until_ms
    return payload


def _location(event: InboundEvent, _: InboundContext) -> Payload:
    """Return the location; degrees are texts, as in the sample. Source: facts 6.4."""
    location = object_of(event.content)
    payload: Payload = {name: str(location.get(name, "")) for name in ("longitude", "latitude")}
    payload |= {name: location[name] for name in ("name", "address") if location.get(name)}
    return payload


def _contacts(event: InboundEvent, _: InboundContext) -> Payload:
    cards = [object_of(card) for card in list_of(event.content)]
    return {"contacts": [_card(card) for card in cards]}


def _card(card: Payload) -> Payload:
    """Return a contact card with every member that readers may expect, and others that it has.

    Source: facts 6.4; ledger row 47.
    """
    addresses = [object_of(item) for item in list_of(card.get("addresses"))]
    return {
        "addresses": [
            {**_select_members(address, "city", "country"), "countryCode": address.get("country_code", "")}
            | _select_members(address, "state", "street", "type", "zip")
            for address in addresses
        ],
        **_present_members(card, "birthday"),
        "emails": [_select_members(object_of(item), "email", "type") for item in list_of(card.get("emails"))],
        "ims": list_of(card.get("ims")),
        "name": _card_part(card, "name"),
        "org": _card_part(card, "org"),
        "phones": [
            _select_members(object_of(item), "phone", "type") | _present_members(object_of(item), "wa_id")
            for item in list_of(card.get("phones"))
        ],
        "urls": [_select_members(object_of(item), "url", "type") for item in list_of(card.get("urls"))],
    }


def _card_part(card: Payload, name: str) -> Payload:
    members, more = _CARD_PARTS[name]
    part = object_of(card.get(name))
    return _select_members(part, *members) | _present_members(part, *more)


def _reaction(event: InboundEvent, context: InboundContext) -> Payload:
    """Return the reaction; without an emoji it was removed."""
    payload: Payload = {"emoji": event.text("emoji"), "id": event.text("message_id")}
    if context.reply_target_id is not None:
        payload["gsId"] = context.reply_target_id
    return payload


def _order_context(event: InboundEvent) -> Payload:
    """Return the products of an order. Source: ledger row 49."""
    items = [object_of(item) for item in list_of(object_of(event.content).get("product_items"))]
    shown_items = [{name: item.get(given) for name, given in _ORDER_ITEM_MEMBERS.items()} for item in items]
    return {"catalog": {"id": event.text("catalog_id"), "order": {"items": shown_items}}}


def _select_members(value: Payload, *names: str) -> Payload:
    return {name: value.get(name, "") for name in names}


def _present_members(value: Payload, *names: str) -> Payload:
    return {name: value[name] for name in names if value.get(name)}


_CARD_PARTS: Final = {  # members that a contact card always has, and others. Source: facts 6.4; ledger row 47
    "name": (("first_name", "formatted_name", "last_name"), ("middle_name", "prefix", "suffix")),
    "org": (("company",), ("department", "title")),
}
_ORDER_ITEM_MEMBERS: Final = {  # with the operator's names. Source: ledger row 49; operator's facts 7.4
    "id": "product_retailer_id",
    "currency": "currency",
    "amount": "item_price",
    "quantity": "quantity",
}
V2_INBOUND_PAYLOADS: Final[Mapping[str, Callable[[InboundEvent, InboundContext], Payload] | None]] = {
    # by the operator's kind; None: there is none. Source: facts 6.4; ledger rows 49, 50; a flow's reply, and other
    # kinds not listed, have no format in version 2
    "text": _text,
    "button": _tap,
    "button_reply": _choice,
    "list_reply": lambda event, context: _choice(event, context) | {"description": event.text("description")},
    "image": _medium,
    "video": _medium,
    "audio": _medium,
    "document": _medium,
    "sticker": _medium,
    "location": _location,
    "contacts": _contacts,
    "reaction": _reaction,
    "order": lambda event, _: {"text": event.text("text")},
    "request_welcome": None,
}


AccountValue = dict[str, Any]


def account_body(app: App, at_ms: int, event: AccountEvent) -> bytes | None:
    """Return the body of an account event; None where version 2 has no format for it.

    Source: facts 6.6, 6.8.
    """
    make_payload = V2_ACCOUNT_PAYLOADS.get(event.field)
    inner = None if make_payload is None else make_payload(event.members, at_ms)
    if inner is None:
        return None
    kind = ACCOUNT_KINDS[event.field]
    if event.field == "user_preferences" and app.preferences.user_ids:
        inner = _add_user_ids(inner, event.members)
    return account_envelope(app, at_ms, kind.type, {"type": kind.inner_type, "payload": inner})


def live_body(app: App, at_ms: int, namespace: str) -> bytes:
    """Return the body for an app that is live now; `waId` is the business account. Source: ledger row 30."""
    inner = {"status": "live", "waId": app.business_account_id, "namespace": namespace}
    return account_envelope(app, at_ms, "onboarding-event", {"type": "docker-status-event", "payload": inner})


def _review(value: AccountValue, at_ms: int) -> AccountValue:
    """Return the decision in lower case, and its day. Source: ledger row 20."""
    return {"status": _member_text(value, "decision").lower(), "actionDate": _date(at_ms)}


def _date(at_ms: int) -> str:
    """Return the day of a time by UTC, such as `January 31,2021`. Source: ledger row 20."""
    day = datetime.fromtimestamp(at_ms / 1000, UTC)
    return f"{MONTHS[day.month - 1]} {day.day},{day.year}"


def _status(value: AccountValue, at_ms: int) -> AccountValue | None:
    """Return the status of the account itself, with the names of version 2."""
    event = _member_text(value, "event").upper()
    ban = object_of(value.get("ban_info"))
    state = _member_text(ban, "waba_ban_state").upper()
    match event:
        case "ACCOUNT_VIOLATION":
            kind = _member_text(object_of(value.get("violation_info")), "violation_type")
            return {"status": "ACCOUNT_VIOLATION", "violation_type": kind}
        case "DISABLED_UPDATE":
            status = BAN_STATES.get(state, "DISABLE")
            return {"status": status, "actionDate": _member_text(ban, "waba_ban_date") or _date(at_ms)}
        case "VERIFIED_ACCOUNT" | "ACCOUNT_VERIFIED":
            return {"status": "ACCOUNT_VERIFIED"}
        case "ACCOUNT_RESTRICTION" | "ACCOUNT_RESTRICTED":
            restrictions = [object_of(item) for item in list_of(value.get("restriction_info"))]
            shown_restrictions = [
                {"restrictionType": _member_text(item, "restriction_type"), "expiration": item.get("expiration")}
                for item in restrictions
            ]
            return {"status": "ACCOUNT_RESTRICTED", "restrictionInfo": shown_restrictions}
        case "ACCOUNT_DELETED":
            return {"status": "ACCOUNT_DISABLE", "actionDate": _date(at_ms)}
        case "AD_ACCOUNT_LINKED":
            linked = object_of(value.get("waba_info"))
            names = ("waba_id", "owner_business_id", "ad_account_id")
            return {"status": event, **{name: _member_text(linked, name) for name in names}}
        case _:
            return None


def _display_name(value: AccountValue, _: int) -> AccountValue:
    reason = _member_text(value, "rejection_reason")
    rejected = {"rejectedReason": reason} if reason and reason.upper() != "NONE" else {}
    return {"status": _member_text(value, "decision").lower(), **rejected}


def _tier(value: AccountValue, _: int) -> AccountValue:
    return {
        "event": _member_text(value, "event").lower(),
        "oldLimit": _member_text(value, "old_limit"),
        "currentLimit": _member_text(value, "current_limit"),
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
    items = [object_of(item) for item in list_of(value.get("user_preferences"))]
    names = ("detail", "category", "value", "timestamp")
    shown = [
        {"wa_id": item.get("wa_id") or item.get("user_id"), **{name: item.get(name) for name in names}}
        for item in items
    ]
    return {"user_preferences": shown}


def _add_user_ids(inner: AccountValue, value: AccountValue) -> AccountValue:
    """Return the payload of preferences with the user ids of the same items. Source: public page "BSUID"."""
    items = [object_of(item) for item in list_of(value.get("user_preferences"))]
    shown = [
        shown_item | {name: item[given] for name, given in _USER_ID_MEMBERS.items() if item.get(given)}
        for shown_item, item in zip(inner["user_preferences"], items, strict=True)
    ]
    return {"user_preferences": shown}


def _first_present(value: AccountValue, *names: str) -> Any:
    return next((value[name] for name in names if name in value), None)


def _member_text(value: AccountValue, name: str) -> str:
    member = value.get(name)
    return "" if member is None else str(member)


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
V2_ACCOUNT_PAYLOADS: Final[Mapping[str, Callable[[AccountValue, int], AccountValue | None]]] = {
    # by the operator's field; without a payload version 2 has no format for the event. Source: facts 6.6, 6.8
    "account_review_update": _review,
    "account_update": _status,
    "phone_number_name_update": _display_name,
    "phone_number_quality_update": _tier,
    "business_capability_update": _capability,
    "user_preferences": _preferences,
}
