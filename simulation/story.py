"""What happened in a run, for a person: who did what, in virtual time, in plain words."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from simulation.choices import KINDS, Decision

MAX_EVENTS: Final = 20_000
MAX_LINES: Final = 120
MAX_BROKEN: Final = 5
MERGED_S: Final = 1

_told: list[tuple[float, str]] = []


def begin() -> None:
    """Forget what was told; called once for a run."""
    _told.clear()


def tell(text: str) -> None:
    """Tell what somebody did now, for example "partner 1 sent message 3 to 15560000003"."""
    if len(_told) < MAX_EVENTS:
        _told.append((asyncio.get_running_loop().time(), text))


def told() -> list[tuple[float, str]]:
    """Return what was told since `begin`."""
    return list(_told)


def write_story(events: Iterable[tuple[float, str]], decisions: Iterable[Decision], broken: Sequence[str]) -> list[str]:
    """Return the lines of a story: events and decisions in order of time, then the promises that broke."""
    chosen = [(decision.at_s, _words(decision)) for decision in decisions]
    lines = [*_lines(sorted([*events, *chosen], key=lambda one: one[0]))]
    if len(lines) > MAX_LINES:
        left_out = f"          … {len(lines) - MAX_LINES} lines more …"
        lines = [*lines[: MAX_LINES // 2], left_out, *lines[-MAX_LINES // 2 :]]
    more = [f"   … and {len(broken) - MAX_BROKEN} more"] if len(broken) > MAX_BROKEN else []
    return [*lines, *(f"   BROKEN {problem}" for problem in broken[:MAX_BROKEN]), *more]


def _lines(events: list[tuple[float, str]]) -> Iterator[str]:
    """Return a line for each event; those that are the same within a second have one."""
    same: dict[str, list[float]] = {}
    merged = [same]
    for at_s, text in events:
        first = next(iter(same.values()), [at_s])[0]
        if at_s - first > MERGED_S:
            same = {}
            merged.append(same)
        same.setdefault(text, []).append(at_s)
    for group in merged:
        for text, times in group.items():
            repeated = f" ({len(times)} times until {times[-1]:.3f} s)" if len(times) > 1 else ""
            yield f"{times[0]:9.3f} {text}{repeated}"


def _words(decision: Decision) -> str:
    details = ", ".join(_short(detail) for detail in decision.details)
    if decision.name in KINDS:
        return f"! {KINDS[decision.name]}{f' ({details})' if details else ''} [{decision.name}#{decision.nth}]"
    return f"  {decision.name}: {_short(decision.value)} [{decision.name}#{decision.nth}]"


def _short(value: object) -> str:
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 40 else f"{text[:40]}…"
