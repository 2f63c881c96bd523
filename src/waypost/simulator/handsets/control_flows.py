"""Control API calls for the flows that a phone opens from messages."""

from starlette.requests import Request

from waypost.simulator.apis.control_operations import ControlOperations
from waypost.simulator.apis.field_types import Name
from waypost.simulator.flows.playing import FlowStepsBody
from waypost.simulator.flows.sessions import FlowSessionView, load_playable, origin_of, resume_text, view_session
from waypost.simulator.handsets.control_actions import MessageBody, wait_for_message
from waypost.simulator.handsets.phone_flows import find_flow_button, find_open_session, open_flow, play_steps
from waypost.simulator.state.control_parameters import PathPhone
from waypost.simulator.state.simulator_state import SimulatorState

operation = ControlOperations()


class FlowOpening(MessageBody, frozen=True, kw_only=True):
    """Opens the flow of a message, where it was left; with `restart` at its beginning."""

    restart: bool = False


@operation("POST", "/control/phones/{phone}/flow")
async def open_phone_flow(
    state: SimulatorState, request: Request, phone: PathPhone, body: FlowOpening
) -> FlowSessionView:
    """Open the flow of a message, by default of the newest one that has a flow."""
    message = await wait_for_message(state, phone, body, lambda item: find_flow_button(item) is not None)
    return await open_flow(state, message, restart=body.restart, origin=origin_of(request))


@operation("GET", "/control/phones/{phone}/flow")
async def show_phone_flow(
    state: SimulatorState, phone: PathPhone, *, message_id: Name | None = None
) -> FlowSessionView:
    """Return what the flow shows that a phone has opened last, or that of a message."""
    session = await find_open_session(state, phone, message_id)
    return view_session(state, session, await load_playable(await resume_text(state, session)))


class PhoneFlowSteps(FlowStepsBody, frozen=True, kw_only=True):
    """Steps in the flow that the phone has opened last, or that of a message."""

    message_id: Name | None = None


@operation("POST", "/control/phones/{phone}/flow/steps")
async def play_phone_flow(
    state: SimulatorState, request: Request, phone: PathPhone, body: PhoneFlowSteps
) -> FlowSessionView:
    """Carry out steps in a flow; the first that the handset does not allow ends them, with what they have changed.

    A completed flow sends its answers to the business.
    """
    return await play_steps(state, phone, body.message_id, body.steps, origin=origin_of(request))
