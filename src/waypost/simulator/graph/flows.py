"""Graph API calls for flows. Source: the operator's page "Flows API"."""

import datetime
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from waypost.base.json_values import text_or_none
from waypost.simulator.accounts.accounts import Account
from waypost.simulator.accounts.flow import MAX_FLOW_ASSET_BYTES, Flow
from waypost.simulator.errors import bad_parameter, no_such_object
from waypost.simulator.graph.nodes import app_data, node_fields
from waypost.simulator.graph_operations import GraphOperations
from waypost.simulator.links import is_valid_link, signed_link
from waypost.simulator.lists import page
from waypost.simulator.requests import GRAPH_SUCCESS, Call, Download, open_form
from waypost.simulator.services import SimulatorServices

operation = GraphOperations()

FLOW_FILES: Final = "flow_assets"
"""The first path segment of the URLs that `list_assets` returns; they need no token."""

_ASSET_NAME: Final = "flow.json"
_ASSET_TYPE: Final = "FLOW_JSON"
_ASSET_LINK_LIFETIME_MS: Final = 3600 * 1000
_PREVIEW_LIFETIME_MS: Final = 30 * 24 * 3600 * 1000
_MAX_ASSET_FIELD_BYTES: Final = 4096


@dataclass(frozen=True)
class _FlowView:
    """A flow with the data of its fields."""

    flow: Flow
    account: Account
    preview: dict[str, str]


def _health(flow: Flow) -> dict[str, Any]:
    can_send = "AVAILABLE" if flow.status == "PUBLISHED" else "BLOCKED"
    entity = {"entity_type": "FLOW", "id": flow.flow_id, "can_send_message": can_send}
    return {"can_send_message": can_send, "entities": [entity]}


# fmt: off
FLOW_FIELDS: Final[dict[str, Callable[[_FlowView], Any]]] = {
    "id":                lambda view: view.flow.flow_id,
    "name":              lambda view: view.flow.name,
    "status":            lambda view: view.flow.status,
    "categories":        lambda view: view.flow.categories,
    "validation_errors": lambda view: view.flow.errors,
    "json_version":      lambda view: text_or_none(view.flow.content.get("version")),
    "data_api_version":  lambda view: text_or_none(view.flow.content.get("data_api_version")),
    "endpoint_uri":      lambda view: view.flow.endpoint_uri or None,
    "preview":           lambda view: view.preview,
    "updated_at":        lambda view: _iso(view.flow.updated_ms),
    "whatsapp_business_account": lambda view: {
        "id": view.account.waba_id, "name": view.account.name, "currency": "USD",
        "timezone_id": "1", "message_template_namespace": view.account.namespace,
    },
    "application":   lambda view: app_data(view.account, view.account.app_id),
    "health_status": lambda view: _health(view.flow),
}
# fmt: on
_DEFAULT: Final = ("id", "name", "status", "categories", "validation_errors")


@operation("flows.create", "POST", Account, "flows")
async def create_flow(services: SimulatorServices, call: Call, account: Account) -> dict[str, Any]:
    """Create a flow."""
    flow = await services.flows.create(account.waba_id, call.fields)
    return {"id": flow.flow_id, "success": True, "validation_errors": flow.errors}


@operation("flows.list", "GET", Account, "flows")
async def list_flows(services: SimulatorServices, call: Call, account: Account) -> dict[str, Any]:
    """Return an account's flows."""
    return page(
        call,
        services.flows.account_flows(account.waba_id),
        lambda flow: f"{flow.created_ms:015d}.{flow.flow_id}",
        lambda flow: _flow_node(services, call, flow),
    )


@operation("flows.read", "GET", Flow)
async def show_flow(services: SimulatorServices, call: Call, flow: Flow) -> dict[str, Any]:
    """Return a flow's fields."""
    return _flow_node(services, call, flow)


@operation("flows.change", "POST", Flow)
async def update_flow(services: SimulatorServices, call: Call, flow: Flow) -> dict[str, Any]:
    """Change a draft's name, categories or endpoint."""
    await services.flows.update(flow, call.fields)
    return GRAPH_SUCCESS


@operation("flows.delete", "DELETE", Flow)
async def delete_flow(services: SimulatorServices, _call: Call, flow: Flow) -> dict[str, Any]:
    """Delete a draft."""
    await services.flows.delete(flow)
    return GRAPH_SUCCESS


@operation("flows.publish", "POST", Flow, "publish")
async def publish_flow(services: SimulatorServices, _call: Call, flow: Flow) -> dict[str, Any]:
    """Publish a draft."""
    await services.flows.publish(flow)
    return GRAPH_SUCCESS


@operation("flows.deprecate", "POST", Flow, "deprecate")
async def deprecate_flow(services: SimulatorServices, _call: Call, flow: Flow) -> dict[str, Any]:
    """Deprecate a published flow."""
    await services.flows.deprecate(flow)
    return GRAPH_SUCCESS


@operation("assets.list", "GET", Flow, "assets")
async def list_assets(services: SimulatorServices, call: Call, flow: Flow) -> dict[str, Any]:
    """Return a link to a flow's JSON text that is valid for an hour."""
    if not flow.asset:
        return {"data": []}
    key = services.accounts.by_id[flow.waba_id].token
    until_ms = services.clock.now_ms() + _ASSET_LINK_LIFETIME_MS
    asset = {
        "name": _ASSET_NAME,
        "asset_type": _ASSET_TYPE,
        "download_url": signed_link(call.origin, f"/{FLOW_FILES}/{flow.flow_id}", key, flow.flow_id, until_ms),
    }
    return page(call, [asset], lambda asset: asset["name"], lambda asset: asset)


@operation("assets.upload", "POST", Flow, "assets", is_streamed=True)
async def upload_asset(services: SimulatorServices, call: Call, flow: Flow) -> dict[str, Any]:
    """Set a draft's JSON text by a form with `name`, `asset_type` and `file`."""
    form = open_form(call, max_bytes=MAX_FLOW_ASSET_BYTES + 64 * 1024)
    fields: dict[str, str] = dict(call.query)
    asset: str | None = None
    while (head := await form.next_part()) is not None:
        if head.name == "file":
            asset = await form.text(max_bytes=MAX_FLOW_ASSET_BYTES)
        else:
            fields[head.name] = await form.text(max_bytes=_MAX_ASSET_FIELD_BYTES)
    if fields.get("name") != _ASSET_NAME:
        raise bad_parameter(f"Param name must be {_ASSET_NAME}.")
    if fields.get("asset_type") != _ASSET_TYPE:
        raise bad_parameter(f"Param asset_type must be one of {{{_ASSET_TYPE}}}.")
    if asset is None:
        raise bad_parameter("The parameter file is required.")
    changed = await services.flows.put_asset(flow, asset)
    return {"success": True, "validation_errors": changed.errors}


@operation("flow_assets.read", "GET", "flow_assets", is_open=True)
async def download_asset(services: SimulatorServices, call: Call) -> Download:
    """Return the JSON text behind a link of `list_assets`."""
    flow = services.flows.by_id.get(call.edge)
    account = services.accounts.by_id.get(flow.waba_id) if flow is not None else None
    if (
        flow is None
        or account is None
        or not is_valid_link(call.query, account.token, flow.flow_id, services.clock.now_ms())
    ):
        raise no_such_object(call.method, call.edge)
    content = flow.asset.encode()
    return Download("application/json", len(content), content=content)


def _flow_node(services: SimulatorServices, call: Call, flow: Flow) -> dict[str, Any]:
    account = services.accounts.by_id[flow.waba_id]
    until_ms = services.clock.now_ms() + _PREVIEW_LIFETIME_MS
    preview = {
        "preview_url": signed_link(call.origin, f"/{FLOW_FILES}/{flow.flow_id}", account.token, flow.flow_id, until_ms),
        "expires_at": _iso(until_ms),
    }
    names = re.sub(r"\.\w+\([^()]*\)", "", call.query.get("fields", ""))  # preview.invalidate(false)
    return node_fields(FLOW_FIELDS, _FlowView(flow, account, preview), names, _DEFAULT, "Flow")


def _iso(at_ms: int) -> str:
    at = datetime.datetime.fromtimestamp(at_ms // 1000, tz=datetime.UTC)
    return at.strftime("%Y-%m-%dT%H:%M:%S+0000")
