"""Parameters of control calls that several subjects share: accounts, apps, numbers and phones by their names."""

from typing import Annotated

from starlette.requests import Request

from waypost.simulator.apis.control_error import ControlApiError
from waypost.simulator.apis.control_operations import ParameterReader, find, path_object
from waypost.simulator.state.accounts import Account, GraphApp, Number
from waypost.simulator.state.phones import find_number, find_phone, phone_digits
from waypost.simulator.state.simulator_state import SimulatorState


def _read_phone(state: SimulatorState, request: Request) -> str:
    digits = phone_digits(request.path_params["phone"])
    if digits is None:
        raise ControlApiError("phone", "is not a phone number", "8 to 15 digits, the first not 0")
    return find_number(state, digits)


PathPhone = Annotated[str, ParameterReader(_read_phone)]
PathAccount = Annotated[Account, path_object("waba_id", lambda state: state.accounts.by_id, "is no account")]
PathApp = Annotated[GraphApp, path_object("app_id", lambda state: state.accounts.apps, "is no app")]
PathNumber = Annotated[Number, path_object("phone_number_id", lambda state: state.accounts.numbers, "is no number")]


def business_number(state: SimulatorState, digits: str) -> Number:
    """Return the business number that has these digits.

    Raises:
        ControlApiError: there is none.
    """
    return find(state.accounts.numbers_by_digits, digits.lstrip("+"), field="to", rule="is no business number")


def check_reachable(state: SimulatorState, phone: str, number: Number) -> None:
    """Check that a phone is online and has not blocked the business."""
    check_online(state, phone)
    if number.phone_number_id in find_phone(state, phone).has_blocked:
        accepted = f"POST /control/phones/{phone}/block with blocks: false first"
        raise ControlApiError("to", "has been blocked by the phone's owner", accepted, status=409)


def check_online(state: SimulatorState, phone: str) -> None:
    """Check that a phone is online."""
    if find_phone(state, phone).is_offline:
        accepted = f"PUT /control/phones/{phone} with is_offline: false first"
        raise ControlApiError("phone", "is offline", accepted, status=409)
