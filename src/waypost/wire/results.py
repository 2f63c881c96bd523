"""The short answers."""

from typing import Any

from waypost.domain.phone_number import group_of


def submitted(message_id: str) -> bytes:
    """What a taken message answers. Written by hand: our ids need no escaping, and this is the busiest answer.

    Source: spec, "Message submission result".
    """
    return b'{"status":"submitted","messageId":"' + message_id.encode() + b'"}'


# fmt: off
_SHOWN = {  # before the operator has a message, it is submitted; Source: facts 5
    "accepted":  "submitted",
    "uncertain": "submitted",
}
# fmt: on


def message_record(row: Any, is_template: bool) -> dict[str, Any]:
    """Where a message stands; what is not known yet is left out."""
    shown: dict[str, Any] = {
        "id": row.id,
        "appId": row.app_id,
        "source": row.source,
        "destination": group_of(row.destination) or row.destination,
        "type": "template" if is_template else "session",
        "status": _SHOWN.get(row.state, row.state),
        "createdOn": row.accepted_on_ms,
        "modifiedOn": row.changed_on_ms,
    }
    optional = (("whatsappMessageId", row.operator_message_id), ("code", row.code), ("reason", row.reason))
    return shown | {name: value for name, value in optional if value is not None}


def received_record(row: Any, app_phone_number: str) -> dict[str, Any]:
    """A message that a recipient wrote; `source` is missing where nobody remembers who that was.

    Source: the path is facts 9.1's, the shape our own, beside that of sent messages.
    """
    shown: dict[str, Any] = {
        "id": row.operator_message_id,
        "appId": row.app_id,
        "destination": app_phone_number,
        "type": "message",
        "status": "received",
        "createdOn": row.received_on_ms,
        "modifiedOn": row.received_on_ms,
        "whatsappMessageId": row.operator_message_id,
    }
    source = row.phone_number or row.user_id
    return shown | ({"source": source} if source else {})
