"""A flow: its statuses and its screens."""

import json
from typing import Any, Final

import msgspec

from waypost.base.json_values import list_of, object_of, text_or_none
from waypost.simulator.state.simulator_state import SimulatorState, Transaction
from waypost.simulator.storage.keyed_store import StoredKind

DRAFT: Final = "DRAFT"
PUBLISHED: Final = "PUBLISHED"
DEPRECATED: Final = "DEPRECATED"
BLOCKED: Final = "BLOCKED"
THROTTLED: Final = "THROTTLED"

# Source: the operator's page "Flows API", categories.
FLOW_CATEGORIES: Final = (
    "SIGN_UP",
    "SIGN_IN",
    "APPOINTMENT_BOOKING",
    "LEAD_GENERATION",
    "CONTACT_US",
    "CUSTOMER_SUPPORT",
    "SURVEY",
    "OTHER",
)


class Flow(msgspec.Struct, frozen=True):
    """A flow of a business account.

    `asset` is the JSON text of its screens; empty until one is uploaded. `errors` are its validation errors.
    """

    flow_id: str
    waba_id: str
    name: str
    categories: list[str]
    status: str = DRAFT
    asset: str = ""
    endpoint_uri: str = ""
    created_ms: int = 0
    updated_ms: int = 0
    errors: list[dict[str, Any]] = []

    @property
    def content(self) -> dict[str, Any]:
        """The asset as an object; empty if there is none."""
        try:
            return object_of(json.loads(self.asset))
        except (ValueError, RecursionError):
            return {}

    @property
    def screens(self) -> list[str]:
        """The ids of its screens, in order."""
        ids = [text_or_none(screen.get("id")) for screen in map(object_of, list_of(self.content.get("screens")))]
        return [screen_id for screen_id in ids if screen_id]

    @property
    def is_sendable(self) -> bool:
        """True if a message may open it without the `mode` `draft`."""
        return self.status == PUBLISHED


FLOWS: Final = StoredKind("flow", Flow)


def account_flows(reader: SimulatorState | Transaction, waba_id: str) -> list[Flow]:
    """Return an account's flows, oldest first."""
    return [flow for flow in list(reader.values(FLOWS).values()) if flow.waba_id == waba_id]


def find_flow(reader: SimulatorState | Transaction, flow_id: str, waba_id: str) -> Flow | None:
    """Return an account's flow; None if it is unknown or another account's."""
    flow = reader.values(FLOWS).get(flow_id)
    return flow if flow is not None and flow.waba_id == waba_id else None


def find_flow_by_name(reader: SimulatorState | Transaction, name: object, waba_id: str) -> Flow | None:
    """Return an account's flow by name; None if there is none."""
    return next((flow for flow in account_flows(reader, waba_id) if flow.name == name), None)
