"""Control API calls for voice calls: calling a business and hanging up as a phone's owner."""

from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from waypost.simulator.apis.control_error import ControlApiError
from waypost.simulator.apis.control_operations import ControlOperations, path_object, view_of
from waypost.simulator.apis.field_types import BusinessNumber
from waypost.simulator.calling.model import (
    CALLS,
    CallState,
    SimulatedCall,
    calls_by_id,
    end_call,
    find_newest,
    make_call_id,
    save_call,
    send,
    send_end,
)
from waypost.simulator.numbers.calling_settings import is_calling_enabled, is_sip_enabled
from waypost.simulator.numbers.model import is_blocked
from waypost.simulator.state.control_parameters import PathPhone, business_number, check_reachable
from waypost.simulator.state.phones import find_or_create_phone
from waypost.simulator.state.records import SETTINGS
from waypost.simulator.state.simulator_state import SimulatorState, Transaction

_SDP: Final = "v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n"
"""The offer of a phone without media: a session description with nothing in it. Source: RFC 8866."""

PathCall = Annotated[
    SimulatedCall, path_object("call_id", calls_by_id, "is no call", "an id of GET /control/phones/{phone}/calls")
]

operation = ControlOperations()


class PhoneCall(Struct):
    """A call of a phone with a business."""

    call_id: str
    phone_number_id: str
    state: str
    started_ms: int
    connected_ms: int | None
    business_sdp: str | None


@operation("GET", "/control/phones/{phone}/calls", phone=str, calls=list[PhoneCall])
async def list_calls(state: SimulatorState, phone: PathPhone) -> dict[str, Any]:
    """Return the newest call of a phone with each business, with its state and the business's SDP."""
    calls = [call for call in calls_by_id(state).values() if call.phone == phone]
    calls.sort(key=lambda call: (call.started_ms, call.call_id))
    return {"phone": phone, "calls": [_call_view(state, call) for call in calls]}


@operation("POST", "/control/phones/{phone}/calls")
async def start_call(
    state: SimulatorState,
    phone: PathPhone,
    *,
    to: BusinessNumber,
    sdp: Annotated[str, Meta(min_length=1, max_length=65536)] = _SDP,
) -> PhoneCall:
    """Call a business number, whose settings must enable calling; the business receives a webhook.

    After 60 s without being accepted the call ends by itself.
    """
    number = business_number(state, to)
    check_reachable(state, phone, number)
    settings = state.record(number.phone_number_id, SETTINGS)
    if not is_calling_enabled(settings) or is_sip_enabled(settings):
        rule = "takes no calls by webhook: the number's settings do not enable calling, or enable SIP"
        raise ControlApiError("to", rule, "a number with calling.status ENABLED, without SIP", status=409)
    if is_blocked(state, number.phone_number_id, phone):
        raise ControlApiError("to", "has blocked the phone", "a business that has not", status=409)
    find_or_create_phone(state, phone)
    now_ms = state.clock.now_ms()
    call = SimulatedCall(make_call_id(state.ids, phone), phone, number.phone_number_id, now_ms, sdp)

    def write(transaction: Transaction) -> None:
        earlier = transaction.find(CALLS, phone, number.phone_number_id)
        if earlier is not None and earlier.state_at(now_ms) is not CallState.ENDED:
            accepted = f"DELETE /control/phones/{phone}/calls/{earlier.call_id} first"
            raise ControlApiError("to", "has a call with this phone already", accepted, status=409)
        save_call(transaction, call)
        send(transaction, call, now_ms, "connect", {"session": {"sdp_type": "offer", "sdp": call.sdp}})
        send_end(transaction, call, call.rings_until_ms)

    await state.transact(write)
    return _call_view(state, call)


@operation("DELETE", "/control/phones/{phone}/calls/{call_id}")
async def hang_up(state: SimulatorState, phone: PathPhone, phone_call: PathCall) -> PhoneCall:
    """End a call as the phone's owner, before or after it was accepted; the business receives a webhook."""
    if phone_call.phone != phone:
        raise ControlApiError(
            "call_id", "is not of this phone", f"one of GET /control/phones/{phone}/calls", status=404
        )

    def write(transaction: Transaction) -> SimulatedCall:
        current = find_newest(transaction, phone_call)
        if current.state_at(state.clock.now_ms()) is CallState.ENDED:
            raise ControlApiError("call_id", "the call has ended", "a call that has not", status=409)
        return end_call(transaction, current)

    return _call_view(state, await state.transact(write))


def _call_view(state: SimulatorState, call: SimulatedCall) -> PhoneCall:
    now_ms = state.clock.now_ms()
    return view_of(PhoneCall, call, state=call.state_at(now_ms), business_sdp=call.business_sdp or None)
