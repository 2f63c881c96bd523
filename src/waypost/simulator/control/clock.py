"""The control door's calls about time: read the clock, move it, stop it, let it run. Source: decision 0039."""

import asyncio
from collections.abc import Awaitable
from typing import Annotated, Any, ClassVar, Final, TypeVar

from msgspec import UNSET, Meta, UnsetType
from starlette.requests import Request

from waypost.base.travel import FASTEST, FURTHEST_MS, NotSettled, Travel
from waypost.simulator.control.guard import ControlRefused
from waypost.simulator.control.shapes import NothingShape, read_shape
from waypost.simulator.parts import Parts

Result = TypeVar("Result")

_LATEST_MS: Final = 32_503_680_000_000  # the end of the year 2999: dates have room beyond
_WITHIN_MS: Final = 20_000
_WITHIN_AT_MOST_MS: Final = 60_000


class _ClientGone(Exception):
    """The client closed the connection."""


class AdvanceShape(NothingShape, frozen=True):
    """How far, or to which time."""

    accepted: ClassVar[str] = (
        f"{{ms: 0 to {FURTHEST_MS}}}, or {{to_ms: milliseconds since the epoch, not before now}}; "
        f"within_ms?: 1 to {_WITHIN_AT_MOST_MS} of real time"
    )
    ms: Annotated[int, Meta(ge=0, le=FURTHEST_MS)] | UnsetType = UNSET
    to_ms: Annotated[int, Meta(ge=0, le=_LATEST_MS)] | UnsetType = UNSET
    within_ms: Annotated[int, Meta(ge=1, le=_WITHIN_AT_MOST_MS)] = _WITHIN_MS


class RunShape(NothingShape, frozen=True):
    """How fast."""

    accepted: ClassVar[str] = f"{{factor?: more than 0, at most {FASTEST}}}"
    factor: Annotated[float, Meta(gt=0, le=FASTEST)] = 1.0


async def show_clock(parts: Parts, _request: Request) -> dict[str, Any]:
    """Where the clock stands, and how it goes."""
    return clock_view(_travel(parts))


async def show_due(parts: Parts, _request: Request) -> dict[str, Any]:
    """When the next thing will happen by itself, on each side; null: nothing waits there."""
    travel = _travel(parts)
    sides = [
        {"name": side.name, "next_due_ms": await side.next_due_ms(), "is_busy": side.busy} for side in travel.sides
    ]
    return {"now_ms": travel.clock.now_ms(), "sides": sides}


async def advance_clock(parts: Parts, request: Request) -> dict[str, Any]:
    """Move the clock from due time to due time; answers when it has arrived, or how far it came in `within_ms`.

    `steps` is how many due times it has handled, `left_ms` how far it still is. It stops where it is
    when its client closes the connection.
    """
    travel = _travel(parts)
    wish = read_shape(AdvanceShape, await request.body())
    now_ms = travel.clock.now_ms()
    if (wish.ms is UNSET) == (wish.to_ms is UNSET):
        raise ControlRefused(400, field="ms", rule="exactly one of ms and to_ms", accepted=AdvanceShape.accepted)
    to_ms = now_ms + wish.ms if wish.ms is not UNSET else int(wish.to_ms or 0)
    furthest_ms = min(now_ms + FURTHEST_MS, _LATEST_MS)
    if not now_ms <= to_ms <= furthest_ms:
        raise ControlRefused(
            400,
            field="to_ms" if wish.ms is UNSET else "ms",
            rule="a clock only goes forward, at most ten years at once and to the year 2999",
            accepted=f"a time from {now_ms} to {furthest_ms}; the clock stands at {now_ms}",
        )
    try:
        journey = await _while_connected(request, travel.advance(to_ms=to_ms, at_most_s=wish.within_ms / 1000))
    except _ClientGone:
        return {**clock_view(travel), "is_complete": False}  # nobody reads it
    except NotSettled as error:
        raise ControlRefused(503, field="clock", rule=str(error), accepted="another try when it is quiet") from error
    return {
        **clock_view(travel),
        "steps": journey.stops,
        "left_ms": journey.left_ms,
        "is_complete": journey.is_complete,
    }


async def freeze_clock(parts: Parts, request: Request) -> dict[str, Any]:
    """Stop the clock: nothing becomes due until it is moved, or runs again."""
    travel = _travel(parts)
    read_shape(NothingShape, await request.body())
    await travel.run(factor=0)
    return clock_view(travel)


async def run_clock(parts: Parts, request: Request) -> dict[str, Any]:
    """Let the clock run, as fast as the machine's or faster."""
    travel = _travel(parts)
    wish = read_shape(RunShape, await request.body())
    await travel.run(factor=wish.factor)
    return clock_view(travel)


def clock_view(travel: Travel) -> dict[str, Any]:
    """The clock as the control door shows it; times in milliseconds."""
    clock = travel.clock
    return {
        "now_ms": clock.now_ms(),
        "ahead_ms": clock.ahead_ms,
        "factor": clock.bearing.factor,
        "is_frozen": clock.bearing.factor == 0,
    }


def _travel(parts: Parts) -> Travel:
    if parts.travel is None:
        raise ControlRefused(
            404,
            field="clock",
            rule="this simulator follows the machine's clock, which nobody moves",
            accepted="`waypost dev` and `waypost simulator` have a clock that can be moved",
        )
    return parts.travel


async def _while_connected(request: Request, work: Awaitable[Result]) -> Result:
    """Do something for a client whose request has been read; end it when the client goes.

    Raises:
        _ClientGone: it has been cancelled.
    """
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(request.receive())  # what comes after the body is the end
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise _ClientGone
        return working.result()
    finally:
        for task in (working, leaving):
            task.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)
