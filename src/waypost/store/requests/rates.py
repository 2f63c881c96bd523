"""Rate limits that several processes share: one row for each sliding window."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from sqlalchemy import Connection, bindparam, delete, select, update

from waypost.store.bulk_statements import store_time_ms
from waypost.store.sql import upsert
from waypost.store.tables import rate_windows as windows

_encode_times: Final = msgspec.json.Encoder().encode
_decode_times: Final = msgspec.json.Decoder(list[int]).decode


@dataclass(frozen=True, slots=True)
class RateRequest:
    """A request that counts against a rate limit."""

    name: str
    subject: str
    at_most: int  # how many within a window
    window_ms: int
    at_ms: int  # now; a store with a clock of its own uses that clock


@dataclass(frozen=True, slots=True)
class RateDecision:
    """The decision for one request."""

    at_ms: int  # now, by the clock of the window
    wait_ms: int  # until the next request is allowed; 0: this one is


def count_rate_requests(connection: Connection, requests: Sequence[RateRequest]) -> list[RateDecision]:
    """Count requests that are within their limits; a window is locked until the transaction ends."""
    store_ms = store_time_ms(connection, 0)
    decisions: dict[int, RateDecision] = {}
    by_window: dict[tuple[str, str], list[int]] = {}
    for index, request in enumerate(requests):
        by_window.setdefault((request.name, request.subject), []).append(index)
    for (name, subject), indexes in sorted(by_window.items()):  # in one order, so that no two transactions deadlock
        times = _lock_window(connection, name, subject)
        stored_times = list(times)
        for index in indexes:
            request = requests[index]
            now_ms = store_ms or request.at_ms
            wait_ms = _wait_ms(times, request, now_ms)
            if wait_ms == 0:
                times = sorted([*_recent_times(times, request, now_ms), now_ms])
            decisions[index] = RateDecision(now_ms, wait_ms)
        if times != stored_times:
            _save_window(connection, name, subject, times, requests[indexes[0]].window_ms)
    return [decisions[index] for index in range(len(requests))]


def rate_wait_ms(connection: Connection, request: RateRequest) -> int:
    """Return milliseconds until a request is allowed; 0: now. Counts nothing, and waits for no lock."""
    row = connection.execute(_SELECT_TIMES, _window_parameters(request.name, request.subject)).one_or_none()
    return 0 if row is None else _wait_ms(_decode_times(row.times_ms), request, request.at_ms)


@dataclass(frozen=True, slots=True)
class RateRefund:
    """Removal of a request that was counted at a time."""

    name: str
    subject: str
    window_ms: int
    counted_ms: int


def refund_rates(connection: Connection, refunds: Sequence[RateRefund]) -> list[None]:
    """Remove requests from their windows that failed after they were counted."""
    for refund in sorted(refunds, key=lambda refund: (refund.name, refund.subject)):
        times = _lock_window(connection, refund.name, refund.subject)
        if refund.counted_ms in times:
            times.remove(refund.counted_ms)
            _save_window(connection, refund.name, refund.subject, times, refund.window_ms)
    return [None] * len(refunds)


def delete_idle_windows(connection: Connection, now_ms: int, at_most: int) -> int:
    """Delete windows without any counted request; return how many. Locked windows are skipped."""
    is_idle = windows.c.expires_on_ms <= store_time_ms(connection, now_ms)
    idle = connection.execute(
        select(windows.c.name, windows.c.subject)
        .where(is_idle)
        .order_by(windows.c.name, windows.c.subject)
        .limit(at_most)
        .with_for_update(skip_locked=True)
    ).all()
    for name, subject in idle:
        connection.execute(delete(windows).where(_IS_WINDOW, is_idle), _window_parameters(name, subject))
    return len(idle)


def _lock_window(connection: Connection, name: str, subject: str) -> list[int]:
    """Return the counted times of a window, oldest first; its row is locked until the transaction ends."""
    while True:
        row = connection.execute(_LOCK_TIMES, _window_parameters(name, subject)).one_or_none()
        if row is not None:
            return _decode_times(row.times_ms)
        connection.execute(_INSERT_WINDOW, {"name": name, "subject": subject, "times_ms": "[]", "expires_on_ms": 0})


def _save_window(connection: Connection, name: str, subject: str, times: list[int], window_ms: int) -> None:
    until_ms = times[-1] + window_ms if times else 0
    parameters = {"times": _encode_times(times).decode(), "until_ms": until_ms}
    connection.execute(_UPDATE_WINDOW, _window_parameters(name, subject) | parameters)


def _recent_times(times: list[int], request: RateRequest, now_ms: int) -> list[int]:
    return [at_ms for at_ms in times if at_ms > now_ms - request.window_ms]


def _wait_ms(times: list[int], request: RateRequest, now_ms: int) -> int:
    alive = _recent_times(times, request, now_ms)
    if len(alive) < request.at_most:
        return 0
    return alive[-request.at_most] + request.window_ms - now_ms


def _window_parameters(name: str, subject: str) -> dict[str, Any]:
    return {"where_name": name, "where_subject": subject}


_IS_WINDOW: Final = (windows.c.name == bindparam("where_name")) & (windows.c.subject == bindparam("where_subject"))
_SELECT_TIMES: Final = select(windows.c.times_ms).where(_IS_WINDOW)
_LOCK_TIMES: Final = _SELECT_TIMES.with_for_update()
_INSERT_WINDOW: Final = upsert(windows).on_conflict_do_nothing()
_UPDATE_WINDOW: Final = (
    update(windows).where(_IS_WINDOW).values(times_ms=bindparam("times"), expires_on_ms=bindparam("until_ms"))
)
