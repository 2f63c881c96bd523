"""A flow: its statuses and its screens."""

import json
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from waypost.base.json_values import list_of, object_of, text_or_none
from waypost.simulator.state.accounts import GraphApp
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


MAX_PUBLISHED_VERSIONS: Final = 5
"""The newest of them work; a message with an older one cannot be opened. Source: the operator's page "Lifecycle of a Flow"."""


class PublishedFlow(msgspec.Struct, frozen=True):
    """The JSON text of a flow as it was published: messages keep the one with which they were sent."""

    number: int
    asset: str


class Flow(msgspec.Struct, frozen=True):
    """A flow of a business account.

    `asset` is the JSON text of its screens as it was uploaded last; empty until one is. `errors` are its validation
    errors. `published` has the newest versions that were published, the newest last; an edited flow is a draft again,
    and keeps them.
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
    published: list[PublishedFlow] = []
    app_id: str = ""  # of the app that signs its requests; empty: that of the account

    @property
    def data_api_version(self) -> str:
        """The version of the endpoint's interface; empty if no endpoint powers the flow."""
        return text_or_none(self.content.get("data_api_version")) or ""

    @property
    def content(self) -> dict[str, Any]:
        """The asset as an object; empty if there is none."""
        return content_of(self.asset)

    @property
    def screens(self) -> list[str]:
        """The ids of its screens, in order."""
        ids = [text_or_none(screen.get("id")) for screen in map(object_of, list_of(self.content.get("screens")))]
        return [screen_id for screen_id in ids if screen_id]

    @property
    def is_sendable(self) -> bool:
        """True if a message may open it without the `mode` `draft`: the version that was published last."""
        return bool(self.published) and self.status in {PUBLISHED, THROTTLED, DRAFT}


def content_of(asset: str) -> dict[str, Any]:
    """Return a JSON text as an object; empty if it is none."""
    try:
        return object_of(json.loads(asset))
    except (ValueError, RecursionError):
        return {}


FLOWS: Final = StoredKind("flow", Flow)


def save_flow(transaction: Transaction, flow: Flow, *, status: str = "") -> None:
    """Save a flow; a new status, and that of a new flow, is told by a webhook.

    Source: the operator's page "Flows webhooks".
    """
    known = transaction.find(FLOWS, flow.flow_id)
    changed = replace(flow, status=status or flow.status, updated_ms=transaction.state.clock.now_ms())
    transaction.save(FLOWS, changed, flow.flow_id)
    transaction.follow(transaction.state.endpoints_changed.set)
    if known is not None and known.status == changed.status:
        return
    old = {} if known is None else {"old_status": known.status}
    text = (
        f"Flow {flow.name} has been created"
        if known is None
        else (f"Flow {flow.name} changed status from {known.status} to {changed.status}")
    )
    value = {"event": "FLOW_STATUS_CHANGE", "message": text, "flow_id": flow.flow_id, **old}
    transaction.notify(flow.waba_id, "flows", {**value, "new_status": changed.status})


def find_flow_app(state: SimulatorState, flow: Flow) -> GraphApp | None:
    """Return the app that is connected to a Flow, which signs its requests; None if there is none."""
    account = state.accounts.by_id.get(flow.waba_id)
    return state.accounts.apps.get(flow.app_id or (account.app_id if account is not None else ""))


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


def pin_flow_versions(state: SimulatorState, waba_id: str, buttons: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the buttons of a message with the id and the newest published version of their flows.

    A message opens the version with which it was sent. Source: the operator's page "Lifecycle of a Flow".
    """
    return [_pin_version(state, waba_id, one) if one.get("type") == "FLOW" else one for one in buttons]


def _pin_version(state: SimulatorState, waba_id: str, button: dict[str, Any]) -> dict[str, Any]:
    flow_id = button.get("flow_id")
    flow = find_flow(state, flow_id, waba_id) if flow_id else find_flow_by_name(state, button.get("flow_name"), waba_id)
    if flow is None:
        return button
    pinned = {**button, "flow_id": flow.flow_id}
    if button.get("mode") != "draft" and flow.published:
        pinned["flow_version"] = flow.published[-1].number
    return pinned
