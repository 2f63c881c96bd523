"""The Graph API call that inspects a token."""

from typing import Any

from waypost.simulator.errors import bad_parameter
from waypost.simulator.graph_operations import GraphOperations
from waypost.simulator.requests import Call
from waypost.simulator.services import SimulatorServices

operation = GraphOperations()


@operation("debug_token.read", "GET", "debug_token")
async def debug_token(services: SimulatorServices, call: Call) -> dict[str, Any]:
    """Return the debug data of a token. Source: the operator's page "Debug-Token"."""
    token = call.query.get("input_token")
    if not token:
        raise bad_parameter("The parameter input_token is required.")
    return {"data": services.tokens.debug_view(token)}
