"""Control API calls that create, show and delete fleets."""

from typing import Annotated, Any

from msgspec import Meta
from msgspec.structs import replace

from waypost.simulator.control.endpoints import business_number, find
from waypost.simulator.control.phones import HabitsBody, Script, Seed, habits_of
from waypost.simulator.field_types import BusinessNumber, Digits, accepts
from waypost.simulator.phones.fleets import PHONES_AT_MOST, Fleet
from waypost.simulator.phones.script_steps import read_steps
from waypost.simulator.services import Parts
from waypost.simulator.store import Statement
from waypost.simulator.violation import BrokenRule


class FleetBody(HabitsBody, frozen=True, kw_only=True):
    """Phones with consecutive numbers and common settings."""

    name: Annotated[str, accepts("1 to 64 of a-z, 0-9, - and _", "^[a-z0-9][a-z0-9_-]{0,63}$")]
    first: Digits
    count: Annotated[int, Meta(ge=1, le=PHONES_AT_MOST)]
    script: Script = ()
    seed: Seed | None = None
    open_window_to: BusinessNumber | None = None


async def make_fleet(parts: Parts, body: FleetBody) -> dict[str, Any]:
    """Create phones with consecutive numbers that follow one script; existing phones are reset."""
    fleet = Fleet(
        name=body.name,
        first=int(body.first.lstrip("+")),
        count=body.count,
        seed=body.name if body.seed is None else str(body.seed),
        script=[step.raw for step in read_steps(body.script)],
        habits=habits_of(body),
        made_ms=parts.clock.now_ms(),
    )
    _check_range(parts, body.first, fleet)
    if body.open_window_to is not None:
        number = business_number(parts, body.open_window_to)
        fleet = replace(fleet, window_number_id=number.phone_number_id)
    async with parts.fleets.turn:
        _check_free(parts, fleet)
        parts.phones.forget_fleet(fleet)
        await parts.fleets.make(fleet, _begin_anew(parts, fleet, steps=len(fleet.steps)))
        await parts.scripts.learn_fleet(fleet)
    return await show_fleet(parts, fleet)


async def list_fleets(parts: Parts) -> dict[str, Any]:
    """Return every fleet, by name, without counts."""
    fleets = sorted(parts.fleets.by_name.values(), key=lambda fleet: fleet.name)
    return {"fleets": [_head(parts, fleet) for fleet in fleets]}


async def show_fleet(parts: Parts, fleet: Fleet) -> dict[str, Any]:
    """Return a fleet, the counts of its messages by outcome, and the counts of each step."""
    now_ms = parts.clock.now_ms()
    return {
        **_head(parts, fleet),
        "counts": await parts.fleets.counts(fleet, now_ms),
        "failures": await parts.fleets.failures(fleet, now_ms),
        "steps": await parts.scripts.counts(fleet.owner, fleet.steps),
    }


async def drop_fleet(parts: Parts, name: str) -> dict[str, Any]:
    """Delete a fleet; its numbers become ordinary phones, and their messages stay."""
    async with parts.fleets.turn:
        fleet = find(parts.fleets.by_name, name, field="name", rule="is no fleet")
        await parts.fleets.drop(fleet, _begin_anew(parts, fleet, steps=0))
        parts.phones.forget_fleet(fleet)
    return {"name": fleet.name, "dropped": True}


def _begin_anew(parts: Parts, fleet: Fleet, *, steps: int) -> list[Statement]:
    return [*parts.phones.forget_fleet_statements(fleet), *parts.scripts.begin_fleet(fleet, steps=steps)]


def _head(parts: Parts, fleet: Fleet) -> dict[str, Any]:
    first, last = fleet.range
    number = parts.accounts.numbers.get(fleet.window_number_id)
    return {
        "name": fleet.name,
        "first": first,
        "last": last,
        "count": fleet.count,
        "seed": fleet.seed,
        "script": fleet.script,
        "habits": fleet.habits,
        "open_window_to": number.phone_number if number else None,
        "made_ms": fleet.made_ms,
    }


def _check_range(parts: Parts, given_first: str, fleet: Fleet) -> None:
    first, last = fleet.range
    if str(fleet.first) != given_first.lstrip("+") or len(last) != len(first):
        accepted = f"8 to 15 digits, the first not 0, for a count of 1 to {PHONES_AT_MOST}"
        raise BrokenRule("first", f"the numbers {given_first} to {last} have not all as many digits", accepted)
    for digits in parts.accounts.numbers_by_digits:
        if len(digits) == len(first) and first <= digits <= last:
            raise BrokenRule("first", f"{digits} is a business number", "other numbers", status=409)


def _check_free(parts: Parts, fleet: Fleet) -> None:
    if fleet.name in parts.fleets.by_name:
        raise BrokenRule("name", "is in use", "another, or DELETE the fleet first", status=409)
    other = parts.fleets.overlapping(fleet)
    if other is not None:
        first, last = other.range
        raise BrokenRule("first", f"fleet {other.name} has {first} to {last}", "numbers of no other fleet", status=409)
