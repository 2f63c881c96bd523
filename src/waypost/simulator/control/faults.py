"""Control API calls that arm, show and disarm faults."""

from typing import Any, Final

import msgspec
from starlette.requests import Request

from waypost.simulator.control.fault_reading import read_faults
from waypost.simulator.faults.fault import Fault
from waypost.simulator.faults.fault_kinds import ANY, CALL, FILTERS, KINDS, WEBHOOK, WEBHOOKS, WHENS, Parameter
from waypost.simulator.graph.call_names import CALL_NAMES
from waypost.simulator.services import Parts
from waypost.simulator.violation import BrokenRule

_FAULT: Final = '{"on", "call" or "webhook", "when", "what"}, or {"faults": [...], "seed"}'


async def list_faults(parts: Parts) -> dict[str, Any]:
    """Return every fault, with the number of its evaluations and firings."""
    return {"faults": [parts.faults.view(fault) for fault in parts.faults.all]}


async def list_kinds() -> dict[str, Any]:
    """Return the kinds of faults, their triggers and filters, and the names of calls and webhooks."""
    return {
        "kinds": [
            {
                "on": kind.on,
                "name": kind.name,
                "each": kind.each,
                "only": kind.only or None,
                "sees": kind.sees,
                "value": _parameter_view(kind.own),
                "beside": [_parameter_view(parameter) for parameter in kind.more],
            }
            for kind in KINDS
        ],
        "when": [{**_parameter_view(parameter), "fires": fires} for parameter, fires in WHENS],
        "filters": FILTERS,
        CALL: [ANY, *sorted(CALL_NAMES)],
        WEBHOOK: [ANY, *WEBHOOKS],
    }


async def arm_faults(parts: Parts, request: Request) -> dict[str, Any]:
    """Arm one fault, or all of a scenario; armed faults stay."""
    try:
        body: object = msgspec.json.decode(await request.body() or b"null")
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise BrokenRule("body", f"is not readable JSON: {error}", _FAULT) from error
    armed = await parts.faults.arm(read_faults(body))
    return {"faults": [parts.faults.view(fault) for fault in armed]}


async def show_fault(parts: Parts, fault: Fault) -> dict[str, Any]:
    """Return one fault, with its last firings."""
    return {**parts.faults.view(fault), "firings": await parts.faults.firings(fault)}


async def disarm_fault(parts: Parts, fault: Fault) -> dict[str, Any]:
    """Disarm a fault; webhooks that it holds back are sent at their time."""
    await parts.faults.disarm([fault])
    return {"disarmed": [fault.id]}


async def disarm_faults(parts: Parts) -> dict[str, Any]:
    """Disarm all faults."""
    faults = parts.faults.all
    await parts.faults.disarm(faults)
    return {"disarmed": [fault.id for fault in faults]}


def _parameter_view(parameter: Parameter) -> dict[str, Any]:
    view: dict[str, Any] = {"name": parameter.name, "type": parameter.type, "accepted": parameter.accepted}
    if parameter.type in ("whole", "fraction"):
        view |= {"at_least": parameter.at_least, "at_most": parameter.at_most}
    if parameter.type == "choice":
        view["choices"] = parameter.choices
    return view
