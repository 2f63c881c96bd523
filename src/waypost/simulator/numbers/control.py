"""Control API calls for numbers, users and flows: their status at the operator."""

from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import replace

from waypost.simulator.apis.control_error import ControlApiError
from waypost.simulator.apis.control_operations import ControlBody, ControlOperations, find, present_members, view_of
from waypost.simulator.apis.field_types import Digits, HoldMs, Id, Name, Throughput, accepts
from waypost.simulator.numbers.model import MAX_ALLOWED_PHONES, SENDING_RESTRICTIONS, find_restriction_name, save_number
from waypost.simulator.numbers.names import decide_display_name
from waypost.simulator.numbers.sent_codes import SentCode, last_code
from waypost.simulator.state.accounts import NUMBERS, SHARED_THROUGHPUT, Number
from waypost.simulator.state.control_parameters import PathNumber, PathPhone
from waypost.simulator.state.records import ALLOWED, IDENTITY, NAMES, NUMBER_STATUS, REGISTRATION, SENDING_RESTRICTION
from waypost.simulator.state.simulator_state import SimulatorState, Transaction

_MAINTENANCE_MS: Final = 60_000  # Source: facts 8, "Throughput": up to a minute


operation = ControlOperations()


class NumberView(Number, frozen=True, kw_only=True):
    """A business number with its sending restriction and its own callback URI, if it has them."""

    sending_restriction: str | None
    callback_uri: str | None


class NumberNames(Struct, frozen=True):
    """A number's display name, and what was requested for it."""

    phone_number_id: str
    name: str
    requested_name: str | UnsetType = UNSET
    requested_status: str | UnsetType = UNSET
    oba_status: str | UnsetType = UNSET
    oba_request: dict[str, Any] | UnsetType = UNSET
    username: str | UnsetType = UNSET
    username_status: str | UnsetType = UNSET


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


class IdentityBody(ControlBody, frozen=True):
    """The hash of a user's identity key; null: any hash is accepted."""

    hash: Name | None


@operation("PUT", "/control/numbers/{phone_number_id}")
async def put_number(
    state: SimulatorState,
    phone_number_id: str,
    *,
    waba_id: Id,
    phone_number: Digits,
    name: Name,
    throughput: Throughput = 80,
    is_on_business_app: bool = False,
) -> NumberView:
    """Create or update a business number."""
    digits = phone_number.lstrip("+")
    find(state.accounts.by_id, waba_id, field="waba_id", rule="is no account")
    holder = state.accounts.numbers_by_digits.get(digits)
    if holder is not None and holder.phone_number_id != phone_number_id:
        rule = f"belongs to {holder.phone_number_id}"
        raise ControlApiError("phone_number", rule, "a number that is not in use", status=409)
    number = Number(phone_number_id, waba_id, digits, name, throughput, is_on_business_app)
    await save_number(state, number)
    return number_view(state, state.accounts.numbers[phone_number_id])


def number_view(state: SimulatorState, number: Number) -> NumberView:
    """Return a number with its sending restriction and callback URI."""
    app_id = state.accounts.by_id[number.waba_id].app_id
    return view_of(
        NumberView,
        number,
        sending_restriction=find_restriction_name(state, number.phone_number_id),
        callback_uri=state.accounts.number_override(app_id, number.phone_number_id),
    )


@operation(
    "PUT",
    "/control/numbers/{phone_number_id}/status",
    phone_number_id=str,
    quality_rating=str | UnsetType,
    messaging_limit=str | UnsetType,
    name_status=str | UnsetType,
    status=str | UnsetType,
)
async def put_number_status(state: SimulatorState, body: NumberStatusBody, number: PathNumber) -> dict[str, Any]:
    """Set a number's quality, messaging limit and statuses, without a webhook."""
    number_id, changes = number.phone_number_id, present_members(body)
    await state.transact(lambda transaction: transaction.change_record(number_id, NUMBER_STATUS, **changes))
    return {"phone_number_id": number_id, **state.record(number_id, NUMBER_STATUS)}


@operation("GET", "/control/numbers/{phone_number_id}/names")
async def show_names(state: SimulatorState, number: PathNumber) -> NumberNames:
    """Return a number's display name, and what was requested for it."""
    return NumberNames(number.phone_number_id, number.name, **state.record(number.phone_number_id, NAMES))


@operation("PUT", "/control/numbers/{phone_number_id}/names")
async def decide_names(state: SimulatorState, body: NamesBody, number: PathNumber) -> NumberNames:
    """Decide the requested display name, with a webhook, and set the status of official account and username.

    Source: the operator's pages "Display names", "Official business accounts".
    """
    record = state.record(number.phone_number_id, NAMES)
    for member, needed in (("display_name", "requested_name"), ("username", "username")):
        if getattr(body, member) is not UNSET and needed not in record:
            raise ControlApiError(
                member, "was not requested", f"a number with a {needed.replace('_', ' ')}", status=409
            )

    def write(transaction: Transaction) -> None:
        if body.official_account is not UNSET:
            transaction.change_record(number.phone_number_id, NAMES, oba_status=body.official_account)
        if body.username is not UNSET:
            transaction.change_record(number.phone_number_id, NAMES, username_status=body.username)
        if body.display_name is not UNSET:
            value = {
                "display_phone_number": number.phone_number,
                "decision": body.display_name,
                "requested_verified_name": decide_display_name(
                    transaction, number, is_approved=body.display_name == "APPROVED"
                ),
                "rejection_reason": body.rejection_reason,
            }
            transaction.notify(number.waba_id, "phone_number_name_update", value)

    await state.transact(write)
    return await show_names(state, state.accounts.numbers[number.phone_number_id])


@operation(
    "PUT",
    "/control/numbers/{phone_number_id}/sending-restriction",
    phone_number_id=str,
    name=str | None,
    until_ms=int | None,
)
async def put_sending_restriction(
    state: SimulatorState,
    number: PathNumber,
    *,
    name: Annotated[str | None, accepts(f"null or one of {', '.join(SENDING_RESTRICTIONS)}")],
    for_ms: HoldMs = None,
) -> dict[str, Any]:
    """Set or remove a number's sending restriction, for a time or until changed, without a webhook."""
    if name is not None and name not in SENDING_RESTRICTIONS:
        raise ControlApiError("name", "is not a sending restriction", f"null, {', '.join(SENDING_RESTRICTIONS)}")
    until_ms = None if for_ms is None else state.clock.now_ms() + for_ms
    record = {} if name is None else {"name": name, "until_ms": until_ms}
    await state.save_record(number.phone_number_id, SENDING_RESTRICTION, record)
    return {"phone_number_id": number.phone_number_id, "name": name, "until_ms": until_ms}


@operation("PUT", "/control/numbers/{phone_number_id}/recipients", phone_number_id=str, phones=list[str] | None)
async def put_recipients(
    state: SimulatorState,
    number: PathNumber,
    *,
    phones: Annotated[list[Digits], Meta(max_length=MAX_ALLOWED_PHONES)] | None,
) -> dict[str, Any]:
    """Make a number a test number that may message only these phones, or an ordinary one."""
    phones = None if phones is None else [phone.lstrip("+") for phone in phones]
    await state.save_record(number.phone_number_id, ALLOWED, {"phones": phones})
    return {"phone_number_id": number.phone_number_id, "phones": phones}


@operation(
    "POST", "/control/numbers/{phone_number_id}/upgrade", phone_number_id=str, throughput=int, maintenance_until_ms=int
)
async def upgrade_number(state: SimulatorState, number: PathNumber, *, throughput: Throughput = 1000) -> dict[str, Any]:
    """Set a number's throughput: a minute of maintenance, then a webhook.

    Source: facts 8, "Throughput per business number".
    """
    if number.is_on_business_app:
        rule = f"is on the WhatsApp Business app, where the throughput is fixed at {SHARED_THROUGHPUT} a second"
        raise ControlApiError("phone_number_id", rule, "a number that is not", status=409)
    done_ms = state.clock.now_ms() + _MAINTENANCE_MS
    value = {
        "display_phone_number": number.phone_number,
        "event": "THROUGHPUT_UPGRADE",
        "current_limit": "TIER_UNLIMITED",
    }

    def write(transaction: Transaction) -> None:
        restriction = {"name": "MAINTENANCE", "until_ms": done_ms}
        transaction.save_record(number.phone_number_id, SENDING_RESTRICTION, restriction)
        transaction.save(NUMBERS, replace(number, throughput=throughput), number.phone_number_id)
        transaction.notify(number.waba_id, "phone_number_quality_update", value, at_ms=done_ms)

    await state.transact(write)
    return {"phone_number_id": number.phone_number_id, "throughput": throughput, "maintenance_until_ms": done_ms}


@operation(
    "GET",
    "/control/numbers/{phone_number_id}/registration",
    pin=str | None,
    code=str | None,
    needs_code=bool | None,
    guesses=int | None,
)
async def show_registration(state: SimulatorState, number: PathNumber) -> dict[str, Any]:
    """Return a number's PIN, and the verification code that was sent to it."""
    record = state.record(number.phone_number_id, REGISTRATION)
    return {name: record.get(name) for name in ("pin", "code", "needs_code", "guesses")}


@operation("GET", "/control/phones/{phone}/code", phone=str, sent=SentCode | None)
async def show_sent_code(state: SimulatorState, phone: PathPhone) -> dict[str, Any]:
    """Return the last verification code that a number got by text message, call, or in the app; null if it got none."""
    return {"phone": phone, "sent": last_code(state, phone)}


@operation("PUT", "/control/phones/{phone}/identity", phone=str, hash=str | None)
async def put_identity(state: SimulatorState, body: IdentityBody, phone: PathPhone) -> dict[str, Any]:
    """Set the identity key hash of a phone's owner; a send with another one is rejected."""
    await state.save_record(phone, IDENTITY, {} if body.hash is None else {"hash": body.hash})
    return {"phone": phone, "hash": body.hash}
