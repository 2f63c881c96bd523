"""Rate limits that several processes share: one row for each sliding window."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from sqlalchemy import Connection, bindparam, delete, select, update

from waypost.store.bulk_statements import WAYS
from waypost.store.sql import insert_or
from waypost.store.tables import rate_windows as windows

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(list[int]).decode


@dataclass(frozen=True, slots=True)
class Spending:
    """A request that counts against a rate limit.

    Attributes:
        at_most: how many within a window.
        at_ms: now; a store with a clock of its own uses that clock.
    """

    name: str
    whose: str
    at_most: int
    within_ms: int
    at_ms: int


@dataclass(frozen=True, slots=True)
class Spent:
    """The decision for one request.

    Attributes:
        at_ms: now, by the clock of the window.
        wait_ms: until the next request is allowed; 0: this one is.
    """

    at_ms: int
    wait_ms: int


def spend_rates(connection: Connection, spendings: Sequence[Spending]) -> list[Spent]:
    """Count requests that are within their limits; a window is locked until the transaction ends."""
    store_ms: int | None = connection.info[WAYS].now_ms(connection)
    decisions: dict[int, Spent] = {}
    by_window: dict[tuple[str, str], list[int]] = {}
    for index, request in enumerate(spendings):
        by_window.setdefault((request.name, request.whose), []).append(index)
    for (name, subject), indexes in sorted(by_window.items()):  # in one order, so that no two transactions deadlock
        times = _locked(connection, name, subject)
        stored_times = list(times)
        for index in indexes:
            request = spendings[index]
            now_ms = request.at_ms if store_ms is None else store_ms
            wait_ms = _wait_ms(times, request, now_ms)
            if wait_ms == 0:
                times = sorted([*_alive(times, request, now_ms), now_ms])
            decisions[index] = Spent(now_ms, wait_ms)
        if times != stored_times:
            _keep(connection, name, subject, times, spendings[indexes[0]].within_ms)
    return [decisions[index] for index in range(len(spendings))]


def wait_of_rate(connection: Connection, spending: Spending) -> int:
    """Return milliseconds until a request is allowed; 0: now. Counts nothing, and waits for no lock."""
    row = connection.execute(_LOOK, _at(spending.name, spending.whose)).one_or_none()
    return 0 if row is None else _wait_ms(_decode(row.spent_ms), spending, spending.at_ms)


@dataclass(frozen=True, slots=True)
class Return:
    """Removal of a request that was counted at a time."""

    name: str
    whose: str
    within_ms: int
    spent_ms: int


def give_back_rates(connection: Connection, returns: Sequence[Return]) -> list[None]:
    """Remove requests from their windows that failed after they were counted."""
    for refund in sorted(returns, key=lambda refund: (refund.name, refund.whose)):
        times = _locked(connection, refund.name, refund.whose)
        if refund.spent_ms in times:
            times.remove(refund.spent_ms)
            _keep(connection, refund.name, refund.whose, times, refund.within_ms)
    return [None] * len(returns)


def delete_idle_windows(connection: Connection, now_ms: int, at_most: int) -> int:
    """Delete windows without any counted request; return how many. Locked windows are skipped."""
    store_ms: int | None = connection.info[WAYS].now_ms(connection)
    is_idle = windows.c.expires_on_ms <= (now_ms if store_ms is None else store_ms)
    idle = connection.execute(
        select(windows.c.name, windows.c.whose)
        .where(is_idle)
        .order_by(windows.c.name, windows.c.whose)
        .limit(at_most)
        .with_for_update(skip_locked=True)
    ).all()
    for name, subject in idle:
        connection.execute(delete(windows).where(_IS_ITS, is_idle), _at(name, subject))
    return len(idle)


def _locked(connection: Connection, name: str, whose: str) -> list[int]:
    """Return the counted times of a window, oldest first; its row is locked until the transaction ends."""
    while True:
        row = connection.execute(_LOCK, _at(name, whose)).one_or_none()
        if row is not None:
            return _decode(row.spent_ms)
        connection.execute(_BEGIN, {"name": name, "whose": whose, "spent_ms": "[]", "expires_on_ms": 0})


def _keep(connection: Connection, name: str, whose: str, times: list[int], within_ms: int) -> None:
    until_ms = times[-1] + within_ms if times else 0
    parameters = {"times": _encode(times).decode(), "until_ms": until_ms}
    connection.execute(_KEEP, _at(name, whose) | parameters)


def _alive(times: list[int], spending: Spending, now_ms: int) -> list[int]:
    return [at_ms for at_ms in times if at_ms > now_ms - spending.within_ms]


def _wait_ms(times: list[int], spending: Spending, now_ms: int) -> int:
    alive = _alive(times, spending, now_ms)
    if len(alive) < spending.at_most:
        return 0
    return alive[-spending.at_most] + spending.within_ms - now_ms


def _at(name: str, whose: str) -> dict[str, Any]:
    return {"where_name": name, "where_whose": whose}


_IS_ITS: Final = (windows.c.name == bindparam("where_name")) & (windows.c.whose == bindparam("where_whose"))
_LOOK: Final = select(windows.c.spent_ms).where(_IS_ITS)
_LOCK: Final = _LOOK.with_for_update()
_BEGIN: Final = insert_or(windows).on_conflict_do_nothing()
_KEEP: Final = update(windows).where(_IS_ITS).values(spent_ms=bindparam("times"), expires_on_ms=bindparam("until_ms"))
