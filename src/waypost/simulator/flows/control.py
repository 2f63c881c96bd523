"""Control API calls for flows: what a flow contains, and its status at the operator."""

from typing import Annotated, Any, Literal

from msgspec.structs import replace

from waypost.simulator.apis.control_operations import ControlBody, ControlOperations, path_object
from waypost.simulator.flows.model import FLOWS, Flow
from waypost.simulator.state.simulator_state import SimulatorState, Transaction

PathFlow = Annotated[Flow, path_object("flow_id", lambda state: state.values(FLOWS), "is no flow")]

operation = ControlOperations()


class FlowStatusBody(ControlBody, frozen=True):
    """A flow's status, as the operator's supervision sets it."""

    status: Literal["DRAFT", "PUBLISHED", "DEPRECATED", "THROTTLED", "BLOCKED"]


@operation("GET", "/control/flows/{flow_id}", flow_id=str, waba_id=str, name=str, status=str, content=dict[str, Any])
async def show_flow(flow: PathFlow) -> dict[str, Any]:
    """Return a flow's status and its uploaded content."""
    return {name: getattr(flow, name) for name in ("flow_id", "waba_id", "name", "status", "content")}


@operation("PUT", "/control/flows/{flow_id}/status", flow_id=str, status=str)
async def put_flow_status(state: SimulatorState, body: FlowStatusBody, flow: PathFlow) -> dict[str, Any]:
    """Set a flow's status from any status, with a webhook."""
    value = {
        "event": "FLOW_STATUS_CHANGE",
        "message": f"Flow {flow.name} changed status from {flow.status} to {body.status}",
        "flow_id": flow.flow_id,
        "old_status": flow.status,
        "new_status": body.status,
    }

    def write(transaction: Transaction) -> None:
        known, now_ms = transaction.find(FLOWS, flow.flow_id) or flow, state.clock.now_ms()
        transaction.save(FLOWS, replace(known, status=body.status, updated_ms=now_ms), flow.flow_id)
        transaction.notify(flow.waba_id, "flows", value)

    await state.transact(write)
    return {"flow_id": flow.flow_id, "status": body.status}
