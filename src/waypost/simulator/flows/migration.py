"""Copies of Flows in another account of the same business. Source: the operator's page "Flows API", migrating."""

from typing import Annotated, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from waypost.base.json_values import list_or_none
from waypost.base.object_ids import make_id
from waypost.simulator.apis.errors import bad_parameter, too_many_elements
from waypost.simulator.apis.parameters import read_parameters, read_text
from waypost.simulator.apis.requests import Call
from waypost.simulator.flows.model import DRAFT, Flow, account_flows, find_flow_by_name, save_flow
from waypost.simulator.state.accounts import Account, owner_id
from waypost.simulator.state.graph_operations import GraphOperations
from waypost.simulator.state.simulator_state import Transaction

operation = GraphOperations()

MAX_MIGRATED_FLOWS: Final = 100
_FAILED: Final = "4233041"


def _read_names(name: str, value: Any) -> list[str]:
    """Return the names of a list, or of a text with commas, as clients send it in the query."""
    names = [one.strip() for one in value.split(",")] if isinstance(value, str) else list_or_none(value)
    if names is None:
        raise bad_parameter(f"Param {name} must be an array of strings.")
    if len(names) > MAX_MIGRATED_FLOWS:
        raise too_many_elements(name, MAX_MIGRATED_FLOWS, len(names))
    return [str(one) for one in names]


class MigrationParameters(Struct, frozen=True):
    """The account to copy from, and which flows: none named, all of them."""

    source_waba_id: Annotated[str, read_text]
    source_flow_names: Annotated[list[str], _read_names] = []


@operation("flows.migrate", "POST", Account, "migrate_flows")
def migrate_flows(transaction: Transaction, call: Call, account: Account) -> dict[str, Any]:
    """Copy flows of another account of the same business as drafts; one that cannot be copied stops no other.

    Raises:
        GraphApiError: code 100, the account is not one of the same business, or no list of names.
    """
    wanted = read_parameters(MigrationParameters, call.fields)
    source = transaction.state.accounts.by_id.get(wanted.source_waba_id)
    if source is None or source.waba_id == account.waba_id or owner_id(source) != owner_id(account):
        raise bad_parameter("Param source_waba_id must be another account of the same business.")
    flows = {flow.name: flow for flow in account_flows(transaction, source.waba_id)}
    migrated: list[dict[str, str]] = []
    failed: list[dict[str, str]] = []
    for name in dict.fromkeys(wanted.source_flow_names or flows):
        flow = flows.get(name)
        problem = _find_problem(transaction, flow, name, account.waba_id)
        if flow is None or problem:
            failed.append({"source_name": name, "error_code": _FAILED, "error_message": problem})
            continue
        copy = _copy_flow(transaction, flow, account.waba_id)
        save_flow(transaction, copy)
        migrated.append({"source_name": name, "source_id": flow.flow_id, "migrated_id": copy.flow_id})
    return {"migrated_flows": migrated, "failed_flows": failed}


def _find_problem(transaction: Transaction, flow: Flow | None, name: str, waba_id: str) -> str:
    if flow is None:
        return f"There is no flow {name} in the source account."
    if find_flow_by_name(transaction, name, waba_id) is not None:
        return f"There is a flow {name} in the destination account already."
    return ""


def _copy_flow(transaction: Transaction, flow: Flow, waba_id: str) -> Flow:
    now_ms = transaction.state.clock.now_ms()
    flow_id = make_id(transaction.state.ids, "flow")
    return replace(flow, flow_id=flow_id, waba_id=waba_id, status=DRAFT, published=[], app_id="", created_ms=now_ms)
