"""The checks of an endpoint's response, as the handset makes them.

Source: the operator's page "Implementing endpoint for Flows"; the names of errors are those of "Flows webhooks".
"""

from typing import Any, Final, NamedTuple

from waypost.base.json_values import list_of, object_of, object_or_none, text_or_none, texts_in
from waypost.flow_json.nodes import json_type
from waypost.flow_player.evaluation import MAX_DEPTH, size_of
from waypost.flow_player.field_values import is_list
from waypost.flow_player.play_state import MAX_DATA_BYTES, ExchangeRequest, FlowState
from waypost.flow_player.playable import PlayableFlow, PlayableScreen

INVALID_TRANSITION: Final = "invalid-screen-transition"
INVALID_PAYLOAD: Final = "payload-schema-error"
SUCCESS_SCREEN: Final = "SUCCESS"
_REQUIRED: Final = "required"
_MESSAGE: Final = "error_message"


class ResponseProblem(NamedTuple):
    """Why a response is not valid: the operator's name of the error, and the reason in words."""

    error_type: str
    reason: str


class AcceptedScreen(NamedTuple):
    """The screen that a response leads to, its data, and the text of a snackbar."""

    screen_id: str
    data: dict[str, Any]
    snackbar: str


class AcceptedEnd(NamedTuple):
    """The parameters of a response that ends the Flow."""

    params: dict[str, Any]


def read_response(
    flow: PlayableFlow, state: FlowState, request: ExchangeRequest, response: dict[str, Any]
) -> AcceptedScreen | AcceptedEnd | ResponseProblem:
    """Return what a response says, or why it is not valid."""
    if size_of(response, MAX_DATA_BYTES) > MAX_DATA_BYTES:
        reason = f"The response is larger than {MAX_DATA_BYTES} bytes, or nested deeper than {MAX_DEPTH}."
        return ResponseProblem(INVALID_PAYLOAD, reason)
    screen_id = text_or_none(response.get("screen"))
    data = object_or_none(response.get("data", {}))
    if screen_id is None:
        return ResponseProblem(INVALID_TRANSITION, "The response names no screen.")
    if data is None:
        return ResponseProblem(INVALID_PAYLOAD, "The member data of the response is no object.")
    if screen_id == SUCCESS_SCREEN:
        return _read_end(data)
    screen = flow.screens.get(screen_id)
    if screen is None:
        return ResponseProblem(INVALID_TRANSITION, f"The Flow has no screen {screen_id[:100]}.")
    if not _is_reachable(flow, state, request, screen_id):
        reason = f"The routing model has no route from {state.screen_id} to {screen_id}."
        return ResponseProblem(INVALID_TRANSITION, reason)
    snackbar = text_or_none(data.get(_MESSAGE)) or ""
    shown = {name: value for name, value in data.items() if name != _MESSAGE or name in screen.declared_data}
    if screen_id == state.screen_id:  # a refresh of the screen: what is not named stays
        shown = state.memory.data | shown
    reason = find_data_problem(screen, shown)
    if reason:
        return ResponseProblem(INVALID_PAYLOAD, reason)
    return AcceptedScreen(screen_id, shown, snackbar)


def _read_end(data: dict[str, Any]) -> AcceptedEnd | ResponseProblem:
    message = object_of(data.get("extension_message_response"))
    params = object_or_none(message.get("params"))
    if params is None:
        return ResponseProblem(INVALID_PAYLOAD, "The last response has no data.extension_message_response.params.")
    return AcceptedEnd(params)


def _is_reachable(flow: PlayableFlow, state: FlowState, request: ExchangeRequest, screen_id: str) -> bool:
    if request.action == "INIT" or screen_id == state.screen_id:
        return True
    if request.action == "BACK" and screen_id in state.stack:
        return True
    return screen_id in flow.routes.get(state.screen_id, set()) or state.screen_id in flow.routes.get(screen_id, set())


def find_data_problem(screen: PlayableScreen, data: dict[str, Any]) -> str:
    """Return what data lacks for the declaration of a screen; empty if nothing."""
    declared = screen.declared_data
    required = texts_in(declared.get(_REQUIRED)) if is_list(declared.get(_REQUIRED)) else []
    for name, schema in declared.items():
        if name not in data:
            if name in required:
                return f"The data of the screen {screen.screen_id} lacks {name}."
            continue
        problem = _find_mismatch(data[name], object_of(schema), name, 0)
        if problem:
            return problem
    return ""


def _find_mismatch(value: Any, schema: dict[str, Any], path: str, depth: int) -> str:
    expected = text_or_none(schema.get("type")) or ""
    found = json_type(value)
    is_integer = expected == "integer" and found == "number" and float(value).is_integer()
    if expected and expected != found and not is_integer:
        return f"The data {path} must be of type {expected}, not {found}."
    if depth > MAX_DEPTH:
        return ""
    if found == "array":
        items = object_of(schema.get("items"))
        problems = (
            _find_mismatch(item, items, f"{path}[{index}]", depth + 1) for index, item in enumerate(list_of(value))
        )
        return next(filter(None, problems), "") if items else ""
    if found != "object":
        return ""
    for name in texts_in(schema.get(_REQUIRED)):
        if name not in value:
            return f"The data {path} lacks {name}."
    for name, member in object_of(schema.get("properties")).items():
        if name in value:
            problem = _find_mismatch(value[name], object_of(member), f"{path}.{name}", depth + 1)
            if problem:
                return problem
    return ""
