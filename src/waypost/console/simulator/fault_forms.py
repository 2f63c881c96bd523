"""The form of one kind of fault; its fields have the names of the control API's members."""

from typing import Any, Final

from starlette.responses import Response

from waypost.client.api_client import ApiResponseError
from waypost.console.actions import reason_of
from waypost.console.page_tools import PageTools
from waypost.console.simulator.context import control_of, now_of, tab
from waypost.console.simulator.fault_texts import BESIDE, FILTERS, WORDS, words_of
from waypost.console.simulator.faults import PATH
from waypost.console.simulator.numbers import fraction, seconds_as_ms, whole
from waypost.console.web.not_found import NotThere
from waypost.console.web.page_request import PageRequest

_TRUE: Final = {"true": True, "false": False}


async def show_form(desk: PageTools, visit: PageRequest) -> Response:
    """Return the form, empty or prefilled from the query, such as `?phone=…`."""
    kind, catalogue = await _kind(desk, visit)
    typed = {name: value[:600] for name, value in visit.request.query_params.items()}
    return await _form(desk, visit, kind, catalogue, typed)


async def arm(desk: PageTools, visit: PageRequest) -> Response:
    """Arm the fault of the form; an error of the control API is shown at its field."""
    kind, catalogue = await _kind(desk, visit)
    form = await visit.form()
    typed = {name: value for name, value in form.items() if isinstance(value, str)}
    control = control_of(desk)
    now_ms = await now_of(desk)
    try:
        armed = await control.post("/control/faults", fault_of(kind, typed, now_ms=now_ms))
    except ApiResponseError as error:
        return await _form(desk, visit, kind, catalogue, typed, error)
    return desk.go(PATH, f"Armed: {words_of(armed['faults'][0])}")


def fault_of(kind: dict[str, Any], typed: dict[str, str], *, now_ms: int) -> dict[str, Any]:
    """Return the fault as the control API accepts it; empty fields are left out.

    Args:
        kind: a row of the catalogue.
        typed: values by form field.
        now_ms: start of the fault's duration.
    """
    on: str = kind["on"]
    what: dict[str, Any] = {}
    for parameter in (kind["value"], *kind["beside"]):
        name: str = parameter["name"]
        text = typed.get(f"what.{name}", "").strip()
        if parameter["type"] == "true":
            what[name] = True
        elif text or parameter is kind["value"]:
            what[name] = _value(parameter["type"], text)
    fault: dict[str, Any] = {"on": on, on: typed.get(on) or kind["only"] or "*", "what": what}
    when = typed.get("when", "always")
    if when == "always":
        fault["when"] = {"always": True}
    else:
        text = typed.get(f"when.{when}", "")
        fault["when"] = {when: fraction(text) if when == "probability" else whole(text)}
    fault |= {name: typed[name].strip() for name in ("label", *FILTERS) if typed.get(name, "").strip()}
    if typed.get("seed", "").strip() and when == "probability":
        fault["seed"] = whole(typed["seed"])
    for_ms = seconds_as_ms(typed.get("for_s", ""), "for_s")
    if for_ms:
        fault["until_ms"] = now_ms + for_ms
    return fault


def _value(type_: str, text: str) -> Any:
    match type_:
        case "whole":
            return whole(text)
        case "fraction":
            return fraction(text)
        case "boolean":
            return _TRUE.get(text, text)
        case _:
            return text


async def _form(
    desk: PageTools,
    visit: PageRequest,
    kind: dict[str, Any],
    catalogue: dict[str, Any],
    typed: dict[str, str],
    refused: ApiResponseError | None = None,
) -> Response:
    field = "" if refused is None else refused.field
    text, hint = ("", "") if refused is None else reason_of(refused)
    return await tab(
        desk, visit, "fault_form", 200 if refused is None else 400,
        kind=kind, names=_names(kind, catalogue), whens=catalogue["when"], typed=typed,
        choices_of=_choices, narrowed=any(typed.get(name) for name in FILTERS),
        texts=WORDS.get((kind["on"], kind["name"])), option_labels=BESIDE,
        filters=[
            (name, FILTERS[name][0] if name in FILTERS else name, accepted)
            for name, accepted in catalogue["filters"].items()
        ],
        wrong_field=field, error=text, hint=hint,
    )  # fmt: skip


def _names(kind: dict[str, Any], catalogue: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the calls or updates to choose from: values and labels."""
    if kind["only"]:
        return [(kind["only"], kind["only"])]
    any_label = "every call" if kind["on"] == "call" else "every update"
    return [(name, any_label if name == "*" else name) for name in catalogue[kind["on"]]]


def _choices(parameter: dict[str, Any]) -> list[tuple[str, str]]:
    return [(choice, choice.replace("_", " ")) for choice in parameter["choices"]]


async def _kind(desk: PageTools, visit: PageRequest) -> tuple[dict[str, Any], dict[str, Any]]:
    catalogue: dict[str, Any] = await control_of(desk).get("/control/faults/kinds")
    for kind in catalogue["kinds"]:
        if kind["on"] == visit.path["on"] and kind["name"] == visit.path["kind"]:
            return kind, catalogue
    raise NotThere("There is no such kind of fault.")
