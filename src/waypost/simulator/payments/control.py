"""Control API calls for payment configurations."""

from typing import Annotated, Any

from waypost.simulator.apis.control_operations import ControlOperations, find
from waypost.simulator.apis.field_types import accepts
from waypost.simulator.payments.model import (
    ACTIVE,
    CONFIGURATION_STATUSES,
    CONFIGURATIONS,
    PaymentConfigurationView,
    set_status,
)
from waypost.simulator.state.control_parameters import PathAccount
from waypost.simulator.state.simulator_state import SimulatorState

_STATUS = accepts(", ".join(CONFIGURATION_STATUSES), f"^({'|'.join(CONFIGURATION_STATUSES)})$")

operation = ControlOperations()


@operation(
    "GET", "/control/accounts/{waba_id}/payment-configurations", payment_configurations=list[PaymentConfigurationView]
)
async def list_payment_configurations(state: SimulatorState, account: PathAccount) -> dict[str, Any]:
    """Return an account's payment configurations, oldest first."""
    return {"payment_configurations": [item.view() for item in state.values(CONFIGURATIONS, account.waba_id).values()]}


@operation("PUT", "/control/accounts/{waba_id}/payment-configurations/{name}")
async def set_configuration_status(
    state: SimulatorState, account: PathAccount, name: str, *, status: Annotated[str, _STATUS] = ACTIVE
) -> PaymentConfigurationView:
    """Set the status of a payment configuration, as its merchant and the gateway do; sends a webhook."""
    known = state.values(CONFIGURATIONS, account.waba_id)
    find(known, name, field="name", rule="is no payment configuration of the account")
    changed = await state.transact(lambda transaction: set_status(transaction, account.waba_id, name, status))
    return changed.view()
