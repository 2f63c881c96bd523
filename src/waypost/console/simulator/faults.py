"""The faults pages: armed faults as sentences, presets, and the form of one kind, drawn from the simulator's table."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, cast

import msgspec
from starlette.responses import Response

from waypost.base.invalid_values import describe_malformed_json
from waypost.client.api_client import ApiResponseError
from waypost.console.actions import ActionRow, action_response, error_notice, error_response, form_texts
from waypost.console.page_request import PageRequest
from waypost.console.simulator.context import (
    parse_fraction,
    parse_seconds_ms,
    parse_whole,
    render_tab,
    simulator_now_ms,
)
from waypost.console.web.errors import InvalidPageRequest, NotFound
from waypost.console.web.forms import parse_number
from waypost.console.web.streams import PageElement

FAULT_TEXTS: Final = {  # a row for each kind of the simulator's table; a kind without a row is shown by its name
    # on and kind: title, effect in a sentence with its value, unit of the value
    ("call", "error"): ("Return an error", "fails with error {}", "error code of the operator"),
    ("call", "fail"): (
        "Accept a message and fail it",
        "is accepted, and fails later with error {}",
        "error code of the operator",
    ),
    ("call", "timeout"): ("No response", "gets no response", ""),
    ("call", "reset"): (
        "Break the connection",
        "loses its connection {} it is processed",
        "before or after the call is processed",
    ),
    ("call", "slow_ms"): ("Slow response", "gets its response {} late", "ms of real time"),
    ("call", "garbage"): ("Garbage response", "gets a garbage response ({})", "kind of response"),
    ("webhook", "drop"): ("Drop an update", "is dropped", ""),
    ("webhook", "delay_ms"): ("Delay an update", "is delayed by {}", "ms by the clock"),
    ("webhook", "duplicate"): ("Duplicate an update", "is duplicated ({} extra)", "number of duplicates"),
    ("webhook", "reorder"): ("Reorder updates", "is swapped with the next one", ""),
    ("webhook", "batch"): ("Batch updates", "is batched with others, {} per POST", "updates per POST"),
    ("webhook", "wrong_signature"): ("Wrong signature", "is signed with a wrong secret", ""),
    ("webhook", "unsigned"): ("Missing signature", "is not signed", ""),
    ("webhook", "garbage"): ("Garbage before an update", "is preceded by a POST that is not JSON", ""),
    ("onboarding", "window_error"): ("Error in the signup window", "shows error {}", "error code of the window"),
    ("onboarding", "break"): ("Break a signup", "goes wrong: {}", "what goes wrong"),
    ("endpoint", "slow_ms"): ("Slow endpoint", "gets its response {} late", "ms of real time"),
    ("endpoint", "status"): ("HTTP status of an endpoint", "gets HTTP status {}", "HTTP status"),
    ("endpoint", "reset"): (
        "Refuse the connection",
        "loses its connection {} it is processed",
        "before or after the endpoint gets the request",
    ),
    ("endpoint", "garbage"): ("Garbage from an endpoint", "gets a garbage response ({})", "kind of response"),
    ("endpoint", "wrong_tag"): ("Wrong tag", "has a wrong tag in its {}", "where"),
    ("endpoint", "wrong_iv"): ("Wrong initial vector", "has a wrong initial vector in its {}", "where"),
    ("endpoint", "stale_key"): ("Key changed between screens", "is encrypted with an old public key", ""),
    ("endpoint", "replay"): ("Replay a request", "is sent to the endpoint twice", ""),
    ("endpoint", "wrong_signature"): ("Wrong signature for an endpoint", "is signed with a wrong secret", ""),
    ("endpoint", "unsigned"): ("Missing signature for an endpoint", "is not signed", ""),
}
ANY_SUBJECTS: Final = {
    # on: at the start of a sentence, as a choice of the form
    "call": ("Each call", "every call"),
    "webhook": ("Each update", "every update"),
    "onboarding": ("Each screen of a signup", "the first screen that can show it"),
    "endpoint": ("Each request to an endpoint", "every request"),
}
TARGET_LABELS: Final = {"call": "Call", "endpoint": "Request"}
"""Of the field with the name; of the others Update."""
FAULT_OPTION_TEXTS: Final = {
    # member, label, in a sentence
    "subcode": ("Subcode", "subcode {}"),
    "status": ("HTTP status", "HTTP {}"),
    "details": ("Error details", '"{}"'),
    "retry_after_s": ("Retry-After, in seconds", "Retry-After {} s"),
    "processed": ("Call processed", "processed: {}"),
    "ends": ("End the window", "ends the window: {}"),
    "error_msg": ("Text for the user", '"{}"'),
}
FAULT_FILTER_TEXTS: Final = {
    # member, label, in a sentence
    "app": ("App at the operator", "of app {}"),
    "waba_id": ("Business account", "of account {}"),
    "number": ("Business number", "of number {}"),
    "phone": ("Phone", "for phone {}"),
    "template": ("Template", "with template {}"),
    "flow": ("Flow", "of Flow {}"),
}


def describe_fault(fault: dict[str, Any]) -> str:
    """Return an armed fault as a sentence."""
    on: str = fault["on"]
    name: str = fault.get(on, "*")
    named = {"onboarding": f"Signup, {name},", "endpoint": f"Endpoint, {name},"}.get(on, name)
    subject = ANY_SUBJECTS[on][0] if name == "*" else named
    kind, value = next(iter(fault["what"].items()))
    for candidate, candidate_value in fault["what"].items():
        if (on, candidate) in FAULT_TEXTS:
            kind, value = candidate, candidate_value
            break
    texts = FAULT_TEXTS.get((on, kind))
    effect = f"has {kind}: {value}" if texts is None else texts[1].format(_format_value(kind, value))
    options = [
        FAULT_OPTION_TEXTS[key][1].format(_format_value(key, option))
        if key in FAULT_OPTION_TEXTS
        else f"{key} {option}"
        for key, option in fault["what"].items()
        if key != kind
    ]
    filters = [text.format(fault[key]) for key, (_, text) in FAULT_FILTER_TEXTS.items() if key in fault]
    sentence = " ".join([subject, *filters, effect])
    sentence += f" ({', '.join(options)})" if options else ""
    return f"{sentence}{_describe_when(fault['when'], fault.get('seed'))}."


def _format_value(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value / 1000:g} s" if name.endswith("_ms") else str(value).replace("_", " ")


def _describe_when(when: dict[str, Any], seed: int | None) -> str:
    match when:
        case {"next": 1}:
            return ", next time only"
        case {"next": times}:
            return f", the next {times} times"
        case {"every": every}:
            return f", once every {every} times"
        case {"probability": chance}:
            return f", with probability {chance:.4g}" + (f" (seed {seed})" if seed is not None else "")
        case _:
            return ", every time"


_SEND: Final[dict[str, Any]] = {"on": "call", "call": "messages.send"}
_ANY_WEBHOOK: Final[dict[str, Any]] = {"on": "webhook"}


@dataclass(frozen=True, slots=True)
class FaultPreset:
    """A preset of one or more faults."""

    key: str  # in the URL
    name: str
    sees: str  # description of the effect
    faults: tuple[dict[str, Any], ...]  # as the control API accepts them, without `label`
    for_ms: int | None = None  # how long they are armed, by the clock; None: until they are disarmed or used up


FAULT_PRESETS: Final = (
    FaultPreset(
        "down",
        name="Operator down for 1 minute",
        sees=(
            "Every call fails without a response, and nothing is accepted. The service retries; messages are sent "
            "after the minute."
        ),
        faults=({"on": "call", "what": {"reset": "before"}},),
        for_ms=60_000,
    ),
    FaultPreset(
        "throttled",
        name="Every third message throttled",
        sees=(
            "Every third message fails with error 130429 and a Retry-After of 1 s. The service retries; the partner "
            "sees a delay."
        ),
        faults=({**_SEND, "when": {"every": 3}, "what": {"error": 130429, "retry_after_s": 1}},),
    ),
    FaultPreset(
        "lost-responses",
        name="Every third response lost",
        sees=(
            "The message is accepted, but the connection breaks before the response. It is uncertain until a status "
            "arrives, and is not sent again."
        ),
        faults=({**_SEND, "when": {"every": 3}, "what": {"reset": "after"}},),
    ),
    FaultPreset(
        "slow",
        name="Slow operator",
        sees="Every message is accepted at once, and the response takes 3 s.",
        faults=({**_SEND, "what": {"slow_ms": 3000}},),
    ),
    FaultPreset(
        "gateway",
        name="HTML from a gateway",
        sees="Every fourth call gets status 502 with an HTML page instead of JSON, and nothing is accepted.",
        faults=({"on": "call", "when": {"every": 4}, "what": {"garbage": "html", "status": 502}},),
    ),
    FaultPreset(
        "fails-later",
        name="Every fifth message fails later",
        sees="It is accepted as usual, but then gets the status failed with error 131049 instead of sent.",
        faults=({**_SEND, "when": {"every": 5}, "what": {"fail": 131049}},),
    ),
    FaultPreset(
        "twice-and-crossed",
        name="Webhooks duplicated and out of order",
        sees="Every second update is sent twice; each of the others is swapped with the next one.",
        faults=(
            {**_ANY_WEBHOOK, "when": {"every": 2}, "what": {"duplicate": 1}},
            {**_ANY_WEBHOOK, "what": {"reorder": True}},
        ),
    ),
    FaultPreset(
        "late",
        name="30 % of webhooks delayed by 30 s",
        sees="They keep their original timestamp, and others overtake them. A seed makes every run the same.",
        faults=({**_ANY_WEBHOOK, "seed": 7, "when": {"probability": 0.3}, "what": {"delay_ms": 30_000}},),
    ),
    FaultPreset(
        "silent",
        name="No webhooks for 1 minute",
        sees="Events of this minute are never sent: messages and templates keep their status.",
        faults=({**_ANY_WEBHOOK, "what": {"drop": True}},),
        for_ms=60_000,
    ),
    FaultPreset(
        "forged",
        name="Next three webhooks with wrong signature",
        sees="The service rejects them; the operator retries with the right signature.",
        faults=({**_ANY_WEBHOOK, "when": {"next": 3}, "what": {"wrong_signature": True}},),
    ),
    FaultPreset(
        "submissions-rejected",
        name="Template submissions rejected",
        sees="Every submission fails with error 368: the account is temporarily blocked.",
        faults=({"on": "call", "call": "templates.create", "what": {"error": 368}},),
    ),
    FaultPreset(
        "endpoint-slow",
        name="Endpoints of Flows slower than their time limit",
        sees="The handset gives up after 10 s and shows an error; the endpoint has got the request.",
        faults=({"on": "endpoint", "what": {"slow_ms": 15_000}},),
    ),
    FaultPreset(
        "endpoint-key",
        name="Public key changed in the next Flow",
        sees="The next request after the first screen has an old key. The endpoint must respond 421; the handset then "
        "fetches the new key.",
        faults=({"on": "endpoint", "endpoint": "data_exchange", "when": {"next": 1}, "what": {"stale_key": True}},),
    ),
    FaultPreset(
        "bad-day",
        name="Operator with many problems",
        sees="Random errors, lost responses, slow responses, and duplicated, delayed or reordered webhooks.",
        faults=(
            {**_SEND, "seed": 20, "when": {"probability": 0.05}, "what": {"error": 130429, "retry_after_s": 1}},
            {**_SEND, "seed": 20, "when": {"probability": 0.02}, "what": {"error": 131016, "status": 503}},
            {**_SEND, "when": {"every": 50}, "what": {"reset": "after"}},
            {"on": "call", "seed": 20, "when": {"probability": 0.1}, "what": {"slow_ms": 400}},
            {**_ANY_WEBHOOK, "seed": 20, "when": {"probability": 0.1}, "what": {"duplicate": 1}},
            {**_ANY_WEBHOOK, "seed": 20, "when": {"probability": 0.1}, "what": {"reorder": True}},
        ),
    ),
)


SIGNUP_PRESET: Final = "signup-"
"""The beginning of the keys of presets for the next signup."""


async def list_presets(request: PageRequest) -> Sequence[FaultPreset]:
    """Return all presets: those of the table, and one for each thing that the simulator can break in a signup."""
    breaks: dict[str, str] = (await request.control.get("/control/onboarding/choices"))["breaks"]
    return (*FAULT_PRESETS, *(_signup_preset(name, effect) for name, effect in breaks.items()))


def _signup_preset(name: str, effect: str) -> FaultPreset:
    fault = {"on": "onboarding", "when": {"next": 1}, "what": {"break": name}}
    title = name.replace("_", " ").replace("june", "June").replace("pin ", "PIN ")
    return FaultPreset(f"{SIGNUP_PRESET}{name}", f"Next signup: {title}", effect.replace("`", ""), (fault,))


def preset_body(preset: FaultPreset, *, now_ms: int) -> dict[str, Any]:
    """Return the body of the control API's call: every fault with the preset's name and its end."""
    end = {} if preset.for_ms is None else {"until_ms": now_ms + preset.for_ms}
    return {"faults": [{"label": preset.name, **fault, **end} for fault in preset.faults]}


FAULTS_PATH: Final = "/simulator/faults"
FAULT_MACROS: Final = "simulator/fault_parts.html"
DISARM_ALL_QUESTION: Final = "Disarm all faults, including those that others armed?"
"""The question to confirm."""


async def show_faults(request: PageRequest) -> Response:
    """Return the page with armed faults, presets, and all kinds."""
    control, faults, presets = request.control, await list_faults(request), await list_presets(request)
    return await render_tab(
        request, "faults",
        faults=faults, presets=FAULT_PRESETS, signup_presets=presets[len(FAULT_PRESETS) :], preset_body=preset_body,
        window_errors=(await control.get("/control/onboarding/choices"))["errors"], armed_labels=_armed_labels(faults),
        catalogue=await control.get("/control/faults/kinds"), texts=FAULT_TEXTS, question=DISARM_ALL_QUESTION,
    )  # fmt: skip


async def live_faults(request: PageRequest) -> Response:
    """Stream the armed faults with their counts."""
    return request.live(partial(_render_pieces, request))


async def show_fault(request: PageRequest) -> Response:
    """Return the page of one fault with its last firings."""
    return await render_tab(request, "fault", fault=await _get_fault(request))


async def live_fault(request: PageRequest) -> Response:
    """Stream what changes on it."""

    async def render_pieces() -> Sequence[PageElement]:
        try:
            html = request.macro(FAULT_MACROS, "one", request, await _get_fault(request))
        except NotFound:
            html = request.macro(FAULT_MACROS, "disarmed")
        return [PageElement("fault", html)]

    return request.live(render_pieces)


async def arm_preset(request: PageRequest) -> Response:
    """Arm a preset, unless it is armed."""
    preset = await _find_preset(request)
    body = preset_body(preset, now_ms=await simulator_now_ms(request))
    return await _arm(request, body, f"{preset.name}.")


async def disarm_preset(request: PageRequest) -> Response:
    """Disarm the faults of a preset."""
    preset, control = await _find_preset(request), request.control
    faults = [fault for fault in await list_faults(request) if fault.get("label") == preset.name]
    try:
        for fault in faults:
            await control.json("DELETE", f"/control/faults/{fault['id']}")
    except ApiResponseError as error:
        return error_response(request, FAULTS_PATH, error)
    pieces = await _render_pieces(request) if request.is_quiet else []
    removed = [f"fault-{fault['id']}" for fault in faults]
    return action_response(request, FAULTS_PATH, f"Disarmed: {preset.name}.", pieces, removed_ids=removed)


async def arm_json(request: PageRequest) -> Response:
    """Arm a fault or scenario pasted as JSON."""
    text = await request.field("json")
    try:
        body: object = msgspec.json.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise InvalidPageRequest(
            f"The text {describe_malformed_json(error)}.", "Paste a fault, or an object with a list of faults."
        ) from error
    return await _arm(request, body)


async def _render_pieces(request: PageRequest) -> list[PageElement]:
    """Return the pieces with the list of faults and their number."""
    part, faults = partial(request.macro, FAULT_MACROS), await list_faults(request)
    labels = _armed_labels(faults)
    presets = [
        (preset, part("preset_state", request, preset, preset.name in labels)) for preset in await list_presets(request)
    ]
    rows = [(fault["id"], part("row", request, fault)) for fault in faults]
    return [
        *(PageElement(f"preset-{preset.key}", html) for preset, html in presets),
        PageElement("armed-head", part("armed_head", request, faults, DISARM_ALL_QUESTION)),
        PageElement("armed-none", part("armed_none", faults)),
        *(PageElement(f"fault-{fault_id}", html, "armed") for fault_id, html in rows),
    ]


async def _find_preset(request: PageRequest) -> FaultPreset:
    preset = next((row for row in await list_presets(request) if row.key == request.path_params["key"]), None)
    if preset is None:
        raise NotFound("There is no such preset.")
    return preset


def _armed_labels(faults: list[dict[str, Any]]) -> set[str]:
    """Return the labels of armed faults; those of a preset have its name."""
    return {fault["label"] for fault in faults if fault["is_armed"] and "label" in fault}


FAULT_ACTIONS: Final = (
    # path, name, call, page, notice
    ActionRow(
        f"{FAULTS_PATH}/disarm", "disarm all faults", "DELETE /control/faults", FAULTS_PATH, "All faults disarmed."
    ),
    ActionRow(
        f"{FAULTS_PATH}/{{fault_id}}/disarm",
        does="disarm a fault",
        call="DELETE /control/faults/{fault_id}",
        page=FAULTS_PATH,
        notice="Disarmed.",
        render_elements=_render_pieces,
        removed_ids=("fault-{fault_id}",),
    ),
)


async def arm_missing(request: PageRequest, body: object) -> tuple[list[dict[str, Any]], str]:
    """Arm faults that are not armed yet; return the new ones, and the notice.

    Raises:
        ApiResponseError: a fault is invalid.
    """
    once = {**cast("dict[str, Any]", body), "if_missing": True} if isinstance(body, dict) else body
    response = await request.control.post("/control/faults", once)
    armed, existing = response["faults"], response.get("existing", [])
    sentences = " ".join(describe_fault(fault) for fault in armed or existing)
    return armed, f"{'Armed' if armed else 'Already armed'}: {sentences}"


async def _arm(request: PageRequest, body: object, name: str = "") -> Response:
    try:
        armed, notice = await arm_missing(request, body)
    except ApiResponseError as error:
        return error_response(request, FAULTS_PATH, error)
    if name:
        notice = f"{'Armed' if armed else 'Already armed'}: {name}"
    pieces = await _render_pieces(request) if request.is_quiet else ()
    return action_response(request, FAULTS_PATH, notice, pieces)


async def list_faults(request: PageRequest) -> list[dict[str, Any]]:
    """Return all faults, each with its sentence."""
    faults = (await request.control.get("/control/faults"))["faults"]
    return [{**fault, "sentence": describe_fault(fault)} for fault in faults]


async def _get_fault(request: PageRequest) -> dict[str, Any]:
    fault_id = parse_number(request.path_params["fault_id"], max_digits=15)
    if fault_id is None:
        raise NotFound("There is no such fault.")
    if not any(fault["id"] == fault_id for fault in await list_faults(request)):
        raise NotFound("This fault is no longer armed.")
    fault: dict[str, Any] = await request.control.get(f"/control/faults/{fault_id}")
    return {**fault, "sentence": describe_fault(fault)}


_PARSERS: Final[dict[str, Callable[[str], Any]]] = {
    "whole": parse_whole,
    "fraction": parse_fraction,
    "boolean": lambda text: {"true": True, "false": False}.get(text, text),
}


async def show_fault_form(request: PageRequest) -> Response:
    """Return the form, empty or prefilled from the query, such as `?phone=…`."""
    kind, catalogue = await _find_kind(request)
    typed = {name: value[:600] for name, value in request.http.query_params.items()}
    return await _form_page(request, kind, catalogue, typed)


async def arm_form(request: PageRequest) -> Response:
    """Arm the fault of the form, unless it is armed; an error of the control API is shown at its field."""
    kind, catalogue = await _find_kind(request)
    typed, now_ms = await form_texts(request), await simulator_now_ms(request)
    try:
        _, notice = await arm_missing(request, build_fault(kind, typed, now_ms=now_ms))
    except ApiResponseError as error:
        return await _form_page(request, kind, catalogue, typed, error)
    return request.redirect(FAULTS_PATH, notice)


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
            what[name] = _PARSERS.get(parameter["type"], str)(text)
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


async def _form_page(
    request: PageRequest,
    kind: dict[str, Any],
    catalogue: dict[str, Any],
    typed: dict[str, str],
    error: ApiResponseError | None = None,
) -> Response:
    field = "" if error is None else error.field
    text, hint = ("", "") if error is None else error_notice(error)
    return await render_tab(
        request, "fault_form", 200 if error is None else 400,
        kind=kind, names=_target_choices(kind, catalogue), whens=catalogue["when"], typed=typed,
        narrowed=any(typed.get(name) for name in FAULT_FILTER_TEXTS),
        texts=FAULT_TEXTS.get((kind["on"], kind["name"])), option_labels=FAULT_OPTION_TEXTS,
        target_label=TARGET_LABELS.get(kind["on"], "Update"),
        filters=[
            (name, FAULT_FILTER_TEXTS[name][0] if name in FAULT_FILTER_TEXTS else name, accepted)
            for name, accepted in catalogue["filters"].items()
        ],
        wrong_field=field, error=text, hint=hint,
        armed=[fault for fault in await list_faults(request)
               if fault["is_armed"] and fault["on"] == kind["on"] and kind["name"] in fault["what"]],
    )  # fmt: skip


def _target_choices(kind: dict[str, Any], catalogue: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the calls or updates to choose from: values and labels."""
    if kind["only"]:
        return [(kind["only"], kind["only"])]
    any_label = ANY_SUBJECTS[kind["on"]][1]
    return [(name, any_label if name == "*" else name) for name in catalogue[kind["on"]]]


async def _find_kind(request: PageRequest) -> tuple[dict[str, Any], dict[str, Any]]:
    catalogue: dict[str, Any] = await request.control.get("/control/faults/kinds")
    for kind in catalogue["kinds"]:
        if kind["on"] == request.path_params["on"] and kind["name"] == request.path_params["kind"]:
            return kind, catalogue
    raise NotFound("There is no such kind of fault.")
