"""The clock of service and simulator: its time, what is due next, and advancing it."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any, Final

from starlette.responses import Response

from waypost.base.clock import HOUR_MS, machine_ms
from waypost.client.api_client import ApiResponseError
from waypost.console.actions import ActionRow, Body, Fields, action_response, error_notice
from waypost.console.page_request import PageRequest
from waypost.console.simulator.context import parse_fraction, render_tab
from waypost.console.web.errors import InvalidPageRequest
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


async def show_clock(request: PageRequest) -> Response:
    """Return the page."""
    return await render_tab(
        request, "clock",
        now=await _read_clock(request), jumps=CLOCK_JUMPS, units=TIME_UNITS, factors=CLOCK_FACTORS,
    )  # fmt: skip


async def live_clock(request: PageRequest) -> Response:
    """Stream what changes on it."""
    return request.live(partial(_render_pieces, request), rest_s=0.5)


async def advance_to_next(request: PageRequest) -> Response:
    """Advance the clock to the next due time."""
    clock = await _read_clock(request)
    due_ms = clock["next_due_ms"]
    if due_ms is None:
        return action_response(request, CLOCK_PATH, "Nothing is waiting.")
    return await ADVANCE_CLOCK.call_api(request, {"to_ms": max(due_ms, clock["now_ms"])})


async def _read_clock(request: PageRequest) -> dict[str, Any]:
    """Return the state of the clock, of both sides and of the next due work; the reason if it cannot be advanced."""
    control = request.control
    try:
        clock = await control.get("/control/clock")
        sides = (await control.get("/control/clock/due"))["sides"]
    except ApiResponseError as error:
        if error.status != 404:
            raise
        reason, now_ms = " ".join(error_notice(error)), request.now_ms()
        clock = {"now_ms": now_ms, "ahead_ms": 0, "factor": 1, "unavailable_reason": reason}
        sides: list[dict[str, Any]] = []
    due_ms = [side["next_due_ms"] for side in sides if side["next_due_ms"] is not None]
    return {
        "unavailable_reason": "", **clock, "machine_ms": machine_ms(), "sides": sides,
        "next_due_ms": min(due_ms, default=None),
    }  # fmt: skip


async def _render_pieces(request: PageRequest) -> list[PageElement]:
    now, part = await _read_clock(request), partial(request.macro, CLOCK_MACROS)
    return [
        PageElement("clock-face", part("face", now)),
        PageElement("clock-due", part("due", request, now)),
        PageElement("clock-pace", part("pace", request, now, CLOCK_FACTORS)),
    ]


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
        f"{CLOCK_PATH}/{name}", does, call, CLOCK_PATH, _clock_notice, body=body, render_elements=_render_pieces
    )


ADVANCE_CLOCK: Final = _action("advance", "advance the clock", _advance_body)  # responds when the clock has arrived
CLOCK_ACTIONS: Final = (
    ADVANCE_CLOCK,
    _action("freeze", "freeze the clock"),
    _action("run", "set the speed of the clock", lambda fields: {"factor": parse_fraction(fields.get("factor", "1"))}),
)
