"""Responses changed by faults: late, cut off, not JSON, or never sent."""

import asyncio
from dataclasses import dataclass
from typing import Any, Final, Protocol

from waypost.simulator.errors import GraphApiError
from waypost.simulator.faults.fault import ArmedFault
from waypost.simulator.requests import Download, Receive, Scope, Send

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
    """A response that a fault changes.

    Args:
        fault: a row of kind `slow_ms`, `timeout`, `reset` or `garbage`.
        outcome: the call's result or error; None if it was not carried out.
    """

    fault: ArmedFault
    outcome: CallOutcome | None = None

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
