"""Records of exchanges with endpoints: each is kept, and one of a published Flow is counted and may raise alerts."""

from waypost.simulator.flows.alerts import add_measurement, delete_alerts, update_alerts
from waypost.simulator.flows.exchanges import EndpointExchange, add_exchange, delete_exchanges
from waypost.simulator.flows.metrics import count_exchange, delete_counts
from waypost.simulator.flows.model import FLOWS, Flow
from waypost.simulator.state.simulator_state import SimulatorState, Transaction


async def record_exchange(state: SimulatorState, flow: Flow, name: str, exchange: EndpointExchange) -> None:
    """Keep an exchange, and measure it if the Flow's published version was played; notices are not measured.

    Args:
        flow: with the asset that was played.
        name: of the request, see `faults.fault_kinds.ENDPOINT_REQUESTS`.
    """
    is_measured, is_ping = _is_published(flow) and name != "error_notice", name == "ping"
    measured = add_measurement(state, flow.flow_id, exchange, is_ping=is_ping) if is_measured else []

    def write(transaction: Transaction) -> None:
        if transaction.find(FLOWS, flow.flow_id) is None:
            return  # it was deleted meanwhile
        add_exchange(transaction, flow.flow_id, exchange)
        if is_measured:
            count_exchange(transaction, flow.flow_id, exchange, is_ping=is_ping)
            update_alerts(transaction, flow, measured)
            transaction.follow(state.endpoints_changed.set)

    await state.transact(write)


def delete_measurements(transaction: Transaction, flow_id: str) -> None:
    """Delete what is kept and counted of a Flow."""
    delete_exchanges(transaction, flow_id)
    delete_counts(transaction, flow_id)
    delete_alerts(transaction, flow_id)
    transaction.follow(lambda: transaction.state.endpoint_measurements.pop(flow_id, None))


def _is_published(flow: Flow) -> bool:
    return bool(flow.published) and flow.asset == flow.published[-1].asset
