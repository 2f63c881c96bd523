"""The clock of service and simulator: its time, what is due next, and advancing it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from starlette.responses import Response

from waypost.base.clock import HOUR_MS, machine_ms
from waypost.client.api_client import ApiResponseError
from waypost.console.actions import ActionRow, Body, Fields, action_response, error_notice
from waypost.console.page_tools import PageTools
from waypost.console.simulator.context import get_control, parse_fraction, render_tab
from waypost.console.web.page_request import InvalidPageRequest, PageRequest
from waypost.console.web.streams import PageElement
from waypost.console.web.zones import UTC_ZONE, read_time_field

CLOCK_PATH: Final = "/simulator/clock"
CLOCK_MACROS: Final = "simulator/clock_parts.html"
_MAX_ECHOED_CHARS: Final = 40

# fmt: off
CLOCK_JUMPS: Final = (
    # label           ms              an example of what happens by then
    ("+1 minute", 60_000,        "Retries and delayed webhooks become due."),
    ("+1 hour",   HOUR_MS,       "Most short pauses end."),
    ("+3 hours",  3 * HOUR_MS,   "A first quality pause ends."),
    ("+1 day",    24 * HOUR_MS,  "Customer service windows close, partner tokens expire."),
    ("+30 days",  720 * HOUR_MS, "Uploads expire, names of deleted templates are free."),
)
TIME_UNITS: Final = (
    # name        label        ms
    ("seconds", "seconds", 1000),
    ("minutes", "minutes", 60_000),
    ("hours",   "hours",   HOUR_MS),
    ("days",    "days",    24 * HOUR_MS),
)
CLOCK_FACTORS: Final = (1, 10, 60, 600, 3600)
# fmt: on


@dataclass(frozen=True, slots=True)
class ClockView:
    """The state of the clock, as the page shows it.

    Attributes:
        unavailable_reason: the reason why it cannot be advanced; empty: it can.
        sides: of service and simulator `(name, next due time, is busy)`.
    """

    now_ms: int
    machine_ms: int
    ahead_ms: int
    factor: float
    sides: list[tuple[str, int | None, bool]]
    unavailable_reason: str = ""

    @property
    def next_due_ms(self) -> int | None:
        """Return when the next work is due; None: nothing waits."""
        return min((due_ms for _, due_ms, _ in self.sides if due_ms is not None), default=None)


async def show_clock(tools: PageTools, page_request: PageRequest) -> Response:
    """Return the page."""
    return await render_tab(
        tools, page_request, "clock",
        now=await _read_clock(tools), jumps=CLOCK_JUMPS, units=TIME_UNITS, factors=CLOCK_FACTORS,
    )  # fmt: skip


async def live_clock(tools: PageTools, page_request: PageRequest) -> Response:
    """Stream what changes on it."""

    async def render_pieces() -> Sequence[PageElement]:
        return _render_pieces(tools, page_request, await _read_clock(tools))

    return tools.live(page_request, render_pieces, rest_s=0.5)


async def advance_to_next(tools: PageTools, page_request: PageRequest) -> Response:
    """Advance the clock to the next due time."""
    due_ms = (await _read_clock(tools)).next_due_ms
    if due_ms is None:
        return action_response(tools, page_request, CLOCK_PATH, "Nothing is waiting.")
    now_ms = (await get_control(tools).get("/control/clock"))["now_ms"]
    return await ADVANCE_CLOCK.call_api(tools, page_request, {"to_ms": max(due_ms, now_ms)})


async def _read_clock(tools: PageTools) -> ClockView:
    control = get_control(tools)
    try:
        clock = await control.get("/control/clock")
        due = await control.get("/control/clock/due")
    except ApiResponseError as error:
        if error.status != 404:
            raise
        now_ms = tools.services.clock.now_ms()
        return ClockView(now_ms, machine_ms(), 0, 1, [], " ".join(error_notice(error)))
    return ClockView(
        clock["now_ms"], machine_ms(), clock["ahead_ms"], clock["factor"],
        [
            (str(side["name"]).capitalize(), side["next_due_ms"], side["is_busy"])
            for side in due["sides"]
        ],
    )  # fmt: skip


def _render_pieces(tools: PageTools, page_request: PageRequest, now: ClockView) -> list[PageElement]:
    part: Callable[..., str] = tools.services.pages.render_macro
    return [
        PageElement("clock-face", part(CLOCK_MACROS, "face", page_request, now)),
        PageElement("clock-due", part(CLOCK_MACROS, "due", page_request, page_request, now)),
        PageElement("clock-pace", part(CLOCK_MACROS, "pace", page_request, page_request, now, CLOCK_FACTORS)),
    ]


async def _current_pieces(tools: PageTools, page_request: PageRequest) -> list[PageElement]:
    return _render_pieces(tools, page_request, await _read_clock(tools))


def _clock_notice(clock: Mapping[str, Any]) -> str:
    text = f"The clock is at {clock['zone'].exact(clock['now_ms'])}"
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


def _advance_body(fields: Fields) -> Body:
    """Return the target of an advance: a time, or a number of units."""
    if fields.get("to"):
        return {"to_ms": _parse_time_ms(fields)}
    unit_ms = {"ms": 1, **{name: ms for name, _, ms in TIME_UNITS}}.get(fields.get("unit", "ms"))
    text = fields.get("by", "")
    count = parse_fraction(text)
    if unit_ms is None or not isinstance(count, float):
        raise InvalidPageRequest(
            f"{text[:_MAX_ECHOED_CHARS]!r} is not a number.", "Enter how far to advance the clock."
        )
    return {"ms": round(count * unit_ms)}


def _run_body(fields: Fields) -> Body:
    return {"factor": parse_fraction(fields.get("factor", "1"))}


def _parse_time_ms(fields: Fields) -> int:
    try:
        return read_time_field(fields, "to", UTC_ZONE)[0] or 0
    except ValueError as error:
        raise InvalidPageRequest(
            f"{fields['to'][:_MAX_ECHOED_CHARS]!r} is not a time.", "Choose a date and time, such as 2027-01-31T12:00."
        ) from error


def _action(name: str, does: str, body: Callable[[Fields], Body] | None = None) -> ActionRow:
    call = f"POST /control/clock/{name}"
    return ActionRow(
        f"{CLOCK_PATH}/{name}", does, call, CLOCK_PATH, _clock_notice, body=body, render_elements=_current_pieces
    )


ADVANCE_CLOCK: Final = _action("advance", "advance the clock", _advance_body)  # responds when the clock has arrived
CLOCK_ACTIONS: Final = (
    ADVANCE_CLOCK,
    _action("freeze", "freeze the clock"),
    _action("run", "set the speed of the clock", _run_body),
)
