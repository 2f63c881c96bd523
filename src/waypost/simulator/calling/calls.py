"""Starting, accepting and ending calls, and the webhook about each start and end."""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import replace

from waypost.base.clock import Clock
from waypost.base.ids import Ids
from waypost.simulator.accounts.accounts import Accounts, Number
from waypost.simulator.calling.call import CallState, SimulatedCall, make_call_id
from waypost.simulator.control_error import ControlApiError
from waypost.simulator.errors import GraphApiError, message_error
from waypost.simulator.keyed_store import CachedKeyedValues
from waypost.simulator.outbox import Outbox
from waypost.simulator.phones.phones import Phones
from waypost.simulator.store import Statement, Store
from waypost.simulator.tables.updates import add_update, delete_scheduled

CALLS_FIELD: Final = "calls"
"""The webhook field. Source: ledger row 78; the operator's page "Calling API"."""


class Calls:
    """The newest call of each phone with each number; in memory, and written through. Changes run one at a time.

    While a call rings, the webhook about its end is in the outbox already, due when it would end by itself.
    """

    def __init__(
        self, store: Store, clock: Clock, ids: Ids, accounts: Accounts, phones: Phones, outbox: Outbox
    ) -> None:
        self._clock = clock
        self._ids = ids
        self._accounts = accounts
        self._phones = phones
        self._outbox = outbox
        self._changes = asyncio.Lock()
        self._calls = CachedKeyedValues(store, "call", SimulatedCall)  # of a number, by phone
        self.by_id = self._calls.index(lambda call: (call.call_id,))

    def phone_calls(self, phone: str) -> list[SimulatedCall]:
        """Return a phone's calls, oldest first."""
        calls = [call for _, key, call in self._calls.items() if key == phone]
        return sorted(calls, key=lambda call: (call.started_ms, call.call_id))

    def state_of(self, call: SimulatedCall) -> CallState:
        """Return a call's state now."""
        return call.state_at(self._clock.now_ms())

    async def start(self, phone: str, number: Number, sdp: str) -> SimulatedCall:
        """Call a business number from a phone.

        Raises:
            ControlApiError: 409, a call of the two has not ended.
        """
        handset, is_new = self._phones.find_or_create(phone)
        new_phone = [self._phones.add_statement(handset.phone)] if is_new else []
        async with self._changes:
            now_ms = self._clock.now_ms()
            earlier = self._calls.values_of(number.phone_number_id).get(phone)
            if earlier is not None and earlier.state_at(now_ms) is not CallState.ENDED:
                accepted = f"DELETE /control/phones/{phone}/calls/{earlier.call_id} first"
                raise ControlApiError("to", "has a call with this phone already", accepted, status=409)
            call = SimulatedCall(make_call_id(self._ids, phone), phone, number.phone_number_id, now_ms, sdp)
            connect = self._update(call, call.connect_members(number.phone_number, self._identity(call)), now_ms)
            await self._save(call, [*new_phone, *connect, *self._terminate(call, call.rings_until_ms)])
        return call

    async def pre_accept(self, call: SimulatedCall, sdp: str) -> None:
        """Apply a business's SDP before it accepts a call, which goes on ringing.

        Raises:
            GraphApiError: 100, the call does not ring.
        """
        async with self._changes:
            ringing = self._ringing(call, sdp)
            await self._save(replace(ringing, business_sdp=sdp), [])

    async def accept(self, call: SimulatedCall, sdp: str, callback_data: str | None) -> None:
        """Connect a call.

        Raises:
            GraphApiError: 100, the call does not ring, or the SDP is not that of the business's `pre_accept`.
        """
        async with self._changes:
            ringing, now_ms = self._ringing(call, sdp), self._clock.now_ms()
            connected = replace(ringing, business_sdp=sdp, connected_ms=now_ms, callback_data=callback_data)
            await self._save(connected, [self._unschedule(connected, now_ms)])

    async def reject(self, call: SimulatedCall) -> None:
        """End a call that rings.

        Raises:
            GraphApiError: 100, it does not.
        """
        async with self._changes:
            await self._end(self._ringing(call))

    async def terminate(self, call: SimulatedCall) -> None:
        """End a call for the business.

        Raises:
            GraphApiError: 100, it has ended.
        """
        async with self._changes:
            current = self._newest(call)
            if self.state_of(current) is CallState.ENDED:
                raise call_error("The call has ended.")
            await self._end(current)

    async def hang_up(self, call: SimulatedCall) -> SimulatedCall:
        """End a call for the phone's owner, and return it.

        Raises:
            ControlApiError: 409, it has ended.
        """
        async with self._changes:
            current = self._newest(call)
            if self.state_of(current) is CallState.ENDED:
                raise ControlApiError("call_id", "the call has ended", "a call that has not", status=409)
            return await self._end(current)

    def _newest(self, call: SimulatedCall) -> SimulatedCall:
        """Return a call as it is now; one that a later call has replaced had ended."""
        return self.by_id.get(call.call_id) or replace(call, ended_ms=call.rings_until_ms)

    def _ringing(self, call: SimulatedCall, sdp: str | None = None) -> SimulatedCall:
        """Return a call as it is now, which must ring; a new SDP must be that of an earlier `pre_accept`."""
        current = self._newest(call)
        match self.state_of(current):
            case CallState.ENDED:
                raise call_error("The call has ended.")
            case CallState.CONNECTED:
                raise call_error("The call has been accepted already.")
            case CallState.PRE_ACCEPTED if sdp is not None and sdp != current.business_sdp:
                raise call_error("SDP Validation error: the SDP differs from that of the pre_accept.")
            case CallState.PRE_ACCEPTED | CallState.RINGING:
                return current

    async def _end(self, call: SimulatedCall) -> SimulatedCall:
        now_ms = self._clock.now_ms()
        ended = replace(call, ended_ms=now_ms)
        await self._save(ended, [self._unschedule(ended, now_ms), *self._terminate(ended, now_ms)])
        return ended

    async def _save(self, call: SimulatedCall, statements: Sequence[Statement]) -> None:
        await self._calls.save(call, call.phone, call.phone_number_id, also=statements)
        self._outbox.wake_events(self._accounts.numbers[call.phone_number_id].waba_id).set()

    def _terminate(self, call: SimulatedCall, at_ms: int) -> list[Statement]:
        number = self._accounts.numbers[call.phone_number_id]
        return self._update(call, call.terminate_members(number.phone_number, self._identity(call), at_ms), at_ms)

    def _update(self, call: SimulatedCall, members: dict[str, Any], at_ms: int) -> list[Statement]:
        """Return the statement that queues a webhook about a call; none if the account has no receiver."""
        number = self._accounts.numbers[call.phone_number_id]
        if not self._outbox.has_subscribers(number.waba_id):
            return []
        seen = self._phones.seen_by(self._phones.find_or_default(call.phone), call.phone_number_id, at_ms)
        value = {
            "messaging_product": "whatsapp",
            "metadata": {"display_phone_number": number.phone_number, "phone_number_id": number.phone_number_id},
            "contacts": [seen.contact()],
            "calls": [members],
        }
        update = self._outbox.account_update(number.waba_id, at_ms, CALLS_FIELD, value, subject=call.call_id)
        return [add_update(update)]

    def _unschedule(self, call: SimulatedCall, now_ms: int) -> Statement:
        """Return the statement that deletes the webhook about the end that did not come by itself."""
        waba_id = self._accounts.numbers[call.phone_number_id].waba_id
        return delete_scheduled(call.call_id, waba_id, now_ms, "")

    def _identity(self, call: SimulatedCall) -> dict[str, str]:
        handset = self._phones.fill_user_id(self._phones.find_or_default(call.phone))
        seen = self._phones.seen_by(handset, call.phone_number_id, self._clock.now_ms())
        return seen.identity_members("from", "from_user_id")


def call_error(details: str) -> GraphApiError:
    """Return the error for a call that is unknown or in another state. Source: the operator's page "Calling API"."""
    return message_error(100, details)
