"""The control door's calls that tell a business something: a status, or anything about an account."""

from typing import Any

from msgspec.structs import replace
from starlette.requests import Request

from waypost.simulator.control.guard import ControlRefused
from waypost.simulator.control.shapes import StatusShape, WebhookUpdateShape, read_shape
from waypost.simulator.errors import webhook_error
from waypost.simulator.messages.statuses import FAILURES, contact_text, errors_rest, failed_handset, recipient_of
from waypost.simulator.parts import Parts
from waypost.simulator.phones.phone import Phone
from waypost.simulator.tables.messages import MESSAGES, set_status
from waypost.simulator.tables.updates import MESSAGE, TEMPLATE, Update, add_update, drop_planned
from waypost.simulator.webhooks.outbox import status_rest


async def tell_status(parts: Parts, request: Request) -> dict[str, Any]:
    """Tell a status of a message now, in place of the planned one; `failed` ends all that is planned."""
    wish = read_shape(StatusShape, await request.body())
    message = next(iter(await MESSAGES.find(parts.store, wamid=wish.message_id, is_inbound=0)), None)
    if message is None or wish.status in (MESSAGE, TEMPLATE):
        is_unknown = message is None
        raise ControlRefused(
            404 if is_unknown else 400,
            field="message_id" if is_unknown else "status",
            rule="no business has sent such a message" if is_unknown else "is no status",
            accepted="a wamid from GET /control/deliveries, and the name of a status",
        )
    number_id = message.phone_number_id
    waba_id = parts.accounts.numbers[number_id].waba_id
    now_ms = parts.clock.now_ms()
    recipient, contact = _recipient(parts, message.phone, wish)
    rest = status_rest(recipient, message.callback_data, _errors(wish), contact=contact)
    statements = [
        drop_planned(message.wamid, waba_id, now_ms, "" if wish.status == "failed" else wish.status),
        *set_status(message.wamid, wish.status, now_ms, wish.code or 131000),
    ]
    if parts.outbox.listens(waba_id):
        update = Update(waba_id, now_ms, parts.outbox.next_id(), wish.status, number_id, message.wamid, rest)
        statements.append(add_update(update))
    await parts.store.run(statements)
    parts.outbox.wake_of(waba_id).set()
    parts.arrivals.tell(message.phone)
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
    update = parts.outbox.account_update(waba_id, parts.clock.now_ms(), wish.field, wish.value)
    await parts.store.run([add_update(update)])
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
