"""Faults of calls: a call that is not carried out, and a response that is late, cut off, not JSON, or never sent."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from msgspec.structs import replace

from waypost.base.json_values import object_of, text_or_none
from waypost.simulator.apis.errors import TITLES, GraphApiError
from waypost.simulator.apis.requests import Call, Download, Receive, Scope, Send
from waypost.simulator.faults.model import ArmedFault, FaultSubject, armed_faults, select_fault
from waypost.simulator.state.phones import find_number, phone_digits
from waypost.simulator.state.simulator_state import SimulatorState
from waypost.simulator.templates.template import SimulatedTemplate

CONNECTION_EXTENSION: Final = "waypost.connection"
"""The extension of an ASGI scope through which our servers let an application break a connection."""

_HTML_PAGE: Final = (
    b"<!DOCTYPE html>\n<html><head><title>502 Bad Gateway</title></head>\n"
    b"<body><h1>502 Bad Gateway</h1></body></html>\n"
)
_TRUNCATED_JSON: Final = b'{"messaging_product":"whatsapp","contacts":[{"input":"'
# fmt: off
_BODIES: Final = {  # Source: facts 5.1: bodies of 5xx may be HTML
    # garbage     content type                        body
    "html":      (b"text/html; charset=UTF-8",        _HTML_PAGE),
    "truncated": (b"application/json; charset=UTF-8", _TRUNCATED_JSON),
    "empty":     (b"text/plain",                      b""),
    "not_json":  (b"application/json; charset=UTF-8", b'{"messaging_product": whatsapp, contacts}'),
}
# fmt: on


class ClientConnection(Protocol):
    """The connection of a request."""

    def reset(self) -> None:
        """Reset it at once."""
        ...

    def hang_up(self) -> None:
        """Close it after the written bytes have been sent."""
        ...

    def withhold(self) -> None:
        """Let a server that is stopping not wait for this response."""
        ...


CallOutcome = dict[str, Any] | Download | GraphApiError
"""The result or error of a call."""


@dataclass(frozen=True)
class FaultedResponse:
    """A response that a fault changes."""

    fault: ArmedFault  # a row of kind `slow_ms`, `timeout`, `reset` or `garbage`
    outcome: CallOutcome | None = None  # the call's result or error; None if it was not carried out

    async def send(self, scope: Scope, receive: Receive, send: Send) -> CallOutcome | None:
        """Respond as the fault defines, and return when that is done or the client has disconnected.

        Returns:
            The outcome to send as a normal response; None if nothing more is to be sent.
        """
        extensions: dict[str, Any] = scope.get("extensions") or {}
        connection: ClientConnection | None = extensions.get(CONNECTION_EXTENSION)
        match self.fault.fault_kind.name:
            case "slow_ms":
                if connection is not None:
                    connection.withhold()
                is_disconnected = await _wait_for_disconnect(receive, timeout_s=self.fault.value / 1000)
                return None if is_disconnected else self.outcome
            case "timeout":
                if connection is not None:
                    connection.withhold()
                await _wait_for_disconnect(receive)
            case "reset" if connection is not None:
                connection.reset()
                await _wait_for_disconnect(receive)
            case "reset":
                # Another server: the nearest equivalent is a response that announces a byte and never sends it.
                await _start_response(send, 200, b"text/plain", 1)
            case _:
                await self._send_garbage(connection, receive, send)
        return None

    async def _send_garbage(self, connection: ClientConnection | None, receive: Receive, send: Send) -> None:
        kind: str = self.fault.value
        content_type, body = _BODIES[kind]
        is_cut = kind == "truncated"
        length = 2 * len(body) if is_cut else len(body)
        await _start_response(send, self.fault.effect.get("status", 502), content_type, length)
        await send({"type": "http.response.body", "body": body, "more_body": is_cut})
        if is_cut and connection is not None:
            connection.hang_up()
            await _wait_for_disconnect(receive)


async def _start_response(send: Send, status: int, content_type: bytes, length: int) -> None:
    headers = [(b"content-type", content_type), (b"content-length", str(length).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})


async def _wait_for_disconnect(receive: Receive, *, timeout_s: float | None = None) -> bool:
    """True if the client disconnects in time; without a limit, wait until it does."""
    try:
        async with asyncio.timeout(timeout_s):
            while (await receive())["type"] != "http.disconnect":
                pass
    except TimeoutError:
        return False
    return True


CallWork = Callable[[Call], Awaitable[dict[str, Any] | Download]]


class InjectedError(GraphApiError):
    """An error caused by a fault; sent as the fault defines it, whatever the settings are."""


async def carry_out(
    state: SimulatorState, call: Call, name: str, waba_id: str, target: object, work: CallWork
) -> dict[str, Any] | Download | FaultedResponse:
    """Carry out a call, unless an armed fault prevents it, and return its result.

    Args:
        name: see `call_names`.
        waba_id: of the call's account; empty if it has none.
        target: the object that the call is about.
        work: carries out the call.

    Raises:
        GraphApiError: the call's own error, or one caused by a fault.
    """
    if not armed_faults(state, "call"):
        return await work(call)
    account = state.accounts.by_id.get(waba_id)
    number = state.accounts.numbers.get(getattr(target, "phone_number_id", ""))
    phone = find_number(state, phone_digits(call.fields.get("to")) or "")
    content = object_of(call.fields.get("template")) or call.fields
    subject = FaultSubject(
        name=name,
        app=call.app_id or (account.app_id if account else ""),
        waba_id=waba_id,
        number=(number.phone_number_id, number.phone_number) if number else (),
        phone=phone,
        template=target.name if isinstance(target, SimulatedTemplate) else text_or_none(content.get("name")) or "",
        subject=phone or call.object_id,
    )
    fault = await state.transact(lambda transaction: select_fault(state, transaction, "call", [subject]))
    if fault is None:
        return await work(call)
    match fault.fault_kind.name:
        case "error":
            raise build_injected_error(fault)
        case "fail":
            return await work(replace(call, fail_code=fault.value))
        case "reset":
            is_carried_out = fault.value == "after"
        case kind:
            is_carried_out = bool(fault.effect.get("processed", kind != "garbage"))
    try:
        return FaultedResponse(fault, await work(call) if is_carried_out else None)
    except GraphApiError as error:  # an error too may be sent late or lost
        return FaultedResponse(fault, error)


def build_injected_error(fault: ArmedFault) -> InjectedError:
    """Return the error of a fault of kind `error`. Source: facts 5.1, 5.2."""
    details, code = fault.effect, int(fault.value)
    status, title = TITLES.get(code, (400, "An error occurred"))
    error: dict[str, Any] = {"message": f"(#{code}) {title}", "type": "OAuthException", "code": code}
    if "subcode" in details:
        error["error_subcode"] = details["subcode"]
    if "details" in details:
        error["error_data"] = {"messaging_product": "whatsapp", "details": details["details"]}
    return InjectedError(details.get("status", status), error, retry_after_s=details.get("retry_after_s"))
