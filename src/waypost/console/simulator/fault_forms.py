"""The form of one kind of fault; its fields have the names of the control API's members."""

from typing import Any, Final

from starlette.responses import Response

from waypost.client.api_client import ApiResponseError
from waypost.console.actions import error_notice
from waypost.console.page_tools import PageTools
from waypost.console.simulator.context import (
    get_control,
    parse_fraction,
    parse_seconds_ms,
    parse_whole,
    render_tab,
    simulator_now_ms,
)
from waypost.console.simulator.faults import (
    FAULT_FILTER_TEXTS,
    FAULT_OPTION_TEXTS,
    FAULT_TEXTS,
    FAULTS_PATH,
    arm_missing,
    list_faults,
)
from waypost.console.web.page_request import NotFound, PageRequest

_BOOLEANS: Final = {"true": True, "false": False}


async def show_fault_form(tools: PageTools, page_request: PageRequest) -> Response:
    """Return the form, empty or prefilled from the query, such as `?phone=…`."""
    kind, catalogue = await _find_kind(tools, page_request)
    typed = {name: value[:600] for name, value in page_request.request.query_params.items()}
    return await _form_page(tools, page_request, kind, catalogue, typed)


async def arm_form(tools: PageTools, page_request: PageRequest) -> Response:
    """Arm the fault of the form, unless it is armed; an error of the control API is shown at its field."""
    kind, catalogue = await _find_kind(tools, page_request)
    form = await page_request.form()
    typed = {name: value for name, value in form.items() if isinstance(value, str)}
    now_ms = await simulator_now_ms(tools)
    try:
        _, notice = await arm_missing(tools, build_fault(kind, typed, now_ms=now_ms))
    except ApiResponseError as error:
        return await _form_page(tools, page_request, kind, catalogue, typed, error)
    return tools.redirect(FAULTS_PATH, notice)


def build_fault(kind: dict[str, Any], typed: dict[str, str], *, now_ms: int) -> dict[str, Any]:
    """Return the fault as the control API accepts it; empty fields are left out.

    Args:
        kind: a row of the catalogue.
        typed: values by form field.
        now_ms: start of the fault's duration.
    """
    on: str = kind["on"]
    what: dict[str, Any] = {}
    for parameter in (kind["value"], *kind["parameters"]):
        name: str = parameter["name"]
        text = typed.get(f"what.{name}", "").strip()
        if parameter["type"] == "true":
            what[name] = True
        elif text or parameter is kind["value"]:
            what[name] = _parse_value(parameter["type"], text)
    fault: dict[str, Any] = {"on": on, on: typed.get(on) or kind["only"] or "*", "what": what}
    when = typed.get("when", "always")
    if when == "always":
        fault["when"] = {"always": True}
    else:
        text = typed.get(f"when.{when}", "")
        fault["when"] = {when: parse_fraction(text) if when == "probability" else parse_whole(text)}
    fault |= {name: typed[name].strip() for name in ("label", *FAULT_FILTER_TEXTS) if typed.get(name, "").strip()}
    if typed.get("seed", "").strip() and when == "probability":
        fault["seed"] = parse_whole(typed["seed"])
    for_ms = parse_seconds_ms(typed.get("for_s", ""), "for_s")
    if for_ms:
        fault["until_ms"] = now_ms + for_ms
    return fault


def _parse_value(type_: str, text: str) -> Any:
    match type_:
        case "whole":
            return parse_whole(text)
        case "fraction":
            return parse_fraction(text)
        case "boolean":
            return _BOOLEANS.get(text, text)
        case _:
            return text


async def _form_page(
    tools: PageTools,
    page_request: PageRequest,
    kind: dict[str, Any],
    catalogue: dict[str, Any],
    typed: dict[str, str],
    error: ApiResponseError | None = None,
) -> Response:
    field = "" if error is None else error.field
    text, hint = ("", "") if error is None else error_notice(error)
    return await render_tab(
        tools, page_request, "fault_form", 200 if error is None else 400,
        kind=kind, names=_target_choices(kind, catalogue), whens=catalogue["when"], typed=typed,
        choices_of=_parameter_choices, narrowed=any(typed.get(name) for name in FAULT_FILTER_TEXTS),
        texts=FAULT_TEXTS.get((kind["on"], kind["name"])), option_labels=FAULT_OPTION_TEXTS,
        filters=[
            (name, FAULT_FILTER_TEXTS[name][0] if name in FAULT_FILTER_TEXTS else name, accepted)
            for name, accepted in catalogue["filters"].items()
        ],
        wrong_field=field, error=text, hint=hint,
        armed=[fault for fault in await list_faults(tools)
               if fault["is_armed"] and fault["on"] == kind["on"] and kind["name"] in fault["what"]],
    )  # fmt: skip


def _target_choices(kind: dict[str, Any], catalogue: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the calls or updates to choose from: values and labels."""
    if kind["only"]:
        return [(kind["only"], kind["only"])]
    any_label = "every call" if kind["on"] == "call" else "every update"
    return [(name, any_label if name == "*" else name) for name in catalogue[kind["on"]]]


def _parameter_choices(parameter: dict[str, Any]) -> list[tuple[str, str]]:
    return [(choice, choice.replace("_", " ")) for choice in parameter["choices"]]


async def _find_kind(tools: PageTools, page_request: PageRequest) -> tuple[dict[str, Any], dict[str, Any]]:
    catalogue: dict[str, Any] = await get_control(tools).get("/control/faults/kinds")
    for kind in catalogue["kinds"]:
        if kind["on"] == page_request.path_params["on"] and kind["name"] == page_request.path_params["kind"]:
            return kind, catalogue
    raise NotFound("There is no such kind of fault.")
