"""The faults pages: armed faults, presets, all kinds, and one fault with its last firings."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import msgspec
from starlette.responses import Response

from waypost.console.actions import ActionRow, done
from waypost.console.page_tools import PageTools
from waypost.console.simulator.context import attempt, control_of, now_of, tab
from waypost.console.simulator.fault_presets import RECIPES, as_armed
from waypost.console.simulator.fault_texts import WORDS, words_of
from waypost.console.web.not_found import NotMeant, NotThere
from waypost.console.web.page_request import PageRequest
from waypost.console.web.streams import Piece

PATH: Final = "/simulator/faults"
PARTS: Final = "simulator/fault_parts.html"
DISARM_ALL: Final = "Disarm all faults, including those that others armed?"
"""The question to confirm."""


async def show_faults(desk: PageTools, visit: PageRequest) -> Response:
    """Return the page with armed faults, presets, and all kinds."""
    control = control_of(desk)
    return await tab(
        desk, visit, "faults",
        faults=await _faults(desk), presets=RECIPES, preset_body=as_armed,
        catalogue=await control.get("/control/faults/kinds"), texts=WORDS, question=DISARM_ALL,
    )  # fmt: skip


async def live_faults(desk: PageTools, visit: PageRequest) -> Response:
    """Stream the armed faults with their counts."""

    async def render_pieces() -> Sequence[Piece]:
        return pieces_of(desk, visit, await _faults(desk))

    return desk.live(visit, render_pieces)


async def show_fault(desk: PageTools, visit: PageRequest) -> Response:
    """Return the page of one fault with its last firings."""
    return await tab(desk, visit, "fault", fault=await _fault(desk, visit))


async def live_fault(desk: PageTools, visit: PageRequest) -> Response:
    """Stream what changes on it."""

    async def render_pieces() -> Sequence[Piece]:
        try:
            html = desk.parts.pages.part(PARTS, "one", visit, visit, await _fault(desk, visit))
        except NotThere:
            html = desk.parts.pages.part(PARTS, "disarmed", visit)
        return [Piece("fault", html)]

    return desk.live(visit, render_pieces)


async def arm_recipe(desk: PageTools, visit: PageRequest) -> Response:
    """Arm a preset."""
    preset = next((row for row in RECIPES if row.key == visit.path["key"]), None)
    if preset is None:
        raise NotThere("There is no such preset.")
    body = as_armed(preset, now_ms=await now_of(desk))
    return await _arm(desk, visit, body, f"Armed: {preset.name}.")


async def arm_json(desk: PageTools, visit: PageRequest) -> Response:
    """Arm a fault or scenario pasted as JSON."""
    text = await visit.field("json")
    try:
        body: object = msgspec.json.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise NotMeant(f"Invalid JSON: {error}.", "Paste a fault, or an object with a list of faults.") from error
    return await _arm(desk, visit, body, "Armed.")


def pieces_of(desk: PageTools, visit: PageRequest, faults: list[dict[str, Any]]) -> list[Piece]:
    """Return the pieces with the list of faults and their number."""
    part = partial(desk.parts.pages.part, PARTS)
    return [
        Piece("armed-head", part("armed_head", visit, visit, faults, DISARM_ALL)),
        Piece("armed-none", part("armed_none", visit, faults)),
        *(Piece(f"fault-{fault['id']}", part("row", visit, visit, fault), "armed") for fault in faults),
    ]


async def _armed_now(desk: PageTools, visit: PageRequest) -> list[Piece]:
    return pieces_of(desk, visit, await _faults(desk))


# fmt: off
ACTIONS: Final = (
    #         path                         does              call                                page  said
    ActionRow(f"{PATH}/disarm",            "disarm all",     "DELETE /control/faults",            PATH, "All faults disarmed."),
    ActionRow(f"{PATH}/{{fault_id}}/disarm", "disarm one",    "DELETE /control/faults/{fault_id}", PATH, "Disarmed.", pieces=_armed_now, gone=("fault-{fault_id}",)),
)
# fmt: on


async def _arm(desk: PageTools, visit: PageRequest, wish: object, said: str) -> Response:
    work = partial(control_of(desk).post, "/control/faults", wish)
    error_response = await attempt(desk, visit, PATH, work)
    if error_response is not None:
        return error_response
    return done(desk, visit, PATH, said, await _armed_now(desk, visit) if visit.is_quiet else ())


async def _faults(desk: PageTools) -> list[dict[str, Any]]:
    faults = (await control_of(desk).get("/control/faults"))["faults"]
    return [{**fault, "sentence": words_of(fault)} for fault in faults]


async def _fault(desk: PageTools, visit: PageRequest) -> dict[str, Any]:
    fault_id = _fault_id(visit)
    if not any(fault["id"] == fault_id for fault in await _faults(desk)):
        raise NotThere("This fault is no longer armed.")
    fault: dict[str, Any] = await control_of(desk).get(f"/control/faults/{fault_id}")
    return {**fault, "sentence": words_of(fault)}


def _fault_id(visit: PageRequest) -> int:
    text: str = visit.path["fault_id"]
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise NotThere("There is no such fault.")
    return int(text)
