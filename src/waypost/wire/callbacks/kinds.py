"""The table of callback kinds: the mode of each, and its format in each version."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class CallbackKind:
    """A row of the table.

    Attributes:
        mode: the mode of subscriptions that get this kind.
        type: version 2: the envelope's `type`; empty where version 2 has none.
        inner_type: version 2: `payload.type`.
        field: version 3: the change's `field`; empty where version 3 has none.
        value_content: version 3: the content of the value.
        occasion: when it is sent, in a sentence.
    """

    mode: str
    type: str
    inner_type: str
    field: str
    value_content: str
    occasion: str
    source: str


def _passthrough_kind(mode: str, field: str, occasion: str, source: str) -> CallbackKind:
    """Return a row for a field that version 3 passes on unchanged, and version 2 does not have."""
    return CallbackKind(mode, "", "", field, "as received", occasion, source)


STATUS_KINDS: Final = {  # by the state of a message. Source: facts 4.4, 6.2, 7
    "enqueued": CallbackKind(
        "ENQUEUED",
        type="message-event",
        inner_type="enqueued",
        field="messages",
        value_content="statuses",
        occasion="The operator accepted the message.",
        source="facts 6.2, 7",
    ),
    "sent": CallbackKind(
        "SENT",
        type="message-event",
        inner_type="sent",
        field="messages",
        value_content="statuses",
        occasion="The operator sent it to the recipient.",
        source="facts 6.2, 7",
    ),
    "delivered": CallbackKind(
        "DELIVERED",
        type="message-event",
        inner_type="delivered",
        field="messages",
        value_content="statuses",
        occasion="It is on the recipient's device.",
        source="facts 6.2, 7",
    ),
    "read": CallbackKind(
        "READ",
        type="message-event",
        inner_type="read",
        field="messages",
        value_content="statuses",
        occasion="The recipient read or played it.",
        source="facts 6.2, 7",
    ),
    "deleted": CallbackKind(
        "DELETED",
        type="message-event",
        inner_type="deleted",
        field="messages",
        value_content="statuses",
        occasion="The recipient deleted it.",
        source="facts 6.2, 7",
    ),
    "failed": CallbackKind(
        "FAILED",
        type="message-event",
        inner_type="failed",
        field="messages",
        value_content="statuses",
        occasion="It failed, or its outcome is unknown (code 4002).",
        source="facts 6.2, 7, 12",
    ),
}
MISMATCH: Final = CallbackKind(
    "OTHERS",
    type="message-event",
    inner_type="mismatch",
    field="",
    value_content="",
    occasion="The recipient has another number at the operator.",
    source="facts 4.4, 6.2",
)
BILLING: Final = CallbackKind(
    "BILLING",
    type="billing-event",
    inner_type="",
    field="billing-event",
    value_content="billing",
    occasion="The price of a message, once per message.",
    source="facts 6.7, 7",
)
CALL_BILLING: Final = CallbackKind(
    "BILLING",
    type="",
    inner_type="",
    field="billing-event",
    value_content="billing",
    occasion="The price of a call that has ended: one for the operator, one for this service, which charges nothing.",
    source="ledger row 68",
)
PAYMENT: Final = CallbackKind(
    "PAYMENTS",
    type="",
    inner_type="",
    field="messages",
    value_content="statuses",
    occasion="The status of a payment that a message requested has changed.",
    source="facts 4.4",
)
OTHER_STATUS: Final = CallbackKind(
    "OTHERS",
    type="",
    inner_type="",
    field="messages",
    value_content="statuses",
    occasion="The operator reports a status that has no message state here, such as `warning`.",
    source="facts 4.4; operator's facts 7.3",
)
GROUP_STATUS: Final = CallbackKind(
    "GROUP_MESSAGING_EVENTS",
    type="",
    inner_type="",
    field="messages",
    value_content="statuses",
    occasion="The status of a message to a group has changed, for one member or for all.",
    source="ledger row 77",
)
INBOUND_KINDS: Final = {  # by the operator's kind. Source: facts 4.4, 6.4, 7
    "text": CallbackKind(
        "MESSAGE",
        type="message",
        inner_type="text",
        field="messages",
        value_content="messages",
        occasion="A recipient sent a text.",
        source="spec, Events; facts 6.4, 7",
    ),
    "button": CallbackKind(
        "MESSAGE",
        type="message",
        inner_type="quick_reply",
        field="messages",
        value_content="messages",
        occasion="A template's quick reply was tapped.",
        source="spec, Events; facts 6.4, 7",
    ),
    "button_reply": CallbackKind(
        "MESSAGE",
        type="message",
        inner_type="button_reply",
        field="messages",
        value_content="messages",
        occasion="A choice of a session quick reply was tapped.",
        source="facts 6.4, 7",
    ),
    "list_reply": CallbackKind(
        "MESSAGE",
        type="message",
        inner_type="list_reply",
        field="messages",
        value_content="messages",
        occasion="A row of a list was chosen.",
        source="facts 6.4, 7",
    ),
    "image": CallbackKind(
        "MESSAGE",
        type="message",
        inner_type="image",
        field="messages",
        value_content="messages",
        occasion="An image was received.",
        source="facts 6.4, 7",
    ),
    "video": CallbackKind(
        "MESSAGE",
        type="message",
        inner_type="video",
        field="messages",
        value_content="messages",
        occasion="A video was received.",
        source="facts 6.4, 7",
    ),
    "audio": CallbackKind(
        "MESSAGE",
        type="message",
        inner_type="audio",
        field="messages",
        value_content="messages",
        occasion="A recording or a voice message was received.",
        source="facts 6.4, 7",
    ),
    "document": CallbackKind(
        "MESSAGE",
        type="message",
        inner_type="file",
        field="messages",
        value_content="messages",
        occasion="A document was received.",
        source="facts 6.4, 7",
    ),
    "sticker": CallbackKind(
        "MESSAGE",
        type="message",
        inner_type="sticker",
        field="messages",
        value_content="messages",
        occasion="A sticker was received.",
        source="facts 6.4, 7",
    ),
    "location": CallbackKind(
        "MESSAGE",
        type="message",
        inner_type="location",
        field="messages",
        value_content="messages",
        occasion="A location was received.",
        source="facts 6.4, 7",
    ),
    "contacts": CallbackKind(
        "MESSAGE",
        type="message",
        inner_type="contact",
        field="messages",
        value_content="messages",
        occasion="Contact cards were received.",
        source="facts 6.4, 7",
    ),
    "reaction": CallbackKind(
        "MESSAGE",
        type="message",
        inner_type="reaction",
        field="messages",
        value_content="messages",
        occasion="A recipient reacted, or removed the reaction.",
        source="facts 6.4, 7",
    ),
    "order": CallbackKind(
        "MESSAGE",
        type="order",
        inner_type="text",
        field="messages",
        value_content="messages",
        occasion="An order of products was received.",
        source="ledger row 49; facts 7",
    ),
    "request_welcome": CallbackKind(
        "MESSAGE",
        type="message",
        inner_type="request_welcome",
        field="messages",
        value_content="messages",
        occasion="A user opened a chat with the number for the first time; a subscription with `OTHERS` gets it too.",
        source="ledger row 50",
    ),
    "nfm_reply": CallbackKind(
        "FLOWS_MESSAGE",
        type="",
        inner_type="",
        field="messages",
        value_content="messages",
        occasion="A completed flow or address form was received.",
        source="facts 4.4, 7, 17",
    ),
    "system": CallbackKind(
        "OTHERS",
        type="message-event",
        inner_type="mismatch",
        field="messages",
        value_content="messages",
        occasion="A recipient has changed the number.",
        source="facts 4.4, 6.2",
    ),
}
OTHER_INBOUND: Final = CallbackKind(
    "OTHERS",
    type="",
    inner_type="",
    field="messages",
    value_content="messages",
    occasion=(
        "A message of a type without a format in version 2 was received, such as `unsupported`, or of an unknown type."
    ),
    source="facts 4.4",
)
GROUP_INBOUND: Final = CallbackKind(
    "GROUP_MESSAGING_EVENTS",
    type="",
    inner_type="",
    field="messages",
    value_content="messages, with `group_id`",
    occasion="A message was sent to a group; a subscription with `MESSAGE` gets it too.",
    source="ledger 1.4, row 76",
)
OTHER_MESSAGES_CONTENT: Final = CallbackKind(
    "OTHERS",
    type="",
    inner_type="",
    field="messages",
    value_content="as received",
    occasion="The field `messages` has other content: `user_actions` (clicks), `errors`, or an unknown member.",
    source="ledger row 62; operator's facts 7.2",
)
TEMPLATE_KINDS: Final = {  # by the operator's field. Source: facts 4.4, 6.5
    "message_template_status_update": CallbackKind(
        "TEMPLATE",
        type="template-event",
        inner_type="status-update",
        field="message_template_status_update",
        value_content="as received",
        occasion="A template was reviewed, paused, disabled or deleted.",
        source="facts 6.5",
    ),
    "message_template_quality_update": CallbackKind(
        "TEMPLATE",
        type="template-event",
        inner_type="quality-update",
        field="message_template_quality_update",
        value_content="as received",
        occasion="A template's quality has changed.",
        source="facts 6.5",
    ),
    "template_category_update": CallbackKind(
        "TEMPLATE",
        type="template-event",
        inner_type="category-update",
        field="template_category_update",
        value_content="as received",
        occasion="A template's category will change, or has.",
        source="facts 6.5",
    ),
    "message_template_components_update": CallbackKind(
        "TEMPLATE",
        type="",
        inner_type="",
        field="message_template_components_update",
        value_content="as received",
        occasion="A template was edited.",
        source="operator's facts 3.3",
    ),
}
ACCOUNT_KINDS: Final = {  # by the operator's field. Source: facts 4.4, 6.6, 6.8
    "account_review_update": CallbackKind(
        "ACCOUNT",
        type="account-event",
        inner_type="review-event",
        field="account_review_update",
        value_content="as received",
        occasion="The account was reviewed.",
        source="facts 6.6",
    ),
    "account_update": CallbackKind(
        "ACCOUNT",
        type="account-event",
        inner_type="status-event",
        field="account_update",
        value_content="as received",
        occasion="The account was verified, restricted, disabled, reinstated or linked.",
        source="facts 6.6",
    ),
    "phone_number_name_update": CallbackKind(
        "ACCOUNT",
        type="account-event",
        inner_type="pndn-event",
        field="phone_number_name_update",
        value_content="as received",
        occasion="The display name was reviewed.",
        source="facts 6.6",
    ),
    "phone_number_quality_update": CallbackKind(
        "ACCOUNT",
        type="account-event",
        inner_type="tier-event",
        field="phone_number_quality_update",
        value_content="as received",
        occasion="The number's messaging limit has changed.",
        source="facts 6.6",
    ),
    "business_capability_update": CallbackKind(
        "ACCOUNT",
        type="account-event",
        inner_type="capability-event",
        field="business_capability_update",
        value_content="as received",
        occasion="The limits of the business have changed.",
        source="facts 6.6",
    ),
    "account_alerts": CallbackKind(
        "ACCOUNT",
        type="",
        inner_type="",
        field="account_alerts",
        value_content="as received",
        occasion="The operator sent a warning.",
        source="operator's facts 7.2",
    ),
    "user_preferences": CallbackKind(
        "OTHERS",
        type="preference-event",
        inner_type="user_preferences",
        field="user_preferences",
        value_content="as received",
        occasion="A recipient stops or resumes marketing messages.",
        source="facts 6.8",
    ),
    "flows": CallbackKind(
        "OTHERS",
        type="",
        inner_type="",
        field="flows",
        value_content="as received",
        occasion="A flow's state or health has changed.",
        source="operator's facts 7.2; mode ours",
    ),
}
# Fields that are passed on unchanged, by the operator's field. Source: the operator's pages "Webhooks overview" and
# "Override webhooks", and the fields that its dashboard lists (May 2026); modes: facts 4.4, ledger 1.4
PASSTHROUGH_KINDS: Final = {
    "template_correct_category_detection": _passthrough_kind(
        "TEMPLATE",
        "template_correct_category_detection",
        "The operator suggests another category for a template.",
        "mode ours",
    ),
    "account_settings_update": _passthrough_kind(
        "ACCOUNT", "account_settings_update", "A setting of a number, such as calling, has changed.", "mode ours"
    ),
    "business_status_update": _passthrough_kind(
        "ACCOUNT",
        "business_status_update",
        "The status of the business portfolio has changed, such as verified or disabled.",
        "mode ours",
    ),
    "business_username_updates": _passthrough_kind(
        "ACCOUNT", "business_username_updates", "A number's user name was reserved, approved or removed.", "mode ours"
    ),
    "security": _passthrough_kind(
        "ACCOUNT", "security", "The PIN of a number was set, changed or switched off.", "mode ours"
    ),
    "partner_solutions": _passthrough_kind(
        "ACCOUNT",
        "partner_solutions",
        "A solution shared with other partners was created or changed.",
        "mode ours; the entry may name a portfolio, then no app is concerned",
    ),
    "payment_configuration_update": _passthrough_kind(
        "PAYMENTS",
        "payment_configuration_update",
        "A payment configuration was connected, or needs an action.",
        "mode ours",
    ),
    "calls": _passthrough_kind("VOICE", "calls", "A call was started, accepted or ended.", "ledger 1.4, row 78"),
    "group_lifecycle_update": _passthrough_kind(
        "GROUP_ACCOUNT_EVENTS", "group_lifecycle_update", "A group was created or deleted.", "ledger 1.4, row 74"
    ),
    "group_participants_update": _passthrough_kind(
        "GROUP_ACCOUNT_EVENTS",
        "group_participants_update",
        "A participant joined or left a group, or requested to join.",
        "ledger 1.4, row 75",
    ),
    "group_settings_update": _passthrough_kind(
        "GROUP_ACCOUNT_EVENTS",
        "group_settings_update",
        "A group's subject, description or picture has changed.",
        "ledger 1.4",
    ),
    "group_status_update": _passthrough_kind(
        "GROUP_ACCOUNT_EVENTS", "group_status_update", "A group was suspended, or is active again.", "ledger 1.4"
    ),
    "smb_message_echoes": _passthrough_kind(
        "COEXISTENCE",
        "smb_message_echoes",
        "The business sent a message with its own application.",
        "ledger 1.4, row 73",
    ),
    "smb_app_state_sync": _passthrough_kind(
        "COEXISTENCE",
        "smb_app_state_sync",
        "A contact of the business's own application was added or removed.",
        "ledger 1.4, row 72; mode ours",
    ),
    "history": _passthrough_kind(
        "COEXISTENCE", "history", "Older messages of the business's own application.", "ledger 1.4, row 71; mode ours"
    ),
    "message_echoes": _passthrough_kind(
        "OTHERS",
        "message_echoes",
        "Another application sent a message from the number, such as an assistant of the operator.",
        "mode ours",
    ),
    "standby": _passthrough_kind(
        "OTHERS", "standby", "An event of a conversation that another application controls.", "mode ours"
    ),
    "messaging_handovers": _passthrough_kind(
        "OTHERS", "messaging_handovers", "Another application takes over a conversation, or returns it.", "mode ours"
    ),
    "automatic_events": _passthrough_kind(
        "OTHERS", "automatic_events", "The operator has detected a purchase or a lead in a conversation.", "mode ours"
    ),
    "tracking_events": _passthrough_kind(
        "OTHERS", "tracking_events", "The operator reports clicks and views for measurement.", "mode ours"
    ),
    "consumer_profile": _passthrough_kind(
        "OTHERS", "consumer_profile", "A recipient's profile has changed.", "mode ours"
    ),
    "user_id_update": _passthrough_kind(
        "OTHERS", "user_id_update", "A recipient's business-scoped id has changed.", "mode ours"
    ),
}
OTHER_CHANGE: Final = CallbackKind(
    "OTHERS",
    type="",
    inner_type="",
    field="any other",
    value_content="as received",
    occasion="The operator sends a field that this version does not know.",
    source="ledger 1.4, `OTHERS`",
)
USER_KINDS: Final = {  # by preference. Source: facts 6.3
    "stop": CallbackKind(
        "OTHERS",
        type="user-event",
        inner_type="opted-out",
        field="",
        value_content="",
        occasion="A user opts out: through the API, or by stopping marketing messages.",
        source="facts 6.3, 6.8; pairing ours",
    ),
    "resume": CallbackKind(
        "OTHERS",
        type="user-event",
        inner_type="opted-in",
        field="",
        value_content="",
        occasion="A user opts in: through the API, or by resuming marketing messages.",
        source="facts 6.3, 6.8; pairing ours",
    ),
}
PAUSED: Final = CallbackKind(
    "ACCOUNT",
    type="account-event",
    inner_type="subscription-paused",
    field="",
    value_content="",
    occasion="A subscription was paused, because its callbacks were failing.",
    source="ours; decision 0042",
)
LIVE: Final = CallbackKind(
    "ACCOUNT",
    type="onboarding-event",
    inner_type="docker-status-event",
    field="account-event",
    value_content="status-event",
    occasion="The administrator has made a sandbox app live.",
    source="ledger rows 30, 65",
)
PROXY: Final = CallbackKind(
    "OTHERS",
    type="user-event",
    inner_type="sandbox-start",
    field="",
    value_content="",
    occasion="A user has written `Proxy` and the name of a sandbox app to its number.",
    source="ledger row 12; facts 6.3",
)
PING: Final = CallbackKind(
    "",
    type="user-event",
    inner_type="sandbox-start",
    field="messages",
    value_content="statuses, `set-callback`",
    occasion="A URL is registered or changed; sent to that URL only.",
    source="facts 4.5, 6.3",
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
