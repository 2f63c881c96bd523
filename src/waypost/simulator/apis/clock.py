"""Control API calls for the clock: read, advance, freeze and run it. Source: decision 0039."""

from typing import Annotated, Any, Final

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import astuple
from starlette.requests import Request

from waypost.base.invalid_values import accepted_by
from waypost.base.time_travel import MAX_ADVANCE_MS, MAX_CLOCK_FACTOR, ClockNotIdle, TimeTravel
from waypost.simulator.apis.control_error import ControlApiError
from waypost.simulator.apis.control_operations import (
    ClientLeftDuringWork,
    ControlBody,
    ControlOperations,
    member_of_state,
    run_while_connected,
)
from waypost.simulator.apis.field_types import accepts

_TIME: Final = "milliseconds since the epoch, not before now"
_LATEST_MS: Final = 32_503_680_000_000  # the end of the year 2999: date types go further


MovableClock = Annotated[
    TimeTravel,
    member_of_state(
        "travel",
        "clock",
        "this simulator follows the machine's clock, which cannot be advanced",
        "`waypost dev` and `waypost simulator` have a clock that can be advanced",
    ),
]

operation = ControlOperations()


class AdvanceBody(ControlBody, frozen=True):
    """A duration or a target time, and the maximum time of the response."""

    ms: Annotated[int, Meta(ge=0, le=MAX_ADVANCE_MS)] | UnsetType = UNSET
    to_ms: Annotated[int, accepts(_TIME, ge=0, le=_LATEST_MS)] | UnsetType = UNSET
    within_ms: Annotated[int, accepts("1 to 60000 of real time", ge=1, le=60_000)] = 20_000


class ClockState(Struct):
    """The clock's time and speed."""

    now_ms: int
    ahead_ms: int
    factor: float
    is_frozen: bool


class AdvancedClock(ClockState, kw_only=True):
    """The clock after an advance; `steps` and `left_ms` are absent if the client closed the connection."""

    steps: int | UnsetType = UNSET
    left_ms: int | UnsetType = UNSET
    is_complete: bool


class DueSide(Struct):
    """The next due time of service or simulator."""

    name: str
    next_due_ms: int | None
    is_busy: bool


@operation("GET", "/control/clock")
async def show_clock(travel: MovableClock) -> ClockState:
    """Return the time of the clock and its speed."""
    clock, factor = travel.clock, travel.clock.setting.factor
    return ClockState(clock.now_ms(), clock.ahead_ms, factor, factor == 0)


@operation("GET", "/control/clock/due", now_ms=int, sides=list[DueSide])
async def show_due(travel: MovableClock) -> dict[str, Any]:
    """Return the next due time of service and simulator; null: nothing is scheduled."""
    sides = [DueSide(side.name, await side.next_due_ms(), side.busy) for side in travel.sides]
    return {"now_ms": travel.clock.now_ms(), "sides": sides}


@operation("POST", "/control/clock/advance")
async def advance_clock(request: Request, travel: MovableClock, body: AdvanceBody) -> AdvancedClock:
    """Advance the clock from due time to due time; responds at the target or after `within_ms`.

    `steps` is the number of due times handled, `left_ms` the remaining distance. The clock stops
    if the client closes the connection.
    """
    now_ms = travel.clock.now_ms()
    if (body.ms is UNSET) == (body.to_ms is UNSET):
        raise ControlApiError("ms", "must be sent, or to_ms, and not both", accepted_by(AdvanceBody))
    to_ms = now_ms + body.ms if body.ms is not UNSET else int(body.to_ms or 0)
    furthest_ms = min(now_ms + MAX_ADVANCE_MS, _LATEST_MS)
    if not now_ms <= to_ms <= furthest_ms:
        raise ControlApiError(
            "to_ms" if body.ms is UNSET else "ms",
            "a clock only goes forward, at most ten years at once and to the year 2999",
            f"a time from {now_ms} to {furthest_ms}; the clock stands at {now_ms}",
        )
    try:
        journey = await run_while_connected(request, travel.advance(to_ms=to_ms, max_real_s=body.within_ms / 1000))
    except ClientLeftDuringWork:
        return AdvancedClock(*astuple(await show_clock(travel)), is_complete=False)  # the client is gone
    except ClockNotIdle as error:
        raise ControlApiError("clock", str(error), "another try when it is quiet", status=503) from error
    return AdvancedClock(
        *astuple(await show_clock(travel)),
        steps=journey.stops,
        left_ms=journey.left_ms,
        is_complete=journey.is_complete,
    )


@operation("POST", "/control/clock/freeze")
async def freeze_clock(travel: MovableClock) -> ClockState:
    """Stop the clock: nothing becomes due until it is advanced or runs again."""
    await travel.run(factor=0)
    return await show_clock(travel)


@operation("POST", "/control/clock/run")
async def run_clock(
    travel: MovableClock,
    *,
    factor: Annotated[float, Meta(gt=0, le=MAX_CLOCK_FACTOR, description="Speed, as a multiple of real time.")] = 1.0,
) -> ClockState:
    """Run the clock at a given speed."""
    await travel.run(factor=factor)
    return await show_clock(travel)
