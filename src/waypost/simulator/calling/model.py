"""Voice calls from phones to business numbers: their states, and the webhook about each start and end.

Source: the operator's page "Calling API"; ledger row 78.
"""

import base64
from enum import StrEnum
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from waypost.base.ids import Ids
from waypost.simulator.apis.errors import GraphApiError, message_error
from waypost.simulator.state.phones import fill_user_id, find_phone, show_to_business
from waypost.simulator.state.simulator_state import SimulatorState, Transaction
from waypost.simulator.storage.keyed_store import StoredKind
from waypost.simulator.storage.tables.updates import delete_scheduled

RING_MS: Final = 60_000
"""How long a business has to accept a call."""
USER_INITIATED: Final = "USER_INITIATED"


class CallState(StrEnum):
    """The states of a call, in their order; a call may end in each."""

    RINGING = "ringing"
    PRE_ACCEPTED = "pre_accepted"
    CONNECTED = "connected"
    ENDED = "ended"


class SimulatedCall(msgspec.Struct, frozen=True):
    """One call."""

    call_id: str
    phone: str
    phone_number_id: str
    started_ms: int
    sdp: str  # the phone's offer, or the placeholder of a phone without media
    business_sdp: str = ""  # the business's SDP from its `pre_accept` or `accept`; empty until then
    connected_ms: int | None = None  # when the business accepted the call; None: it did not
    ended_ms: int | None = None  # when either side ended it; None: neither has
    callback_data: str | None = None  # the business's own text of its `accept`, which the last webhook returns

    @property
    def rings_until_ms(self) -> int:
        """The time at which the call ends by itself if the business has not accepted it."""
        return self.started_ms + RING_MS

    def state_at(self, now_ms: int) -> CallState:
        """Return the call's state at a time; a call that nobody accepts ends by itself."""
        if self.ended_ms is not None:
            return CallState.ENDED
        if self.connected_ms is not None:
            return CallState.CONNECTED
        if now_ms >= self.rings_until_ms:
            return CallState.ENDED
        return CallState.PRE_ACCEPTED if self.business_sdp else CallState.RINGING


CALLS: Final = StoredKind("call", SimulatedCall)
"""The newest call of each phone with each number: of a number, by phone.

While a call rings, the webhook about its end is in the outbox already, due when it would end by itself.
"""


def calls_by_id(state: SimulatorState) -> dict[str, SimulatedCall]:
    """Return every call."""
    return {call.call_id: call for _, _, call in state.cached(CALLS).items()}


def find_newest(transaction: Transaction, call: SimulatedCall) -> SimulatedCall:
    """Return a call as it is now; one that a later call has replaced had ended."""
    known = transaction.find(CALLS, call.phone, call.phone_number_id)
    if known is not None and known.call_id == call.call_id:
        return known
    return replace(call, ended_ms=call.rings_until_ms)


def save_call(transaction: Transaction, call: SimulatedCall) -> None:
    """Store a call."""
    transaction.save(CALLS, call, call.phone, call.phone_number_id)


def unschedule_end(transaction: Transaction, call: SimulatedCall) -> None:
    """Delete the webhook about the end that did not come by itself."""
    waba_id = transaction.state.accounts.numbers[call.phone_number_id].waba_id
    transaction.run(delete_scheduled(call.call_id, waba_id, transaction.state.clock.now_ms(), ""))


def end_call(transaction: Transaction, call: SimulatedCall) -> SimulatedCall:
    """End a call now, and return it."""
    now_ms = transaction.state.clock.now_ms()
    ended = replace(call, ended_ms=now_ms)
    save_call(transaction, ended)
    unschedule_end(transaction, ended)
    send_end(transaction, ended, now_ms)
    return ended


def send_end(transaction: Transaction, call: SimulatedCall, ended_ms: int) -> None:
    """Send the webhook about the end of a call; times and duration only if it was connected."""
    members: dict[str, Any] = {"status": "FAILED"}
    if call.connected_ms is not None:
        start_s, end_s = call.connected_ms // 1000, ended_ms // 1000
        times = {"start_time": str(start_s), "end_time": str(end_s), "duration": end_s - start_s}
        members = {"status": "COMPLETED", **times}
    if call.callback_data is not None:
        members = {"biz_opaque_callback_data": call.callback_data, **members}
    send(transaction, call, ended_ms, "terminate", members)


def send(transaction: Transaction, call: SimulatedCall, at_ms: int, event: str, members: dict[str, Any]) -> None:
    """Send the webhook about an event of a call: `connect` or `terminate`."""
    state = transaction.state
    number, phone = state.accounts.numbers[call.phone_number_id], find_phone(state, call.phone)
    seen = show_to_business(state, fill_user_id(state, phone), call.phone_number_id, state.clock.now_ms())
    shown = {
        "id": call.call_id,
        "to": number.phone_number,
        **seen.identity_members("from", "from_user_id"),
        "event": event,
        "timestamp": str(at_ms // 1000),
        "direction": USER_INITIATED,
        **members,
    }
    contact = show_to_business(state, phone, call.phone_number_id, at_ms).contact()
    value = number.webhook_value(contacts=[contact], calls=[shown])
    transaction.notify(number.waba_id, "calls", value, at_ms=at_ms, subject=call.call_id)


def call_error(details: str) -> GraphApiError:
    """Return the error for a call that is unknown or in another state."""
    return message_error(100, details)


def make_call_id(ids: Ids, phone: str) -> str:
    """Return a new id of a call, which begins as the operator's do."""
    chance = ids.new().replace("-", "").upper()[-20:]
    return "wacid." + base64.urlsafe_b64encode(f"{phone}:{chance}".encode()).decode().rstrip("=")
