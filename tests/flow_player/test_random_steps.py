"""Any steps in any Flow, also one that is not valid, with any responses: no exception, and never more than the bounds."""

import datetime
import json
from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.flow_json.mutations import outcomes
from tests.flow_json.samples import all_components, simple
from tests.support.flow_components import every_component_flow
from waypost.base.json_values import object_of
from waypost.flow_json.versions import FLOW_VERSIONS
from waypost.flow_player import player
from waypost.flow_player.entries import list_tappables
from waypost.flow_player.evaluation import TooLargeError, size_of
from waypost.flow_player.play_state import MAX_STATE_BYTES, FlowState, PlayedStep, StepNotAllowed, UploadedFile
from waypost.flow_player.playable import PlayableFlow, UnplayableFlow, read_playable
from waypost.flow_player.views import view_screen


def readable() -> st.SearchStrategy[PlayableFlow]:
    texts = [json.dumps(every_component_flow()), json.dumps(simple())]
    texts += [json.dumps(all_components(version.number)) for version in FLOW_VERSIONS]
    texts += [outcome.text for outcome in outcomes(200, 7)]
    flows: list[PlayableFlow] = []
    for text in texts:
        try:
            flows.append(read_playable(text))
        except UnplayableFlow:
            continue
    return st.sampled_from(flows)


FLOWS = st.deferred(readable)  # when a test draws: reading them takes 0.7 s
DAYS = st.dates(datetime.date(1850, 1, 1), datetime.date(2150, 1, 1)).map(str)
SCALARS = st.one_of(
    st.text(max_size=20),
    st.booleans(),
    st.none(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    DAYS,
)
VALUES: st.SearchStrategy[Any] = st.one_of(
    SCALARS,
    st.lists(st.sampled_from(["red", "blue", "one", "two", "x"]), max_size=3),
    st.fixed_dictionaries({}, optional={"start-date": DAYS, "end-date": DAYS}),
    st.recursive(
        SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["fill", "fill", "tap", "tap", "upload", "back", "refresh", "close", "respond"]),
        st.integers(0, 30),
        VALUES,
    ),
    max_size=25,
)


def run_step(flow: PlayableFlow, state: FlowState, kind: str, number: int, value: Any) -> PlayedStep:
    """Carry out one step: on the input, button or screen with a number."""
    if state.is_closed:
        return PlayedStep(player.reopen(state))
    screen = flow.screens.get(state.screen_id)
    names = list(screen.inputs) if screen is not None else []
    name = names[number % len(names)] if names else "x"
    match kind:
        case "fill":
            return player.enter_value(flow, state, name, value)
        case "tap":
            targets = [one.path for one in list_tappables(flow, state)] if state.stack else []
            return player.tap(flow, state, targets[number % len(targets)] if targets else "x")
        case "upload":
            file = UploadedFile(f"m{number}", "a", "image/png" if number % 2 else "text/plain", number)
            return player.add_file(flow, state, name, file)
        case "back":
            return player.go_back(flow, state)
        case "refresh":
            return player.refresh(flow, state)
        case "close":
            return PlayedStep(player.close(state))
        case _:
            screens = [*flow.screens, "SUCCESS", "NOWHERE"]
            data = {**object_of(value), "error_message": value}
            return player.take_response(flow, state, {"screen": screens[number % len(screens)], "data": data})


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(FLOWS, st.sampled_from(["navigate", "data_exchange"]), VALUES, STEPS)
def test_any_steps_keep_the_bounds(
    flow: PlayableFlow, action: str, value: Any, steps: list[tuple[str, int, Any]]
) -> None:
    try:
        state = player.open_flow(flow, action=action, data=object_of(value)).state
    except StepNotAllowed:
        return
    for kind, number, entered in steps:
        try:
            state = run_step(flow, state, kind, number, entered).state
        except StepNotAllowed as error:
            state = error.state or state
        except TooLargeError:
            raise AssertionError("only a view or an input may be too large, and both say so otherwise") from None
        state = msgspec.json.decode(msgspec.json.encode(state), type=FlowState)
        view = view_screen(flow, state)
        assert view.state == "screen" or not view.components or view.state == "busy"
        assert len({one.path for one in view.components}) == len(view.components)
        assert size_of([[one.data, one.values] for one in state.screens.values()], MAX_STATE_BYTES) <= MAX_STATE_BYTES
