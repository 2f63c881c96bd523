"""The faults pages: armed faults, presets, all kinds, and one fault with its last firings."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final, cast

import msgspec
from starlette.responses import Response

from waypost.base.invalid_values import describe_malformed_json
from waypost.console.actions import ActionRow, action_response
from waypost.console.page_tools import PageTools
from waypost.console.simulator.context import call_control, get_control, render_tab, simulator_now_ms
from waypost.console.simulator.fault_presets import FAULT_PRESETS, FaultPreset, preset_body
from waypost.console.simulator.fault_texts import FAULT_TEXTS, describe_fault
from waypost.console.web.errors import InvalidPageRequest, NotFound
from waypost.console.web.page_request import PageRequest
from waypost.console.web.streams import PageElement

FAULTS_PATH: Final = "/simulator/faults"
FAULT_MACROS: Final = "simulator/fault_parts.html"
DISARM_ALL_QUESTION: Final = "Disarm all faults, including those that others armed?"
"""The question to confirm."""


async def show_faults(tools: PageTools, page_request: PageRequest) -> Response:
    """Return the page with armed faults, presets, and all kinds."""
    control, faults = get_control(tools), await list_faults(tools)
    return await render_tab(
        tools, page_request, "faults",
        faults=faults, presets=FAULT_PRESETS, preset_body=preset_body, armed_labels=_armed_labels(faults),
        catalogue=await control.get("/control/faults/kinds"), texts=FAULT_TEXTS, question=DISARM_ALL_QUESTION,
    )  # fmt: skip


async def live_faults(tools: PageTools, page_request: PageRequest) -> Response:
    """Stream the armed faults with their counts."""

    async def render_pieces() -> Sequence[PageElement]:
        return render_fault_list(tools, page_request, await list_faults(tools))

    return tools.live(page_request, render_pieces)


async def show_fault(tools: PageTools, page_request: PageRequest) -> Response:
    """Return the page of one fault with its last firings."""
    return await render_tab(tools, page_request, "fault", fault=await _get_fault(tools, page_request))


async def live_fault(tools: PageTools, page_request: PageRequest) -> Response:
    """Stream what changes on it."""

    async def render_pieces() -> Sequence[PageElement]:
        try:
            html = tools.services.pages.render_macro(
                FAULT_MACROS, "one", page_request, page_request, await _get_fault(tools, page_request)
            )
        except NotFound:
            html = tools.services.pages.render_macro(FAULT_MACROS, "disarmed", page_request)
        return [PageElement("fault", html)]

    return tools.live(page_request, render_pieces)


async def arm_preset(tools: PageTools, page_request: PageRequest) -> Response:
    """Arm a preset, unless it is armed."""
    preset = _find_preset(page_request)
    body = preset_body(preset, now_ms=await simulator_now_ms(tools))
    return await _arm(tools, page_request, body, f"{preset.name}.")


async def disarm_preset(tools: PageTools, page_request: PageRequest) -> Response:
    """Disarm the faults of a preset."""
    preset = _find_preset(page_request)
    control = get_control(tools)
    faults = [fault for fault in await list_faults(tools) if fault.get("label") == preset.name]
    for fault in faults:
        path = f"/control/faults/{fault['id']}"
        error_response = await call_control(tools, page_request, FAULTS_PATH, partial(control.json, "DELETE", path))
        if error_response is not None:
            return error_response
    pieces = await _armed_pieces(tools, page_request) if page_request.is_quiet else []
    return action_response(
        tools, page_request, FAULTS_PATH, f"Disarmed: {preset.name}.", pieces,
        removed_ids=[f"fault-{fault['id']}" for fault in faults],
    )  # fmt: skip


async def arm_json(tools: PageTools, page_request: PageRequest) -> Response:
    """Arm a fault or scenario pasted as JSON."""
    text = await page_request.field("json")
    try:
        body: object = msgspec.json.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise InvalidPageRequest(
            f"The text {describe_malformed_json(error)}.", "Paste a fault, or an object with a list of faults."
        ) from error
    return await _arm(tools, page_request, body)


def render_fault_list(tools: PageTools, page_request: PageRequest, faults: list[dict[str, Any]]) -> list[PageElement]:
    """Return the pieces with the list of faults and their number."""
    part = partial(tools.services.pages.render_macro, FAULT_MACROS)
    armed_labels = _armed_labels(faults)
    return [
        *(
            PageElement(
                f"preset-{preset.key}",
                part("preset_state", page_request, page_request, preset, preset.name in armed_labels),
            )
            for preset in FAULT_PRESETS
        ),
        PageElement("armed-head", part("armed_head", page_request, page_request, faults, DISARM_ALL_QUESTION)),
        PageElement("armed-none", part("armed_none", page_request, faults)),
        *(
            PageElement(f"fault-{fault['id']}", part("row", page_request, page_request, fault), "armed")
            for fault in faults
        ),
    ]


def _find_preset(page_request: PageRequest) -> FaultPreset:
    preset = next((row for row in FAULT_PRESETS if row.key == page_request.path_params["key"]), None)
    if preset is None:
        raise NotFound("There is no such preset.")
    return preset


def _armed_labels(faults: list[dict[str, Any]]) -> set[str]:
    """Return the labels of armed faults; those of a preset have its name."""
    return {fault["label"] for fault in faults if fault["is_armed"] and "label" in fault}


async def _armed_pieces(tools: PageTools, page_request: PageRequest) -> list[PageElement]:
    return render_fault_list(tools, page_request, await list_faults(tools))


FAULT_ACTIONS: Final = (
    # path, name, call, page, notice
    ActionRow(f"{FAULTS_PATH}/disarm", "disarm all", "DELETE /control/faults", FAULTS_PATH, "All faults disarmed."),
    ActionRow(
        f"{FAULTS_PATH}/{{fault_id}}/disarm",
        does="disarm one",
        call="DELETE /control/faults/{fault_id}",
        page=FAULTS_PATH,
        notice="Disarmed.",
        render_elements=_armed_pieces,
        removed_ids=("fault-{fault_id}",),
    ),
)


async def arm_missing(tools: PageTools, body: object) -> tuple[list[dict[str, Any]], str]:
    """Arm faults that are not armed yet; return the new ones, and the notice.

    Raises:
        ApiResponseError: a fault is invalid.
    """
    once = {**cast("dict[str, Any]", body), "if_missing": True} if isinstance(body, dict) else body
    response = await get_control(tools).post("/control/faults", once)
    armed, existing = response["faults"], response.get("existing", [])
    sentences = " ".join(describe_fault(fault) for fault in armed or existing)
    return armed, f"{'Armed' if armed else 'Already armed'}: {sentences}"


async def _arm(tools: PageTools, page_request: PageRequest, body: object, name: str = "") -> Response:
    notices: list[str] = []

    async def work() -> None:
        armed, notice = await arm_missing(tools, body)
        notices.append(f"{'Armed' if armed else 'Already armed'}: {name}" if name else notice)

    error_response = await call_control(tools, page_request, FAULTS_PATH, work)
    if error_response is not None:
        return error_response
    return action_response(
        tools,
        page_request,
        FAULTS_PATH,
        notices[0],
        await _armed_pieces(tools, page_request) if page_request.is_quiet else (),
    )


async def list_faults(tools: PageTools) -> list[dict[str, Any]]:
    """Return all faults, each with its sentence."""
    faults = (await get_control(tools).get("/control/faults"))["faults"]
    return [{**fault, "sentence": describe_fault(fault)} for fault in faults]


async def _get_fault(tools: PageTools, page_request: PageRequest) -> dict[str, Any]:
    fault_id = _fault_id(page_request)
    if not any(fault["id"] == fault_id for fault in await list_faults(tools)):
        raise NotFound("This fault is no longer armed.")
    fault: dict[str, Any] = await get_control(tools).get(f"/control/faults/{fault_id}")
    return {**fault, "sentence": describe_fault(fault)}


def _fault_id(page_request: PageRequest) -> int:
    text: str = page_request.path_params["fault_id"]
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise NotFound("There is no such fault.")
    return int(text)
