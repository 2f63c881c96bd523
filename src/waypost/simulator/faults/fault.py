"""A fault: what goes wrong, of what, and when; and what a call or an update is about."""

import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import msgspec

from waypost.simulator.faults.fault_kinds import ANY, FILTERS, Kind, kind_of

_FILTERS: Final = tuple(FILTERS)


@dataclass(frozen=True)
class Subject:
    """What a call or an update is about, as far as a fault may ask.

    Args:
        name: the call's or the webhook's.
        number: a business number's id and its digits; empty where it is about none.
        phone: digits; empty where it is about none, or about one that nobody may know.
        about: what a list of firings shows: an id, or a phone's digits.
    """

    name: str
    app: str = ""
    waba_id: str = ""
    number: tuple[str, ...] = ()
    phone: str = ""
    template: str = ""
    about: str = ""


class Fault(msgspec.Struct, frozen=True, dict=True):
    """One that was armed, and how often it has been asked and has fired.

    Args:
        given: what was armed, checked: see `fault_reading`.
        scenario: which scenario it belongs to; empty where it was armed by itself.
        seen: how many calls, updates or POSTs it was asked about.
        hits: how many of them it has spoiled.
    """

    id: int
    given: dict[str, Any]
    scenario: str = ""
    seen: int = 0
    hits: int = 0

    @cached_property
    def kind(self) -> Kind:
        """The row of the table."""
        return kind_of(self.given["on"], self.given["what"])

    @property
    def what(self) -> dict[str, Any]:
        """The kind's own member and what stands beside it."""
        return self.given["what"]

    @property
    def value(self) -> Any:
        """The value of the kind's own member."""
        return self.what[self.kind.name]

    @property
    def left(self) -> int | None:
        """How often it will fire still; None where there is no end."""
        at_most: int | None = self.given["when"].get("next")
        return None if at_most is None else max(0, at_most - self.hits)

    def is_armed(self, now_ms: int) -> bool:
        """Whether it may still fire."""
        return self.left != 0 and now_ms < self.given.get("until_ms", now_ms + 1)

    def concerns(self, subject: Subject) -> bool:
        """Whether it is about this."""
        given = self.given
        if given[given["on"]] not in (ANY, subject.name):
            return False
        for name in _FILTERS:
            wished = given.get(name)
            if wished is not None and not _is_one_of(wished, getattr(subject, name)):
                return False
        return True

    def fires(self) -> bool:
        """Whether it fires at the one it is asked about now, which `seen` counts already.

        By chance, but the same chance in every run: it is drawn from the seed, the id and the count,
        and from no clock.
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


def _is_one_of(wished: str, there: str | Collection[str]) -> bool:
    return wished == there if isinstance(there, str) else wished in there
