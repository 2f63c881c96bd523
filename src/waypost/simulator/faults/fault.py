"""An armed fault, and the call or update that it is matched against."""

import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import msgspec

from waypost.simulator.faults.fault_kinds import ANY, FAULT_FILTERS, FaultKind, find_fault_kind

_FILTER_NAMES: Final = tuple(FAULT_FILTERS)


@dataclass(frozen=True)
class FaultSubject:
    """A call or an update, with the values that the filters of faults compare.

    Args:
        name: of the call or the webhook.
        number: a business number's id and its digits; empty if there is none.
        phone: digits; empty if there is none, or if it is not disclosed.
        subject: the text in the list of firings: an id, or a phone's digits.
    """

    name: str
    app: str = ""
    waba_id: str = ""
    number: tuple[str, ...] = ()
    phone: str = ""
    template: str = ""
    subject: str = ""


class ArmedFault(msgspec.Struct, frozen=True, dict=True):
    """An armed fault with the counts of its evaluations and firings.

    Args:
        given: its definition, checked: see `fault_reading`.
        scenario: the key of its scenario; empty if it was armed individually.
        seen: number of matching calls, updates or POSTs.
        hits: number of firings.
    """

    id: int
    given: dict[str, Any]
    scenario: str = ""
    seen: int = 0
    hits: int = 0

    @cached_property
    def fault_kind(self) -> FaultKind:
        """Its row of the table of kinds."""
        return find_fault_kind(self.given["on"], self.given["what"])

    @property
    def effect(self) -> dict[str, Any]:
        """The member of its kind, and its optional parameters."""
        return self.given["what"]

    @property
    def value(self) -> Any:
        """The value of the member of its kind."""
        return self.effect[self.fault_kind.name]

    @property
    def remaining_firings(self) -> int | None:
        """The remaining number of firings; None if it is unlimited."""
        at_most: int | None = self.given["when"].get("next")
        return None if at_most is None else max(0, at_most - self.hits)

    def is_armed(self, now_ms: int) -> bool:
        """True if it may still fire."""
        return self.remaining_firings != 0 and now_ms < self.given.get("until_ms", now_ms + 1)

    def matches(self, subject: FaultSubject) -> bool:
        """True if its name and filters match."""
        given = self.given
        if given[given["on"]] not in (ANY, subject.name):
            return False
        for name in _FILTER_NAMES:
            value = given.get(name)
            if value is not None and not _is_in(value, getattr(subject, name)):
                return False
        return True

    def fires(self) -> bool:
        """True if it fires for the current subject, which `seen` already counts.

        A probability is drawn from the seed, the id and the count, without a clock, so every run has
        the same result.
        """
        match self.given["when"]:
            case {"every": int(every)}:
                return self.seen % every == 0
            case {"probability": int() | float() as probability}:
                text = f"{self.given.get('seed', 0)}/{self.id}/{self.seen}".encode()
                draw = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest())
                return draw < probability * 2**64
            case _:
                return True


def _is_in(value: str, values: str | Collection[str]) -> bool:
    return value == values if isinstance(values, str) else value in values
