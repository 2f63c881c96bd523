"""Control API calls that send a webhook to a business: a status, or any update about an account."""

from typing import Annotated, Any

from msgspec import Meta, Struct
from msgspec.structs import replace

from waypost.simulator.accounts.accounts import Account
from waypost.simulator.control.endpoints import ControlBody, ControlOperations
from waypost.simulator.control_error import ControlApiError
from waypost.simulator.errors import webhook_error
from waypost.simulator.field_types import USER_ID, Name, accepts
from waypost.simulator.messages.statuses import FAILURE_TEXTS
from waypost.simulator.outbox import failed_status_phone, status_json, status_recipient
from waypost.simulator.phones.phone import SimulatedPhone
from waypost.simulator.services import SimulatorServices
from waypost.simulator.simulator_state import Transaction
from waypost.simulator.tables.messages import MESSAGES, set_status
from waypost.simulator.tables.updates import MESSAGE_UPDATE, TEMPLATE_UPDATE, Update, add_update, delete_scheduled

operation = ControlOperations()


class StatusBody(ControlBody, frozen=True):
    """A status of a message, sent now."""

    message_id: Name
    status: Annotated[str, accepts("letters and underscores", "^[a-z_]{1,32}$")]
    code: Annotated[int, Meta(ge=0, le=9_999_999)] | None = None
    title: str = ""
    details: str = ""
    names_recipient: bool = True
    recipient_user_id: Annotated[str, accepts("as in US.1349", USER_ID)] | None = None


class WebhookUpdateBody(ControlBody, frozen=True):
    """An update about an account, sent now through its webhooks."""

    field: Annotated[str, accepts("a webhook field's name", "^[a-z_]{1,64}$")]
    value: dict[str, Any]


class EmittedStatus(Struct):
    """A status that was sent."""

    message_id: str
    status: str


class QueuedUpdate(Struct):
    """Result of an update: queued if it has a receiver."""

    queued: bool


@operation("POST", "/control/statuses")
async def emit_status(services: SimulatorServices, body: StatusBody) -> EmittedStatus:
    """Send a status of a message now, in place of the planned one; `failed` cancels all planned ones."""
    message = next(iter(await MESSAGES.find(services.store, wamid=body.message_id, is_inbound=0)), None)
    accepted = "a wamid from GET /control/deliveries, and the name of a status"
    if message is None:
        raise ControlApiError("message_id", "no business has sent such a message", accepted, status=404)
    if body.status in (MESSAGE_UPDATE, TEMPLATE_UPDATE):
        raise ControlApiError("status", "is not a status", accepted)
    number_id = message.phone_number_id
    waba_id = services.accounts.numbers[number_id].waba_id
    now_ms = services.clock.now_ms()
    recipient, contact = _recipient(services, message.phone, body)
    rest = status_json(recipient, message.callback_data, _errors(body), contact=contact)
    cancelled = "" if body.status == "failed" else body.status

    def write(transaction: Transaction) -> None:
        transaction.run(
            delete_scheduled(message.wamid, waba_id, now_ms, cancelled),
            *set_status(message.wamid, body.status, now_ms, body.code or 131000),
        )
        update_id = services.outbox.next_id()
        transaction.send(Update(waba_id, now_ms, update_id, body.status, number_id, message.wamid, rest))
        transaction.wake_phone(message.phone)

    await services.transact(write)
    return EmittedStatus(body.message_id, body.status)


@operation("POST", "/control/accounts/{waba_id}/webhooks")
async def emit_account_update(services: SimulatorServices, body: WebhookUpdateBody, account: Account) -> QueuedUpdate:
    """Send an update about an account through its webhooks: signed, and retried."""
    return QueuedUpdate(await emit_webhook(services, account.waba_id, services.clock.now_ms(), body.field, body.value))


async def emit_webhook(
    services: SimulatorServices, waba_id: str, at_ms: int, field: str, value: dict[str, Any]
) -> bool:
    """Queue a webhook about an account if it has a receiver; return True if it has."""
    if not services.outbox.has_subscribers(waba_id, field):
        return False
    await services.store.run([add_update(services.outbox.account_update(waba_id, at_ms, field, value))])
    services.outbox.wake_events(waba_id).set()
    return True


def _recipient(
    services: SimulatorServices, phone: str, body: StatusBody
) -> tuple[dict[str, str], SimulatedPhone | None]:
    """Return the recipient members of the status, and the phone in its contacts."""
    known = services.phones.fill_user_id(services.phones.by_digits.get(phone) or SimulatedPhone(phone, ""))
    if body.recipient_user_id is not None:
        known = replace(known, user_id=body.recipient_user_id, shows_number=body.names_recipient)
    elif not body.names_recipient:
        return {}, None
    elif body.status == "failed":
        known = failed_status_phone(known)
    return status_recipient(known), known if services.settings.value.statuses_contacts else None


def _errors(body: StatusBody) -> dict[str, Any]:
    if body.code is None and body.status != "failed":
        return {}
    code = 131000 if body.code is None else body.code
    details = body.details or FAILURE_TEXTS.get(code, body.title or "The message failed.")
    return {"errors": [webhook_error(code, details, body.title)]}
