"""The actions of components: navigate, complete, data_exchange, update_data and open_url.

Source: public page "Flow JSON", actions.
"""

from typing import Any, Final

from msgspec.structs import replace

from waypost.base.json_values import object_of, object_or_none, objects_in, text_or_none
from waypost.flow_player.evaluation import FlowEvaluator, TooLargeError, size_of
from waypost.flow_player.layout import lay_out
from waypost.flow_player.play_state import (
    GENERAL_ERROR,
    MAX_DATA_BYTES,
    MAX_STATE_BYTES,
    ExchangeRequest,
    FlowCompletion,
    FlowState,
    OpenedUrl,
    PlayedStep,
    ScreenMemory,
    StepNotAllowed,
)
from waypost.flow_player.playable import PlayableFlow
from waypost.flow_player.responses import AcceptedScreen
from waypost.flow_player.summary import summarize

MAX_RESPONSE_FILES: Final = 10
"""Of a completed Flow. Source: public page "Media upload components"."""
MAX_RESPONSE_BYTES: Final = 100 * 1024 * 1024


def run_action(flow: PlayableFlow, state: FlowState, action: dict[str, Any], target: str) -> PlayedStep:
    """Run an action of the current screen.

    Raises:
        StepNotAllowed: the handset has no such action, or cannot run it now.
        TooLargeError: its payload is larger than a handset can hold.
    """
    evaluator = FlowEvaluator(flow, state)
    match action.get("name"):
        case "navigate":
            return PlayedStep(_navigate(flow, state, evaluator, action, target))
        case "complete":
            payload, files = resolve_payload(evaluator, action)
            return complete(flow, state, payload, files)
        case "data_exchange":
            payload, files = resolve_payload(evaluator, action)
            known = {
                name: value for name, value in payload.items() if value is not None
            }  # JSON has no undefined members
            return start_exchange(state, ExchangeRequest("data_exchange", state.screen_id, known, files))
        case "update_data":
            payload, _ = resolve_payload(evaluator, action)
            memory = replace(state.memory, data=state.memory.data | payload)
            return PlayedStep(save_memory(state, memory))
        case "open_url":
            return PlayedStep(state, OpenedUrl(str(evaluator.resolve(action.get("url", "")))[:2000]))
        case _:
            raise StepNotAllowed(target, "has no action")


def start_exchange(state: FlowState, request: ExchangeRequest) -> PlayedStep:
    """Return the state that waits for a response."""
    return PlayedStep(replace(state, pending=request, failed=None, snackbar="", error=""), request)


def save_memory(state: FlowState, memory: ScreenMemory) -> FlowState:
    """Return the state with another memory of the current screen.

    Raises:
        TooLargeError: the data and values of the screens are larger than a handset can hold.
    """
    screens = state.screens | {state.screen_id: memory}
    if size_of(memory.data, MAX_DATA_BYTES) > MAX_DATA_BYTES:
        raise TooLargeError("The data of the screen is larger than a handset can hold.")
    whole = [[one.data, one.values] for one in screens.values()]
    if size_of(whole, MAX_STATE_BYTES) > MAX_STATE_BYTES:
        raise TooLargeError("The data of the screens is larger than a handset can hold.")
    return replace(state, screens=screens)


def resolve_payload(evaluator: FlowEvaluator, action: dict[str, Any]) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """Return a payload with the values of its expressions, and the media ids of its members that are files.

    An input in a branch that is not shown counts as not filled in; one that is not visible keeps its value.
    """
    evaluator.leave_out_unplaced()
    payload = {str(name): evaluator.resolve(value) for name, value in object_of(action.get("payload")).items()}
    if size_of(payload, MAX_DATA_BYTES) > MAX_DATA_BYTES:
        raise TooLargeError("The payload is larger than a handset can send.")
    files = {
        name: [str(one["media_id"]) for one in objects_in(payload[name])]
        for name, value in object_of(action.get("payload")).items()
        if evaluator.is_picker(value)
    }
    return payload, files


def find_missing_data(flow: PlayableFlow, state: FlowState, action: dict[str, Any]) -> str:
    """Return why the data of the next screen of a navigate action cannot be given yet; empty if it can."""
    screen = flow.screens.get(_next_screen(action))
    if action.get("name") != "navigate" or screen is None:
        return ""
    payload, _ = resolve_payload(FlowEvaluator(flow, state), action)
    missing = next((name for name, value in payload.items() if value is None and name in screen.declared_data), "")
    return f"The data {missing} of the screen {screen.screen_id} is not there yet." if missing else ""


def _next_screen(action: dict[str, Any]) -> str:
    return text_or_none(object_of(action.get("next")).get("name")) or ""


def _navigate(
    flow: PlayableFlow, state: FlowState, evaluator: FlowEvaluator, action: dict[str, Any], target: str
) -> FlowState:
    following = _next_screen(action)
    if following not in flow.screens or following == state.screen_id:
        raise StepNotAllowed(target, f"leads to {following or 'no screen'}", "a screen of the Flow")
    payload, _ = resolve_payload(evaluator, action)
    return enter_screen(flow, state, following, payload)


def enter_screen(flow: PlayableFlow, state: FlowState, screen_id: str, data: dict[str, Any]) -> FlowState:
    """Return the state in which a screen is drawn again, after its actions on drawing."""
    stack = [one for one in state.stack if one != screen_id]
    entered = replace(state, stack=[*stack, screen_id], snackbar="", error="", failed=None)
    entered = save_memory(entered, ScreenMemory(data))
    # Source: public page "Flow JSON", versions: only before 7.0 a select action runs when a screen is drawn.
    return _run_drawn(flow, entered) if (6, 0) <= flow.version < (7, 0) else entered


def show_response(flow: PlayableFlow, state: FlowState, accepted: AcceptedScreen) -> FlowState:
    """Return the state in which the screen of an accepted response is shown; one on the way back keeps its inputs."""
    if accepted.screen_id in state.stack:
        known = state.screens[accepted.screen_id]
        stack = state.stack[: state.stack.index(accepted.screen_id) + 1]
        shown = save_memory(replace(state, stack=stack), replace(known, data=accepted.data, corrected=[]))
    else:
        shown = enter_screen(flow, state, accepted.screen_id, accepted.data)
    return replace(shown, snackbar=accepted.snackbar, pending=None, failed=None, error="")


def _run_drawn(flow: PlayableFlow, state: FlowState) -> FlowState:
    for component in lay_out(FlowEvaluator(flow, state)):
        action = object_or_none(component.source.get("on-select-action"))
        value = FlowEvaluator(flow, state).value_of(component.name) if component.name else None
        if action is not None and action.get("name") == "update_data" and value:
            state = run_action(flow, state, action, component.name).state
    return state


def complete(flow: PlayableFlow, state: FlowState, payload: dict[str, Any], files: dict[str, list[str]]) -> PlayedStep:
    """Return the state in which the Flow has ended with a payload.

    Raises:
        StepNotAllowed: it has more files than a response message can have.
    """
    sizes = {file["media_id"]: int(file["size_bytes"]) for name in files for file in objects_in(payload.get(name))}
    if len(sizes) > MAX_RESPONSE_FILES or sum(sizes.values()) > MAX_RESPONSE_BYTES:
        raise StepNotAllowed("complete", "the message has too many files", "at most 10 files with 100 MiB together")
    screen = flow.screens.get(state.screen_id)
    completion = FlowCompletion(
        payload={"flow_token": state.flow_token, **payload},
        screen=state.screen_id,
        is_success=screen is None or screen.source.get("success", True) is not False,
        files=files,
        summary=summarize(flow, state),
    )
    ended = replace(state, ended="completed", completion=completion, pending=None, snackbar="", error="")
    return PlayedStep(ended, completion)


def show_general_error(state: FlowState, request: ExchangeRequest | None = None) -> FlowState:
    """Return the state in which the person sees that something failed: on the screen, or instead of the first one."""
    failed = replace(state, pending=None, failed=request)
    return replace(failed, snackbar=GENERAL_ERROR) if state.stack else replace(failed, error=GENERAL_ERROR)
