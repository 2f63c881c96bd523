"""Faults that a seed chooses: responses of the service, the operator and the receiver, and connections that break."""

import asyncio
from enum import StrEnum
from typing import Any, Final

from simulation.choices import Choices, declare

_SLOW_S: Final = (0.5, 5, 20)
_HANGS_S: Final = 40
"""Longer than any call waits."""
_BREAK_EVERY_S: Final = 0.05


class Fault(StrEnum):
    """What a request gets instead of its response."""

    ERROR = "error"  # 500, nothing is done
    TOO_MANY = "too many"  # 429
    RETRY_AFTER = "retry after"  # 429 with the header
    HANGS = "hangs"
    DONE_AND_LOST = "done and lost"  # it is done, and the response is an error
    SLOW = "slow"
    RESET = "reset"  # a connection breaks, at both ends


_STATUSES: Final = {
    Fault.ERROR: 500, Fault.TOO_MANY: 429, Fault.RETRY_AFTER: 429, Fault.HANGS: 503, Fault.DONE_AND_LOST: 502,
}  # fmt: skip


_OF_REQUESTS: Final = tuple(fault for fault in Fault if fault is not Fault.RESET)
_SERVERS: Final = {"service": "the service", "operator": "the operator", "receiver": "the receiver"}
_WORDS: Final = {
    Fault.ERROR: "{} answered 500 and did nothing",
    Fault.TOO_MANY: "{} answered 429",
    Fault.RETRY_AFTER: "{} answered 429 with Retry-After",
    Fault.HANGS: "{} did not answer",
    Fault.DONE_AND_LOST: "{} did what was asked and answered 502",
    Fault.SLOW: "{} was slow",
}
declare({f"{name}: {fault}": words.format(who) for name, who in _SERVERS.items() for fault, words in _WORDS.items()})
declare({"reset": "a connection was reset"})


class Faults:
    """The faults of one run, until `stop`.

    Args:
        choices: of the seed.
        transports: all ends of connections; new ones are added to it.
    """

    def __init__(self, choices: Choices, transports: list[Any]) -> None:
        self._choices = choices
        self._transports = transports
        self._is_on = True

    def stop(self) -> None:
        """Let everything succeed from now on."""
        self._is_on = False

    def around(self, application: Any, name: str, share: float) -> Any:
        """Return an application of which this share of the requests meets a fault."""

        async def with_faults(scope: Any, receive: Any, send: Any) -> None:
            fault = self._fault_of(name, share)
            if fault is None:
                await application(scope, receive, send)
                return
            if fault is Fault.SLOW:
                scope["arrived_s"] = asyncio.get_running_loop().time()
                await asyncio.sleep(self._choices.pick("seconds", _SLOW_S, of=f"{name}: {fault}"))
                await application(scope, receive, send)
                return
            if fault is Fault.HANGS:
                await asyncio.sleep(_HANGS_S)
            if fault is Fault.DONE_AND_LOST:
                await application(scope, receive, _ignore)
            else:
                await read_body(receive)
            headers = [(b"retry-after", b"3")] if fault is Fault.RETRY_AFTER else []
            await respond(send, _STATUSES[fault], headers)

        return with_faults

    def _fault_of(self, name: str, share: float) -> Fault | None:
        if not self._is_on:
            return None
        share /= len(_OF_REQUESTS)
        return next(iter([fault for fault in _OF_REQUESTS if self._choices.happens(f"{name}: {fault}", share)]), None)

    async def break_connections(self) -> None:
        """Break connections until `stop`."""
        while self._is_on:
            await asyncio.sleep(_BREAK_EVERY_S)
            open_ones = [transport for transport in self._transports if not transport.is_closing()]
            if self._choices.happens("reset", 0.07) and open_ones:
                broken = self._choices.pick("connection", open_ones, of="reset")
                peer = broken._peer
                broken._force_close(ConnectionResetError("the connection was reset"))
                if peer is not None and not peer.is_closing():
                    peer._reset_by_peer()


async def read_body(receive: Any) -> bytes:
    """Return the whole body of a request; empty if the client disconnects before its end."""
    body = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return b""
        body += message.get("body", b"")
        if not message.get("more_body"):
            return body


async def respond(send: Any, status: int, headers: list[tuple[bytes, bytes]]) -> None:
    """Send a response without a body."""
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", b"0"), *headers]})
    await send({"type": "http.response.body", "body": b""})


async def _ignore(_message: Any) -> None:
    pass
