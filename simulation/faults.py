"""Faults that a seed chooses: responses of the service, the operator and the receiver, and connections that break."""

import asyncio
import random
from collections import Counter
from enum import StrEnum
from typing import Any, Final

_SLOW_S: Final = (0.5, 5, 20)
_HANGS_S: Final = 40
"""Longer than any call waits."""
_BREAK_AFTER_S: Final = (0.005, 0.02, 0.1, 1)


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


class Faults:
    """The faults of one run, until `stop`.

    Args:
        chance: of the seed.
        transports: all ends of connections; new ones are added to it.
    """

    def __init__(self, chance: random.Random, transports: list[Any]) -> None:
        self.counts: Counter[str] = Counter()
        self._chance = chance
        self._transports = transports
        self._is_on = True

    def stop(self) -> None:
        """Let everything succeed from now on."""
        self._is_on = False

    def around(self, application: Any, name: str, share: float) -> Any:
        """Return an application of which this share of the requests meets a fault."""

        async def with_faults(scope: Any, receive: Any, send: Any) -> None:
            if not self._is_on or self._chance.random() >= share:
                await application(scope, receive, send)
                return
            fault = self._chance.choice([fault for fault in Fault if fault is not Fault.RESET])
            self.counts[f"{name}: {fault}"] += 1
            if fault is Fault.SLOW:
                scope["arrived_s"] = asyncio.get_running_loop().time()
                await asyncio.sleep(self._chance.choice(_SLOW_S))
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

    async def break_connections(self) -> None:
        """Break random connections until `stop`."""
        while self._is_on:
            await asyncio.sleep(self._chance.choice(_BREAK_AFTER_S))
            open_ones = [transport for transport in self._transports if not transport.is_closing()]
            if open_ones and self._chance.random() < 0.5:
                self.counts[str(Fault.RESET)] += 1
                broken = self._chance.choice(open_ones)
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
