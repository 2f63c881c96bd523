"""Edits and revokes of messages that a person has sent: on a customer's phone, or in a business's app.

Source: the operator's page "Onboard WhatsApp Business app users", Edit and Revoke.
"""

from typing import Any, Final

from waypost.base.clock import DAY_MS, MINUTE_MS
from waypost.base.json_values import object_of
from waypost.simulator.apis.control_error import ControlApiError
from waypost.simulator.handsets.phone_messages import PhoneMessage
from waypost.simulator.state.simulator_state import Transaction
from waypost.simulator.storage.tables.messages import MESSAGES, SimulatedMessage

EDIT_WITHIN_MS: Final = 15 * MINUTE_MS
REVOKE_WITHIN_MS: Final = 2 * DAY_MS
_CAPTION_TYPES: Final = ("image", "video", "document")


def build_edit(message: SimulatedMessage, text: str, now_ms: int) -> PhoneMessage:
    """Return the message that tells of another text or caption.

    Raises:
        ControlApiError: 409, it is older than 15 minutes, was revoked, or has neither a text nor a caption.
    """
    _check_unchanged(message, now_ms, EDIT_WITHIN_MS, "be edited within 15 minutes")
    if message.type != "text" and message.type not in _CAPTION_TYPES:
        accepted = f"a message of type text, {', '.join(_CAPTION_TYPES)}"
        raise ControlApiError("wamid", f"a message of type {message.type} cannot be edited", accepted, status=409)
    if message.type == "text":
        content: dict[str, Any] = {"body": text}
    else:
        medium = object_of(message.content.get("media"))
        content = {name: value for name, value in medium.items() if name != "kind"} | {"caption": text}
    context = {"context": {"id": message.context_id}} if message.context_id else {}
    edited = {**context, "type": message.type, message.type: content}
    return _notice("edit", {"original_message_id": message.wamid, "message": edited})


def build_revoke(message: SimulatedMessage, now_ms: int) -> PhoneMessage:
    """Return the message that tells of a deletion for everyone.

    Raises:
        ControlApiError: 409, it is older than two days, or was revoked.
    """
    _check_unchanged(message, now_ms, REVOKE_WITHIN_MS, "be revoked within 2 days")
    return _notice("revoke", {"original_message_id": message.wamid})


def record_change(transaction: Transaction, message: SimulatedMessage, notice: PhoneMessage, now_ms: int) -> None:
    """Change what phones show of an edited or revoked message."""
    if notice.type == "revoke":
        content: dict[str, Any] = {"text": "", "revoked_ms": now_ms}
    else:
        edited = notice.content["edit"]["message"]
        shown = edited[edited["type"]]
        content = {**message.content, "text": shown.get("body", shown.get("caption", "")), "edited_ms": now_ms}
        if "media" in content:
            content["media"] = {**content["media"], "caption": content["text"]}
    if "sent_by" in message.content:
        content["sent_by"] = message.content["sent_by"]
    transaction.run(MESSAGES.update({"content": content}, position=message.position))
    transaction.wake_phone(message.phone)


def _notice(kind: str, content: dict[str, Any]) -> PhoneMessage:
    return PhoneMessage(kind, {kind: content}, {}, opens_window=False)


def _check_unchanged(message: SimulatedMessage, now_ms: int, within_ms: int, rule: str) -> None:
    if "revoked_ms" in message.content:
        raise ControlApiError("wamid", "was revoked", "a message that was not", status=409)
    if now_ms - message.at_ms > within_ms:
        raise ControlApiError("wamid", f"must {rule} of being sent", "a newer message", status=409)
