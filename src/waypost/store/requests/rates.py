"""What has been spent of rates, where several processes share a store: one row for each moving window."""

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
    """One request of a rate.

    Attributes:
        at_most: how many within a window.
        at_ms: now; a store with a clock of its own goes by that one.
    """

    name: str
    whose: str
    at_most: int
    within_ms: int
    at_ms: int


@dataclass(frozen=True, slots=True)
class Spent:
    """What became of it.

    Attributes:
        at_ms: now, by the clock that the window goes by.
        wait_ms: until one is left; 0: it is spent.
    """

    at_ms: int
    wait_ms: int


def spend_rates(connection: Connection, spendings: Sequence[Spending]) -> list[Spent]:
    """Spend where there is one left; a window is one process's until the transaction ends."""
    store_ms: int | None = connection.info[WAYS].now_ms(connection)
    spent: dict[int, Spent] = {}
    by_window: dict[tuple[str, str], list[int]] = {}
    for nth, one in enumerate(spendings):
        by_window.setdefault((one.name, one.whose), []).append(nth)
    for (name, whose), turns in sorted(by_window.items()):  # in one order, so that none waits in a ring
        times = _locked(connection, name, whose)
        began = list(times)
        for nth in turns:
            one = spendings[nth]
            now_ms = one.at_ms if store_ms is None else store_ms
            wait_ms = _wait_ms(times, one, now_ms)
            if wait_ms == 0:
                times = sorted([*_alive(times, one, now_ms), now_ms])
            spent[nth] = Spent(now_ms, wait_ms)
        if times != began:
            _keep(connection, name, whose, times, spendings[turns[0]].within_ms)
    return [spent[nth] for nth in range(len(spendings))]


def wait_of_rate(connection: Connection, spending: Spending) -> int:
    """How many milliseconds until one is left; 0: one is. Spends nothing, and waits for nobody."""
    row = connection.execute(_LOOK, _at(spending.name, spending.whose)).one_or_none()
    return 0 if row is None else _wait_ms(_decode(row.spent_ms), spending, spending.at_ms)


@dataclass(frozen=True, slots=True)
class Return:
    """What was spent at a time is given back."""

    name: str
    whose: str
    within_ms: int
    spent_ms: int


def give_back_rates(connection: Connection, returns: Sequence[Return]) -> list[None]:
    """Take back what requests have spent that were refused after all."""
    for one in sorted(returns, key=lambda one: (one.name, one.whose)):
        times = _locked(connection, one.name, one.whose)
        if one.spent_ms in times:
            times.remove(one.spent_ms)
            _keep(connection, one.name, one.whose, times, one.within_ms)
    return [None] * len(returns)


def delete_idle_windows(connection: Connection, now_ms: int, at_most: int) -> int:
    """Delete windows in which nothing is spent any more; give how many. What is in use is passed over."""
    store_ms: int | None = connection.info[WAYS].now_ms(connection)
    is_idle = windows.c.expires_on_ms <= (now_ms if store_ms is None else store_ms)
    idle = connection.execute(
        select(windows.c.name, windows.c.whose)
        .where(is_idle)
        .order_by(windows.c.name, windows.c.whose)
        .limit(at_most)
        .with_for_update(skip_locked=True)
    ).all()
    for name, whose in idle:
        connection.execute(delete(windows).where(_IS_ITS, is_idle), _at(name, whose))
    return len(idle)


def _locked(connection: Connection, name: str, whose: str) -> list[int]:
    """What has been spent in a window, oldest first; its row is ours until the transaction ends."""
    while True:
        row = connection.execute(_LOCK, _at(name, whose)).one_or_none()
        if row is not None:
            return _decode(row.spent_ms)
        connection.execute(_BEGIN, {"name": name, "whose": whose, "spent_ms": "[]", "expires_on_ms": 0})


def _keep(connection: Connection, name: str, whose: str, times: list[int], within_ms: int) -> None:
    until_ms = times[-1] + within_ms if times else 0
    given = {"times": _encode(times).decode(), "until_ms": until_ms}
    connection.execute(_KEEP, _at(name, whose) | given)


def _alive(times: list[int], spending: Spending, now_ms: int) -> list[int]:
    return [at_ms for at_ms in times if at_ms > now_ms - spending.within_ms]


def _wait_ms(times: list[int], spending: Spending, now_ms: int) -> int:
    alive = _alive(times, spending, now_ms)
    if len(alive) < spending.at_most:
        return 0
    return alive[-spending.at_most] + spending.within_ms - now_ms


def _at(name: str, whose: str) -> dict[str, Any]:
    return {"its_name": name, "its_whose": whose}


_IS_ITS: Final = (windows.c.name == bindparam("its_name")) & (windows.c.whose == bindparam("its_whose"))
_LOOK: Final = select(windows.c.spent_ms).where(_IS_ITS)
_LOCK: Final = _LOOK.with_for_update()
_BEGIN: Final = insert_or(windows).on_conflict_do_nothing()
_KEEP: Final = update(windows).where(_IS_ITS).values(spent_ms=bindparam("times"), expires_on_ms=bindparam("until_ms"))
