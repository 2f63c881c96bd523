"""The clock of service and simulator: its time, what is due next, and advancing it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from starlette.responses import Response

from waypost.base.clock import HOUR_MS, machine_ms
from waypost.client.api_client import ApiResponseError
from waypost.console.actions import ActionRow, Body, Fields, done, reason_of
from waypost.console.page_tools import PageTools
from waypost.console.simulator.context import control_of, tab
from waypost.console.simulator.numbers import fraction
from waypost.console.web.formatting import exact
from waypost.console.web.not_found import NotMeant
from waypost.console.web.page_request import PageRequest
from waypost.console.web.streams import Piece

PATH: Final = "/simulator/clock"
PARTS: Final = "simulator/clock_parts.html"
_MOST_TYPED: Final = 40

# fmt: off
JUMPS: Final = (
    # label           ms              examples of what becomes due
    ("+1 minute",     60_000,         "retries, delayed webhooks"),
    ("+1 hour",       HOUR_MS,       "most short pauses"),
    ("+3 hours",      3 * HOUR_MS,   "a first quality pause"),
    ("+1 day",        24 * HOUR_MS,  "customer service windows, partner tokens"),
    ("+30 days",      720 * HOUR_MS, "uploads, names of deleted templates"),
)
UNITS: Final = (
    # name        label        ms
    ("seconds",   "seconds",   1000),
    ("minutes",   "minutes",   60_000),
    ("hours",     "hours",     HOUR_MS),
    ("days",      "days",      24 * HOUR_MS),
)
FACTORS: Final = (1, 10, 60, 600, 3600)
# fmt: on


@dataclass(frozen=True, slots=True)
class ClockNow:
    """The state of the clock, as the page shows it.

    Attributes:
        why_not: the reason why it cannot be advanced; empty: it can.
        sides: of service and simulator `(name, next due time, is busy)`.
    """

    now_ms: int
    machine_ms: int
    ahead_ms: int
    factor: float
    sides: list[tuple[str, int | None, bool]]
    why_not: str = ""

    @property
    def next_due_ms(self) -> int | None:
        """Return when the next work is due; None: nothing waits."""
        return min((due_ms for _, due_ms, _ in self.sides if due_ms is not None), default=None)


async def show_clock(desk: PageTools, visit: PageRequest) -> Response:
    """Return the page."""
    return await tab(
        desk, visit, "clock",
        now=await _now(desk), jumps=JUMPS, units=UNITS, factors=FACTORS,
    )  # fmt: skip


async def live_clock(desk: PageTools, visit: PageRequest) -> Response:
    """Stream what changes on it."""

    async def render_pieces() -> Sequence[Piece]:
        return _pieces(desk, visit, await _now(desk))

    return desk.live(visit, render_pieces, rest_s=0.5)


async def advance_to_next(desk: PageTools, visit: PageRequest) -> Response:
    """Advance the clock to the next due time."""
    due_ms = (await _now(desk)).next_due_ms
    if due_ms is None:
        return done(desk, visit, PATH, "Nothing is waiting.")
    now_ms = (await control_of(desk).get("/control/clock"))["now_ms"]
    return await ADVANCE.carry_out(desk, visit, {"to_ms": max(due_ms, now_ms)})


async def _now(desk: PageTools) -> ClockNow:
    control = control_of(desk)
    try:
        clock = await control.get("/control/clock")
        due = await control.get("/control/clock/due")
    except ApiResponseError as error:
        if error.status != 404:
            raise
        now_ms = desk.parts.clock.now_ms()
        return ClockNow(now_ms, machine_ms(), 0, 1, [], " ".join(reason_of(error)))
    return ClockNow(
        clock["now_ms"], machine_ms(), clock["ahead_ms"], clock["factor"],
        [
            (str(side["name"]).capitalize(), side["next_due_ms"], side["is_busy"])
            for side in due["sides"]
        ],
    )  # fmt: skip


def _pieces(desk: PageTools, visit: PageRequest, now: ClockNow) -> list[Piece]:
    part: Callable[..., str] = desk.parts.pages.part
    return [
        Piece("clock-face", part(PARTS, "face", visit, now)),
        Piece("clock-due", part(PARTS, "due", visit, visit, now)),
        Piece("clock-pace", part(PARTS, "pace", visit, visit, now, FACTORS)),
    ]


async def _pieces_now(desk: PageTools, visit: PageRequest) -> list[Piece]:
    return _pieces(desk, visit, await _now(desk))


def _said(clock: Mapping[str, Any]) -> str:
    text = f"The clock is at {exact(clock['now_ms'])[:19]} UTC"
    if clock["is_frozen"]:
        text += " and stopped."
    elif clock["factor"] != 1:
        text += f" and runs {clock['factor']:g} times as fast."
    else:
        text += "."
    if clock.get("steps"):
        text += f" It paused at {clock['steps']} due {'time' if clock['steps'] == 1 else 'times'}."
    if clock.get("is_complete") is False:
        left = timedelta(seconds=round(clock["left_ms"] / 1000))
        text += f" It has not reached the target: {left} left. Advance it again to continue."
    return text


def _distance(fields: Fields) -> Body:
    """Return the target of an advance: a time, or a number of units."""
    if fields.get("to"):
        return {"to_ms": _moment(fields["to"])}
    unit_ms = {"ms": 1, **{name: ms for name, _, ms in UNITS}}.get(fields.get("unit", "ms"))
    text = fields.get("by", "")
    count = fraction(text)
    if unit_ms is None or not isinstance(count, float):
        raise NotMeant(f"{text[:_MOST_TYPED]!r} is not a number.", "Enter how far to advance the clock.")
    return {"ms": round(count * unit_ms)}


def _factor(fields: Fields) -> Body:
    return {"factor": fraction(fields.get("factor", "1"))}


def _moment(text: str) -> int:
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise NotMeant(
            f"{text[:_MOST_TYPED]!r} is not a time.", "Choose a date and time, such as 2027-01-31T12:00."
        ) from error
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def _action(name: str, does: str, body: Callable[[Fields], Body] | None = None) -> ActionRow:
    call = f"POST /control/clock/{name}"
    return ActionRow(f"{PATH}/{name}", does, call, PATH, _said, body=body, pieces=_pieces_now)


ADVANCE: Final = _action("advance", "advance it", _distance)  # responds when the clock has arrived
ACTIONS: Final = (ADVANCE, _action("freeze", "stop it"), _action("run", "run it", _factor))
