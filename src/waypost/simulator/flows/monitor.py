"""Supervision of the endpoints of published Flows: health checks, and the end of alerts.

The health checks follow the clock, and none is made up for after it was advanced.

Source: the operator's page "Implementing endpoint for Flows"; decision 0130, for the interval.
"""

from collections.abc import Iterator
from functools import partial
from typing import Final

from msgspec.structs import replace

from waypost.base.loops import Loop
from waypost.base.telemetry.logs import log
from waypost.simulator.flows.alerts import next_alert_change_ms, update_alerts
from waypost.simulator.flows.endpoint import ping_endpoint
from waypost.simulator.flows.endpoint_keys import find_endpoint_key
from waypost.simulator.flows.model import FLOWS, PUBLISHED, THROTTLED, Flow
from waypost.simulator.state.simulator_state import SimulatorState

_IDLE_WAIT_MS: Final = 3_600_000
_MONITOR_LOG: Final = log("simulator")


def start_endpoint_monitor(state: SimulatorState) -> None:
    """Start the loop that sends health checks, and ends alerts."""
    last_pings: dict[str, int] = {}
    state.store.register_reset(last_pings.clear)

    async def run_once() -> int:
        state.endpoints_changed.clear()
        await _end_alerts(state)
        return _start_pings(state, last_pings)

    async def next_due_ms() -> int | None:  # without the health checks: a clock that is advanced need not stop at each
        return min(_alert_changes(state), default=None)

    loop = Loop("endpoint monitor", run_once, partial(state.wait, state.endpoints_changed), log=_MONITOR_LOG)
    state.start_loop(loop, next_due_ms)


async def _end_alerts(state: SimulatorState) -> None:
    """Update the alerts of the Flows of which any is active."""
    for flow in list(state.values(FLOWS).values()):
        if next_alert_change_ms(state, flow.flow_id) is not None:
            measured = list(state.endpoint_measurements.get(flow.flow_id, ()))
            await state.transact(
                lambda transaction, flow=flow, measured=measured: update_alerts(transaction, flow, measured)
            )


def _start_pings(state: SimulatorState, last_pings: dict[str, int]) -> int:
    """Start the health checks that are due, in the background; return when there is something to do again."""
    now_ms, interval_ms = state.clock.now_ms(), state.settings.value.endpoint_ping_ms
    changes = [*_alert_changes(state), now_ms + _IDLE_WAIT_MS]
    if not interval_ms:
        last_pings.clear()
        return min(changes)
    flows = {flow.flow_id: flow for flow in state.values(FLOWS).values() if _is_monitored(flow)}
    for flow_id in [flow_id for flow_id in last_pings if flow_id not in flows]:
        del last_pings[flow_id]
    for flow_id, flow in flows.items():
        if last_pings.setdefault(flow_id, now_ms) <= now_ms - interval_ms:
            last_pings[flow_id] = now_ms
            state.endpoints.start(_ping(state, replace(flow, asset=flow.published[-1].asset)))
    return min([*changes, *(at_ms + interval_ms for at_ms in last_pings.values())])


async def _ping(state: SimulatorState, flow: Flow) -> None:
    if flow.data_api_version:
        await ping_endpoint(state, flow, find_endpoint_key(state, flow.waba_id))


def _is_monitored(flow: Flow) -> bool:
    return flow.status in (PUBLISHED, THROTTLED) and bool(flow.published) and bool(flow.endpoint_uri)


def _alert_changes(state: SimulatorState) -> Iterator[int]:
    for flow in list(state.values(FLOWS).values()):
        change_ms = next_alert_change_ms(state, flow.flow_id)
        if change_ms is not None:
            yield change_ms
