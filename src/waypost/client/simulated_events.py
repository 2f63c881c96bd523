"""Events of a trace that only the simulator knows: media links that it did not fetch, requests to a Flow's endpoint."""

import asyncio
from collections.abc import Callable
from typing import Any, Final

from waypost.client.api_client import ApiClient, ApiResponseError, ApiUnreachable
from waypost.client.dev_variables import MissingVariable

NOT_FETCHED: Final = "media not fetched"
FLOW_REQUEST: Final = "flow request"
MAX_FLOW_REQUESTS: Final = 50
"""Of one message, the newest that a trace shows."""
SIMULATOR_TIMEOUT_S: Final = 1
"""A trace is shown without these events when the simulator takes longer."""


async def add_simulated_events(control: Callable[[], ApiClient], trace: dict[str, Any]) -> bool:
    """Add the events to a trace; none if no simulator responds in time, or it does not have the message.

    Returns:
        True if there may be more of them later: the message has a Flow.
    """
    wamid = trace["operator_message_id"]
    if wamid is None:
        return True
    exchanges: list[dict[str, Any]] = []
    try:
        async with asyncio.timeout(SIMULATOR_TIMEOUT_S):
            client = control()
            message = await client.call("GET /control/messages/{wamid}", wamid=wamid)
            has_flow = any(button.get("type") == "FLOW" for button in message.get("buttons", ()))
            if has_flow:
                found = await client.call("GET /control/messages/{wamid}/exchanges", wamid=wamid)
                exchanges = found["exchanges"][-MAX_FLOW_REQUESTS:]
    except (ApiResponseError, ApiUnreachable, MissingVariable, TimeoutError):
        return True
    links = len(message.get("not_fetched", ()))
    if links:
        which = "1 media link leads" if links == 1 else f"{links} media links lead"
        detail = f"{which} outside WAYPOST_ALLOWED_NETWORKS, so the simulator did not check its file"
        event = {"id": NOT_FETCHED, "at_ms": message["at_ms"], "event": NOT_FETCHED, "detail": detail, "applied": False}
        trace["events"] = sorted([*trace["events"], event], key=lambda each: each["at_ms"])
    if exchanges:
        events = [*trace["events"], *map(_describe_exchange, exchanges)]
        trace["events"] = sorted(events, key=lambda each: each["at_ms"])
    return has_flow


def _describe_exchange(stored: dict[str, Any]) -> dict[str, Any]:
    """Return a request to a Flow's endpoint as an event."""
    exchange = stored["exchange"]
    request, response = exchange["request"], exchange["response"]
    origin = f" from {request['screen']}" if request.get("screen") else ""
    following = f" with {response['screen']}" if response.get("screen") else ""
    outcome = f"status {exchange['status']}{following}" if exchange["status"] else "no response"
    detail = f"{request.get('action')}{origin}: {outcome} in {exchange['duration_ms']} ms"
    remarks = " ".join(filter(None, [exchange["diagnosis"], *exchange["warnings"]]))
    return {
        "id": f"{FLOW_REQUEST} {stored['number']}",
        "at_ms": exchange["at_ms"],
        "event": FLOW_REQUEST,
        "detail": f"{detail}. {remarks}" if remarks else detail,
        "applied": False,
    }
