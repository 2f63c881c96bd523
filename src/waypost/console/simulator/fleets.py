"""The fleets pages: thousands of phones that follow one script."""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import count
from typing import Any, Final

from starlette.responses import Response

from waypost.client.api_client import ApiResponseError
from waypost.console.actions import ActionRow, form_texts
from waypost.console.page_request import PageRequest
from waypost.console.simulator.context import explain_field, field_kind, parse_fields, render_tab
from waypost.console.simulator.scripts import (
    EDIT_FIELD,
    SCRIPT_PRESETS,
    ScriptRow,
    describe_step,
    edit_rows,
    explain_error,
    format_rows,
    parse_rows,
    read_rows,
    read_steps_declaration,
)
from waypost.console.web.errors import InvalidPageRequest, NotFound
from waypost.console.web.formatting import format_phone
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


async def show_fleets(request: PageRequest) -> Response:
    """Return all fleets, and the form to create one."""
    return await _page(request, {})


async def create_fleet(request: PageRequest) -> Response:
    """Create a fleet; an error of the control API is shown at its field."""
    typed, control = await form_texts(request), request.control
    own_numbers = {app.phone_number for app in request.apps if app.phone_number}
    declared = await control.get("/control/declarations")
    rows, edit = read_rows(typed), typed.get(EDIT_FIELD, "")
    page = partial(_page, request, typed, rows=rows)
    if typed.get("open_window_to") and typed["open_window_to"] not in own_numbers:
        return await page(wrong_field="open_window_to", wrong="This is not one of your numbers.")
    body = {**parse_fields(declared["fleet"], typed), "read_after_ms": None}
    body["first"] = str(body["first"]).replace(" ", "")
    try:
        if edit:
            rows = edit_rows(rows, edit, typed.get("json", ""), declared["steps"])
            return await _page(request, {**typed, "script": _CUSTOM_SCRIPT}, rows=rows)
        steps = {preset.key: list(preset.steps) for preset in SCRIPT_PRESETS}.get(typed.get("script", ""), [])
        body["script"] = parse_rows(rows, declared["steps"]) if typed.get("script") == _CUSTOM_SCRIPT else steps
        await control.post("/control/fleets", body)
    except InvalidPageRequest as error:
        return await page(wrong_field="script", wrong=f"{error.text} {error.hint}")
    except ApiResponseError as error:
        return await page(error=error)
    return request.redirect(
        f"{FLEETS_PATH}/{body['name']}", f"Fleet {body['name']} with {body['count']} phones created."
    )


async def show_fleet(request: PageRequest) -> Response:
    """Return one fleet with its statistics."""
    return await render_tab(request, "fleet", fleet=await _get_fleet(request))


async def live_fleet(request: PageRequest) -> Response:
    """Stream what changes on it."""

    async def render_pieces() -> Sequence[PageElement]:
        try:
            html = request.macro(FLEET_MACROS, "counts", await _get_fleet(request))
        except NotFound:
            html = request.macro(FLEET_MACROS, "dropped")
        return [PageElement("fleet-counts", html)]

    return request.live(render_pieces, rest_s=1.0, at_least_s=2.0)  # each update counts all messages of the fleet


async def _page(
    request: PageRequest, typed: dict[str, str], *, rows: list[ScriptRow] | None = None,
    wrong_field: str = "", wrong: str = "", error: ApiResponseError | None = None,
) -> Response:  # fmt: skip
    control = request.control
    declared = await control.get("/control/declarations")
    fleets = (await control.get("/control/fleets"))["fleets"]
    if rows is None:
        rows = format_rows(_EXAMPLE_STEPS, declared["steps"])
    shown: dict[str, Any] = {"wrong": wrong, "wrong_field": wrong_field, "wrong_row": None}
    if error is not None:
        shown |= explain_error(error, rows)
    new_name, new_first = _suggest_fleet(fleets)
    numbers = [
        (app.phone_number, f"{app.name}, {format_phone(app.phone_number)}") for app in request.apps if app.phone_number
    ]
    return await render_tab(
        request, "fleets", 400 if shown["wrong"] else 200,
        fleets=fleets, typed={"name": new_name, "first": new_first, "count": "1000", **typed}, scripts=SCRIPT_PRESETS,
        rows=rows, declared=declared, kind_of=field_kind,
        choices={"open_window_to": [("", "none: templates only"), *numbers]},
        at_field=error.top_field if error else wrong_field,
        wrong_here=explain_field(error) if error else wrong, **shown,
    )  # fmt: skip


def _suggest_fleet(fleets: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    """Return a name that no fleet has, and the first number after those of all fleets."""
    taken = {fleet["name"] for fleet in fleets}
    names = ("crowd" if at == 1 else f"crowd-{at}" for at in count(1))
    name = next(name for name in names if name not in taken)
    return name, str(max((int(fleet["last"]) + 1 for fleet in fleets), default=15_551_000_000))


async def _get_fleet(request: PageRequest) -> dict[str, Any]:
    name: str = request.path_params["name"]
    if not _FLEET_NAME.fullmatch(name):
        raise NotFound("There is no such fleet.")
    try:
        fleet: dict[str, Any] = await request.control.get(f"/control/fleets/{name}")
    except ApiResponseError as error:
        if error.status == 404:
            raise NotFound(f"There is no fleet called {name}.") from error
        raise
    declared = await read_steps_declaration(request)
    return {**fleet, "script": [describe_step(step, declared) for step in fleet["script"]]}
