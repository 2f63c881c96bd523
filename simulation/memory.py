"""What the service holds in memory when no work is left: each collection is as small as its bound says.

"Memory and tables return to their size": a dictionary with an entry for each message, recipient or connection that ever
was would end the process after months. So every collection that an object of the service holds is measured, those that
nobody has thought of too, when the service has started and at the end.
"""

import functools
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from types import MethodType, ModuleType
from typing import Any, Final

from simulation.choices import Choices, declare
from waypost.admission import pacing
from waypost.callbacks import batch
from waypost.events import lookup
from waypost.store import directory, write_through_cache

MAX_GROWTH: Final = 10
"""Entries that a collection without a row below may have more than at the start; a run has more of everything that comes
and goes: messages, callbacks, requests, connections, jobs."""
SMALL: Final = 4
CACHES: Final[Mapping[str, tuple[ModuleType, str]]] = {
    "CallbackReader._keys": (batch, "MAX_CACHED_KEYS"),
    "Directory._entries": (directory, "MAX_DIRECTORY_ENTRIES"),
    "KnownNames.pairs": (lookup, "MAX_KNOWN_NAMES"),
    "Pacer._pair_free_ms": (pacing, "MAX_PAIRS"),
    "WriteThroughCache._rows": (write_through_cache, "MAX_CACHED_ROWS"),
}
"""Collections with a bound that a run does not reach, by class and attribute: the constant that says it. Some seeds make
each of them small, so that they are full all the time."""
COUNTED: Final[Mapping[str, str]] = {
    "ApiEndpoint.outcomes": "error codes, times endpoints",
    "ApiEndpoint.statuses": "statuses, times endpoints",
    "CallCounters.outcomes": "results",
    "CallCounters.took_s": "results",
    "CallbackReader._cached": "subscriptions",
    "CallbackReader._keys[]": "one or two for each entry of a cache above",
    "Histogram.counts": "the buckets of a histogram",
    "Limiter._windows": "apps, times rates",
    "LimitedRequests._times[]": "requests that a rate has limited, at most 1,000 of each app and rate",
    "OperatorAccount.fields": "fields of the operator accounts in a cache above",
    "PostgresBulkStatements._statements": "statements of the source, times the shapes of their parameters",
    "ReceiverAdmission.receivers": "subscriptions",
    "RetentionLoop.transactions": "tables",
    "Statement.formats": "arrays of a statement",
    "Statement.oids": "arrays of a statement",
    "Statement.types": "arrays of a statement",
    "_LocalWindow.times": "requests within a window, at most its rate",
    "_SourcePace.response_times_ms": "responses of the last second in which a number has sent, at most its rate",
}
"""Collections whose size does not depend on how long a process lives: what they have an entry for."""
_COLLECTIONS: Final = (dict, list, set, frozenset, deque)

declare({"caches are small": "caches of the service had room for a few entries only"})


class MemoryCheck:
    """The sizes of one run, in a share of the seeds: it takes some 20 milliseconds for each process."""

    def __init__(self, choices: Choices) -> None:
        is_small = choices.happens("caches are small", 0.3)
        self._is_on = is_small or choices.pick("memory is measured", (False, False, True))
        self._before = Counter[str]()
        for module, name in CACHES.values() if is_small else ():
            setattr(module, name, SMALL)
        self._bounds: dict[str, int] = {name: getattr(module, one) for name, (module, one) in CACHES.items()}

    def begin(self, service: Any) -> None:
        """Measure a process that has just started."""
        if self._is_on:
            self._before = measure(service)

    def find_growth(self, service: Any) -> Iterable[str]:
        """Yield the collections of a process that have more entries than they may."""
        return find_growth(self._before, measure(service), self._bounds) if self._is_on else ()


def measure(root: Any) -> Counter[str]:
    """Return how many entries the collections have that are reachable from an object, by class and attribute.

    Those of several objects of a class are added.
    """
    sizes, seen = Counter[str](), set[int]()
    waiting: list[tuple[str, Any]] = [("", root)]
    while waiting:
        name, value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, _COLLECTIONS):
            sizes[name] += len(value)
            waiting += [(f"{name}[]", each) for each in _entries(value)]
        else:
            waiting += _attributes(value)
    return sizes


def _entries(collection: Any) -> Iterable[Any]:
    return [*collection.keys(), *collection.values()] if isinstance(collection, dict) else list(collection)


def _attributes(value: Any) -> list[tuple[str, Any]]:
    """Return the attributes of an object of ours; of a function those that it is bound to."""
    if isinstance(value, MethodType):
        return [("", value.__self__)]
    if isinstance(value, functools.partial):
        return [("", each) for each in (value.func, *value.args, *value.keywords.values())]
    kind = type(value)
    declared = None if isinstance(value, type) else _declared(kind)
    if declared is None:
        return []
    names = [*getattr(value, "__dict__", ()), *declared]
    return [(f"{kind.__qualname__}.{name}", getattr(value, name, None)) for name in dict.fromkeys(names)]


@functools.cache
def _declared(kind: type) -> tuple[str, ...] | None:
    """Return the attributes that a class of ours declares; None if it is not ours."""
    if not kind.__module__.startswith("waypost."):
        return None
    slots = [name for base in kind.__mro__ for name in getattr(base, "__slots__", ()) if isinstance(name, str)]
    return (*slots, *getattr(kind, "__struct_fields__", ()))


def find_growth(before: Counter[str], after: Counter[str], bounds: Mapping[str, int]) -> Iterable[str]:
    """Yield the collections that have more entries than they may.

    Args:
        before: when the first process had started.
        bounds: of the caches.
    """
    for name, size in sorted(after.items()):
        most = bounds.get(name, before[name] + MAX_GROWTH)
        if size > most and name not in COUNTED:
            yield f"{name} has {size} entries at the end; {before[name]} at the start, and at most {most} may be there"
