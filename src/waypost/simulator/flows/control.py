"""Control API calls for flows: what a flow contains, and its status at the operator."""

import asyncio
from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, to_builtins

from waypost.flow_json.validator import check_flow_json
from waypost.flow_json.versions import FLOW_VERSIONS, FlowVersion, VersionState
from waypost.simulator.apis.control_error import ControlApiError
from waypost.simulator.apis.control_operations import ControlBody, ControlOperations, path_object, present_members
from waypost.simulator.apis.field_types import accepts
from waypost.simulator.flows.endpoint import call_endpoint
from waypost.simulator.flows.endpoint_keys import find_endpoint_key
from waypost.simulator.flows.exchanges import (
    MAX_STORED_EXCHANGES,
    EndpointExchange,
    StoredExchange,
    list_exchanges,
    list_message_exchanges,
    omit_large,
)
from waypost.simulator.flows.model import FLOWS, Flow, content_of, save_flow
from waypost.simulator.flows.version_life import VERSION_DATES, VersionDates, version_states
from waypost.simulator.state.simulator_state import SimulatorState

_TimeMs = Annotated[
    Annotated[int, Meta(ge=0, le=2**53)] | None, accepts("milliseconds since the epoch, or null: never")
]
_VERSIONS: Final = {"{}.{}".format(*one.number): one for one in FLOW_VERSIONS}
PathFlow = Annotated[Flow, path_object("flow_id", lambda state: state.values(FLOWS), "is no flow")]
PathVersion = Annotated[
    FlowVersion, path_object("version", lambda _state: _VERSIONS, "is no version of Flow JSON", ", ".join(_VERSIONS))
]

operation = ControlOperations()


class FlowStatusBody(ControlBody, frozen=True):
    """A flow's status, as the operator's supervision sets it."""

    status: Literal["DRAFT", "PUBLISHED", "DEPRECATED", "THROTTLED", "BLOCKED"]


class FlowRequestBody(ControlBody, frozen=True):
    """A request as a handset would send it to the endpoint."""

    action: Literal["ping", "INIT", "data_exchange", "BACK"]
    screen: Annotated[str, Meta(max_length=200)] | UnsetType = UNSET
    data: dict[str, Any] | UnsetType = UNSET
    flow_token: Annotated[str, Meta(max_length=4096)] | UnsetType = UNSET


class VersionDatesBody(ControlBody, frozen=True):
    """The dates of a version's life, in milliseconds since the epoch."""

    frozen_ms: _TimeMs = None
    expired_ms: _TimeMs = None


class VersionLife(Struct):
    """A version of Flow JSON: its state now, and the dates that were set."""

    version: str
    state: VersionState
    frozen_ms: int | None
    expired_ms: int | None


class PublishedContent(Struct):
    """A published version: its number, from 1, and its content."""

    number: int
    content: dict[str, Any]


@operation(
    "GET",
    "/control/flows/{flow_id}",
    flow_id=str,
    waba_id=str,
    name=str,
    status=str,
    content=dict[str, Any],
    asset=str,
    warnings=list[dict[str, Any]],
    published=list[PublishedContent],
)
async def show_flow(flow: PathFlow) -> dict[str, Any]:
    """Return a flow's status, its uploaded text and content with what a handset would cut, and its published versions."""
    published = [{"number": one.number, "content": content_of(one.asset)} for one in flow.published]
    members = {name: getattr(flow, name) for name in ("flow_id", "waba_id", "name", "status", "content", "asset")}
    warnings = (await asyncio.to_thread(check_flow_json, flow.asset)).warnings if flow.asset else []
    return {**members, "warnings": warnings, "published": published}


@operation("PUT", "/control/flows/{flow_id}/status", flow_id=str, status=str)
async def put_flow_status(state: SimulatorState, body: FlowStatusBody, flow: PathFlow) -> dict[str, Any]:
    """Set a flow's status from any status, with a webhook."""
    await state.transact(
        lambda transaction: save_flow(transaction, transaction.find(FLOWS, flow.flow_id) or flow, status=body.status)
    )
    return {"flow_id": flow.flow_id, "status": body.status}


@operation("GET", "/control/flow-versions", versions=list[VersionLife])
async def show_flow_versions(state: SimulatorState) -> dict[str, Any]:
    """Return the versions of Flow JSON, oldest first, each with its state at the simulator's time."""
    dates = state.values(VERSION_DATES)
    versions = [
        VersionLife(text, one, **to_builtins(dates.get(text, VersionDates(None, None))))
        for text, one in version_states(state).items()
    ]
    return {"versions": versions}


@operation("PUT", "/control/flow-versions/{version}")
async def put_flow_version(state: SimulatorState, body: VersionDatesBody, version: PathVersion) -> VersionLife:
    """Set when a version of Flow JSON is frozen and when it expires, by the simulator's clock.

    A frozen version cannot be published; flows of an expired one can be neither sent nor opened.
    """
    if body.frozen_ms is not None and body.expired_ms is not None and body.expired_ms < body.frozen_ms:
        raise ControlApiError("expired_ms", "is before frozen_ms", "a later time, or null for never")
    dates = VersionDates(body.frozen_ms, body.expired_ms)
    text = "{}.{}".format(*version.number)
    await state.transact(lambda transaction: transaction.save(VERSION_DATES, dates, text))
    return VersionLife(text, version_states(state)[text], dates.frozen_ms, dates.expired_ms)


@operation("GET", "/control/flows/{flow_id}/exchanges", exchanges=list[StoredExchange])
async def show_exchanges(
    state: SimulatorState,
    flow: PathFlow,
    *,
    wamid: str = "",
    after: Annotated[int, Meta(ge=0)] = 0,
    limit: Annotated[int, Meta(ge=1, le=MAX_STORED_EXCHANGES)] = MAX_STORED_EXCHANGES,
) -> dict[str, Any]:
    """Return the last exchanges with a flow's endpoint, oldest first: decrypted, timed, each with its diagnosis.

    With `wamid` only those of one message; with `after` those with a higher number.
    """
    found = [
        one
        for one in await list_exchanges(state, flow.flow_id)
        if one.number > after and wamid in ("", one.exchange.wamid)
    ]
    return {"exchanges": found[-limit:]}


@operation("GET", "/control/messages/{wamid}/exchanges", exchanges=list[StoredExchange])
async def show_message_exchanges(state: SimulatorState, wamid: str) -> dict[str, Any]:
    """Return the exchanges of the flow of one message with its endpoint, oldest first; none if it has no flow."""
    return {"exchanges": await list_message_exchanges(state, wamid)}


@operation("POST", "/control/flows/{flow_id}/exchanges")
async def send_flow_request(state: SimulatorState, flow: PathFlow, body: FlowRequestBody) -> EndpointExchange:
    """Send one request to a flow's endpoint as a handset would, outside any session, and return what came of it."""
    key = find_endpoint_key(state, flow.waba_id)
    return omit_large(await call_endpoint(state, flow, key, present_members(body)))
