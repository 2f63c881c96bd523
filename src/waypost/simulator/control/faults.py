"""Control API calls that arm, show and disarm faults."""

from typing import Any, Final

import msgspec
from starlette.requests import Request

from waypost.simulator.control.fault_reading import read_faults
from waypost.simulator.control_error import ControlApiError
from waypost.simulator.faults.fault import ArmedFault
from waypost.simulator.faults.fault_kinds import (
    ANY,
    CALL,
    FAULT_FILTERS,
    FAULT_KINDS,
    FAULT_TRIGGERS,
    WEBHOOK,
    WEBHOOKS,
    FaultParameter,
)
from waypost.simulator.graph.call_names import CALL_NAMES
from waypost.simulator.services import SimulatorServices

_FAULT: Final = '{"on", "call" or "webhook", "when", "what"}, or {"faults": [...], "seed"}'


async def list_faults(services: SimulatorServices) -> dict[str, Any]:
    """Return every fault, with the number of its evaluations and firings."""
    return {"faults": [services.faults.view(fault) for fault in services.faults.all_faults]}


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
        CALL: [ANY, *sorted(CALL_NAMES)],
        WEBHOOK: [ANY, *WEBHOOKS],
    }


async def arm_faults(services: SimulatorServices, request: Request) -> dict[str, Any]:
    """Arm one fault, or all of a scenario; armed faults stay."""
    try:
        body: object = msgspec.json.decode(await request.body() or b"null")
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise ControlApiError("body", f"is not readable JSON: {error}", _FAULT) from error
    armed = await services.faults.arm(read_faults(body))
    return {"faults": [services.faults.view(fault) for fault in armed]}


async def show_fault(services: SimulatorServices, fault: ArmedFault) -> dict[str, Any]:
    """Return one fault, with its last firings."""
    return {**services.faults.view(fault), "firings": await services.faults.firings(fault)}


async def disarm_fault(services: SimulatorServices, fault: ArmedFault) -> dict[str, Any]:
    """Disarm a fault; webhooks that it holds back are sent at their time."""
    await services.faults.disarm([fault])
    return {"disarmed": [fault.id]}


async def disarm_faults(services: SimulatorServices) -> dict[str, Any]:
    """Disarm all faults."""
    faults = services.faults.all_faults
    await services.faults.disarm(faults)
    return {"disarmed": [fault.id for fault in faults]}


def _parameter_view(parameter: FaultParameter) -> dict[str, Any]:
    view: dict[str, Any] = {"name": parameter.name, "type": parameter.type, "accepted": parameter.accepted}
    if parameter.type in ("whole", "fraction"):
        view |= {"at_least": parameter.at_least, "at_most": parameter.at_most}
    if parameter.type == "choice":
        view["choices"] = parameter.choices
    return view
