"""The control door's calls about how numbers, users and flows stand with the operator."""

from typing import Annotated, Any, ClassVar, Final, Literal

from msgspec import Meta
from msgspec.structs import replace
from starlette.requests import Request

from waypost.simulator.accounts.accounts import Number
from waypost.simulator.accounts.flow import Flow
from waypost.simulator.accounts.records import ALLOWED, HINDRANCE, IDENTITY
from waypost.simulator.control.guard import ControlRefused
from waypost.simulator.control.shapes import DelayMs, Digits, Name, NothingShape, read_shape
from waypost.simulator.messages.standings import ALLOWED_AT_MOST, HINDRANCES
from waypost.simulator.parts import Parts
from waypost.simulator.phones.phones import phone_digits
from waypost.simulator.tables.updates import add_update

_MAINTENANCE_MS: Final = 60_000  # Source: facts 8, "Throughput": up to a minute


class HindranceShape(NothingShape, frozen=True):
    """What stops a number from sending."""

    accepted: ClassVar[str] = (
        f"{{name: null or one of {', '.join(HINDRANCES)}; for_ms?: 0 to 604800000, or null: until it is taken away}}"
    )
    name: str | None
    for_ms: DelayMs | None = None


class RecipientsShape(NothingShape, frozen=True):
    """Whom a test number may message; null: everybody."""

    accepted: ClassVar[str] = f"{{phones: null or up to {ALLOWED_AT_MOST} phone numbers}}"
    phones: Annotated[list[Digits], Meta(max_length=ALLOWED_AT_MOST)] | None


class UpgradeShape(NothingShape, frozen=True):
    """Another throughput, in messages a second."""

    accepted: ClassVar[str] = "{throughput?: 1 to 100000}"
    throughput: Annotated[int, Meta(ge=1, le=100_000)] = 1000


class IdentityShape(NothingShape, frozen=True):
    """The hash of a user's identity key; null: any will do."""

    accepted: ClassVar[str] = "{hash: a text, or null}"
    hash: Name | None


class FlowStatusShape(NothingShape, frozen=True):
    """A flow's state, as the operator's own supervision would set it."""

    accepted: ClassVar[str] = "{status: DRAFT, PUBLISHED, DEPRECATED, THROTTLED or BLOCKED}"
    status: Literal["DRAFT", "PUBLISHED", "DEPRECATED", "THROTTLED", "BLOCKED"]


async def put_hindrance(parts: Parts, request: Request) -> dict[str, Any]:
    """Stop a number from sending, for a while or until further notice; no webhook tells of it."""
    number = _number_of(parts, request)
    wish = read_shape(HindranceShape, await request.body())
    if wish.name is not None and wish.name not in HINDRANCES:
        raise ControlRefused(400, field="name", rule="is no hindrance", accepted=f"null, {', '.join(HINDRANCES)}")
    until_ms = None if wish.for_ms is None else parts.clock.now_ms() + wish.for_ms
    record = {} if wish.name is None else {"name": wish.name, "until_ms": until_ms}
    await parts.records.keep(number.phone_number_id, HINDRANCE, record)
    return {"phone_number_id": number.phone_number_id, "name": wish.name, "until_ms": until_ms}


async def put_recipients(parts: Parts, request: Request) -> dict[str, Any]:
    """Make a number a test number, which messages only some phones, or an ordinary one again."""
    number = _number_of(parts, request)
    wish = read_shape(RecipientsShape, await request.body())
    phones = None if wish.phones is None else [phone.lstrip("+") for phone in wish.phones]
    await parts.records.keep(number.phone_number_id, ALLOWED, {"phones": phones})
    return {"phone_number_id": number.phone_number_id, "phones": phones}


async def upgrade_number(parts: Parts, request: Request) -> dict[str, Any]:
    """Give a number another throughput: a minute of maintenance, then a webhook says it is done.

    Source: facts 8, "Throughput per business number".
    """
    number = _number_of(parts, request)
    wish = read_shape(UpgradeShape, await request.body())
    done_ms = parts.clock.now_ms() + _MAINTENANCE_MS
    record = {"name": "MAINTENANCE", "until_ms": done_ms}
    await parts.records.keep(number.phone_number_id, HINDRANCE, record)
    await parts.accounts.keep_number(replace(number, throughput=wish.throughput))
    if parts.outbox.listens(number.waba_id):
        value = {
            "display_phone_number": number.phone_number,
            "event": "THROUGHPUT_UPGRADE",
            "current_limit": "TIER_UNLIMITED",
        }
        field = "phone_number_quality_update"
        update = parts.outbox.account_update(number.waba_id, done_ms, field, value)
        await parts.store.run([add_update(update)])
        parts.outbox.wake_of(number.waba_id).set()
    return {"phone_number_id": number.phone_number_id, "throughput": wish.throughput, "maintenance_until_ms": done_ms}


async def show_registration(parts: Parts, request: Request) -> dict[str, Any]:
    """A number's PIN, and the code that was sent to it."""
    record = parts.registrations.of(_number_of(parts, request))
    return {name: record.get(name) for name in ("pin", "code", "needs_code", "guesses")}


async def put_identity(parts: Parts, request: Request) -> dict[str, Any]:
    """Set the identity key that a phone's owner is known by; a send with another one is refused."""
    phone = phone_digits(request.path_params["phone"])
    wish = read_shape(IdentityShape, await request.body())
    if phone is None:
        raise ControlRefused(400, field="phone", rule="is no phone number", accepted="8 to 15 digits")
    await parts.records.keep(phone, IDENTITY, {} if wish.hash is None else {"hash": wish.hash})
    return {"phone": phone, "hash": wish.hash}


async def show_flow(parts: Parts, request: Request) -> dict[str, Any]:
    """A flow as a phone opens it: its state, and its screens as they were uploaded."""
    flow = _flow_of(parts, request)
    return {
        "flow_id": flow.flow_id,
        "waba_id": flow.waba_id,
        "name": flow.name,
        "status": flow.status,
        "content": flow.content,
    }


async def put_flow_status(parts: Parts, request: Request) -> dict[str, Any]:
    """Set a flow's state, whatever it was before, and tell the webhook."""
    wish = read_shape(FlowStatusShape, await request.body())
    flow = _flow_of(parts, request)
    changed = await parts.flows.set_status(flow, wish.status)
    if parts.outbox.listens(flow.waba_id):
        value = {
            "event": "FLOW_STATUS_CHANGE",
            "message": f"Flow {flow.name} changed status from {flow.status} to {changed.status}",
            "flow_id": flow.flow_id,
            "old_status": flow.status,
            "new_status": changed.status,
        }
        now_ms = parts.clock.now_ms()
        update = parts.outbox.account_update(flow.waba_id, now_ms, "flows", value)
        await parts.store.run([add_update(update)])
        parts.outbox.wake_of(flow.waba_id).set()
    return {"flow_id": flow.flow_id, "status": changed.status}


def _flow_of(parts: Parts, request: Request) -> Flow:
    flow = parts.flows.by_id.get(request.path_params["flow_id"])
    if flow is None:
        known = ", ".join(parts.flows.by_id) or "none yet"
        raise ControlRefused(404, field="flow_id", rule="is no flow", accepted=known)
    return flow


def _number_of(parts: Parts, request: Request) -> Number:
    number = parts.accounts.numbers.get(request.path_params["phone_number_id"])
    if number is None:
        known = ", ".join(parts.accounts.numbers) or "none yet"
        raise ControlRefused(404, field="phone_number_id", rule="is no number", accepted=known)
    return number
