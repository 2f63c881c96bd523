"""The fleets pages: thousands of phones that follow one script."""

import re
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, Final

from starlette.responses import Response

from waypost.client.api_client import ApiResponseError
from waypost.console.actions import ActionRow
from waypost.console.page_tools import PageTools
from waypost.console.simulator.context import get_control, parse_whole, render_tab
from waypost.console.simulator.scripts import (
    EDIT_FIELD,
    SCRIPT_PRESETS,
    STEP_EFFECTS,
    STEP_EVENTS,
    STEP_OPTIONS,
    ScriptRow,
    describe_step,
    edit_rows,
    explain_error,
    format_rows,
    parse_rows,
    read_rows,
)
from waypost.console.web.formatting import format_phone
from waypost.console.web.page_request import InvalidPageRequest, NotFound, PageRequest
from waypost.console.web.streams import PageElement

FLEETS_PATH: Final = "/simulator/fleets"
FLEET_MACROS: Final = "simulator/fleet_parts.html"
_FLEET_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_CUSTOM_SCRIPT: Final = "own"
_EXAMPLE_STEPS: Final = next(preset.steps for preset in SCRIPT_PRESETS if preset.key == "customers")
DELETE_FLEET: Final = ActionRow(
    f"{FLEETS_PATH}/{{name}}/drop", "delete a fleet", "DELETE /control/fleets/{name}",
    FLEETS_PATH, "Fleet {name} deleted. Its phones remain as ordinary phones.",
)  # fmt: skip
"""Its numbers are ordinary phones again."""


async def show_fleets(tools: PageTools, page_request: PageRequest) -> Response:
    """Return all fleets, and the form to create one."""
    return await _page(tools, page_request, {})


async def create_fleet(tools: PageTools, page_request: PageRequest) -> Response:
    """Create a fleet; an error of the control API is shown at its field."""
    form = await page_request.form()
    typed = {name: value for name, value in form.items() if isinstance(value, str)}
    own_numbers = {app.phone_number for app in page_request.apps if app.phone_number}
    body: dict[str, Any] = {
        "name": typed.get("name", "").strip(),
        "first": typed.get("first", "").strip().replace(" ", ""),
        "count": parse_whole(typed.get("count", "")),
        "read_after_ms": None,
    }
    if typed.get("seed", "").strip():
        body["seed"] = typed["seed"].strip()
    if typed.get("open_window_to"):
        if typed["open_window_to"] not in own_numbers:
            return await _page(tools, page_request, typed, "open_window_to", "This is not one of your numbers.")
        body["open_window_to"] = typed["open_window_to"]
    rows, edit = read_rows(typed), typed.get(EDIT_FIELD, "")
    try:
        if edit:
            rows = edit_rows(rows, edit, typed.get("json", ""))
            return await _page(tools, page_request, {**typed, "script": _CUSTOM_SCRIPT}, rows=rows)
        body["script"] = _parse_script(typed, rows)
    except InvalidPageRequest as error:
        return await _page(tools, page_request, typed, "script", f"{error.text} {error.hint}", rows=rows)
    try:
        await get_control(tools).post("/control/fleets", body)
    except ApiResponseError as error:
        wrong_row, wrong = explain_error(error)
        return await _page(tools, page_request, typed, error.top_field, wrong, rows=rows, wrong_row=wrong_row)
    return tools.redirect(f"{FLEETS_PATH}/{body['name']}", f"Fleet {body['name']} with {body['count']} phones created.")


async def show_fleet(tools: PageTools, page_request: PageRequest) -> Response:
    """Return one fleet with its statistics."""
    return await render_tab(tools, page_request, "fleet", fleet=await _get_fleet(tools, page_request))


async def live_fleet(tools: PageTools, page_request: PageRequest) -> Response:
    """Stream what changes on it."""

    async def render_pieces() -> Sequence[PageElement]:
        try:
            html = tools.services.pages.render_macro(
                FLEET_MACROS, "counts", page_request, await _get_fleet(tools, page_request)
            )
        except NotFound:
            html = tools.services.pages.render_macro(FLEET_MACROS, "dropped", page_request)
        return [PageElement("fleet-counts", html)]

    return tools.live(
        page_request, render_pieces, rest_s=1.0, at_least_s=2.0
    )  # each update counts all messages of the fleet


async def _page(
    tools: PageTools, page_request: PageRequest, typed: dict[str, str], wrong_field: str = "", wrong: str = "", *,
    rows: list[ScriptRow] | None = None, wrong_row: int | None = None,
) -> Response:  # fmt: skip
    fleets = (await get_control(tools).get("/control/fleets"))["fleets"]
    new_name, new_first = _suggest_fleet(fleets)
    return await render_tab(
        tools, page_request, "fleets", 400 if wrong else 200,
        fleets=fleets, new_name=new_name, new_first=new_first, scripts=SCRIPT_PRESETS, typed=typed,
        rows=format_rows(_EXAMPLE_STEPS) if rows is None else rows, wrong_row=wrong_row,
        events=STEP_EVENTS, effects=STEP_EFFECTS, options=STEP_OPTIONS,
        own_numbers=[(app.phone_number, f"{app.name}, {format_phone(app.phone_number)}")
                     for app in page_request.apps if app.phone_number],
        wrong_field=wrong_field, wrong=wrong,
    )  # fmt: skip


def _suggest_fleet(fleets: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    """Return a name that no fleet has, and the first number after those of all fleets."""
    taken = {fleet["name"] for fleet in fleets}
    names = ("crowd" if at == 1 else f"crowd-{at}" for at in count(1))
    name = next(name for name in names if name not in taken)
    return name, str(max((int(fleet["last"]) + 1 for fleet in fleets), default=15_551_000_000))


def _parse_script(typed: dict[str, str], rows: list[ScriptRow]) -> list[dict[str, Any]]:
    chosen = typed.get("script", "")
    if chosen == _CUSTOM_SCRIPT:
        return parse_rows(rows)
    return [step for preset in SCRIPT_PRESETS if preset.key == chosen for step in preset.steps]


async def _get_fleet(tools: PageTools, page_request: PageRequest) -> dict[str, Any]:
    name = _fleet_name(page_request)
    try:
        fleet: dict[str, Any] = await get_control(tools).get(f"/control/fleets/{name}")
    except ApiResponseError as error:
        if error.status == 404:
            raise NotFound(f"There is no fleet called {name}.") from error
        raise
    return {**fleet, "script": [describe_step(step) for step in fleet["script"]]}


def _fleet_name(page_request: PageRequest) -> str:
    name: str = page_request.path_params["name"]
    if not _FLEET_NAME.fullmatch(name):
        raise NotFound("There is no such fleet.")
    return name
