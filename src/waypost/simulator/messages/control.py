"""Control API calls that send a webhook to a business: a status, or any update about an account."""

from typing import Annotated, Any

from msgspec import Meta
from msgspec.structs import replace

from waypost.simulator.apis.control_error import ControlApiError
from waypost.simulator.apis.control_operations import ControlBody, ControlOperations
from waypost.simulator.apis.errors import webhook_error
from waypost.simulator.apis.field_types import USER_ID, Name, accepts
from waypost.simulator.messages.statuses import FAILURE_TEXTS
from waypost.simulator.state.control_parameters import PathAccount
from waypost.simulator.state.outbox import failed_status_phone, phone_status, status_content
from waypost.simulator.state.phone import SimulatedPhone
from waypost.simulator.state.phones import PHONES, fill_user_id
from waypost.simulator.state.simulator_state import SimulatorState, Transaction
from waypost.simulator.storage.tables.messages import MESSAGES, set_status
from waypost.simulator.storage.tables.updates import MESSAGE_UPDATE, Update, delete_scheduled

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


@operation("POST", "/control/statuses", message_id=str, status=str)
async def emit_status(state: SimulatorState, body: StatusBody) -> dict[str, str]:
    """Send a status of a message now, in place of the planned one; `failed` cancels all planned ones."""
    message = next(iter(await MESSAGES.find(state.store, wamid=body.message_id, is_inbound=0)), None)
    accepted = "a wamid from GET /control/deliveries, and the name of a status"
    if message is None:
        raise ControlApiError("message_id", "no business has sent such a message", accepted, status=404)
    if body.status == MESSAGE_UPDATE:
        raise ControlApiError("status", "is not a status", accepted)
    number_id = message.phone_number_id
    waba_id = state.accounts.numbers[number_id].waba_id
    now_ms = state.clock.now_ms()
    errors: dict[str, Any] = {}
    if body.code is not None or body.status == "failed":
        code = 131000 if body.code is None else body.code
        details = body.details or FAILURE_TEXTS.get(code, body.title or "The message failed.")
        errors = {"errors": [webhook_error(code, details, body.title)]}
    phone = fill_user_id(state, state.values(PHONES).get(message.phone) or SimulatedPhone(message.phone, ""))
    if body.recipient_user_id is not None:
        phone = replace(phone, user_id=body.recipient_user_id, shows_number=body.names_recipient)
    elif body.status == "failed":
        phone = failed_status_phone(phone)
    if body.names_recipient or body.recipient_user_id is not None:
        content = phone_status(state.settings.value, phone, message.callback_data, errors)
    else:
        content = status_content({}, message.callback_data, errors)
    cancelled = "" if body.status == "failed" else body.status

    def write(transaction: Transaction) -> None:
        transaction.run(
            delete_scheduled(message.wamid, waba_id, now_ms, cancelled),
            *set_status(message.wamid, body.status, now_ms, body.code or 131000),
        )
        transaction.send(Update(waba_id, now_ms, body.status, number_id, message.wamid, content))
        transaction.wake_phone(message.phone)

    await state.transact(write)
    return {"message_id": body.message_id, "status": body.status}


@operation("POST", "/control/accounts/{waba_id}/webhooks", queued=bool)
async def emit_account_update(state: SimulatorState, body: WebhookUpdateBody, account: PathAccount) -> dict[str, bool]:
    """Send an update about an account through its webhooks: signed, and retried."""
    await state.transact(lambda transaction: transaction.notify(account.waba_id, body.field, body.value))
    return {"queued": state.accounts.has_receiver(account.waba_id, body.field)}
