"""Control API calls that create, show and delete fleets."""

from typing import Annotated, Any

from msgspec import Meta, Struct
from msgspec.structs import replace

from waypost.simulator.apis.control_error import ControlApiError
from waypost.simulator.apis.control_operations import ControlOperations, find, path_object, view_of
from waypost.simulator.apis.field_types import BusinessNumber, Digits, accepts
from waypost.simulator.handsets.control import PhoneSettingsBody, Script, Seed, phone_settings
from waypost.simulator.state.control_parameters import business_number
from waypost.simulator.state.fleets import FLEETS, MAX_FLEET_PHONES, Fleet
from waypost.simulator.state.phones import reset_fleet_phones
from waypost.simulator.state.script_steps import read_steps
from waypost.simulator.state.scripts import StepCountView, count_steps, load_received_counts, reset_fleet_scripts
from waypost.simulator.state.simulator_state import SimulatorState, Transaction
from waypost.simulator.storage.tables.messages import count_failures, count_outcomes
from waypost.simulator.storage.tables.phone_plans import count_waiting

PathFleet = Annotated[Fleet, path_object("name", lambda state: state.values(FLEETS), "is no fleet")]

operation = ControlOperations()


class FleetBody(PhoneSettingsBody, frozen=True, kw_only=True):
    """Phones with consecutive numbers and common settings."""

    name: Annotated[str, accepts("1 to 64 of a-z, 0-9, - and _", "^[a-z0-9][a-z0-9_-]{0,63}$")]
    first: Annotated[Digits, Meta(description="With country code. The other numbers follow it.")]
    count: Annotated[int, Meta(ge=1, le=MAX_FLEET_PHONES)]
    script: Script = ()
    seed: Annotated[Seed | None, Meta(description="Random seed; null: the name.")] = None
    open_window_to: Annotated[
        BusinessNumber | None,
        Meta(
            description="Opens the customer service window, as if each phone had just written to this number; "
            "null: templates only."
        ),
    ] = None


class FleetView(Struct, frozen=True, kw_only=True):
    """A fleet with its first and last number, and the settings that its phones share."""

    name: str
    first: str
    last: str
    count: int
    seed: str
    script: list[dict[str, Any]]
    behaviour: dict[str, Any]
    open_window_to: str | None
    made_ms: int


class FleetOutcome(FleetView, frozen=True, kw_only=True):
    """A fleet with its messages: by outcome, those that failed by error code, and what the steps of its script did."""

    counts: dict[str, int]
    failures: dict[str, int]
    steps: list[StepCountView]


@operation("POST", "/control/fleets")
async def make_fleet(state: SimulatorState, body: FleetBody) -> FleetOutcome:
    """Create phones with consecutive numbers that follow one script; existing phones are reset."""
    fleet = Fleet(
        name=body.name,
        first=int(body.first.lstrip("+")),
        count=body.count,
        seed=body.name if body.seed is None else str(body.seed),
        script=[step.raw for step in read_steps(body.script)],
        behaviour=phone_settings(body),
        made_ms=state.clock.now_ms(),
    )
    _check_range(state, body.first, fleet)
    if body.open_window_to is not None:
        number = business_number(state, body.open_window_to)
        fleet = replace(fleet, window_number_id=number.phone_number_id)

    def write(transaction: Transaction) -> None:
        for other in transaction.values(FLEETS).values():
            first, last = other.range
            if other.name == fleet.name:
                raise ControlApiError("name", "is in use", "another, or DELETE the fleet first", status=409)
            if other.first <= fleet.last_number and fleet.first <= other.last_number:
                rule = f"fleet {other.name} has {first} to {last}"
                raise ControlApiError("first", rule, "numbers of no other fleet", status=409)
        transaction.save(FLEETS, fleet, fleet.name)
        reset_fleet_phones(transaction, fleet)
        reset_fleet_scripts(transaction, fleet, len(fleet.steps))

    await state.transact(write)
    if fleet.steps:
        await load_received_counts(state, *fleet.range)
    return await show_fleet(state, fleet)


@operation("GET", "/control/fleets", fleets=list[FleetView])
async def list_fleets(state: SimulatorState) -> dict[str, Any]:
    """Return every fleet, by name, without counts."""
    fleets = sorted(state.values(FLEETS).values(), key=lambda fleet: fleet.name)
    return {"fleets": [_fleet_view(state, fleet) for fleet in fleets]}


@operation("GET", "/control/fleets/{name}")
async def show_fleet(state: SimulatorState, fleet: PathFleet) -> FleetOutcome:
    """Return a fleet, the counts of its messages by outcome, and the counts of each step."""
    now_ms = state.clock.now_ms()
    waiting = await count_waiting(state.store, *fleet.range)
    return view_of(
        FleetOutcome,
        _fleet_view(state, fleet),
        counts={**await count_outcomes(state.store, *fleet.range, now_ms), "waiting": waiting},
        failures=await count_failures(state.store, *fleet.range, now_ms),
        steps=await count_steps(state, fleet.owner, fleet.steps),
    )


@operation("DELETE", "/control/fleets/{name}", name=str, dropped=bool)
async def drop_fleet(state: SimulatorState, name: str) -> dict[str, Any]:
    """Delete a fleet; its numbers become ordinary phones, and their messages stay."""

    def write(transaction: Transaction) -> None:
        fleet = find(transaction.values(FLEETS), name, field="name", rule="is no fleet")
        transaction.delete(FLEETS, name)
        reset_fleet_phones(transaction, fleet)
        reset_fleet_scripts(transaction, fleet, 0)

    await state.transact(write)
    return {"name": name, "dropped": True}


def _fleet_view(state: SimulatorState, fleet: Fleet) -> FleetView:
    first, last = fleet.range
    number = state.accounts.numbers.get(fleet.window_number_id)
    open_window_to = number.phone_number if number else None
    return view_of(FleetView, fleet, first=first, last=last, open_window_to=open_window_to)


def _check_range(state: SimulatorState, first_digits: str, fleet: Fleet) -> None:
    first, last = fleet.range
    if str(fleet.first) != first_digits.lstrip("+") or len(last) != len(first):
        accepted = f"8 to 15 digits, the first not 0, for a count of 1 to {MAX_FLEET_PHONES}"
        raise ControlApiError("first", f"the numbers {first_digits} to {last} have not all as many digits", accepted)
    for digits in state.accounts.numbers_by_digits:
        if len(digits) == len(first) and first <= digits <= last:
            raise ControlApiError("first", f"{digits} is a business number", "other numbers", status=409)
