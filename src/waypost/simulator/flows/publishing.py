"""Publishing of a Flow: what the operator checks first, and the health check of the endpoint.

Source: the operator's page "Error codes", 139002.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from waypost.simulator.apis.errors import GraphApiError, coded_error
from waypost.simulator.flows.endpoint import ping_endpoint
from waypost.simulator.flows.endpoint_keys import find_endpoint_key
from waypost.simulator.flows.model import DRAFT, PUBLISHED, THROTTLED, Flow, find_flow_app
from waypost.simulator.flows.version_life import find_expired_version, is_publishable_version
from waypost.simulator.state.accounts import owner_id
from waypost.simulator.state.simulator_state import SimulatorState

_ENDPOINT_SUBCODE: Final = 4233014


def flow_error(code: int, title: str, message: str, **members: Any) -> GraphApiError:
    """Return an error of the calls about flows."""
    error = coded_error(code, title)
    error.error |= {"is_transient": False, "error_user_title": title, "error_user_msg": message, **members}
    return error


def _has_valid_json(_state: SimulatorState, flow: Flow) -> bool:
    return bool(flow.asset) and not flow.errors


def _has_number(state: SimulatorState, flow: Flow) -> bool:
    return bool(state.accounts.numbers_of(flow.waba_id))


def _has_endpoint(_state: SimulatorState, flow: Flow) -> bool:
    return bool(flow.endpoint_uri)


def _has_key(state: SimulatorState, flow: Flow) -> bool:
    return find_endpoint_key(state, flow.waba_id) is not None


def _has_app(state: SimulatorState, flow: Flow) -> bool:
    return find_flow_app(state, flow) is not None


def _is_subscribed(state: SimulatorState, flow: Flow) -> bool:
    return state.accounts.has_receiver(flow.waba_id, "flows")


class PublishingCheck(NamedTuple):
    """A condition of publishing."""

    needs_endpoint: bool  # only flows with an endpoint must meet it
    is_met: Callable[[SimulatorState, Flow], bool]
    title: str  # of error 139002
    advice: str


# fmt: off
CHECKED_BEFORE_PUBLISHING: Final = tuple(PublishingCheck(*row) for row in (
    # needs_endpoint, is_met, title, advice
    (False, _has_valid_json,      "Publishing Flow with validation errors",
     "The flow's JSON has validation errors, or there is none. Correct it, then publish the flow again."),
    (False, is_publishable_version, "Versions in Flow JSON file are not available for publishing",
     "The flow's version of Flow JSON is frozen or has expired: no flow with it can be published."),
    (False, _has_number,          "No Phone Number connected to WhatsApp Business Account",
     "Add a phone number to the account before you publish a flow."),
    (True,  _has_endpoint,        "Publishing without specifying endpoint_uri is forbidden",
     "Set endpoint_uri of the flow before you publish it."),
    (True,  _has_key,             "Missing Flows Signed Public Key",
     "Upload a public key to a number of the account before you publish a flow with an endpoint."),
    (True,  _has_app,             "No Application Connected to the Flow",
     "Connect an app to the flow before you publish it."),
    (True,  _is_subscribed,       "WhatsApp Business Account is not subscribed to Flows Webhooks",
     "Subscribe the account to the webhook field flows before you publish a flow with an endpoint."),
))
# fmt: on


# What may be sent of a flow with a status; with any other, nothing.
_HEALTH: Final = {PUBLISHED: "AVAILABLE", THROTTLED: "LIMITED"}


def flow_health(state: SimulatorState, flow: Flow) -> dict[str, Any]:
    """Return whether messages can be sent with a flow, and what its publication lacks.

    Source: the operator's page "Flows API", `health_status`.
    """
    can_send = "AVAILABLE" if flow.status == DRAFT and flow.published else _HEALTH.get(flow.status, "BLOCKED")
    if flow.published and find_expired_version(state, flow.published[-1].asset):
        can_send = "BLOCKED"
    problems = [
        {"error_code": 131000, "error_description": check.title, "possible_solution": check.advice}
        for check in CHECKED_BEFORE_PUBLISHING
        if (flow.data_api_version or not check.needs_endpoint) and not check.is_met(state, flow)
    ]
    account = state.accounts.by_id[flow.waba_id]
    others = (("WABA", account.waba_id), ("BUSINESS", owner_id(account)), ("APP", flow.app_id or account.app_id))
    entities: list[dict[str, Any]] = [
        {"entity_type": "FLOW", "id": flow.flow_id, "can_send_message": can_send}
        | ({"errors": problems} if problems else {}),
        *({"entity_type": kind, "id": node_id, "can_send_message": "AVAILABLE"} for kind, node_id in others),
    ]
    return {"can_send_message": can_send, "entities": entities}


async def check_publishable(state: SimulatorState, flow: Flow) -> None:
    """Check that a draft may be published, with a health check if an endpoint powers it.

    Raises:
        GraphApiError: code 139002.
    """
    for check in CHECKED_BEFORE_PUBLISHING:
        if (flow.data_api_version or not check.needs_endpoint) and not check.is_met(state, flow):
            raise flow_error(139002, check.title, check.advice)
    key = find_endpoint_key(state, flow.waba_id)
    if flow.data_api_version:
        exchange = await ping_endpoint(state, flow, key)
        if exchange.error_type:
            raise flow_error(139002, "Endpoint Not Available", exchange.diagnosis, error_subcode=_ENDPOINT_SUBCODE)
