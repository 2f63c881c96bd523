"""Control API calls that send a webhook to a business: a status, or any update about an account."""

from typing import Annotated, Any

from msgspec import Meta
from msgspec.structs import replace

from waypost.simulator.accounts.accounts import Account
from waypost.simulator.control.request_structs import Body
from waypost.simulator.errors import webhook_error
from waypost.simulator.field_types import USER_ID, Name, accepts
from waypost.simulator.messages.statuses import FAILURES, contact_text, errors_rest, failed_handset, recipient_of
from waypost.simulator.phones.phone import Phone
from waypost.simulator.services import Parts
from waypost.simulator.tables.messages import MESSAGES, set_status
from waypost.simulator.tables.updates import MESSAGE, TEMPLATE, Update, add_update, drop_planned
from waypost.simulator.violation import BrokenRule
from waypost.simulator.webhooks.outbox import status_rest


class StatusBody(Body, frozen=True):
    """A status of a message, sent now."""

    message_id: Name
    status: Annotated[str, accepts("letters and underscores", "^[a-z_]{1,32}$")]
    code: Annotated[int, Meta(ge=0, le=9_999_999)] | None = None
    title: str = ""
    details: str = ""
    names_recipient: bool = True
    recipient_user_id: Annotated[str, accepts("as in US.1349", USER_ID)] | None = None


class WebhookUpdateBody(Body, frozen=True):
    """An update about an account, sent now through its webhooks."""

    field: Annotated[str, accepts("a webhook field's name", "^[a-z_]{1,64}$")]
    value: dict[str, Any]


async def tell_status(parts: Parts, body: StatusBody) -> dict[str, Any]:
    """Send a status of a message now, in place of the planned one; `failed` cancels all planned ones."""
    message = next(iter(await MESSAGES.find(parts.store, wamid=body.message_id, is_inbound=0)), None)
    accepted = "a wamid from GET /control/deliveries, and the name of a status"
    if message is None:
        raise BrokenRule("message_id", "no business has sent such a message", accepted, status=404)
    if body.status in (MESSAGE, TEMPLATE):
        raise BrokenRule("status", "is no status", accepted)
    number_id = message.phone_number_id
    waba_id = parts.accounts.numbers[number_id].waba_id
    now_ms = parts.clock.now_ms()
    recipient, contact = _recipient(parts, message.phone, body)
    rest = status_rest(recipient, message.callback_data, _errors(body), contact=contact)
    statements = [
        drop_planned(message.wamid, waba_id, now_ms, "" if body.status == "failed" else body.status),
        *set_status(message.wamid, body.status, now_ms, body.code or 131000),
    ]
    if parts.outbox.listens(waba_id):
        update = Update(waba_id, now_ms, parts.outbox.next_id(), body.status, number_id, message.wamid, rest)
        statements.append(add_update(update))
    await parts.store.run(statements)
    parts.outbox.wake_of(waba_id).set()
    parts.arrivals.tell(message.phone)
    return {"message_id": body.message_id, "status": body.status}


async def tell_account(parts: Parts, body: WebhookUpdateBody, account: Account) -> dict[str, Any]:
    """Send an update about an account through its webhooks: signed, and retried."""
    return {"told": await tell_webhook(parts, account.waba_id, parts.clock.now_ms(), body.field, body.value)}


async def tell_webhook(parts: Parts, waba_id: str, at_ms: int, field: str, value: dict[str, Any]) -> bool:
    """Queue a webhook about an account if it has a receiver; return True if it has."""
    if not parts.outbox.listens(waba_id):
        return False
    await parts.store.run([add_update(parts.outbox.account_update(waba_id, at_ms, field, value))])
    parts.outbox.wake_of(waba_id).set()
    return True


def _recipient(parts: Parts, phone: str, body: StatusBody) -> tuple[str, str]:
    """Return the recipient members of the status, and the contact beside it; both may be empty."""
    known = parts.phones.seen(parts.phones.all.get(phone) or Phone(phone, ""))
    if body.recipient_user_id is not None:
        known = replace(known, user_id=body.recipient_user_id, shows_number=body.names_recipient)
    elif not body.names_recipient:
        return "", ""
    elif body.status == "failed":
        known = failed_handset(known)
    has_contacts = parts.settings.value.statuses_contacts
    return recipient_of(known), contact_text(known) if has_contacts else ""


def _errors(body: StatusBody) -> str:
    if body.code is None and body.status != "failed":
        return ""
    code = 131000 if body.code is None else body.code
    details = body.details or FAILURES.get(code, body.title or "The message failed.")
    return errors_rest([webhook_error(code, details, body.title)])
