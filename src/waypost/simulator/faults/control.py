"""Control API calls that arm, show and disarm faults."""

from typing import Annotated, Any, Final, cast

from starlette.requests import Request

from waypost.simulator.apis.control_error import ControlApiError
from waypost.simulator.apis.control_operations import ControlOperations, path_object, read_bytes
from waypost.simulator.apis.members import MemberDeclaration
from waypost.simulator.apis.requests import decode_json
from waypost.simulator.faults.fault_kinds import (
    ANY,
    CALL,
    FAULT_FILTERS,
    FAULT_KINDS,
    FAULT_TRIGGERS,
    WEBHOOK,
    WEBHOOKS,
)
from waypost.simulator.faults.fault_reading import read_faults
from waypost.simulator.faults.model import (
    FAULTS,
    ArmedFault,
    all_faults,
    arm_faults,
    arm_missing_faults,
    disarm_faults,
    fault_view,
    list_firings,
)
from waypost.simulator.state.graph_operations import call_names
from waypost.simulator.state.simulator_state import SimulatorState

_FAULT: Final = '{"on", "call" or "webhook", "when", "what"}, or {"faults": [...], "seed"}'

PathFault = Annotated[ArmedFault, path_object("fault_id", lambda state: state.values(FAULTS), "is no fault")]

operation = ControlOperations()


@operation("GET", "/control/faults")
async def list_faults(state: SimulatorState) -> dict[str, Any]:
    """Return every fault, with the number of its evaluations and firings."""
    return {"faults": [fault_view(state, fault) for fault in all_faults(state)]}


@operation("GET", "/control/faults/kinds")
async def list_fault_kinds() -> dict[str, Any]:
    """Return the kinds of faults, their triggers and filters, and the names of calls and webhooks."""
    return {
        "kinds": [
            {
                "on": kind.target,
                "name": kind.name,
                "each": kind.each,
                "only": kind.only_call or None,
                "sees": kind.effect,
                "value": _parameter_view(kind.parameter),
                "parameters": [_parameter_view(parameter) for parameter in kind.extra_parameters],
            }
            for kind in FAULT_KINDS
        ],
        "when": [{**_parameter_view(parameter), "fires": fires} for parameter, fires in FAULT_TRIGGERS],
        "filters": FAULT_FILTERS,
        CALL: [ANY, *call_names()],
        WEBHOOK: [ANY, *WEBHOOKS],
    }


@operation("POST", "/control/faults")
async def arm(state: SimulatorState, request: Request) -> dict[str, Any]:
    """Arm a fault, such as a rejected call, a lost response or a late webhook, or all of a scenario; armed faults stay.

    With `if_missing: true` those that are armed already are not armed again: `faults` has the new ones,
    and `existing` the others.
    """
    try:
        body: object = decode_json(await read_bytes(request) or b"null")
    except ValueError as error:
        raise ControlApiError("body", str(error), _FAULT) from error
    if_missing: object = False
    if isinstance(body, dict):
        if_missing = cast("dict[str, object]", body).pop("if_missing", False)
    if not isinstance(if_missing, bool):
        raise ControlApiError("if_missing", f"cannot be {str(if_missing)[:40]!r}", "true or false")
    definitions = read_faults(cast(object, body))
    if not if_missing:
        armed = await state.transact(lambda transaction: arm_faults(transaction, definitions))
        return {"faults": [fault_view(state, fault) for fault in armed]}
    armed, existing = await state.transact(lambda transaction: arm_missing_faults(transaction, definitions))
    return {
        "faults": [fault_view(state, fault) for fault in armed],
        "existing": [fault_view(state, fault) for fault in existing],
    }


@operation("GET", "/control/faults/{fault_id}")
async def show_fault(state: SimulatorState, fault: PathFault) -> dict[str, Any]:
    """Return one fault, with its last firings."""
    return {**fault_view(state, fault), "firings": await list_firings(state, fault)}


@operation("DELETE", "/control/faults/{fault_id}", disarmed=list[int])
async def disarm_fault(state: SimulatorState, fault: PathFault) -> dict[str, Any]:
    """Disarm a fault; webhooks that it holds back are sent at their time."""
    await state.transact(lambda transaction: disarm_faults(transaction, [fault]))
    return {"disarmed": [fault.id]}


@operation("DELETE", "/control/faults", disarmed=list[int])
async def disarm_all(state: SimulatorState) -> dict[str, Any]:
    """Disarm all faults."""
    faults = all_faults(state)
    await state.transact(lambda transaction: disarm_faults(transaction, faults))
    return {"disarmed": [fault.id for fault in faults]}


def _parameter_view(parameter: MemberDeclaration) -> dict[str, Any]:
    view: dict[str, Any] = {"name": parameter.name, "type": parameter.type, "accepted": parameter.accepted}
    if parameter.type in ("whole", "fraction"):
        view |= {"at_least": parameter.at_least, "at_most": parameter.at_most}
    if parameter.type == "choice":
        view["choices"] = parameter.choices
    return view
