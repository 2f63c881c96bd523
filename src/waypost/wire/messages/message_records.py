"""Response bodies about messages: submission results and message records."""

from typing import Any

from waypost.domain.phone_number import parse_group_id


def submission_response(message_id: str) -> bytes:
    """Return the response to an accepted message. Built by hand: ids need no escaping, and it is the busiest response.

    Source: spec, "Message submission result".
    """
    return b'{"status":"submitted","messageId":"' + message_id.encode() + b'"}'


# fmt: off
_SHOWN_STATES = {  # until the operator has a message, it is submitted; Source: facts 5
    "accepted":  "submitted",
    "uncertain": "submitted",
}
# fmt: on


def message_record(row: Any, is_template: bool) -> dict[str, Any]:
    """Return the record of a sent message; unknown members are omitted."""
    record: dict[str, Any] = {
        "id": row.id,
        "appId": row.app_id,
        "source": row.source,
        "destination": parse_group_id(row.destination) or row.destination,
        "type": "template" if is_template else "session",
        "status": _SHOWN_STATES.get(row.state, row.state),
        "createdOn": row.accepted_on_ms,
        "modifiedOn": row.changed_on_ms,
    }
    optional = (("whatsappMessageId", row.operator_message_id), ("code", row.code), ("reason", row.reason))
    return record | {name: value for name, value in optional if value is not None}


def received_record(row: Any, app_phone_number: str) -> dict[str, Any]:
    """Return the record of a received message; `source` is omitted where the sender is no longer stored.

    Source: the path is facts 9.1's, the format our own, like that of sent messages.
    """
    record: dict[str, Any] = {
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
    return record | ({"source": source} if source else {})
