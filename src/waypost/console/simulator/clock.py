"""The clock that service and simulator follow: where it stands, what is due next, and moving it."""

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
    # label           ms              what ends in it
    ("+1 minute",     60_000,         "retries, delays of webhooks"),
    ("+1 hour",       HOUR_MS,       "most of what is paused for a moment"),
    ("+3 hours",      3 * HOUR_MS,   "a first pause for quality"),
    ("+1 day",        24 * HOUR_MS,  "windows for session messages, partner tokens"),
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
    """What the page shows.

    Attributes:
        why_not: why nobody can move it; empty: one can.
        sides: `(name, when its next thing is due, whether it works)`.
    """

    now_ms: int
    machine_ms: int
    ahead_ms: int
    factor: float
    sides: list[tuple[str, int | None, bool]]
    why_not: str = ""

    @property
    def next_due_ms(self) -> int | None:
        """When anything happens by itself; None: nothing waits."""
        return min((due_ms for _, due_ms, _ in self.sides if due_ms is not None), default=None)


async def show_clock(desk: PageTools, visit: PageRequest) -> Response:
    """The page, as things stand."""
    return await tab(
        desk, visit, "clock",
        now=await _now(desk), jumps=JUMPS, units=UNITS, factors=FACTORS,
    )  # fmt: skip


async def live_clock(desk: PageTools, visit: PageRequest) -> Response:
    """What changes of it."""

    async def look() -> Sequence[Piece]:
        return _pieces(desk, visit, await _now(desk))

    return desk.live(visit, look, rest_s=0.5)


async def advance_to_next(desk: PageTools, visit: PageRequest) -> Response:
    """Move it to when the next thing is due."""
    due_ms = (await _now(desk)).next_due_ms
    if due_ms is None:
        return done(desk, visit, PATH, "Nothing waits to become due.")
    now_ms = (await control_of(desk).get("/control/clock"))["now_ms"]
    return await ADVANCE.carry_out(desk, visit, {"to_ms": max(due_ms, now_ms)})


async def _now(desk: PageTools) -> ClockNow:
    control = control_of(desk)
    try:
        clock = await control.get("/control/clock")
        due = await control.get("/control/clock/due")
    except ApiResponseError as refused:
        if refused.status != 404:
            raise
        now_ms = desk.parts.clock.now_ms()
        return ClockNow(now_ms, machine_ms(), 0, 1, [], " ".join(reason_of(refused)))
    return ClockNow(
        clock["now_ms"], machine_ms(), clock["ahead_ms"], clock["factor"],
        [
            (str(one["name"]).capitalize(), one["next_due_ms"], one["is_busy"])
            for one in due["sides"]
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
    stands = f"The clock stands at {exact(clock['now_ms'])[:19]} UTC"
    if clock["is_frozen"]:
        said = f"{stands} and does not move."
    elif clock["factor"] != 1:
        said = f"{stands} and runs {clock['factor']:g} times as fast."
    else:
        said = f"{stands}."
    if clock.get("steps"):
        said += f" On its way it stopped {clock['steps']} times for what was due."
    if clock.get("is_complete") is False:
        left = timedelta(seconds=round(clock["left_ms"] / 1000))
        said += f" It has not arrived yet: {left} left. Advance it again to go on."
    return said


def _distance(fields: Fields) -> Body:
    """To a time, or by so many of a unit."""
    if fields.get("to"):
        return {"to_ms": _moment(fields["to"])}
    each = {"ms": 1, **{name: ms for name, _, ms in UNITS}}.get(fields.get("unit", "ms"))
    text = fields.get("by", "")
    count = fraction(text)
    if each is None or not isinstance(count, float):
        raise NotMeant(f"{text[:_MOST_TYPED]!r} is no number.", "Type how far the clock should go.")
    return {"ms": round(count * each)}


def _factor(fields: Fields) -> Body:
    return {"factor": fraction(fields.get("factor", "1"))}


def _moment(text: str) -> int:
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise NotMeant(
            f"{text[:_MOST_TYPED]!r} is no time.", "Choose a date and a time, such as 2027-01-31T12:00."
        ) from error
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def _action(name: str, does: str, body: Callable[[Fields], Body] | None = None) -> ActionRow:
    call = f"POST /control/clock/{name}"
    return ActionRow(f"{PATH}/{name}", does, call, PATH, _said, body=body, pieces=_pieces_now)


ADVANCE: Final = _action("advance", "move it", _distance)  # answers when it has arrived
ACTIONS: Final = (ADVANCE, _action("freeze", "stop it"), _action("run", "let it run", _factor))
