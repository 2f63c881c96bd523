"""What everybody outside of the service saw in one run: each request, by whom it was answered, and how."""

import asyncio
import contextlib
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any, Final

from simulation.story import tell

PERSON: Final = "15560000009"
"""The number of the person whose data is erased, whom only the checks of that know."""
RETRIED_WITHIN_S: Final = 40
"""Longer than the first three retries of a callback wait."""


@dataclass
class Run:
    """One time that an application worked on a request: twice if a fault repeats it, never if a fault replaces it."""

    began_s: float
    ended_s: float | None = None
    status: int | None = None
    is_replay: bool = False  # the stored response of an earlier request with this key
    reason: str = ""  # of an error


@dataclass
class Exchange:
    """One request that arrived at the service, the operator or a receiver. Times are virtual seconds.

    Attributes:
        status: of the response that was sent, which may be a fault's; None while there is none.
        ended_s: when the response was sent.
    """

    site: str
    method: str
    path: str
    headers: dict[str, str]
    began_s: float
    body: bytes = b""
    is_whole: bool = False
    runs: list[Run] = field(default_factory=list)
    status: int | None = None
    ended_s: float | None = None
    retry_after_s: int | None = None


@dataclass
class Acknowledged:
    """A message or template that the service has acknowledged."""

    id: str
    app_id: str
    to: str  # the recipient; empty for a template
    began_s: float
    ended_s: float


@dataclass
class SentRequest:
    """A message that a partner wanted to send: the statuses that it saw, and the ids that it got."""

    app_id: str
    to: str
    key: str  # under which it is repeated; empty: none
    statuses: list[int | None] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)


@dataclass
class SubscriptionTerms:
    """What a subscription asks for; `is_steady` if that is so from before the first message to the end."""

    app_id: str
    modes: tuple[str, ...]
    is_steady: bool
    deleted_s: float | None = None
    paused: list[tuple[float, float]] = field(default_factory=list)  # from when to when it was to get nothing


@dataclass
class Observed:
    """All of one run."""

    processes: int = 1  # of the service

    exchanges: list[Exchange] = field(default_factory=list)
    acknowledged: list[Acknowledged] = field(default_factory=list)
    sent: list[SentRequest] = field(default_factory=list)
    limits: tuple[str, ...] = ()  # the rates of the service that differ from the documented ones
    limits_until_s: float = float("inf")  # when an administrator raised them
    uncertain_for_s: list[float] = field(default_factory=list)  # of each start, as is the next one
    order_hold_s: list[float] = field(default_factory=list)
    subscriptions: dict[str, SubscriptionTerms] = field(default_factory=dict)  # by the path of its URL
    jumps: list[tuple[float, float]] = field(default_factory=list)  # when, and by how many seconds the clock jumped
    interruptions: list[tuple[float, float]] = field(default_factory=list)  # from when to when the service was away
    storage_failures: list[tuple[float, float]] = field(
        default_factory=list
    )  # from when to when the disk or the server failed
    late_threads: list[tuple[float, float]] = field(default_factory=list)  # from when to when their calls began late
    held: list[tuple[float, float]] = field(default_factory=list)  # from when to when the service was on hold
    # what is marked in flight on disk, with the begin of its last request: since which look
    marks: dict[tuple[str, float], float] = field(default_factory=dict)
    retries: list[float] = field(default_factory=list)  # when the administrator let receivers be called at once
    away: list[tuple[str, float, float]] = field(default_factory=list)  # a site that was away, or lost a connection
    postbacks: dict[str, list[str]] = field(default_factory=dict)  # the texts of a message's buttons, by its id
    on_answer: dict[str, Callable[[], None]] = field(default_factory=dict)  # called when the operator has its answer
    lost_times: list[float] = field(default_factory=list)  # when a process went on without knowing that it stood still
    healthy_sites: set[str] = field(default_factory=set)  # those without any fault
    broken: list[str] = field(default_factory=list)  # promises broken while it ran

    @contextlib.contextmanager
    def interruption(self) -> Generator[None]:
        """Record that the service is away while this lasts."""
        with _record(self.interruptions):
            yield

    @contextlib.contextmanager
    def storage_failure(self) -> Generator[None]:
        """Record that the disk of the service fails while this lasts."""
        with _record(self.storage_failures):
            yield

    @contextlib.contextmanager
    def thread_delay(self) -> Generator[None]:
        """Record that threads get the processor late while this lasts."""
        with _record(self.late_threads):
            yield

    def is_defect(self, run: Run) -> bool:
        """Return True if a request got 500 although the disk did not fail while it was worked on."""
        return run.status == 500 and not any(
            from_s <= (run.ended_s or 0) and run.began_s <= to_s for from_s, to_s in self.storage_failures
        )

    def first_tried_s(self, first: Exchange) -> float:
        """Return when a callback may have been tried first, from its first attempt that arrived.

        Nobody sees an attempt while the receiver is away: each retry may have fallen into such a time.
        """
        tried_s = first.began_s
        for site, from_s, to_s in sorted(self.away, key=lambda one: one[2], reverse=True):
            if site == first.site and from_s < tried_s < to_s + RETRIED_WITHIN_S:
                tried_s = from_s
        return tried_s

    def outside(self, application: Any, site: str) -> Any:
        """Return an application that records what arrives, and what is answered to it."""

        async def recorded(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] != "http":
                await application(scope, receive, send)
                return
            headers = {name.decode(): value.decode("latin-1") for name, value in scope["headers"]}
            exchange = Exchange(site, scope["method"], scope["path"], headers, _now_s())
            self.exchanges.append(exchange)
            scope["exchange"] = exchange

            async def receive_part() -> Any:
                message = await receive()
                if message["type"] == "http.request":
                    exchange.body += message.get("body", b"")
                    exchange.is_whole = not message.get("more_body")
                return message

            async def send_part(message: Any) -> None:
                await send(message)
                if message["type"] == "http.response.start":
                    if site != "service" or scope["path"].startswith("/operator"):
                        tell(f"{site} answered {message['status']} to {scope['method']} {scope['path']}")
                    exchange.status, exchange.ended_s = message["status"], _now_s()
                    retry_after = dict(message["headers"]).get(b"retry-after")
                    exchange.retry_after_s = None if retry_after is None else int(retry_after)
                elif scope["path"].startswith("/operator"):
                    for notify in list(self.on_answer.values()):
                        notify()

            await application(scope, receive_part, send_part)

        return recorded

    def inside(self, application: Any) -> Any:
        """Return an application that records when it worked on a request, and its own status."""

        async def recorded(scope: Any, receive: Any, send: Any) -> None:
            if "exchange" not in scope:
                await application(scope, receive, send)
                return
            run = Run(_now_s())
            scope["exchange"].runs.append(run)
            is_retry = scope["path"].endswith("/retry")
            if is_retry:
                self.retries.append(run.began_s)

            async def send_part(message: Any) -> None:
                if message["type"] == "http.response.start":
                    run.status, run.ended_s = message["status"], _now_s()
                    headers = {name.lower(): value.decode("latin-1") for name, value in message["headers"]}
                    run.is_replay = b"idempotent-replayed" in headers
                    run.reason = headers.get(b"waypost-reason", "")
                    if is_retry:
                        self.retries.append(run.ended_s)
                await send(message)

            await application(scope, receive, send_part)

        return recorded


@contextlib.contextmanager
def _record(times: list[tuple[float, float]]) -> Generator[None]:
    """Append from when to when this lasts; an end in the future until it is known."""
    nth, began_s = len(times), _now_s()
    times.append((began_s, began_s + 3600))
    yield
    times[nth] = (began_s, _now_s())


def _now_s() -> float:
    return asyncio.get_running_loop().time()
