"""Registration of business numbers: PIN, verification code, and the limits of attempts.

Source: the operator's pages "Registration" and "Phone numbers"; facts 5.2, the registration errors.
"""

import hmac
from typing import Annotated, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from waypost.base.clock import DAY_MS
from waypost.base.json_values import integer_or_none
from waypost.simulator.apis.errors import GraphApiError, bad_parameter, message_error
from waypost.simulator.apis.parameters import ProductParameters, check_id, one_of, read_parameters
from waypost.simulator.apis.requests import GRAPH_SUCCESS, Call
from waypost.simulator.flows.endpoint_keys import MISMATCH
from waypost.simulator.numbers.model import UNREGISTERED
from waypost.simulator.numbers.sent_codes import (
    CODE_REQUESTS_WINDOW_MS,
    MAX_CODE_REQUESTS,
    CodeMethod,
    SentCode,
    check_code,
    is_locked,
    send_code,
)
from waypost.simulator.state.accounts import NUMBERS, Number
from waypost.simulator.state.business_apps import is_disconnected
from waypost.simulator.state.graph_operations import GraphOperations
from waypost.simulator.state.records import ENCRYPTION, REGISTRATION, SENDING_RESTRICTION
from waypost.simulator.state.simulator_state import SimulatorState, Transaction
from waypost.simulator.state.usage_counts import CODE_REQUESTS, REGISTRATIONS, count_usage, times_counted

operation = GraphOperations()

_PIN_DIGITS: Final = 6
_MAX_PIN_GUESSES: Final = 10
_MAX_REGISTRATIONS: Final = 10  # in 72 hours
_REGISTRATIONS_WINDOW_MS: Final = 3 * DAY_MS


def read_pin(_name: str, value: Any) -> str:
    """Return a PIN for two-step verification."""
    text = str(value) if isinstance(value, str | int) else ""
    if len(text) != _PIN_DIGITS or not (text.isascii() and text.isdigit()):
        raise bad_parameter(f"Param pin must be {_PIN_DIGITS} digits.")
    return text


class RegistrationParameters(ProductParameters, frozen=True):
    """The parameters of a registration."""

    pin: Annotated[str, read_pin]


def _check_method(name: str, value: Any) -> str:
    return str(one_of("SMS", "VOICE")(name, str(value).upper()))


def _read_code(_name: str, value: Any) -> str:
    return str(value or "").replace("-", "")


class CodeRequestParameters(Struct, frozen=True):
    """The way a verification code is sent, and its language."""

    code_method: Annotated[str, _check_method]
    language: Annotated[str, check_id]


class CodeParameters(Struct, frozen=True):
    """A verification code, with or without its hyphen."""

    code: Annotated[str, _read_code]


@operation("numbers.register", "POST", Number, "register")
async def register_number(state: SimulatorState, call: Call, number: Number) -> dict[str, Any]:
    """Register a number for sending; its first PIN becomes its own.

    Raises:
        GraphApiError: 133005, the PIN does not match; 133008, too many PINs were tried; 133006, a requested code was
            not verified; 133015, the number was deleted; 133016, ten registrations in three days; 100, the number
            is on the WhatsApp Business app, too.

    A number that was deregistered needs its public key for Flows uploaded again: the signature is of the registration.
    """
    if number.is_on_business_app and not is_disconnected(state, number):
        raise bad_parameter("The phone number is on the WhatsApp Business app and registered already; skip this step.")
    pin, number_id = read_parameters(RegistrationParameters, call.fields).pin, number.phone_number_id

    def write(transaction: Transaction) -> GraphApiError | None:
        record, restriction = (transaction.record(number_id, kind) for kind in (REGISTRATION, SENDING_RESTRICTION))
        if restriction.get("name") == "DELETED":
            raise message_error(133015, "The number was deleted recently; try again later.")
        if record.get("needs_code"):
            raise message_error(133006, "The number must be verified by its code first.")
        _check_registrations(transaction, number_id)
        known, guesses = str(record.get("pin", "")), integer_or_none(record.get("guesses")) or 0
        if known and guesses >= _MAX_PIN_GUESSES:
            raise message_error(133008, "Too many PINs were tried; set another PIN.")
        if known and not hmac.compare_digest(known.encode(), pin.encode()):
            transaction.change_record(number_id, REGISTRATION, guesses=guesses + 1)
            return message_error(133005, "The PIN does not match.")
        count_usage(transaction, REGISTRATIONS, number_id, state.ids.new())
        transaction.change_record(number_id, REGISTRATION, pin=pin, guesses=0)
        if restriction.get("name") == UNREGISTERED:
            transaction.save_record(number_id, SENDING_RESTRICTION, {})
            if transaction.record(number_id, ENCRYPTION):  # its key was signed for the registration before
                transaction.change_record(number_id, ENCRYPTION, signature_status=MISMATCH)
        if number.is_on_business_app:  # it was disconnected: now the API alone has it
            transaction.save(NUMBERS, replace(number, is_on_business_app=False), number_id)
        return None

    if (error := await state.transact(write)) is not None:
        raise error
    return GRAPH_SUCCESS


@operation("numbers.deregister", "POST", Number, "deregister")
def deregister_number(transaction: Transaction, _call: Call, number: Number) -> dict[str, Any]:
    """Deregister a number: its messages are rejected with 133010.

    A number on the app can be disconnected only there.

    Source: the operator's page "Registration"; ledger, coexistence; the operator documents no code for it.
    """
    if number.is_on_business_app and not is_disconnected(transaction, number):
        raise bad_parameter("The phone number is on the WhatsApp Business app; disconnect it there.")
    _check_registrations(transaction, number.phone_number_id)
    count_usage(transaction, REGISTRATIONS, number.phone_number_id, transaction.state.ids.new())
    transaction.save_record(number.phone_number_id, SENDING_RESTRICTION, {"name": UNREGISTERED})
    return GRAPH_SUCCESS


def _check_registrations(transaction: Transaction, number_id: str) -> None:
    """Check how often a number was registered or deregistered. Raises GraphApiError: 133016, ten times in three days."""
    times = times_counted(transaction, REGISTRATIONS, number_id, within_ms=_REGISTRATIONS_WINDOW_MS)
    if transaction.state.settings.value.limits and times >= _MAX_REGISTRATIONS:
        text = f"A number is registered or deregistered at most {_MAX_REGISTRATIONS} times in 72 hours."
        raise message_error(133016, text)


@operation("numbers.request_code", "POST", Number, "request_code")
def request_code(transaction: Transaction, call: Call, number: Number) -> dict[str, Any]:
    """Send a verification code to the number: its phone and the control API show it.

    Raises:
        GraphApiError: 136024, ten codes in three days.
    """
    code = send_requested_code(transaction, call, number.phone_number_id, number.phone_number).code
    transaction.change_record(number.phone_number_id, REGISTRATION, code=code, needs_code=True)
    return GRAPH_SUCCESS


def send_requested_code(transaction: Transaction, call: Call, object_id: str, digits: str) -> SentCode:
    """Send a code as a call asks for it, and count it for the object. Raises GraphApiError, as `request_code` does."""
    parameters = read_parameters(CodeRequestParameters, call.fields)
    requests = times_counted(transaction, CODE_REQUESTS, object_id, within_ms=CODE_REQUESTS_WINDOW_MS)
    if transaction.state.settings.value.limits and requests >= MAX_CODE_REQUESTS:
        text = "You have requested a verification code too many times. Try again later."
        error = {"message": "Request code error", "type": "OAuthException", "code": 136024, "error_user_msg": text}
        raise GraphApiError(400, error)
    count_usage(transaction, CODE_REQUESTS, object_id, transaction.state.ids.new())
    method: CodeMethod = "VOICE" if parameters.code_method == "VOICE" else "SMS"
    return send_code(transaction, digits, method, parameters.language)


@operation("numbers.verify_code", "POST", Number, "verify_code")
async def verify_code(state: SimulatorState, call: Call, number: Number) -> dict[str, Any]:
    """Verify the number by the code that was sent; after five wrong ones none is right for 12 hours."""
    text = read_parameters(CodeParameters, call.fields).code

    def write(transaction: Transaction) -> GraphApiError | None:
        error = use_code(transaction, number.phone_number, text)
        if error is None:
            transaction.change_record(number.phone_number_id, REGISTRATION, code="", needs_code=False)
        return error

    if (error := await state.transact(write)) is not None:  # the wrong code counts
        raise error
    return GRAPH_SUCCESS


def use_code(transaction: Transaction, digits: str, text: str) -> GraphApiError | None:
    """Use a number's code; return the error if it is wrong: raised, it would undo the count of wrong codes."""
    if is_locked(transaction, digits):
        return bad_parameter("Param code: too many wrong codes were tried; try again in 12 hours.")
    return None if check_code(transaction, digits, text) else bad_parameter("Param code is not the code that was sent.")
