"""The decisions of a seed: what goes wrong, when, and with which values.

A decision follows from the seed, its name, and how many decisions of that name were made before; nothing else. So one of
them can be switched off, and the others stay: this is what a failing seed is shrunk with.
"""

import asyncio
import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Final, TypeVar

Option = TypeVar("Option")

KINDS: Final[dict[str, str]] = {}
"""What can happen, with its plain words for a story: a fault, or something unusual that somebody does."""

SHARES: Final = (0.3, 1.0, 1.0, 3.0)
"""By what a seed multiplies the share of a kind that it has not switched off."""


def declare(kinds: Mapping[str, str]) -> None:
    """Declare kinds for `Choices.happens`, each with plain words in the past: "the operator answered 500"."""
    KINDS.update(kinds)


@dataclass
class Decision:
    """A decision that had an effect: something happened, or a value was not the plainest."""

    name: str
    nth: int
    value: Any  # True, or what was picked
    at_s: float  # virtual
    details: list[Any]

    @property
    def key(self) -> tuple[str, int]:
        """Return what switches it off."""
        return (self.name, self.nth)


class Choices:
    """The decisions of one run.

    Args:
        off: decisions (name, nth) in which nothing happens, and the first option or the lowest value is taken.
        only: if given, all decisions except these are off.
        shares: by name, what the shares are multiplied by; None if the seed decides (`swarm_share`).
    """

    def __init__(
        self,
        seed: int | str,
        off: Set[tuple[str, int]] = frozenset(),
        shares: Mapping[str, float] | None = None,
        only: Set[tuple[str, int]] | None = None,
    ) -> None:
        self.seed = seed
        self.made: list[Decision] = []
        self._off, self._only, self._shares = off, only, shares
        self._asked: Counter[str] = Counter()
        self._latest: dict[str, Decision] = {}
        self._multiplied_by: dict[str, float] = {}

    @property
    def counts(self) -> Counter[str]:
        """Return how often each kind happened."""
        return Counter(decision.name for decision in self.made if decision.name in KINDS)

    def happens(self, name: str, share: float, *, of: str | None = None) -> bool:
        """Decide whether something of a declared kind happens. It does in this share, times the share of the seed.

        Ask for every kind that could happen at a point, even if another one does: what is not asked is not counted.

        Args:
            of: the kind without which this cannot happen: a seed switches both off together, or neither.
        """
        if name not in KINDS:
            raise LookupError(f"{name!r} is not declared; declare() it with its plain words")
        nth, is_off = self._count(name)
        share *= self._multiplied(name) if of is None else 1
        if is_off or not share or _chance(self.seed, name, nth) >= share:  # most are asked of what is switched off
            return False
        self._record(name, nth, True)
        return True

    def pick(self, name: str, options: Sequence[Option], *, of: str | None = None) -> Option:
        """Return one of the options; the first is the plainest, and the one that is taken if this is off.

        Args:
            of: the kind whose latest happening this is a detail of: it has no number of its own, and goes with it.
                Ask for it before anything else is awaited.
        """
        chance, record = self._draw(name, of)
        index = int(chance * len(options))
        if index or of is not None:
            record(options[index])
        return options[index]

    def between(self, name: str, low: float, high: float, *, of: str | None = None) -> float:
        """Return a number from `low` to `high`: `low` if this is off. `of`: as for `pick`."""
        chance, record = self._draw(name, of)
        value = round(low + chance * (high - low), 6)
        if value != low or of is not None:
            record(value)
        return value

    def _draw(self, name: str, of: str | None) -> tuple[float, Callable[[Any], None]]:
        """Return a number from 0 to below 1, and what records its effect."""
        if of is not None:
            parent = self._latest[of]
            return _chance(self.seed, f"{of} {name}", parent.nth), parent.details.append
        nth, is_off = self._count(name)
        return 0 if is_off else _chance(self.seed, name, nth), lambda value: self._record(name, nth, value)

    def _count(self, name: str) -> tuple[int, bool]:
        nth = self._asked[name]
        self._asked[name] += 1
        return nth, (name, nth) in self._off or (self._only is not None and (name, nth) not in self._only)

    def _record(self, name: str, nth: int, value: Any) -> None:
        self._latest[name] = Decision(name, nth, value, _now_s(), [])
        self.made.append(self._latest[name])

    def _multiplied(self, name: str) -> float:
        if name not in self._multiplied_by:
            shares = self._shares
            self._multiplied_by[name] = swarm_share(self.seed, name) if shares is None else shares.get(name, 1.0)
        return self._multiplied_by[name]


def swarm_share(seed: int | str, name: str) -> float:
    """Return by what a seed multiplies the shares of a kind: 0 for half of the kinds, which never happen in its run."""
    chance = _chance(seed, f"share of {name}", 0)
    return 0.0 if chance < 0.5 else SHARES[int((2 * chance - 1) * len(SHARES))]


def _chance(seed: int | str, name: str, nth: int) -> float:
    """Return a number from 0 to below 1."""
    digest = hashlib.blake2b(f"{seed}/{name}/{nth}".encode(), digest_size=6).digest()
    return int.from_bytes(digest, "big") / (1 << 48)


def _now_s() -> float:
    try:
        return asyncio.get_running_loop().time()
    except RuntimeError:
        return 0.0
