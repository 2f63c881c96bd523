"""The inputs of a person who plays a Flow, and the responses of its endpoint.

Each function returns the next state with what has to happen. A request to the endpoint is the caller's to send:
`take_response` or `fail_request` goes on. What is larger than a handset can hold shows the general error.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, Final, ParamSpec

from msgspec.structs import replace

from waypost.base.json_values import list_of, objects_in
from waypost.flow_player.actions import (
    complete,
    enter_screen,
    run_action,
    save_memory,
    show_general_error,
    show_response,
    start_exchange,
)
from waypost.flow_player.entries import find_tappable, fire_selection, list_tappables
from waypost.flow_player.evaluation import FlowEvaluator, TooLargeError
from waypost.flow_player.fields import FILE_PICKERS, MULTIPLE_SELECTIONS, check_file, find_problem, read_entry
from waypost.flow_player.layout import LaidOutComponent, lay_out
from waypost.flow_player.play_state import (
    TOKEN_INVALID,
    ErrorNotice,
    ExchangeRequest,
    FlowState,
    PlayedStep,
    StepNotAllowed,
    UploadedFile,
)
from waypost.flow_player.playable import PlayableFlow
from waypost.flow_player.responses import AcceptedEnd, AcceptedScreen, read_response

_MAX_ERROR_CHARS: Final = 500
_Arguments = ParamSpec("_Arguments")
_Input = Callable[Concatenate[PlayableFlow, FlowState, _Arguments], PlayedStep]


def _require_screen(step: _Input[_Arguments]) -> _Input[_Arguments]:
    """Return an input that needs a screen which takes inputs."""

    @wraps(step)
    def checked(
        flow: PlayableFlow, state: FlowState, *args: _Arguments.args, **options: _Arguments.kwargs
    ) -> PlayedStep:
        if state.is_closed or state.ended:
            raise StepNotAllowed("flow", f"is {state.ended or 'closed'}", "open it first")
        if state.pending is not None:
            raise StepNotAllowed("flow", "waits for the endpoint's response")
        if not state.stack:
            raise StepNotAllowed("flow", f"shows an error instead of a screen: {state.error}", "refresh, close")
        try:
            return step(flow, state, *args, **options)
        except TooLargeError:
            return PlayedStep(show_general_error(state))

    return checked


def open_flow(
    flow: PlayableFlow,
    *,
    flow_token: str = "unused",  # noqa: S107  the operator's default
    action: str = "navigate",
    screen: str = "",
    data: dict[str, Any] | None = None,
) -> PlayedStep:
    """Open a Flow at a screen, by default the entry screen, or by a request to the endpoint.

    Raises:
        StepNotAllowed: there is no such screen, or no endpoint.
    """
    state = FlowState(flow_token=flow_token)
    if action == "data_exchange":
        if not flow.data_api_version:
            raise StepNotAllowed("flow_action", "the Flow has no endpoint", "navigate")
        return start_exchange(state, ExchangeRequest("INIT", screen, data or {}))
    screen = screen or flow.entry_screen
    if screen not in flow.screens:
        raise StepNotAllowed("screen", f"the Flow has no screen {screen[:100]}", ", ".join(flow.screens)[:500])
    try:
        return PlayedStep(enter_screen(flow, state, screen, data or {}))
    except TooLargeError:
        return PlayedStep(show_general_error(state))


@_require_screen
def enter_value(flow: PlayableFlow, state: FlowState, name: str, value: Any) -> PlayedStep:
    """Set the value of an input: a text, an option's id or title, a list of them, a day, or a decision.

    Raises:
        StepNotAllowed: the input is not shown or disabled, or takes no such value.
    """
    component = _find_input(flow, state, name)
    evaluator = FlowEvaluator(flow, state)
    before, entered = evaluator.value_of(name), read_entry(component, value, flow.version)
    changed = _set_value(state, name, entered)
    return fire_selection(flow, changed, component, before, entered)


@_require_screen
def choose_option(flow: PlayableFlow, state: FlowState, name: str, option: str) -> PlayedStep:
    """Choose an option, by its id or title; of a selection of several, beside those that are chosen.

    Raises:
        StepNotAllowed: the selection is not shown or disabled, or has no such option.
    """
    component = _find_input(flow, state, name)
    value: Any = option
    if component.type in MULTIPLE_SELECTIONS:
        value = [*list_of(FlowEvaluator(flow, state).value_of(name)), option]
    return enter_value(flow, state, name, value)


@_require_screen
def add_file(flow: PlayableFlow, state: FlowState, name: str, file: UploadedFile) -> PlayedStep:
    """Add a file to a picker.

    Raises:
        StepNotAllowed: the picker is not shown or disabled, or does not take the file.
    """
    component = _find_input(flow, state, name)
    if component.type not in FILE_PICKERS:
        raise StepNotAllowed(name, f"is a {component.type}", "the name of a PhotoPicker or DocumentPicker")
    files = objects_in(FlowEvaluator(flow, state).value_of(name))
    check_file(component, file, len(files))
    members = {field: getattr(file, field) for field in file.__struct_fields__}
    return PlayedStep(_set_value(state, name, [*files, members]))


@_require_screen
def remove_file(flow: PlayableFlow, state: FlowState, name: str, media_id: str) -> PlayedStep:
    """Remove a file from a picker.

    Raises:
        StepNotAllowed: it has no such file.
    """
    component = _find_input(flow, state, name)
    files = objects_in(FlowEvaluator(flow, state).value_of(name)) if component.type in FILE_PICKERS else []
    kept = [one for one in files if one["media_id"] != media_id]
    if len(kept) == len(files):
        raise StepNotAllowed(name, "has no such file", ", ".join(str(one["media_id"]) for one in files))
    return PlayedStep(_set_value(state, name, kept))


@_require_screen
def tap(flow: PlayableFlow, state: FlowState, target: str) -> PlayedStep:
    """Tap a button, a link, an item, an option or an OptIn, by its path or its text.

    Raises:
        StepNotAllowed: nothing or more than one such thing is shown, it is disabled, or an input is not valid.
    """
    tapped = find_tappable(list_tappables(flow, state), target)
    component = tapped.component
    if tapped.value_after is not None:
        return enter_value(flow, state, component.name, tapped.value_after)
    state = replace(state, snackbar="")
    if not component.is_enabled:
        raise StepNotAllowed(target, "is disabled")
    if component.type == "Footer":
        _check_inputs(flow, state)
        if tapped.obstacle:
            raise StepNotAllowed(target, tapped.obstacle)
    if tapped.item_id:
        state = _set_value(state, component.name, tapped.item_id)
    return run_action(flow, state, tapped.action, target)


@_require_screen
def go_back(flow: PlayableFlow, state: FlowState) -> PlayedStep:
    """Go back to the screen before; one with `refresh_on_back` asks the endpoint.

    Raises:
        StepNotAllowed: this is the first screen.
    """
    if len(state.stack) < 2:
        raise StepNotAllowed("back", "this is the first screen", "close")
    screen = flow.screens[state.screen_id]
    if screen.source.get("refresh_on_back") is True and flow.data_api_version:
        return start_exchange(state, ExchangeRequest("BACK", state.screen_id))
    return PlayedStep(replace(state, stack=state.stack[:-1], snackbar=""))


def refresh(flow: PlayableFlow, state: FlowState) -> PlayedStep:
    """Repeat the request that failed; without one, show the screen as it was before anything was entered.

    Raises:
        StepNotAllowed: the Flow is closed, has ended or waits.
    """
    if state.failed is not None and not state.is_closed and not state.ended:
        return start_exchange(state, state.failed)
    return _empty_screen(flow, state)


@_require_screen
def _empty_screen(_flow: PlayableFlow, state: FlowState) -> PlayedStep:
    emptied = replace(state.memory, values={}, corrected=[], is_checked=False)
    return PlayedStep(save_memory(replace(state, snackbar=""), emptied))


def close(state: FlowState) -> FlowState:
    """Return the state in which the person has left the Flow; `reopen` goes on where it was."""
    return replace(state, is_closed=True, snackbar="")


def reopen(state: FlowState) -> FlowState:
    """Return the state in which a closed or stored Flow goes on; a request without a response has failed."""
    opened = replace(state, is_closed=False)
    return show_general_error(opened, opened.pending) if opened.pending is not None else opened


def take_response(flow: PlayableFlow, state: FlowState, response: dict[str, Any]) -> PlayedStep:
    """Go on with the decrypted response of the endpoint to the pending request.

    One that is not valid shows the general error, and is to be reported to the endpoint by the returned notice.
    """
    request = state.pending
    if request is None:
        return PlayedStep(state)
    try:
        read = read_response(flow, state, request, response)
        if isinstance(read, AcceptedScreen):
            return PlayedStep(show_response(flow, state, read))
        if isinstance(read, AcceptedEnd):
            return complete(flow, state, read.params, {})
        error_type, reason = read
    except TooLargeError as error:
        error_type, reason = "payload-schema-error", str(error)
    action = "INIT" if request.action == "INIT" else "data_exchange"
    notice = ErrorNotice(action, request.screen, error_type, reason)
    return PlayedStep(show_general_error(state, request), notice)


def fail_request(state: FlowState, *, error_message: str = "", is_token_invalid: bool = False) -> FlowState:
    """Return the state after a request without a valid response; an invalid token ends the Flow for good."""
    if not is_token_invalid:
        return show_general_error(state, state.pending)
    text = error_message[:_MAX_ERROR_CHARS] or TOKEN_INVALID
    return replace(state, pending=None, ended="token_invalid", error=text, snackbar="")


def _find_input(flow: PlayableFlow, state: FlowState, name: str) -> LaidOutComponent:
    inputs = {one.name: one for one in lay_out(FlowEvaluator(flow, state)) if one.is_input}
    if name not in inputs:
        known = flow.screens[state.screen_id].inputs
        rule = "is not shown" if name in known else f"is no input of the screen {state.screen_id}"
        raise StepNotAllowed(name[:100], rule, ", ".join(inputs)[:500] or "nothing: the screen shows no inputs")
    if not inputs[name].is_enabled:
        raise StepNotAllowed(name, "is disabled")
    return inputs[name]


def _set_value(state: FlowState, name: str, value: Any) -> FlowState:
    memory = state.memory
    corrected = list(dict.fromkeys([*memory.corrected, name]))
    return save_memory(state, replace(memory, values=memory.values | {name: value}, corrected=corrected))


def _check_inputs(flow: PlayableFlow, state: FlowState) -> None:
    """Check every input that is shown, as a tap on the Footer does.

    Raises:
        StepNotAllowed: for the first one that is not valid; its state shows the errors beside the fields.
    """
    evaluator = FlowEvaluator(flow, state)
    for component in lay_out(evaluator):
        problem = find_problem(component, evaluator.value_of(component.name)) if component.is_input else None
        if problem is not None:
            checked = save_memory(state, replace(state.memory, is_checked=True))
            raise StepNotAllowed(component.name, f"{problem.rule}: {problem.text}", state=checked)
