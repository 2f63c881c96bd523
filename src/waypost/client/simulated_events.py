"""Events of a trace that only the simulator knows: media links that it did not fetch."""

import asyncio
from collections.abc import Callable
from typing import Any, Final

from waypost.client.api_client import ApiClient, ApiResponseError, ApiUnreachable
from waypost.client.dev_variables import MissingVariable

NOT_FETCHED: Final = "media not fetched"
SIMULATOR_TIMEOUT_S: Final = 1
"""A trace is shown without these events when the simulator takes longer."""


async def add_simulated_events(control: Callable[[], ApiClient], trace: dict[str, Any]) -> None:
    """Add the events to a trace; none if no simulator responds in time, or it does not have the message."""
    if trace["operator_message_id"] is None:
        return
    try:
        async with asyncio.timeout(SIMULATOR_TIMEOUT_S):
            message = await control().call("GET /control/messages/{wamid}", wamid=trace["operator_message_id"])
    except (ApiResponseError, ApiUnreachable, MissingVariable, TimeoutError):
        return
    links = len(message.get("not_fetched", ()))
    if links:
        which = "1 media link leads" if links == 1 else f"{links} media links lead"
        detail = f"{which} outside WAYPOST_ALLOWED_NETWORKS, so the simulator did not check its file"
        event = {"id": NOT_FETCHED, "at_ms": message["at_ms"], "event": NOT_FETCHED, "detail": detail, "applied": False}
        trace["events"] = sorted([*trace["events"], event], key=lambda each: each["at_ms"])
