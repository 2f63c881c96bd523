"""One run of a seed, and what it did."""

from collections import Counter
from collections.abc import Set
from dataclasses import dataclass, field

from simulation.choices import Decision
from simulation.configuration import Configuration


@dataclass(frozen=True)
class Run:
    """One run: a seed, and what is switched off in it.

    Attributes:
        only: the decisions that may happen; None: all.
    """

    seed: int
    configuration: Configuration
    only: frozenset[tuple[str, int]] | None = None
    off: Set[tuple[str, int]] = frozenset()


@dataclass
class Result:
    """What a run did. Decisions and events are there if a promise broke."""

    run: Run
    broken: list[str] = field(default_factory=list)
    summary: str = ""
    digest: str = ""
    steps: int = 0
    took_s: float = 0
    kinds: Counter[str] = field(default_factory=Counter)
    states: Counter[str] = field(default_factory=Counter)
    decisions: list[Decision] = field(default_factory=list)
    events: list[tuple[float, str]] = field(default_factory=list)
