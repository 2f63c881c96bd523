"""The table of callback kinds: the mode of each, and its format in each version."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class CallbackKind:
    """A row of the table."""

    mode: str  # the mode of subscriptions that get this kind
    occasion: str  # when it is sent, in a sentence
    source: str
    type: str = ""  # version 2: the envelope's `type`; empty where version 2 has none
    inner_type: str = ""  # version 2: `payload.type`
    field: str = ""  # version 3: the change's `field`; empty where version 3 has none
    value_content: str = ""  # version 3: the content of the value


def _status(mode: str, occasion: str, source: str = "facts 6.2, 7") -> CallbackKind:
    """Return a row for a state of a message."""
    return CallbackKind(mode, occasion, source, "message-event", mode.lower(), "messages", "statuses")


def _other_status(mode: str, occasion: str, source: str) -> CallbackKind:
    """Return a row for a status that version 2 does not have."""
    return CallbackKind(mode, occasion, source, field="messages", value_content="statuses")


def _message(
    inner_type: str, occasion: str, source: str = "facts 6.4, 7", *, mode: str = "MESSAGE", type: str = "message"
) -> CallbackKind:
    """Return a row for a received message."""
    return CallbackKind(mode, occasion, source, type, inner_type, "messages", "messages")


def _change(mode: str, field: str, occasion: str, source: str, type: str = "", inner_type: str = "") -> CallbackKind:
    """Return a row for a field that version 3 passes on unchanged."""
    return CallbackKind(mode, occasion, source, type, inner_type, field, "as received")


def _index_by_field(*kinds: CallbackKind) -> dict[str, CallbackKind]:
    """Return rows by the operator's field."""
    return {kind.field: kind for kind in kinds}


STATUS_KINDS: Final = {  # by the state of a message. Source: facts 4.4, 6.2, 7
    "enqueued": _status("ENQUEUED", "The operator accepted the message."),
    "sent": _status("SENT", "The operator sent it to the recipient."),
    "delivered": _status("DELIVERED", "It is on the recipient's device."),
    "read": _status("READ", "The recipient read or played it."),
    "deleted": _status("DELETED", "The recipient deleted it."),
    "failed": _status("FAILED", "It failed, or its outcome is unknown (code 4002).", "facts 6.2, 7, 12"),
}
MISMATCH: Final = CallbackKind(
    "OTHERS",
    "The recipient has another number at the operator.",
    "facts 4.4, 6.2",
    type="message-event",
    inner_type="mismatch",
)
BILLING: Final = CallbackKind(
    "BILLING",
    "The price of a message, once per message.",
    "facts 6.7, 7",
    type="billing-event",
    field="billing-event",
    value_content="billing",
)
CALL_BILLING: Final = CallbackKind(
    "BILLING",
    "The price of a call that has ended: one for the operator, one for this service, which charges nothing.",
    "ledger row 68",
    field="billing-event",
    value_content="billing",
)
PAYMENT: Final = _other_status("PAYMENTS", "The status of a payment that a message requested has changed.", "facts 4.4")
OTHER_STATUS: Final = _other_status(
    "OTHERS",
    "The operator reports a status that has no message state here, such as `warning`.",
    "facts 4.4; operator's facts 7.3",
)
GROUP_STATUS: Final = _other_status(
    "GROUP_MESSAGING_EVENTS",
    "The status of a message to a group has changed, for one member or for all.",
    "ledger row 77",
)
INBOUND_KINDS: Final = {  # by the operator's kind. Source: facts 4.4, 6.4, 7
    "text": _message("text", "A recipient sent a text.", "spec, Events; facts 6.4, 7"),
    "button": _message("quick_reply", "A template's quick reply was tapped.", "spec, Events; facts 6.4, 7"),
    "button_reply": _message("button_reply", "A choice of a session quick reply was tapped."),
    "list_reply": _message("list_reply", "A row of a list was chosen."),
    "image": _message("image", "An image was received."),
    "video": _message("video", "A video was received."),
    "audio": _message("audio", "A recording or a voice message was received."),
    "document": _message("file", "A document was received."),
    "sticker": _message("sticker", "A sticker was received."),
    "location": _message("location", "A location was received."),
    "contacts": _message("contact", "Contact cards were received."),
    "reaction": _message("reaction", "A recipient reacted, or removed the reaction."),
    "order": _message("text", "An order of products was received.", "ledger row 49; facts 7", type="order"),
    "request_welcome": _message(
        "request_welcome",
        "A user opened a chat with the number for the first time; a subscription with `OTHERS` gets it too.",
        "ledger row 50",
    ),
    "nfm_reply": _message(
        "", "A completed flow or address form was received.", "facts 4.4, 7, 17", mode="FLOWS_MESSAGE", type=""
    ),
    "edit": _message(
        "",
        "A recipient edited a message; a subscription with `OTHERS` gets it too.",
        'public page "Coexistence Events"',
        type="",
    ),
    "revoke": _message(
        "",
        "A recipient deleted a message for everyone; a subscription with `OTHERS` gets it too.",
        'public page "Coexistence Events"',
        type="",
    ),
    "system": _message(
        "mismatch", "A recipient has changed the number.", "facts 4.4, 6.2", mode="OTHERS", type="message-event"
    ),
}
OTHER_INBOUND: Final = _message(
    "",
    "A message of a type without a format in version 2 was received, such as `unsupported`, or of an unknown type.",
    "facts 4.4",
    mode="OTHERS",
    type="",
)
GROUP_INBOUND: Final = CallbackKind(
    "GROUP_MESSAGING_EVENTS",
    "A message was sent to a group; a subscription with `MESSAGE` gets it too.",
    "ledger 1.4, row 76",
    field="messages",
    value_content="messages, with `group_id`",
)
OTHER_MESSAGES_CONTENT: Final = _change(
    "OTHERS",
    "messages",
    "The field `messages` has other content: `user_actions` (clicks), `errors`, or an unknown member.",
    "ledger row 62; operator's facts 7.2",
)
TEMPLATE_KINDS: Final = _index_by_field(  # Source: facts 4.4, 6.5
    _change(
        "TEMPLATE",
        "message_template_status_update",
        "A template was reviewed, paused, disabled or deleted.",
        "facts 6.5",
        "template-event",
        "status-update",
    ),
    _change(
        "TEMPLATE",
        "message_template_quality_update",
        "A template's quality has changed.",
        "facts 6.5",
        "template-event",
        "quality-update",
    ),
    _change(
        "TEMPLATE",
        "template_category_update",
        "A template's category will change, or has.",
        "facts 6.5",
        "template-event",
        "category-update",
    ),
    _change("TEMPLATE", "message_template_components_update", "A template was edited.", "operator's facts 3.3"),
)
ACCOUNT_KINDS: Final = _index_by_field(  # Source: facts 4.4, 6.6, 6.8
    _change(
        "ACCOUNT", "account_review_update", "The account was reviewed.", "facts 6.6", "account-event", "review-event"
    ),
    _change(
        "ACCOUNT",
        "account_update",
        "The account was verified, restricted, disabled, reinstated or linked.",
        "facts 6.6",
        "account-event",
        "status-event",
    ),
    _change(
        "ACCOUNT",
        "phone_number_name_update",
        "The display name was reviewed.",
        "facts 6.6",
        "account-event",
        "pndn-event",
    ),
    _change(
        "ACCOUNT",
        "phone_number_quality_update",
        "The number's messaging limit has changed.",
        "facts 6.6",
        "account-event",
        "tier-event",
    ),
    _change(
        "ACCOUNT",
        "business_capability_update",
        "The limits of the business have changed.",
        "facts 6.6",
        "account-event",
        "capability-event",
    ),
    _change("ACCOUNT", "account_alerts", "The operator sent a warning.", "operator's facts 7.2"),
    _change(
        "OTHERS",
        "user_preferences",
        "A recipient stops or resumes marketing messages.",
        "facts 6.8",
        "preference-event",
        "user_preferences",
    ),
    _change("OTHERS", "flows", "A flow's state or health has changed.", "operator's facts 7.2; mode ours"),
)
# Fields that version 2 does not have. Source: the operator's pages "Webhooks overview" and "Override webhooks", and the
# fields that its dashboard lists (May 2026); modes: facts 4.4, ledger 1.4
PASSTHROUGH_KINDS: Final = _index_by_field(
    _change(
        "TEMPLATE",
        "template_correct_category_detection",
        "The operator suggests another category for a template.",
        "mode ours",
    ),
    _change("ACCOUNT", "account_settings_update", "A setting of a number, such as calling, has changed.", "mode ours"),
    _change(
        "ACCOUNT",
        "business_status_update",
        "The status of the business portfolio has changed, such as verified or disabled.",
        "mode ours",
    ),
    _change(
        "ACCOUNT", "business_username_updates", "A number's user name was reserved, approved or removed.", "mode ours"
    ),
    _change("ACCOUNT", "security", "The PIN of a number was set, changed or switched off.", "mode ours"),
    _change(
        "ACCOUNT",
        "partner_solutions",
        "A solution shared with other partners was created or changed.",
        "mode ours; the entry may name a portfolio, then no app is concerned",
    ),
    _change(
        "PAYMENTS",
        "payment_configuration_update",
        "A payment configuration was connected, or needs an action.",
        "mode ours",
    ),
    _change("VOICE", "calls", "A call was started, accepted or ended.", "ledger 1.4, row 78"),
    _change("GROUP_ACCOUNT_EVENTS", "group_lifecycle_update", "A group was created or deleted.", "ledger 1.4, row 74"),
    _change(
        "GROUP_ACCOUNT_EVENTS",
        "group_participants_update",
        "A participant joined or left a group, or requested to join.",
        "ledger 1.4, row 75",
    ),
    _change(
        "GROUP_ACCOUNT_EVENTS",
        "group_settings_update",
        "A group's subject, description or picture has changed.",
        "ledger 1.4",
    ),
    _change("GROUP_ACCOUNT_EVENTS", "group_status_update", "A group was suspended, or is active again.", "ledger 1.4"),
    _change(
        "COEXISTENCE",
        "smb_message_echoes",
        "The business sent a message with its own application.",
        "ledger 1.4, row 73",
    ),
    _change(
        "COEXISTENCE",
        "smb_app_state_sync",
        "A contact of the business's own application was added or removed.",
        "ledger 1.4, row 72; mode ours",
    ),
    _change(
        "COEXISTENCE", "history", "Older messages of the business's own application.", "ledger 1.4, row 71; mode ours"
    ),
    _change(
        "OTHERS",
        "message_echoes",
        "Another application sent a message from the number, such as an assistant of the operator.",
        "mode ours",
    ),
    _change("OTHERS", "standby", "An event of a conversation that another application controls.", "mode ours"),
    _change(
        "OTHERS", "messaging_handovers", "Another application takes over a conversation, or returns it.", "mode ours"
    ),
    _change(
        "OTHERS", "automatic_events", "The operator has detected a purchase or a lead in a conversation.", "mode ours"
    ),
    _change("OTHERS", "tracking_events", "The operator reports clicks and views for measurement.", "mode ours"),
    _change("OTHERS", "consumer_profile", "A recipient's profile has changed.", "mode ours"),
    _change("OTHERS", "user_id_update", "A recipient's business-scoped id has changed.", "mode ours"),
)
OTHER_CHANGE: Final = _change(
    "OTHERS", "any other", "The operator sends a field that this version does not know.", "ledger 1.4, `OTHERS`"
)
USER_KINDS: Final = {  # by preference. Source: facts 6.3
    "stop": CallbackKind(
        "OTHERS",
        "A user opts out: through the API, or by stopping marketing messages.",
        "facts 6.3, 6.8; pairing ours",
        type="user-event",
        inner_type="opted-out",
    ),
    "resume": CallbackKind(
        "OTHERS",
        "A user opts in: through the API, or by resuming marketing messages.",
        "facts 6.3, 6.8; pairing ours",
        type="user-event",
        inner_type="opted-in",
    ),
}
PAUSED: Final = CallbackKind(
    "ACCOUNT",
    "A subscription was paused, because its callbacks were failing.",
    "ours; decision 0042",
    type="account-event",
    inner_type="subscription-paused",
)
LIVE: Final = CallbackKind(
    "ACCOUNT",
    "The administrator has made a sandbox app live.",
    "ledger rows 30, 65",
    type="onboarding-event",
    inner_type="docker-status-event",
    field="account-event",
    value_content="status-event",
)
PROXY: Final = CallbackKind(
    "OTHERS",
    "A user has written `Proxy` and the name of a sandbox app to its number.",
    "ledger row 12; facts 6.3",
    type="user-event",
    inner_type="sandbox-start",
)
PING: Final = CallbackKind(
    "",
    "A URL is registered or changed; sent to that URL only.",
    "facts 4.5, 6.3",
    type="user-event",
    inner_type="sandbox-start",
    field="messages",
    value_content="statuses, `set-callback`",
)

CALLBACK_KINDS: Final = (
    *STATUS_KINDS.values(),
    MISMATCH,
    BILLING,
    CALL_BILLING,
    PAYMENT,
    OTHER_STATUS,
    GROUP_STATUS,
    *INBOUND_KINDS.values(),
    GROUP_INBOUND,
    OTHER_INBOUND,
    OTHER_MESSAGES_CONTENT,
    *TEMPLATE_KINDS.values(),
    *ACCOUNT_KINDS.values(),
    *PASSTHROUGH_KINDS.values(),
    OTHER_CHANGE,
    *USER_KINDS.values(),
    PAUSED,
    LIVE,
    PROXY,
    PING,
)
"""Every row, in the order of the reference page."""

CHANGE_KINDS: Final = {**TEMPLATE_KINDS, **ACCOUNT_KINDS, **PASSTHROUGH_KINDS}
"""Every documented field of the operator's webhooks except `messages`, whose change has many items."""


BILLED_EVENT: Final = BILLING.type
"""The name of the event of a price."""
_NAMED_BY_INNER_TYPE: Final = ("message", "message-event", "template-event", "account-event")


def event_name(operator_name: str) -> str:
    """Return the one name of an event for people and filters: that of version 2, or the operator's if there is none.

    Args:
        operator_name: the kind of an inbound message, or the field of a change; any other name stays as it is.
    """
    kind = INBOUND_KINDS.get(operator_name) or CHANGE_KINDS.get(operator_name)
    return kind.inner_type if kind is not None and kind.type in _NAMED_BY_INNER_TYPE else operator_name


def inbound_kind(kind: str) -> CallbackKind:
    """Return the row of an inbound message."""
    return INBOUND_KINDS.get(kind, OTHER_INBOUND)


def change_kind(field: str) -> CallbackKind:
    """Return the row of a change of a template, an account or anything else; an unknown field is for `OTHERS`."""
    return CHANGE_KINDS.get(field, OTHER_CHANGE)
