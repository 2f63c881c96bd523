"""Control API calls that arm, show and disarm faults."""

from typing import Annotated, Any, Final, cast

from msgspec import UNSET, Struct, UnsetType
from starlette.requests import Request

from waypost.simulator.apis.control_error import ControlApiError
from waypost.simulator.apis.control_operations import ControlOperations, path_object, read_bytes, view_of
from waypost.simulator.apis.members import MemberDeclaration
from waypost.simulator.apis.requests import decode_json
from waypost.simulator.faults.fault_kinds import ANY, FAULT_FILTERS, FAULT_KINDS, FAULT_TRIGGERS, TARGETS
from waypost.simulator.faults.fault_reading import read_faults, target_names
from waypost.simulator.faults.model import (
    FAULTS,
    ArmedFault,
    FaultView,
    all_faults,
    arm_faults,
    arm_missing_faults,
    disarm_faults,
    fault_view,
    list_firings,
)
from waypost.simulator.state.simulator_state import SimulatorState

_FAULT: Final = '{"on", "call", "webhook", "onboarding" or "endpoint", "when", "what"}, or {"faults": [...], "seed"}'

PathFault = Annotated[ArmedFault, path_object("fault_id", lambda state: state.values(FAULTS), "is no fault")]

operation = ControlOperations()


class FaultFiringView(Struct, frozen=True, kw_only=True):
    """One firing of a fault, with the name of the call, webhook, screen or request."""

    hit: int
    at_ms: int
    call: str | UnsetType = UNSET
    webhook: str | UnsetType = UNSET
    onboarding: str | UnsetType = UNSET
    endpoint: str | UnsetType = UNSET
    subject: str


class FaultWithFirings(FaultView, frozen=True, kw_only=True):
    """A fault with its last firings, oldest first."""

    firings: list[FaultFiringView]


class FaultParameterView(Struct, frozen=True):
    """A member of a fault, and its accepted values."""

    name: str
    type: str
    accepted: str
    at_least: int | UnsetType = UNSET
    at_most: int | UnsetType = UNSET
    choices: tuple[str, ...] | UnsetType = UNSET


class FaultTriggerView(FaultParameterView, frozen=True, kw_only=True):
    """A member of `when`, and when such a fault fires."""

    fires: str


class FaultKindView(Struct, frozen=True, kw_only=True):
    """A kind of fault: its member of `what`, the further ones, and what the business sees."""

    on: str
    name: str
    each: str
    only: str | None
    sees: str
    value: FaultParameterView
    parameters: list[FaultParameterView]


@operation("GET", "/control/faults", faults=list[FaultView])
async def list_faults(state: SimulatorState) -> dict[str, Any]:
    """Return every fault, with the number of its evaluations and firings."""
    return {"faults": [fault_view(state, fault) for fault in all_faults(state)]}


@operation(
    "GET",
    "/control/faults/kinds",
    kinds=list[FaultKindView],
    when=list[FaultTriggerView],
    filters=dict[str, str],
    call=list[str],
    webhook=list[str],
    onboarding=list[str],
    endpoint=list[str],
)
async def list_fault_kinds() -> dict[str, Any]:
    """Return the kinds of faults, their triggers and filters, and the names of what they apply to."""
    return {
        "kinds": [
            FaultKindView(
                on=kind.target,
                name=kind.name,
                each=kind.each,
                only=kind.only_call or None,
                sees=kind.effect,
                value=_parameter_view(kind.parameter),
                parameters=[_parameter_view(parameter) for parameter in kind.extra_parameters],
            )
            for kind in FAULT_KINDS
        ],
        "when": [
            view_of(FaultTriggerView, _parameter_view(parameter), fires=fires) for parameter, fires in FAULT_TRIGGERS
        ],
        "filters": FAULT_FILTERS,
        **{target: [ANY, *target_names(target)] for target in TARGETS},
    }


@operation("POST", "/control/faults", faults=list[FaultView], existing=list[FaultView] | UnsetType)
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
async def show_fault(state: SimulatorState, fault: PathFault) -> FaultWithFirings:
    """Return one fault, with its last firings."""
    firings = [
        FaultFiringView(
            hit=firing.hit, at_ms=firing.at_ms, subject=firing.subject, **{str(fault.given["on"]): firing.name}
        )
        for firing in await list_firings(state, fault)
    ]
    return view_of(FaultWithFirings, fault_view(state, fault), firings=firings)


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


def _parameter_view(parameter: MemberDeclaration) -> FaultParameterView:
    is_number, is_choice = parameter.type in ("whole", "fraction"), parameter.type == "choice"
    return view_of(
        FaultParameterView,
        parameter,
        at_least=parameter.at_least if is_number else UNSET,
        at_most=parameter.at_most if is_number else UNSET,
        choices=parameter.choices if is_choice else UNSET,
    )
