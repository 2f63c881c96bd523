"""Armed faults, the catalogue of kinds, and one fault with its firings."""

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
DISARM_ALL: Final = "Take away all faults, also those that somebody else has armed?"
"""What is asked before."""


async def show_faults(desk: PageTools, visit: PageRequest) -> Response:
    """What is armed, ready recipes, and every kind there is."""
    control = control_of(desk)
    return await tab(
        desk, visit, "faults",
        faults=await _faults(desk), recipes=RECIPES, as_armed=as_armed,
        catalogue=await control.get("/control/faults/kinds"), words=WORDS, given="", wrong="", asks=DISARM_ALL,
    )  # fmt: skip


async def live_faults(desk: PageTools, visit: PageRequest) -> Response:
    """What is armed, as it counts."""

    async def look() -> Sequence[Piece]:
        return pieces_of(desk, visit, await _faults(desk))

    return desk.live(visit, look)


async def show_fault(desk: PageTools, visit: PageRequest) -> Response:
    """One fault, with its last firings."""
    return await tab(desk, visit, "fault", fault=await _fault(desk, visit))


async def live_fault(desk: PageTools, visit: PageRequest) -> Response:
    """And what changes of it."""

    async def look() -> Sequence[Piece]:
        try:
            html = desk.parts.pages.part(PARTS, "one", visit, visit, await _fault(desk, visit))
        except NotThere:
            html = desk.parts.pages.part(PARTS, "disarmed", visit)
        return [Piece("fault", html)]

    return desk.live(visit, look)


async def arm_recipe(desk: PageTools, visit: PageRequest) -> Response:
    """Arm a ready one."""
    recipe = next((one for one in RECIPES if one.key == visit.path["key"]), None)
    if recipe is None:
        raise NotThere("There is no such recipe.")
    wish = as_armed(recipe, now_ms=await now_of(desk))
    return await _arm(desk, visit, wish, f"Armed: {recipe.name}.")


async def arm_json(desk: PageTools, visit: PageRequest) -> Response:
    """Arm a fault or a scenario that was pasted."""
    text = await visit.field("json")
    try:
        wish: object = msgspec.json.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise NotMeant(f"That is no JSON: {error}.", "Paste a fault, or an object with a list of faults.") from error
    return await _arm(desk, visit, wish, "Armed.")


def pieces_of(desk: PageTools, visit: PageRequest, faults: list[dict[str, Any]]) -> list[Piece]:
    """The list of armed faults, and how many there are."""
    part = partial(desk.parts.pages.part, PARTS)
    return [
        Piece("armed-head", part("armed_head", visit, visit, faults, DISARM_ALL)),
        Piece("armed-none", part("armed_none", visit, faults)),
        *(Piece(f"fault-{one['id']}", part("row", visit, visit, one), "armed") for one in faults),
    ]


async def _armed_now(desk: PageTools, visit: PageRequest) -> list[Piece]:
    return pieces_of(desk, visit, await _faults(desk))


# fmt: off
ACTIONS: Final = (
    #         path                         does              call                                page  said
    ActionRow(f"{PATH}/disarm",            "take all away",  "DELETE /control/faults",            PATH, "No fault is armed any more."),
    ActionRow(f"{PATH}/{{fault_id}}/disarm", "take one away", "DELETE /control/faults/{fault_id}", PATH, "Disarmed.", pieces=_armed_now, gone=("fault-{fault_id}",)),
)
# fmt: on


async def _arm(desk: PageTools, visit: PageRequest, wish: object, said: str) -> Response:
    work = partial(control_of(desk).post, "/control/faults", wish)
    refused = await attempt(desk, visit, PATH, work)
    if refused is not None:
        return refused
    return done(desk, visit, PATH, said, await _armed_now(desk, visit) if visit.is_quiet else ())


async def _faults(desk: PageTools) -> list[dict[str, Any]]:
    found = (await control_of(desk).get("/control/faults"))["faults"]
    return [{**one, "words": words_of(one)} for one in found]


async def _fault(desk: PageTools, visit: PageRequest) -> dict[str, Any]:
    fault_id = _fault_id(visit)
    if not any(one["id"] == fault_id for one in await _faults(desk)):
        raise NotThere("This fault is not armed any more.")
    fault: dict[str, Any] = await control_of(desk).get(f"/control/faults/{fault_id}")
    return {**fault, "words": words_of(fault)}


def _fault_id(visit: PageRequest) -> int:
    text: str = visit.path["fault_id"]
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise NotThere("There is no such fault.")
    return int(text)
