"""The control door's calls that tell a business something: a status, or anything about an account."""

from dataclasses import replace
from typing import Any, Final

from starlette.requests import Request

from waypost.simulator.control.guard import ControlRefused
from waypost.simulator.control.shapes import StatusShape, WebhookUpdateShape, read_shape
from waypost.simulator.errors import webhook_error
from waypost.simulator.messages.statuses import FAILURES, contact_text, errors_rest, failed_handset, recipient_of
from waypost.simulator.parts import Parts
from waypost.simulator.phones.phones import Phone
from waypost.simulator.store import Row
from waypost.simulator.webhooks.outbox import ADD_UPDATE, MESSAGE, TEMPLATE, status_rest

_MESSAGE: Final = "SELECT phone, phone_number_id, callback_data FROM messages WHERE wamid=? AND is_inbound=0"
_DROP_PLANNED: Final = "DELETE FROM outbox WHERE waba_id=? AND subject=? AND due_ms>? AND (?='' OR kind=?)"
# fmt: off
_SET: Final = {  # what a status changes of the message itself; all others change nothing
    "delivered": "UPDATE messages SET delivered_ms=?1, failed_ms=NULL, failed_code=NULL WHERE wamid=?2",
    "read":      "UPDATE messages SET read_ms=?1, delivered_ms=min(coalesce(delivered_ms, ?1), ?1), "
                 "failed_ms=NULL, failed_code=NULL WHERE wamid=?2",
    "failed":    "UPDATE messages SET failed_ms=?1, failed_code=?3, delivered_ms=NULL, read_ms=NULL "
                 "WHERE wamid=?2",
}
# fmt: on


async def tell_status(parts: Parts, request: Request) -> dict[str, Any]:
    """Tell a status of a message now, in place of the planned one; `failed` ends all that is planned."""
    wish = read_shape(StatusShape, await request.body())
    rows = await parts.store.rows(_MESSAGE, (wish.message_id,))
    if not rows or wish.status in (MESSAGE, TEMPLATE):
        raise ControlRefused(
            404 if not rows else 400,
            field="message_id" if not rows else "status",
            rule="no business has sent such a message" if not rows else "is no status",
            accepted="a wamid from GET /control/deliveries, and the name of a status",
        )
    [(phone, phone_number_id, callback_data)] = rows
    waba_id = parts.accounts.numbers[phone_number_id].waba_id
    now_ms = parts.clock.now_ms()
    recipient, contact = _recipient(parts, phone, wish)
    rest = status_rest(recipient, callback_data, _errors(wish), contact=contact)
    planned = "" if wish.status == "failed" else wish.status
    statements: list[tuple[str, Row]] = [(_DROP_PLANNED, (waba_id, wish.message_id, now_ms, planned, planned))]
    if wish.status in _SET:
        values: Row = (now_ms, wish.message_id)
        code = (wish.code or 131000,) if wish.status == "failed" else ()
        statements.append((_SET[wish.status], (*values, *code)))
    if parts.outbox.listens(waba_id):
        update: Row = (
            waba_id, now_ms, parts.outbox.next_id(), wish.status, phone_number_id,
            wish.message_id, rest,
        )  # fmt: skip
        statements.append((ADD_UPDATE, update))
    await parts.store.run(statements)
    parts.outbox.wake_of(waba_id).set()
    parts.messages.tell(phone)
    return {"message_id": wish.message_id, "status": wish.status}


async def tell_account(parts: Parts, request: Request) -> dict[str, Any]:
    """Tell anything about an account through its ordinary webhook: signed, and retried."""
    waba_id: str = request.path_params["waba_id"]
    wish = read_shape(WebhookUpdateShape, await request.body())
    if waba_id not in parts.accounts.by_id:
        known = ", ".join(parts.accounts.by_id) or "none yet"
        raise ControlRefused(404, field="waba_id", rule="is no account", accepted=known)
    if not parts.outbox.listens(waba_id):
        return {"told": False}
    row = parts.outbox.account_update(waba_id, parts.clock.now_ms(), wish.field, wish.value)
    await parts.store.run([(ADD_UPDATE, row)])
    parts.outbox.wake_of(waba_id).set()
    return {"told": True}


def _recipient(parts: Parts, phone: str, wish: StatusShape) -> tuple[str, str]:
    """Who it went to: members of the status, and the contact beside it; both may be empty."""
    known = parts.phones.seen(parts.phones.all.get(phone) or Phone(phone, ""))
    if wish.recipient_user_id is not None:
        known = replace(
            known, user_id=wish.recipient_user_id, shows_number=wish.names_recipient
        )  # fmt: skip
    elif not wish.names_recipient:
        return "", ""
    elif wish.status == "failed":
        known = failed_handset(known)
    has_contacts = parts.settings.value.statuses_contacts
    return recipient_of(known), contact_text(known) if has_contacts else ""


def _errors(wish: StatusShape) -> str:
    code = wish.code
    if code is None:
        if wish.status != "failed":
            return ""
        code = 131000
    details = wish.details or FAILURES.get(code, wish.title or "The message failed.")
    return errors_rest([webhook_error(code, details, wish.title)])
