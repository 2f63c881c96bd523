"""Control API calls for numbers, users and flows: their status at the operator."""

from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import asdict, replace

from waypost.simulator.accounts.accounts import Number
from waypost.simulator.accounts.records import (
    ALLOWED,
    IDENTITY,
    NAMES,
    NUMBER_STATUS,
    REGISTRATION,
    SENDING_RESTRICTION,
)
from waypost.simulator.control.endpoints import ControlBody, ControlOperations, find, present_members
from waypost.simulator.control.updates import emit_webhook
from waypost.simulator.control_error import ControlApiError
from waypost.simulator.field_types import Digits, HoldMs, Id, Name, Throughput, accepts
from waypost.simulator.flows.model import FLOWS, Flow
from waypost.simulator.messages.limits import MAX_ALLOWED_PHONES, SENDING_RESTRICTIONS, find_restriction_name
from waypost.simulator.numbers.names import change_names, decide_display_name
from waypost.simulator.onboarding.accounts import save_number
from waypost.simulator.services import SimulatorServices
from waypost.simulator.simulator_state import Transaction

_MAINTENANCE_MS: Final = 60_000  # Source: facts 8, "Throughput": up to a minute

operation = ControlOperations()


class NumberBody(ControlBody, frozen=True):
    """A business phone number."""

    waba_id: Id
    phone_number: Digits
    name: Name
    throughput: Throughput = 80
    is_on_business_app: bool = False


class NumberStatusBody(ControlBody, frozen=True):
    """A number's quality, limit and statuses; absent members stay unchanged."""

    quality_rating: Literal["GREEN", "YELLOW", "RED", "UNKNOWN"] | UnsetType = UNSET
    messaging_limit: Literal["TIER_250", "TIER_2K", "TIER_10K", "TIER_100K", "TIER_UNLIMITED"] | UnsetType = UNSET
    name_status: Name | UnsetType = UNSET
    status: Name | UnsetType = UNSET


class NamesBody(ControlBody, frozen=True):
    """Decisions about what was requested for a number; absent members stay undecided."""

    display_name: Literal["APPROVED", "REJECTED"] | UnsetType = UNSET
    rejection_reason: Name | None = None
    official_account: Literal["NOT_STARTED", "PENDING", "IN_PROGRESS", "APPROVED", "REJECTED"] | UnsetType = UNSET
    username: Literal["approved", "reserved"] | UnsetType = UNSET


class SendingRestrictionBody(ControlBody, frozen=True):
    """A restriction that keeps a number from sending."""

    name: Annotated[str | None, accepts(f"null or one of {', '.join(SENDING_RESTRICTIONS)}")]
    for_ms: HoldMs = None


class RecipientsBody(ControlBody, frozen=True):
    """The phones that a test number may message; null: all phones."""

    phones: Annotated[list[Digits], Meta(max_length=MAX_ALLOWED_PHONES)] | None


class UpgradeBody(ControlBody, frozen=True):
    """A new throughput, in messages a second."""

    throughput: Throughput = 1000


class IdentityBody(ControlBody, frozen=True):
    """The hash of a user's identity key; null: any hash is accepted."""

    hash: Name | None


class FlowStatusBody(ControlBody, frozen=True):
    """A flow's status, as the operator's supervision sets it."""

    status: Literal["DRAFT", "PUBLISHED", "DEPRECATED", "THROTTLED", "BLOCKED"]


@operation("PUT", "/control/numbers/{phone_number_id}")
async def put_number(services: SimulatorServices, phone_number_id: str, body: NumberBody) -> dict[str, Any]:
    """Create or update a business number."""
    digits = body.phone_number.lstrip("+")
    find(services.accounts.by_id, body.waba_id, field="waba_id", rule="is no account")
    holder = services.accounts.numbers_by_digits.get(digits)
    if holder is not None and holder.phone_number_id != phone_number_id:
        rule = f"belongs to {holder.phone_number_id}"
        raise ControlApiError("phone_number", rule, "a number that is not in use", status=409)
    number = Number(phone_number_id, body.waba_id, digits, body.name, body.throughput, body.is_on_business_app)
    await save_number(services, number)
    return number_view(services, number)


def number_view(services: SimulatorServices, number: Number) -> dict[str, Any]:
    """Return a number with its sending restriction and callback URI."""
    app_id = services.accounts.by_id[number.waba_id].app_id
    return {
        **asdict(number),
        "sending_restriction": find_restriction_name(services, number.phone_number_id),
        "callback_uri": services.accounts.number_override(app_id, number.phone_number_id),
    }


@operation("PUT", "/control/numbers/{phone_number_id}/status")
async def put_number_status(services: SimulatorServices, body: NumberStatusBody, number: Number) -> dict[str, Any]:
    """Set a number's quality, messaging limit and statuses, without a webhook."""
    record = {**services.records.get(number.phone_number_id, NUMBER_STATUS), **present_members(body)}
    await services.records.save(number.phone_number_id, NUMBER_STATUS, record)
    return {"phone_number_id": number.phone_number_id, **record}


@operation("GET", "/control/numbers/{phone_number_id}/names")
async def show_names(services: SimulatorServices, number: Number) -> dict[str, Any]:
    """Return a number's display name, and what was requested for it."""
    return {
        "phone_number_id": number.phone_number_id,
        "name": number.name,
        **services.records.get(number.phone_number_id, NAMES),
    }


@operation("PUT", "/control/numbers/{phone_number_id}/names")
async def decide_names(services: SimulatorServices, body: NamesBody, number: Number) -> dict[str, Any]:
    """Decide the requested display name, with a webhook, and set the status of official account and username.

    Source: the operator's pages "Display names", "Official business accounts".
    """
    record = services.records.get(number.phone_number_id, NAMES)
    for member, needed in (("display_name", "requested_name"), ("username", "username")):
        if getattr(body, member) is not UNSET and needed not in record:
            raise ControlApiError(
                member, "was not requested", f"a number with a {needed.replace('_', ' ')}", status=409
            )
    if body.official_account is not UNSET:
        await change_names(services, number, oba_status=body.official_account)
    if body.username is not UNSET:
        await change_names(services, number, username_status=body.username)
    if body.display_name is not UNSET:
        name = await decide_display_name(services, number, is_approved=body.display_name == "APPROVED")
        value = {
            "display_phone_number": number.phone_number,
            "decision": body.display_name,
            "requested_verified_name": name,
            "rejection_reason": body.rejection_reason,
        }
        await emit_webhook(services, number.waba_id, services.clock.now_ms(), "phone_number_name_update", value)
    return await show_names(services, services.accounts.numbers[number.phone_number_id])


@operation("PUT", "/control/numbers/{phone_number_id}/sending-restriction")
async def put_sending_restriction(
    services: SimulatorServices, number: Number, body: SendingRestrictionBody
) -> dict[str, Any]:
    """Set or remove a number's sending restriction, for a time or until changed, without a webhook."""
    if body.name is not None and body.name not in SENDING_RESTRICTIONS:
        raise ControlApiError("name", "is not a sending restriction", f"null, {', '.join(SENDING_RESTRICTIONS)}")
    until_ms = None if body.for_ms is None else services.clock.now_ms() + body.for_ms
    record = {} if body.name is None else {"name": body.name, "until_ms": until_ms}
    await services.records.save(number.phone_number_id, SENDING_RESTRICTION, record)
    return {"phone_number_id": number.phone_number_id, "name": body.name, "until_ms": until_ms}


@operation("PUT", "/control/numbers/{phone_number_id}/recipients")
async def put_recipients(services: SimulatorServices, number: Number, body: RecipientsBody) -> dict[str, Any]:
    """Make a number a test number that may message only these phones, or an ordinary one."""
    phones = None if body.phones is None else [phone.lstrip("+") for phone in body.phones]
    await services.records.save(number.phone_number_id, ALLOWED, {"phones": phones})
    return {"phone_number_id": number.phone_number_id, "phones": phones}


@operation("POST", "/control/numbers/{phone_number_id}/upgrade")
async def upgrade_number(services: SimulatorServices, number: Number, body: UpgradeBody) -> dict[str, Any]:
    """Set a number's throughput: a minute of maintenance, then a webhook.

    Source: facts 8, "Throughput per business number".
    """
    done_ms = services.clock.now_ms() + _MAINTENANCE_MS
    record = {"name": "MAINTENANCE", "until_ms": done_ms}
    await services.records.save(number.phone_number_id, SENDING_RESTRICTION, record)
    await save_number(services, replace(number, throughput=body.throughput))
    value = {
        "display_phone_number": number.phone_number,
        "event": "THROUGHPUT_UPGRADE",
        "current_limit": "TIER_UNLIMITED",
    }
    await emit_webhook(services, number.waba_id, done_ms, "phone_number_quality_update", value)
    return {"phone_number_id": number.phone_number_id, "throughput": body.throughput, "maintenance_until_ms": done_ms}


@operation("GET", "/control/numbers/{phone_number_id}/registration")
async def show_registration(services: SimulatorServices, number: Number) -> dict[str, Any]:
    """Return a number's PIN, and the verification code that was sent to it."""
    record = services.records.get(number.phone_number_id, REGISTRATION)
    return {name: record.get(name) for name in ("pin", "code", "needs_code", "guesses")}


@operation("PUT", "/control/phones/{phone}/identity")
async def put_identity(services: SimulatorServices, body: IdentityBody, phone: str) -> dict[str, Any]:
    """Set the identity key hash of a phone's owner; a send with another one is rejected."""
    await services.records.save(phone, IDENTITY, {} if body.hash is None else {"hash": body.hash})
    return {"phone": phone, "hash": body.hash}


@operation("GET", "/control/flows/{flow_id}")
async def show_flow(flow: Flow) -> dict[str, Any]:
    """Return a flow's status and its uploaded content."""
    return {name: getattr(flow, name) for name in ("flow_id", "waba_id", "name", "status", "content")}


@operation("PUT", "/control/flows/{flow_id}/status")
async def put_flow_status(services: SimulatorServices, body: FlowStatusBody, flow: Flow) -> dict[str, Any]:
    """Set a flow's status from any status, with a webhook."""

    def write(transaction: Transaction) -> Flow:
        known = transaction.find(FLOWS, flow.flow_id) or flow
        changed = replace(known, status=body.status, updated_ms=services.clock.now_ms())
        transaction.save(FLOWS, changed, flow.flow_id)
        return changed

    changed = await services.transact(write)
    value = {
        "event": "FLOW_STATUS_CHANGE",
        "message": f"Flow {flow.name} changed status from {flow.status} to {changed.status}",
        "flow_id": flow.flow_id,
        "old_status": flow.status,
        "new_status": changed.status,
    }
    await emit_webhook(services, flow.waba_id, services.clock.now_ms(), "flows", value)
    return {"flow_id": flow.flow_id, "status": changed.status}
