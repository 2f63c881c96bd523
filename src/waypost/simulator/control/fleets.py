"""The control door's calls about fleets: make one, look at it, drop it."""

from typing import Any

from msgspec.structs import replace
from starlette.requests import Request

from waypost.simulator.control.acts import number_of
from waypost.simulator.control.guard import ControlRefused
from waypost.simulator.control.phones import steps_of
from waypost.simulator.control.shapes import FleetShape, given, read_shape
from waypost.simulator.parts import Parts
from waypost.simulator.phones.fleets import PHONES_AT_MOST, Fleet
from waypost.simulator.phones.phone import ONLY_WHEN_TOLD
from waypost.simulator.store import Statement

_HABITS = (
    "deliver_after_ms", "read_after_ms", "condition", "sends_read_receipts", "has_chat_open",
)  # fmt: skip


async def make_fleet(parts: Parts, request: Request) -> dict[str, Any]:
    """Make phones with consecutive numbers that follow one script; they begin anew."""
    shape = read_shape(FleetShape, await request.body())
    members = given(shape)
    habits = {name: members[name] for name in _HABITS if name in members}
    if habits.get("read_after_ms", 0) is None:
        habits["read_after_ms"] = ONLY_WHEN_TOLD
    fleet = Fleet(
        name=shape.name,
        first=int(shape.first.lstrip("+")),
        count=shape.count,
        seed=shape.name if shape.seed is None else str(shape.seed),
        script=[step.raw for step in steps_of(shape.script)],
        habits=habits,
        made_ms=parts.clock.now_ms(),
    )
    _check_range(parts, shape, fleet)
    if shape.open_window_to is not None:
        number = number_of(parts, shape.open_window_to)
        fleet = replace(fleet, window_number_id=number.phone_number_id)
    async with parts.fleets.turn:
        _check_free(parts, fleet)
        parts.phones.forget_fleet(fleet)
        await parts.fleets.make(fleet, _begin_anew(parts, fleet, steps=len(fleet.steps)))
        await parts.scripts.learn_fleet(fleet)
    return await fleet_view(parts, fleet)


async def list_fleets(parts: Parts, _request: Request) -> dict[str, Any]:
    """Every fleet, by name, without counts."""
    fleets = sorted(parts.fleets.by_name.values(), key=lambda fleet: fleet.name)
    return {"fleets": [_head(parts, fleet) for fleet in fleets]}


async def show_fleet(parts: Parts, request: Request) -> dict[str, Any]:
    """A fleet, what became of its messages, and how often each step was done."""
    return await fleet_view(parts, _fleet_of(parts, request))


async def drop_fleet(parts: Parts, request: Request) -> dict[str, Any]:
    """Drop a fleet; its numbers are ordinary phones again, and what was said stays."""
    async with parts.fleets.turn:
        fleet = _fleet_of(parts, request)
        await parts.fleets.drop(fleet, _begin_anew(parts, fleet, steps=0))
        parts.phones.forget_fleet(fleet)
    return {"name": fleet.name, "dropped": True}


def _begin_anew(parts: Parts, fleet: Fleet, *, steps: int) -> list[Statement]:
    return [*parts.phones.forget_fleet_statements(fleet), *parts.scripts.begin_fleet(fleet, steps=steps)]


async def fleet_view(parts: Parts, fleet: Fleet) -> dict[str, Any]:
    """A fleet as the door shows it."""
    now_ms = parts.clock.now_ms()
    return {
        **_head(parts, fleet),
        "counts": await parts.fleets.counts(fleet, now_ms),
        "failures": await parts.fleets.failures(fleet, now_ms),
        "steps": await parts.scripts.counts(fleet.owner, fleet.steps),
    }


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


def _fleet_of(parts: Parts, request: Request) -> Fleet:
    fleet = parts.fleets.by_name.get(request.path_params["name"])
    if fleet is None:
        known = ", ".join(sorted(parts.fleets.by_name)) or "none yet"
        raise ControlRefused(404, field="name", rule="is no fleet", accepted=known)
    return fleet


def _check_range(parts: Parts, shape: FleetShape, fleet: Fleet) -> None:
    first, last = fleet.range
    if str(fleet.first) != shape.first.lstrip("+") or len(last) != len(first):
        raise ControlRefused(
            400,
            field="first",
            rule=f"the numbers {shape.first} to {last} have not all as many digits",
            accepted=f"8 to 15 digits, the first not 0, for a count of 1 to {PHONES_AT_MOST}",
        )
    for digits in parts.accounts.numbers_by_digits:
        if len(digits) == len(first) and first <= digits <= last:
            raise ControlRefused(409, field="first", rule=f"{digits} is a business number", accepted="other numbers")


def _check_free(parts: Parts, fleet: Fleet) -> None:
    if fleet.name in parts.fleets.by_name:
        raise ControlRefused(409, field="name", rule="is in use", accepted="another, or DELETE the fleet first")
    other = parts.fleets.overlapping(fleet)
    if other is not None:
        first, last = other.range
        raise ControlRefused(
            409, field="first", rule=f"fleet {other.name} has {first} to {last}", accepted="numbers of no other fleet"
        )
