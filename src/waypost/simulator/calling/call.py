"""One voice call from a phone to a business number, and its state."""

import base64
from enum import StrEnum
from typing import Any, Final

import msgspec

from waypost.base.ids import Ids

RING_MS: Final = 60_000
"""How long a business has to accept a call. Source: the operator's page "Calling API"."""
USER_INITIATED: Final = "USER_INITIATED"


class CallState(StrEnum):
    """The states of a call, in their order; a call may end in each."""

    RINGING = "ringing"
    PRE_ACCEPTED = "pre_accepted"
    CONNECTED = "connected"
    ENDED = "ended"


class SimulatedCall(msgspec.Struct, frozen=True):
    """One call.

    Attributes:
        sdp: the phone's offer, or the placeholder of a phone without media.
        business_sdp: the business's SDP from its `pre_accept` or `accept`; empty until then.
        connected_ms: when the business accepted the call; None: it did not.
        ended_ms: when either side ended it; None: neither has.
        callback_data: the business's own text of its `accept`, which the last webhook returns.
    """

    call_id: str
    phone: str
    phone_number_id: str
    started_ms: int
    sdp: str
    business_sdp: str = ""
    connected_ms: int | None = None
    ended_ms: int | None = None
    callback_data: str | None = None

    @property
    def rings_until_ms(self) -> int:
        """The time at which the call ends by itself if the business has not accepted it."""
        return self.started_ms + RING_MS

    def state_at(self, now_ms: int) -> CallState:
        """Return the call's state at a time; a call that nobody accepts ends by itself."""
        if self.ended_ms is not None:
            return CallState.ENDED
        if self.connected_ms is not None:
            return CallState.CONNECTED
        if now_ms >= self.rings_until_ms:
            return CallState.ENDED
        return CallState.PRE_ACCEPTED if self.business_sdp else CallState.RINGING

    def connect_members(self, business: str, identity: dict[str, str]) -> dict[str, Any]:
        """Return the call in the webhook about its start.

        Args:
            business: the business number's digits.
            identity: the caller as the business sees it.

        Source: the operator's page "Calling API", Webhooks.
        """
        return {
            **self._common_members(business, identity, "connect", self.started_ms),
            "session": {"sdp_type": "offer", "sdp": self.sdp},
        }

    def terminate_members(self, business: str, identity: dict[str, str], ended_ms: int) -> dict[str, Any]:
        """Return the call in the webhook about its end; times and duration only if it was connected.

        Source: the operator's page "Calling API", Webhooks.
        """
        members = self._common_members(business, identity, "terminate", ended_ms)
        if self.callback_data is not None:
            members["biz_opaque_callback_data"] = self.callback_data
        if self.connected_ms is None:
            return {**members, "status": "FAILED"}
        start_s, end_s = self.connected_ms // 1000, ended_ms // 1000
        times = {"start_time": str(start_s), "end_time": str(end_s), "duration": end_s - start_s}
        return {**members, "status": "COMPLETED", **times}

    def _common_members(self, business: str, identity: dict[str, str], event: str, at_ms: int) -> dict[str, Any]:
        return {
            "id": self.call_id,
            "to": business,
            **identity,
            "event": event,
            "timestamp": str(at_ms // 1000),
            "direction": USER_INITIATED,
        }


def make_call_id(ids: Ids, phone: str) -> str:
    """Return a new id of a call, which begins as the operator's do. Source: the operator's page "Calling API"."""
    chance = ids.new().replace("-", "").upper()[-20:]
    return "wacid." + base64.urlsafe_b64encode(f"{phone}:{chance}".encode()).decode().rstrip("=")
