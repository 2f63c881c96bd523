"""Answers that go wrong on purpose: late, broken off, no JSON, or none at all."""

import asyncio
from dataclasses import dataclass
from typing import Any, Final, Protocol

from waypost.simulator.errors import GraphRefused
from waypost.simulator.faults.fault import Fault
from waypost.simulator.requests import Download, Receive, Scope, Send

LINE: Final = "waypost.line"
"""The extension of an ASGI scope by which our servers let an application break a connection."""

_PAGE: Final = (
    b"<!DOCTYPE html>\n<html><head><title>502 Bad Gateway</title></head>\n"
    b"<body><h1>502 Bad Gateway</h1></body></html>\n"
)
_HALF: Final = b'{"messaging_product":"whatsapp","contacts":[{"input":"'
# fmt: off
_BODIES: Final = {  # Source: facts 5.1: bodies of 5xx may be HTML
    # garbage     content type                        body
    "html":      (b"text/html; charset=UTF-8",        _PAGE),
    "truncated": (b"application/json; charset=UTF-8", _HALF),
    "empty":     (b"text/plain",                      b""),
    "not_json":  (b"application/json; charset=UTF-8", b'{"messaging_product": whatsapp, contacts}'),
}
# fmt: on


class Line(Protocol):
    """The connection that a request came on."""

    def reset(self) -> None:
        """Break it at once."""
        ...

    def hang_up(self) -> None:
        """Close it after what has been written."""
        ...

    def withhold(self) -> None:
        """Let a server that stops not wait for this answer."""
        ...


Outcome = dict[str, Any] | Download | GraphRefused
"""What a call has come to."""


@dataclass(frozen=True)
class Spoiled:
    """What is to become of an answer.

    Args:
        fault: a row of kind `slow_ms`, `timeout`, `reset` or `garbage`.
        outcome: what the call came to; None where it was not carried out.
    """

    fault: Fault
    outcome: Outcome | None = None

    async def send(self, scope: Scope, receive: Receive, send: Send) -> Outcome | None:
        """Answer as the fault says, and return when that is over, or the client is gone.

        Returns:
            What is to be answered properly after all; None where nothing is.
        """
        extensions: dict[str, Any] = scope.get("extensions") or {}
        line: Line | None = extensions.get(LINE)
        match self.fault.kind.name:
            case "slow_ms":
                if line is not None:
                    line.withhold()
                is_gone = await _gone(receive, within_s=self.fault.value / 1000)
                return None if is_gone else self.outcome
            case "timeout":
                if line is not None:
                    line.withhold()
                await _gone(receive)
            case "reset" if line is not None:
                line.reset()
                await _gone(receive)
            case "reset":
                # A foreign server: the nearest is an answer that announces a byte and never brings it.
                await _start(send, 200, b"text/plain", 1)
            case _:
                await self._garbage(line, receive, send)
        return None

    async def _garbage(self, line: Line | None, receive: Receive, send: Send) -> None:
        how: str = self.fault.value
        content_type, body = _BODIES[how]
        is_cut = how == "truncated"
        length = 2 * len(body) if is_cut else len(body)
        await _start(send, self.fault.what.get("status", 502), content_type, length)
        await send({"type": "http.response.body", "body": body, "more_body": is_cut})
        if is_cut and line is not None:
            line.hang_up()
            await _gone(receive)


async def _start(send: Send, status: int, content_type: bytes, length: int) -> None:
    headers = [(b"content-type", content_type), (b"content-length", str(length).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})


async def _gone(receive: Receive, *, within_s: float | None = None) -> bool:
    """Whether the client has hung up in time; without a limit, wait until it has."""
    try:
        async with asyncio.timeout(within_s):
            while (await receive())["type"] != "http.disconnect":
                pass
    except TimeoutError:
        return False
    return True
