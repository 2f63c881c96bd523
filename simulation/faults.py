"""Faults that a seed chooses: responses of the service, the operator and receivers, connections, and the clock."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

from simulation.choices import Choices, declare
from simulation.observed import Observed

_SLOW_S: Final = (0.5, 2, 5, 20)
_SLOW_RESPONSE_S: Final = (40, 0.5, 5, 40)
"""Half of them are after all calls have given up."""
_HANGS_S: Final = 40
"""Longer than any call waits."""
_RETRY_AFTER_S: Final = (3, 1, 10, 30)
_ENDS_WITHIN_S: Final = 60
"""Longer than any fault takes. A request that is repeated in a process that was killed never ends."""
_BREAK_EVERY_S: Final = 0.25
_AWAY_EVERY_S: Final = 4
_WEBHOOKS_LATE_S: Final = (10, 45)
"""The last one is longer than the service waits for the response to a message, which its status may come before."""
_OVERLOADED_S: Final = (12, 3)
_THREAD_DELAYS_S: Final = (0.2, 0.05, 0.5)
_MOMENTS_S: Final = (3, 0.2, 8, 25)
_HUNG_S: Final = (0, 2, 15)
"""Before a site goes away it may take requests and answer none: then all connections break at once."""
TAKES_S: Final = (0, 0.3)
"""How long the operator and a receiver with faults take for each request while there are faults."""
_JUMPS_S: Final = {"jumps forward": (2, 30, 600, 3600), "is set back": (-2, -60, -3600), "slept": (5, 30, 300)}
SHARES: Final = {"service": 0.02, "operator": 0.05, "receiver 1": 0.05, "receiver 2": 0.05, "site": 0.05}
"""Of the requests to each, those that meet a certain fault."""


class Fault(StrEnum):
    """What a request meets, in plain words after the name of the site."""

    ERROR = "answers 500 and does nothing"
    TOO_MANY = "answers 429"
    RETRY_AFTER = "answers 429 with Retry-After"
    ODD_STATUS = "answers 404"
    HANGS = "does nothing and answers after 40 s"
    DONE_AND_LOST = "does it and answers 502"
    DONE_AND_WRONG = "does it and answers what is not JSON"
    WRONG = "does nothing and answers 200 that is not JSON"
    HALF = "does it and sends half of the response"
    CUT = "does it and closes the connection"
    SLOW = "takes the request late"
    SLOW_RESPONSE = "does it and answers late"
    TWICE = "gets a request twice"
    AGAIN = "gets a request again later"
    LOST = "answers 200 and the request is lost"


_NEVER: Final = "away"
"""Instead of a kind: whoever meets this gets no answer."""
_CONNECTIONS: Final = {"away": "is away", "reset": "loses a connection"}
_OF_WEBHOOKS: Final = (Fault.TWICE, Fault.AGAIN, Fault.LOST)
_BELIEVED: Final = {Fault.WRONG, Fault.DONE_AND_WRONG, *_OF_WEBHOOKS}
"""Who answers 200 and has not got it: no promise holds for such a receiver, or for a client of such a service."""
FAULTS: Final = {
    "service": [fault for fault in Fault if fault not in {*_BELIEVED, Fault.ODD_STATUS}],
    "operator": [fault for fault in Fault if fault not in _OF_WEBHOOKS],
    "receiver 1": [fault for fault in Fault if fault not in _BELIEVED],
    "receiver 2": [fault for fault in Fault if fault not in _BELIEVED],
    "site": [fault for fault in Fault if fault not in _BELIEVED],
}
_OPERATOR_ERROR: Final = b'{"error":{"message":"Too many","type":"OAuthException","code":130429}}'

declare({f"{site} {fault}": f"the {site} {fault}" for site, faults in FAULTS.items() for fault in faults})
declare({f"service {fault}": f"the service {fault}" for fault in _OF_WEBHOOKS})
declare({f"{site} {name}": f"the {site} {words}" for site in SHARES for name, words in _CONNECTIONS.items()})
declare({f"{site} has a bad moment": f"each request to the {site} met the same fault for a while" for site in SHARES})
declare({"webhooks are late": "no webhook of the operator reached the service for a while"})
declare({"operator is overloaded": "the operator answered after 40 s, and its webhooks came even later"})
declare({"threads are late": "each call of a thread began late for a while, as on a busy machine"})
declare({f"clock {name}": f"the clock {name}" for name in _JUMPS_S})
declare({"a receiver is healthy": "receiver 2 had no faults at all"})


class MachineClock:
    """The machine's clocks on virtual time, which a fault makes jump."""

    def __init__(self) -> None:
        self._ahead_ns = self._steady_ahead_ns = 0

    def jump(self, seconds: float, *, with_steady: bool) -> None:
        """Let the clock jump; the steady one only jumps forward, while the machine sleeps."""
        self._ahead_ns += int(seconds * 1e9)
        self._steady_ahead_ns += int(seconds * 1e9) if with_steady else 0

    def machine_ns(self) -> int:
        """Return nanoseconds since the epoch."""
        return time.time_ns() + self._ahead_ns

    def steady_ns(self) -> int:
        """Return nanoseconds without a fixed origin."""
        return time.monotonic_ns() + self._steady_ahead_ns


class Faults:
    """The faults of one run, until `stop`.

    Args:
        transports: all ends of connections; new ones are added to it.
        ports: by site, one or several.
    """

    def __init__(
        self, choices: Choices, observed: Observed, clock: MachineClock, transports: list[Any], ports: Mapping[str, Any]
    ) -> None:
        self._choices, self._observed, self._clock = choices, observed, clock
        self._transports = transports
        self._ports = {site: (of_site,) if isinstance(of_site, int) else of_site for site, of_site in ports.items()}
        self._refused: set[int] = set()
        self._are_webhooks_late = False
        self._moments: dict[str, tuple[Fault, str]] = {}  # what each request to a site meets now, and by which kind
        self._tasks: list[asyncio.Task[None]] = []
        self.is_on = False
        if choices.happens("a receiver is healthy", 0.5):
            observed.healthy_sites.add("receiver 2")

    def start(self) -> None:
        """Begin with faults."""
        self.is_on = True
        self._refuse_connections()
        loops = [self._break_connections(), self._move_clock(), *(self._go_away(site) for site in self._ports)]
        loops += [self._delay_webhooks(), self._overload_operator(), self._delay_threads()]
        loops += [self._have_bad_moments(site) for site in self._ports]
        self._tasks = [asyncio.create_task(loop) for loop in loops]

    async def stop(self) -> None:
        """Let everything succeed from now on."""
        self.is_on = False
        done, _ = await asyncio.wait(self._tasks, timeout=_ENDS_WITHIN_S)
        for task in done:
            task.result()

    def around(self, application: Any, site: str) -> Any:
        """Return an application of which some of the requests meet a fault."""

        takes_s = 0 if site == "service" or self._is_healthy(site) else self._choices.pick(f"{site} takes", TAKES_S)

        async def with_faults(scope: Any, receive: Any, send: Any) -> None:
            if takes_s and self.is_on:
                await asyncio.sleep(takes_s)
            is_webhook = scope["path"].startswith("/operator/webhook")
            chosen = self._choose(site, is_webhook=is_webhook) if self.is_on and not self._is_healthy(site) else None
            if is_webhook and self._are_webhooks_late:
                await read_body(receive)
                await respond(send, 503, [])
            elif chosen is None:
                await application(scope, receive, send)
            else:
                await self._meet(*chosen, application, scope, receive, send)

        return with_faults

    def _is_healthy(self, site: str) -> bool:
        return site in self._observed.healthy_sites

    def _choose(self, site: str, *, is_webhook: bool) -> tuple[Fault, str] | None:
        """Return what a request meets, and the kind that its details belong to."""
        possible = [*FAULTS[site], *(_OF_WEBHOOKS if is_webhook else ())]
        happening = [fault for fault in possible if self._choices.happens(f"{site} {fault}", SHARES[site])]
        return self._moments.get(site) or next(((fault, f"{site} {fault}") for fault in happening), None)

    async def _meet(self, fault: Fault, kind: str, application: Any, scope: Any, receive: Any, send: Any) -> None:
        match fault:
            case Fault.SLOW:
                await asyncio.sleep(self._choices.pick("seconds", _SLOW_S, of=kind))
                await application(scope, receive, send)
            case Fault.SLOW_RESPONSE:
                if kind == _NEVER:
                    seconds = _HANGS_S
                else:
                    seconds = self._choices.pick("seconds", _SLOW_RESPONSE_S, of=kind)
                await application(scope, receive, _delayed(send, seconds))
            case Fault.TWICE:
                body = await read_body(receive)
                await application(dict(scope), _repeat(body), _ignore)
                await application(scope, _repeat(body), send)
            case Fault.AGAIN:
                body = await read_body(receive)
                await application(dict(scope), _repeat(body), send)
                seconds = self._choices.pick("seconds", _SLOW_S, of=kind)
                self._tasks.append(asyncio.create_task(self._repeat_later(application, scope, body, seconds)))
            case Fault.HALF:
                await application(scope, receive, halve_response(send))
                for transport in self._of_client(scope["client"]):
                    transport.close()
                while (await receive())["type"] != "http.disconnect":
                    pass
            case Fault.CUT:
                await application(scope, receive, _ignore)
                self._cut(scope["client"])
            case Fault.DONE_AND_LOST | Fault.DONE_AND_WRONG:
                await application(scope, receive, _ignore)
                await _answer(fault, send)
            case _:
                await read_body(receive)
                if fault is Fault.HANGS:
                    await asyncio.sleep(_HANGS_S)
                if fault is Fault.RETRY_AFTER:
                    seconds = self._choices.pick("seconds", _RETRY_AFTER_S, of=kind)
                    await respond(send, 429, [(b"retry-after", str(seconds).encode())], _OPERATOR_ERROR)
                else:
                    await _answer(fault, send)

    async def _repeat_later(self, application: Any, scope: Any, body: bytes, seconds: float) -> None:
        began_s = asyncio.get_running_loop().time()
        await asyncio.sleep(seconds)
        # Otherwise this application is closed: a stop has begun before, or since
        if all(ended_s < began_s for _, ended_s in self._observed.interruptions):
            await application(scope, _repeat(body), _ignore)

    async def _break_connections(self) -> None:
        while self.is_on:
            await asyncio.sleep(_BREAK_EVERY_S)
            for site, ports in self._ports.items():
                if not self._choices.happens(f"{site} reset", 0.03) or self._is_healthy(site):
                    continue
                open_ones = self._connections(ports)
                if open_ones:
                    now_s = asyncio.get_running_loop().time()
                    self._observed.away.append((site, now_s, now_s))
                    self._reset(open_ones[self._choices.pick("connection", range(len(open_ones)), of=f"{site} reset")])

    async def _go_away(self, site: str) -> None:
        ports = self._ports[site]
        while self.is_on:
            await asyncio.sleep(_AWAY_EVERY_S)
            if not self._choices.happens(f"{site} away", 0.15) or self._is_healthy(site):
                continue
            seconds = self._choices.between("seconds", 1, 20, of=f"{site} away")
            hung_s = self._choices.pick("hangs before", _HUNG_S, of=f"{site} away")
            silent = self._choices.pick("meanwhile", (Fault.HANGS, Fault.SLOW_RESPONSE), of=f"{site} away")
            if hung_s and site not in self._moments:
                self._moments[site] = silent, _NEVER
                await asyncio.sleep(hung_s)
                del self._moments[site]
            now_s = asyncio.get_running_loop().time()
            self._observed.away.append((site, now_s, now_s + seconds))
            self._refused.update(ports)
            for transport in self._connections(ports):
                self._reset(transport)
            await asyncio.sleep(seconds)
            self._refused.difference_update(ports)

    async def _have_bad_moments(self, site: str) -> None:
        """Let each request to a site meet the same fault: several fail at once, as they do when something is wrong."""
        while self.is_on:
            name = f"{site} has a bad moment"
            if self._choices.happens(name, 0.2) and not self._is_healthy(site) and site not in self._moments:
                self._moments[site] = self._choices.pick("fault", FAULTS[site], of=name), name
                await asyncio.sleep(self._choices.pick("lasts", _MOMENTS_S, of=name))
                self._moments.pop(site, None)
            await asyncio.sleep(_AWAY_EVERY_S)

    async def _delay_webhooks(self) -> None:
        """Let every webhook fail on its way for a while; the operator sends it again."""
        while self.is_on:
            if self._choices.happens("webhooks are late", 0.1):
                self._are_webhooks_late = True
                await asyncio.sleep(self._choices.pick("seconds", _WEBHOOKS_LATE_S, of="webhooks are late"))
                self._are_webhooks_late = False
            await asyncio.sleep(_AWAY_EVERY_S)

    async def _overload_operator(self) -> None:
        """Let the operator do everything at once, and tell nobody in time: neither by a response nor by a webhook."""
        while self.is_on:
            kind = "operator is overloaded"
            if self._choices.happens(kind, 0.1) and "operator" not in self._moments:
                self._moments["operator"], self._are_webhooks_late = (Fault.SLOW_RESPONSE, _NEVER), True
                await asyncio.sleep(self._choices.pick("seconds", _OVERLOADED_S, of=kind))
                self._moments.pop("operator", None)
                await asyncio.sleep(_WEBHOOKS_LATE_S[-1])
                self._are_webhooks_late = False
            await asyncio.sleep(_AWAY_EVERY_S)

    async def _delay_threads(self) -> None:
        """Let threads get the processor late: meanwhile more comes together in what they do next."""
        loop: Any = asyncio.get_running_loop()
        while self.is_on:
            kind = "threads are late"
            if self._choices.happens(kind, 0.15):
                loop.thread_delay_s = self._choices.pick("each", _THREAD_DELAYS_S, of=kind)
                with self._observed.thread_delay():
                    await asyncio.sleep(self._choices.pick("seconds", _MOMENTS_S, of=kind))
                loop.thread_delay_s = 0.0
            await asyncio.sleep(_AWAY_EVERY_S)

    async def _move_clock(self) -> None:
        while self.is_on:
            await asyncio.sleep(3)
            for name, jumps in _JUMPS_S.items():
                if self._choices.happens(f"clock {name}", 0.08):
                    seconds = self._choices.pick("seconds", jumps, of=f"clock {name}")
                    self._clock.jump(seconds, with_steady=name == "slept")
                    self._observed.jumps.append((asyncio.get_running_loop().time(), seconds))

    def _connections(self, ports: Sequence[int]) -> list[Any]:
        """Return the service's ends of the open connections to some ports."""
        self._transports[:] = [transport for transport in self._transports if not transport.is_closing()]
        return [one for one in self._transports if one.get_extra_info("sockname")[1] in ports]

    def _cut(self, client: tuple[str, int]) -> None:
        """Break the connection of a client."""
        for transport in self._of_client(client):
            self._reset(transport)

    def _of_client(self, client: tuple[str, int]) -> list[Any]:
        """Return the open connection of a client."""
        return [
            transport
            for transport in self._transports
            if not transport.is_closing() and transport.get_extra_info("peername")[:2] == tuple(client)
        ]

    def _reset(self, transport: Any) -> None:
        peer = transport._peer
        transport._force_close(ConnectionResetError("the connection was reset"))
        if peer is not None and not peer.is_closing():
            asyncio.get_running_loop().call_soon(peer._reset_by_peer, context=peer._host_ctx)  # it may stand still

    def _refuse_connections(self) -> None:
        network: Any = asyncio.get_running_loop()._network  # type: ignore[attr-defined]
        reach = network._reach_listener

        async def reach_listener(ip: str, port: int, owner: Any) -> Any:
            if port in self._refused:
                raise ConnectionRefusedError(111, f"connection refused: {(ip, port)}")
            return await reach(ip, port, owner)

        network._reach_listener = reach_listener


_STATUSES: Final = {Fault.ERROR: 500, Fault.TOO_MANY: 429, Fault.ODD_STATUS: 404, Fault.DONE_AND_LOST: 502}


async def _answer(fault: Fault, send: Any) -> None:
    status = 503 if fault is Fault.HANGS else _STATUSES.get(fault, 200)
    await respond(send, status, [], b"<html>" if status == 200 else b"")


def _delayed(send: Any, seconds: float) -> Any:
    async def send_later(message: Any) -> None:
        if message["type"] == "http.response.start":
            await asyncio.sleep(seconds)
        await send(message)

    return send_later


def halve_response(send: Any) -> Any:
    """Return a `send` that leaves out half of the body, but not of its length."""

    async def send_half(message: Any) -> None:
        if message["type"] == "http.response.body":
            body = message.get("body", b"")
            message = {"type": "http.response.body", "body": body[: len(body) // 2], "more_body": True}
        else:
            headers = [(name, value) for name, value in message["headers"] if name != b"content-length"]
            length = max([10_000, *(int(value) for name, value in message["headers"] if name == b"content-length")])
            message = {**message, "headers": [*headers, (b"content-length", b"%d" % length)]}
        await send(message)

    return send_half


def _repeat(body: bytes) -> Any:
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Any:
        return messages.pop() if messages else await asyncio.Event().wait()

    return receive


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


async def respond(send: Any, status: int, headers: list[tuple[bytes, bytes]], body: bytes = b"") -> None:
    """Send a response."""
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [length, *headers]})
    await send({"type": "http.response.body", "body": body})


async def _ignore(_message: Any) -> None:
    pass
