"""The events that `waypost trigger` causes: a call of the simulator's control API for each."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from waypost.wire.callbacks.kinds import ACCOUNT_KINDS, PASSTHROUGH_KINDS, TEMPLATE_KINDS

_PHONE: Final = "/control/phones/{destination}"
_MESSAGES: Final = f"{_PHONE}/messages"
_STATUSES: Final = "/control/statuses"
_WEBHOOKS: Final = "/control/accounts/{waba_id}/webhooks"
_TEMPLATES: Final = "/control/templates/{template}"
_FROM_PHONE: Final = {"to": "{source}"}
_METADATA: Final = {"display_phone_number": "{source}", "phone_number_id": "{phone_number_id}"}
_PNG: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
_WORDS: Final = "SGVsbG8="
_QUICK_REPLIES: Final = {
    "type": "quick_reply",
    "msgid": "trigger",
    "content": {"type": "text", "header": "Delivery", "text": "Shall we bring it today?", "caption": ""},
    "options": [{"type": "text", "title": "Yes", "postbackText": "yes"}, {"type": "text", "title": "No"}],
}
_LIST: Final = {
    "type": "list",
    "title": "Delivery",
    "body": "When?",
    "msgid": "trigger",
    "globalButtons": [{"type": "text", "title": "Choose"}],
    "items": [
        {"title": "Days", "subtitle": "Days", "options": [{"type": "text", "title": "Today", "postbackText": "today"}]}
    ],
}
_WAIT_MS: Final = 5000


@dataclass(frozen=True, slots=True)
class TriggerEvent:
    """One event."""

    occasion: str  # when it happens, for people
    path: str = ""  # of a POST to the control API; empty: the message that is sent first causes it
    # of the call. `{name}` stands for a variable: `message` and `template` are found or sent first.
    body: Mapping[str, Any] = field(default_factory=dict[str, Any])
    # the session message that is sent first; None: none, or a template if a message is needed
    sends: Mapping[str, Any] | None = None
    needs_message: bool = False  # whether a message is sent first unless `--message` names one
    before_delivery: bool = False  # whether the phone is offline meanwhile, so that the message does not arrive before


def _status(status: str, occasion: str, *, before_delivery: bool = False, **more: Any) -> TriggerEvent:
    body = {"message_id": "{message}", "status": status, **more}
    return TriggerEvent(occasion, _STATUSES, body, needs_message=True, before_delivery=before_delivery)


def _tap(occasion: str, sends: Mapping[str, Any] | None = None) -> TriggerEvent:
    body = {"index": 0, "wait_ms": _WAIT_MS} | ({"message_id": "{message}"} if sends else {})
    return TriggerEvent(occasion, f"{_PHONE}/tap", body, sends=sends, needs_message=True)


def _inbound(occasion: str, **content: Any) -> TriggerEvent:
    return TriggerEvent(occasion, _MESSAGES, {**_FROM_PHONE, **content})


def _media(occasion: str, kind: str, mime_type: str, content: str, **more: Any) -> TriggerEvent:
    return _inbound(occasion, type=kind, media={"content": content, "mime_type": mime_type, **more})


def _webhook(field_name: str, occasion: str, **value: Any) -> TriggerEvent:
    return TriggerEvent(occasion, _WEBHOOKS, {"field": field_name, "value": value})


def _messages_webhook(occasion: str, **value: Any) -> TriggerEvent:
    return _webhook("messages", occasion, messaging_product="whatsapp", metadata=_METADATA, **value)


EVENTS: Final[Mapping[str, TriggerEvent]] = {  # Source: docs/reference/callbacks.md; facts 4.4, 6.2 to 6.8
    "enqueued": TriggerEvent("The operator accepts a message.", needs_message=True),
    "sent": _status("sent", "The operator sends a message."),
    "delivered": _status("delivered", "A message is on the recipient's device."),
    "read": _status("read", "The recipient reads a message."),
    "deleted": _status("deleted", "The recipient deletes a message."),
    "failed": _status(
        "failed", "A message fails; --set code=131026 chooses the error.", before_delivery=True, code=131026
    ),
    "warning": _status("warning", "The operator reports a status without a message state here."),
    "billing-event": TriggerEvent("The price of a message.", needs_message=True),
    "text": _inbound("The recipient sends a text.", type="text", text="Hello"),
    "quick_reply": _tap("The recipient taps a quick reply of a template."),
    "button_reply": _tap("The recipient taps a choice of a session message.", _QUICK_REPLIES),
    "list_reply": _tap("The recipient chooses a row of a list.", _LIST),
    "image": _media("The recipient sends an image.", "image", "image/png", _PNG, caption="A picture"),
    "video": _media("The recipient sends a video.", "video", "video/mp4", _WORDS),
    "audio": _media("The recipient sends a recording.", "audio", "audio/ogg", _WORDS, voice=True),
    "file": _media("The recipient sends a document.", "document", "application/pdf", _WORDS, file_name="plan.pdf"),
    "sticker": _media("The recipient sends a sticker.", "sticker", "image/webp", _WORDS),
    "location": _inbound(
        "The recipient sends a location.",
        type="location",
        location={"latitude": 52.52, "longitude": 13.4, "name": "Acme"},
    ),
    "contact": _inbound(
        "The recipient sends contact cards.",
        type="contacts",
        contacts=[
            {"name": {"formatted_name": "Ben Bell", "first_name": "Ben"}, "phones": [{"phone": "+4915112345678"}]}
        ],
    ),
    "reaction": TriggerEvent(
        "The recipient reacts to a message.",
        path=_MESSAGES,
        body={
            **_FROM_PHONE,
            "type": "reaction",
            "reaction": {"message_id": "{message}", "emoji": "\N{THUMBS UP SIGN}"},
        },
        needs_message=True,
    ),
    "order": _inbound(
        "The recipient orders products.",
        type="order",
        order={
            "catalog_id": "1",
            "text": "Please",
            "product_items": [{"product_retailer_id": "shoe-1", "quantity": 1, "item_price": 20, "currency": "EUR"}],
        },
    ),
    "unsupported": _inbound(
        "The recipient sends a message that the operator does not pass on.",
        type="unsupported",
        unsupported={"type": "poll_creation"},
    ),
    "request_welcome": _messages_webhook(
        "A user opens a chat with the number for the first time.",
        contacts=[{"wa_id": "{destination}", "profile": {"name": "Ann"}}],
        messages=[{"from": "{destination}", "id": "wamid.{unique}", "timestamp": "{now_s}", "type": "request_welcome"}],
    ),
    "mismatch": _messages_webhook(
        "The recipient has changed the number.",
        messages=[
            {
                "from": "{destination}",
                "id": "wamid.{unique}",
                "timestamp": "{now_s}",
                "type": "system",
                "system": {"body": "Ann changed the number", "wa_id": "15550009999", "type": "user_changed_number"},
            }
        ],
    ),
    "user_actions": _messages_webhook(
        "The recipient follows a link of a marketing message.",
        user_actions=[{"action_type": "marketing_messages_link_click", "timestamp": "{now_s}"}],
    ),
    "opted-out": TriggerEvent(
        "The recipient stops marketing messages.", path=f"{_PHONE}/marketing", body={**_FROM_PHONE, "wants": False}
    ),
    "opted-in": TriggerEvent(
        "The recipient resumes marketing messages.", path=f"{_PHONE}/marketing", body={**_FROM_PHONE, "wants": True}
    ),
    "status-update": TriggerEvent(
        "A template is flagged; its other states: message_template_status_update.", f"{_TEMPLATES}/flag"
    ),
    "quality-update": TriggerEvent("A template's quality changes.", f"{_TEMPLATES}/quality", {"score": "YELLOW"}),
    "category-update": TriggerEvent(
        "A template's category will change.",
        path=f"{_TEMPLATES}/category",
        body={"category": "MARKETING", "announced": True},
    ),
    "review-event": _webhook("account_review_update", "The account is reviewed.", decision="APPROVED"),
    "status-event": _webhook("account_update", "The account is verified.", event="VERIFIED_ACCOUNT"),
    "pndn-event": _webhook(
        "phone_number_name_update",
        "The display name is reviewed.",
        display_phone_number="{source}",
        decision="APPROVED",
        requested_verified_name="Acme",
    ),
    "tier-event": _webhook(
        "phone_number_quality_update",
        "The number's messaging limit changes.",
        display_phone_number="{source}",
        event="UPGRADE",
        old_limit="TIER_250",
        current_limit="TIER_1K",
    ),
    "capability-event": _webhook(
        "business_capability_update",
        "The limits of the business change.",
        max_daily_conversation_per_phone=1000,
        max_phone_numbers_per_business=25,
    ),
    **{  # by the operator's field, whatever its name above
        name: _webhook(name, kind.occasion, event="UPDATED", metadata=_METADATA)
        for name, kind in {**TEMPLATE_KINDS, **ACCOUNT_KINDS, **PASSTHROUGH_KINDS}.items()
    },
}
"""Events by name: that of version 2, or the operator's field, with a minimal value."""

FIELDS_OF_VERSION_2: Final = {
    name: kind.inner_type
    for name, kind in {**TEMPLATE_KINDS, **ACCOUNT_KINDS}.items()
    if kind.inner_type in EVENTS and kind.inner_type != name
}
"""The operator's fields that are listed by their name in version 2."""


def list_events() -> dict[str, dict[str, TriggerEvent]]:
    """Return the events by group and name, each under one name."""
    groups: dict[str, dict[str, TriggerEvent]] = {}
    for name, event in EVENTS.items():
        if name not in FIELDS_OF_VERSION_2:
            groups.setdefault(_group_of(name, event), {})[name] = event
    return groups


def _group_of(name: str, event: TriggerEvent) -> str:
    if event.path.startswith(_TEMPLATES) or name in TEMPLATE_KINDS:
        return "templates"
    if event.path.startswith(_PHONE) or event.body.get("field") == "messages":
        return "what the recipient does"
    if event.needs_message:
        return "states of a message"
    return "other fields of the operator" if name in PASSTHROUGH_KINDS else "the account"
