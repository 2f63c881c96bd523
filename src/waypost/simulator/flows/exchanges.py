"""The exchanges with endpoints that are kept for people: decrypted, timed, and with a diagnosis."""

from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from waypost.base.written_numbers import encode_json
from waypost.simulator.state.simulator_state import SimulatorState, Transaction
from waypost.simulator.storage.keyed_store import StoredKind

MAX_STORED_EXCHANGES: Final = 200
"""Of one Flow, the newest."""
MAX_STORED_BYTES: Final = 64 * 1024
"""A larger request or response is kept without its content."""


class EndpointExchange(Struct, frozen=True):
    """A request to an endpoint, and what came of it.

    Attributes:
        request: as it was before encryption.
        status: of HTTP; 0 if there is no response.
        response: decrypted; empty if it failed.
        error_type: the operator's name of what failed; empty if nothing did.
        diagnosis: the same for people.
        warnings: what is against the documentation, although handsets accept it; what a fault has shown.
        user_message: the endpoint's own text for the user, of a 427.
        endpoint_uri: where the request was sent.
        at_ms: when it was sent.
        duration_ms: of real time, until the response was read or given up; with a second attempt, of both.
        attempts: 2 after a 421, 0 if nothing was sent.
        fault: the armed fault that had an effect: its id and kind.
        wamid: of the message with the Flow; empty if none is known.
        phone: digits; empty if none is known.
        omitted: of `request` and `response`, what is too large to be kept.
    """

    request: dict[str, Any]
    status: int = 0
    response: dict[str, Any] = {}
    error_type: str = ""
    diagnosis: str = ""
    warnings: list[str] = []
    user_message: str = ""
    endpoint_uri: str = ""
    at_ms: int = 0
    duration_ms: int = 0
    attempts: int = 1
    fault: str = ""
    wamid: str = ""
    phone: str = ""
    omitted: list[str] = []

    @property
    def is_token_invalid(self) -> bool:
        """True if the flow token is no longer valid: the message's button is disabled for good."""
        return self.status == 427


class StoredExchange(Struct, frozen=True):
    """An exchange with its number, from 1 in each Flow."""

    number: int
    exchange: EndpointExchange


_EXCHANGES: Final = StoredKind("flow_exchange", StoredExchange, in_memory=False)  # of a flow, by number
_LAST_NUMBERS: Final = StoredKind("flow_exchange_number", int)  # of a flow's newest exchange


def add_exchange(transaction: Transaction, flow_id: str, exchange: EndpointExchange) -> None:
    """Store an exchange, and delete the one that is too old."""
    number = (transaction.find(_LAST_NUMBERS, flow_id) or 0) + 1
    transaction.save(_LAST_NUMBERS, number, flow_id)
    transaction.run(
        _EXCHANGES.save_statement(StoredExchange(number, omit_large(exchange)), str(number), flow_id),
        _EXCHANGES.delete_statement(str(number - MAX_STORED_EXCHANGES), flow_id),
    )


def delete_exchanges(transaction: Transaction, flow_id: str) -> None:
    """Delete what is kept of a Flow's exchanges."""
    transaction.run(_EXCHANGES.delete_owner_statement(flow_id))
    transaction.delete(_LAST_NUMBERS, flow_id)


async def list_exchanges(state: SimulatorState, flow_id: str) -> list[StoredExchange]:
    """Return the exchanges of a Flow that are kept, oldest first."""
    found = await state.store.read(lambda connection: _EXCHANGES.values_on(connection, flow_id))
    return list(found.values())


async def list_message_exchanges(state: SimulatorState, wamid: str) -> list[StoredExchange]:
    """Return the exchanges of one message that are kept, oldest first."""
    return await state.store.read(lambda connection: _EXCHANGES.find_by_member_on(connection, "exchange.wamid", wamid))


def omit_large(exchange: EndpointExchange) -> EndpointExchange:
    """Return an exchange as it is kept: without a request or response that is too large."""
    omitted: list[str] = []
    for name in ("request", "response"):
        try:
            size = len(encode_json(getattr(exchange, name)))
        except (msgspec.MsgspecError, ValueError, RecursionError):  # nested too deeply to be written
            size = MAX_STORED_BYTES + 1
        if size > MAX_STORED_BYTES:
            omitted.append(name)
    empty: dict[str, Any] = {name: {} for name in omitted}
    return replace(exchange, **empty, omitted=omitted) if omitted else exchange
