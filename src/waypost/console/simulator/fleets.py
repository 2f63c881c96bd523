"""The fleets pages: thousands of phones that follow one script."""

import json
import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from starlette.responses import Response

from waypost.client.api_client import ApiResponseError
from waypost.console.actions import ActionRow, reason_of
from waypost.console.page_tools import PageTools
from waypost.console.simulator.context import control_of, tab
from waypost.console.simulator.fleet_scripts import SCRIPTS, as_json
from waypost.console.simulator.numbers import whole
from waypost.console.web.formatting import phone
from waypost.console.web.not_found import NotThere
from waypost.console.web.page_request import PageRequest
from waypost.console.web.streams import Piece

PATH: Final = "/simulator/fleets"
PARTS: Final = "simulator/fleet_parts.html"
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_OWN: Final = "own"
DROP: Final = ActionRow(
    f"{PATH}/{{name}}/drop", "delete it", "DELETE /control/fleets/{name}",
    PATH, "Fleet {name} deleted. Its phones remain as ordinary phones.",
)  # fmt: skip
"""Its numbers are ordinary phones again."""


async def show_fleets(desk: PageTools, visit: PageRequest) -> Response:
    """Return all fleets, and the form to create one."""
    return await _page(desk, visit, {})


async def make_fleet(desk: PageTools, visit: PageRequest) -> Response:
    """Create a fleet; an error of the control API is shown at its field."""
    form = await visit.form()
    typed = {name: value for name, value in form.items() if isinstance(value, str)}
    own_numbers = {app.phone_number for app in visit.apps if app.phone_number}
    body: dict[str, Any] = {
        "name": typed.get("name", "").strip(),
        "first": typed.get("first", "").strip().replace(" ", ""),
        "count": whole(typed.get("count", "")),
        "read_after_ms": None,
    }
    if typed.get("seed", "").strip():
        body["seed"] = typed["seed"].strip()
    if typed.get("open_window_to"):
        if typed["open_window_to"] not in own_numbers:
            return await _page(desk, visit, typed, "open_window_to", "This is not one of your numbers.")
        body["open_window_to"] = typed["open_window_to"]
    try:
        body["script"] = _script(typed)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        return await _page(desk, visit, typed, "script", f"The script is not valid JSON: {error}.")
    try:
        await control_of(desk).post("/control/fleets", body)
    except ApiResponseError as error:
        return await _page(desk, visit, typed, error.top_field, " ".join(reason_of(error)))
    return desk.go(f"{PATH}/{body['name']}", f"Fleet {body['name']} with {body['count']} phones created.")


async def show_fleet(desk: PageTools, visit: PageRequest) -> Response:
    """Return one fleet with its statistics."""
    return await tab(desk, visit, "fleet", fleet=await _fleet(desk, visit))


async def live_fleet(desk: PageTools, visit: PageRequest) -> Response:
    """Stream what changes on it."""

    async def render_pieces() -> Sequence[Piece]:
        try:
            html = desk.parts.pages.part(PARTS, "counts", visit, await _fleet(desk, visit))
        except NotThere:
            html = desk.parts.pages.part(PARTS, "dropped", visit)
        return [Piece("fleet-counts", html)]

    return desk.live(visit, render_pieces, rest_s=1.0, at_least_s=2.0)  # each update counts all messages of the fleet


async def _page(
    desk: PageTools, visit: PageRequest, typed: dict[str, str], wrong_field: str = "", wrong: str = ""
) -> Response:
    fleets = (await control_of(desk).get("/control/fleets"))["fleets"]
    return await tab(
        desk, visit, "fleets", 400 if wrong else 200,
        fleets=fleets, scripts=SCRIPTS, steps_json=as_json, typed=typed,
        own_numbers=[(app.phone_number, f"{app.name}, {phone(app.phone_number)}")
                     for app in visit.apps if app.phone_number],
        wrong_field=wrong_field, wrong=wrong,
    )  # fmt: skip


def _script(typed: dict[str, str]) -> Any:
    chosen = typed.get("script", "")
    if chosen == _OWN:
        return msgspec.json.decode(typed.get("steps", ""))
    return [step for preset in SCRIPTS if preset.key == chosen for step in preset.steps]


async def _fleet(desk: PageTools, visit: PageRequest) -> dict[str, Any]:
    name = _name(visit)
    try:
        fleet: dict[str, Any] = await control_of(desk).get(f"/control/fleets/{name}")
    except ApiResponseError as error:
        if error.status == 404:
            raise NotThere(f"There is no fleet called {name}.") from error
        raise
    return {**fleet, "script": [json.dumps(step, ensure_ascii=False) for step in fleet["script"]]}


def _name(visit: PageRequest) -> str:
    name: str = visit.path["name"]
    if not _NAME.fullmatch(name):
        raise NotThere("There is no such fleet.")
    return name
