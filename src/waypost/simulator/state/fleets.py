"""Fleets: many phones stored as one row: their numbers, their behaviour, and the outcomes of their messages."""

from functools import cached_property
from typing import Any, Final

import msgspec

from waypost.simulator.state.phone import SimulatedPhone
from waypost.simulator.state.script_steps import Script, ScriptStep, read_steps
from waypost.simulator.state.simulator_state import SimulatorState
from waypost.simulator.storage.keyed_store import StoredKind

MAX_FLEET_PHONES: Final = 1_000_000


class Fleet(msgspec.Struct, frozen=True, dict=True):
    """Phones with consecutive numbers."""

    name: str  # letters, digits, hyphens and underscores
    first: int  # the first phone's number
    count: int  # how many there are
    seed: str  # for the random choices of the script
    script: list[dict[str, Any]] = []  # its steps, as they were sent; may be empty
    behaviour: dict[str, Any] = {}  # members of `SimulatedPhone` that all its phones have
    window_number_id: str = ""  # the business number to which each phone wrote when the fleet was created; may be empty
    made_ms: int = 0  # when the fleet was created

    @property
    def last_number(self) -> int:
        """The last phone's number."""
        return self.first + self.count - 1

    @property
    def owner(self) -> str:
        """The owner under which its script's steps are counted."""
        return f"fleet {self.name}"

    @cached_property
    def steps(self) -> tuple[ScriptStep, ...]:
        """The steps of its script."""
        return read_steps(self.script)

    @cached_property
    def phone_script(self) -> Script:
        """The script of each of its phones."""
        return Script(self.owner, self.seed, self.steps)

    @property
    def range(self) -> tuple[str, str]:
        """First and last phone; no other number with as many digits is between them."""
        return str(self.first), str(self.last_number)


FLEETS: Final = StoredKind("fleet", Fleet)


def find_fleet(state: SimulatorState, phone: str) -> Fleet | None:
    """Return the fleet of a phone; None if it belongs to none."""
    fleets = state.values(FLEETS)
    if not fleets or phone[0] == "0":
        return None
    number = int(phone)
    return next((fleet for fleet in list(fleets.values()) if fleet.first <= number <= fleet.last_number), None)


def find_fleet_phone(state: SimulatorState, phone: str) -> SimulatedPhone | None:
    """Return a fleet's phone in its initial state; None if the phone belongs to no fleet."""
    fleet = find_fleet(state, phone)
    if fleet is None:
        return None
    return SimulatedPhone(phone, f"{fleet.name} {int(phone) - fleet.first}", **fleet.behaviour)


def fleet_window_ms(state: SimulatorState, phone_number_id: str, phone: str) -> int | None:
    """Return when a fleet's phone wrote to a number by its creation; None if it did not."""
    fleet = find_fleet(state, phone)
    return fleet.made_ms if fleet is not None and fleet.window_number_id == phone_number_id else None
