"""Graph API calls for flows. Source: the operator's page "Flows API"."""

import asyncio
import datetime
import re
from dataclasses import dataclass
from typing import Annotated, Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from waypost.base.http.request_heads import parse_target
from waypost.base.json_values import list_of, text_or_none
from waypost.base.object_ids import make_id
from waypost.flow_json.validator import MAX_FLOW_JSON_BYTES, check_flow_json
from waypost.simulator.apis.errors import bad_parameter, no_such_object
from waypost.simulator.apis.links import is_valid_link, signed_link
from waypost.simulator.apis.parameters import check_id, is_missing, read_parameters, read_text, text_between
from waypost.simulator.apis.requests import GRAPH_SUCCESS, Call, Download, open_form
from waypost.simulator.flows.measurement import delete_measurements
from waypost.simulator.flows.metrics import MIN_METRIC_REQUESTS, find_metric, read_metric_query
from waypost.simulator.flows.model import (
    BLOCKED,
    DEPRECATED,
    DRAFT,
    FLOW_CATEGORIES,
    FLOWS,
    MAX_PUBLISHED_VERSIONS,
    PUBLISHED,
    THROTTLED,
    Flow,
    PublishedFlow,
    account_flows,
    find_flow,
    find_flow_by_name,
    save_flow,
)
from waypost.simulator.flows.preview_links import PREVIEW_LIFETIME_MS, preview_link
from waypost.simulator.flows.publishing import check_publishable, flow_error, flow_health
from waypost.simulator.flows.version_life import list_expired, warn_of_version
from waypost.simulator.state.accounts import Account
from waypost.simulator.state.graph_operations import GraphOperations
from waypost.simulator.state.nodes import NodeKind, app_data, page
from waypost.simulator.state.simulator_state import SimulatorState, Transaction

operation = GraphOperations()

FLOW_FILES: Final = "flow_assets"
"""The first path segment of the URLs that `list_assets` returns; they need no token."""

_ASSET_NAME: Final = "flow.json"
_ASSET_TYPE: Final = "FLOW_JSON"
_ASSET_LINK_LIFETIME_MS: Final = 3600 * 1000
_MAX_ASSET_FIELD_BYTES: Final = 4096
_MAX_NAME_CHARS: Final = 200
_MAX_URI_CHARS: Final = 2048


@dataclass(frozen=True)
class _FlowView:
    """A flow with the data of its fields."""

    flow: Flow
    account: Account
    preview: dict[str, str]
    health: dict[str, Any]
    metric: dict[str, Any] | None


# fmt: off
_TRANSITIONS: Final = {  # Source: the operator's pages "Lifecycle of a Flow", "Error codes"
    #             only from                        code    title when it is in another state
    "update":    ((DRAFT, PUBLISHED),              139001, "Flow can't be updated"),
    "publish":   ((DRAFT,),                        139002, "Publishing Flow in invalid state"),
    "deprecate": ((PUBLISHED, THROTTLED, BLOCKED), 139003, "Can't deprecate unpublished flow"),
    "delete":    ((DRAFT,),                        139004, "Can't delete published Flow"),
}
# fmt: on


def _read_categories(name: str, value: Any) -> list[str]:
    categories = list_of(value)
    if not categories or any(category not in FLOW_CATEGORIES for category in categories):
        raise bad_parameter(f"Param {name} must be an array of {{{', '.join(FLOW_CATEGORIES)}}}, at least one.")
    return [str(category) for category in dict.fromkeys(categories)]


def _read_asset(_name: str, value: Any) -> str:
    if value is None:
        return ""
    # A text in a form's field has already been decoded as JSON.
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    if len(text.encode(errors="replace")) > MAX_FLOW_JSON_BYTES:
        raise bad_parameter(f"A flow's JSON has at most {MAX_FLOW_JSON_BYTES} bytes.")
    return text


def _is_endpoint_uri(text: str) -> bool:
    try:
        parse_target("POST", text)
    except ValueError:
        return False
    return len(text) <= _MAX_URI_CHARS


def _read_endpoint_uri(name: str, value: Any) -> str:
    """Return a URI; the operator requires https, here http will do. Source: the operator's page "Error codes"."""
    text = str(value or "").strip()
    if text and not _is_endpoint_uri(text):
        raise bad_parameter(f"Param {name} must be a URI of https or http, of at most {_MAX_URI_CHARS} characters.")
    return text


class NewFlowParameters(Struct, frozen=True):
    """The parameters of a new flow."""

    name: Annotated[str, text_between(1, _MAX_NAME_CHARS)]
    categories: Annotated[list[str], _read_categories]
    flow_json: Annotated[str, _read_asset] = ""
    clone_flow_id: Annotated[str, read_text] = ""
    clone_template: Annotated[str, read_text] = ""
    endpoint_uri: Annotated[str, _read_endpoint_uri] = ""


class FlowChangeParameters(Struct, frozen=True):
    """The parameters of a flow to be changed."""

    name: Annotated[str | None, text_between(1, _MAX_NAME_CHARS)] = None
    categories: Annotated[list[str] | None, _read_categories] = None
    endpoint_uri: Annotated[str | None, _read_endpoint_uri] = None
    application_id: Annotated[str | None, check_id] = None


@operation("flows.create", "POST", Account, "flows")
async def create_flow(state: SimulatorState, call: Call, account: Account) -> dict[str, Any]:
    """Create a draft from a JSON text or another flow; publish it at once if requested.

    Raises:
        GraphApiError: code 100, a parameter is missing or invalid; 139002, it is to be published and cannot be.
    """
    _check_is_free(state, call.fields.get("name"), account.waba_id)
    new = read_parameters(NewFlowParameters, call.fields)
    asset = new.flow_json
    if new.clone_template:
        # The operator's templates are not published; with both parameters the operator rejects the call, too.
        raise bad_parameter("Param clone_template: the simulator has none of the operator's templates; send flow_json.")
    if new.clone_flow_id:
        source = find_flow(state, new.clone_flow_id, account.waba_id)
        if source is None:
            raise bad_parameter("Param clone_flow_id is no flow of this account.")
        asset = asset or source.asset
    now_ms = state.clock.now_ms()
    flow = Flow(
        flow_id=make_id(state.ids, "flow"),
        waba_id=account.waba_id,
        name=new.name,
        categories=new.categories,
        asset=asset,
        endpoint_uri=new.endpoint_uri,
        created_ms=now_ms,
        updated_ms=now_ms,
        errors=(await asyncio.to_thread(check_flow_json, asset, list_expired(state))).errors if asset else [],
    )
    is_published = str(call.fields.get("publish", "")).lower() == "true"
    if is_published:
        await check_publishable(state, flow)

    def save(transaction: Transaction) -> None:
        _check_is_free(transaction, flow.name, account.waba_id)
        save_flow(transaction, flow)
        warn_of_version(transaction, flow)
        if is_published:
            save_flow(transaction, _publish(flow))

    await state.transact(save)
    return {"id": flow.flow_id, "success": True, "validation_errors": flow.errors}


def list_flows(state: SimulatorState, call: Call, account: Account) -> dict[str, Any]:
    """Return an account's flows."""
    return page(
        call,
        account_flows(state, account.waba_id),
        lambda flow: f"{flow.created_ms:015d}.{flow.flow_id}",
        lambda flow: show_flow(state, call, flow),
    )


@operation("flows.change", "POST", Flow)
def update_flow(transaction: Transaction, call: Call, flow: Flow) -> dict[str, Any]:
    """Change a flow's name, categories, endpoint or app; one that was published becomes a draft again."""
    draft = _check_transition(transaction, flow, "update")
    fields = {name: value for name, value in call.fields.items() if (name, value) != ("name", draft.name)}
    if "name" in fields:
        _check_is_free(transaction, fields["name"], draft.waba_id)
    changes = {name: value for name, value in asdict(read_parameters(FlowChangeParameters, fields)).items() if value}
    app_id = changes.pop("application_id", draft.app_id)
    if app_id and app_id not in transaction.state.accounts.apps:
        raise bad_parameter("Param application_id is no app that the account can use.")
    changed = replace(draft, app_id=app_id, **changes)
    save_flow(transaction, changed, status=DRAFT)
    return GRAPH_SUCCESS


@operation("flows.delete", "DELETE", Flow)
def delete_flow(transaction: Transaction, _call: Call, flow: Flow) -> dict[str, Any]:
    """Delete a draft that was never published."""
    known = _check_transition(transaction, flow, "delete")
    if known.published:
        _, code, title = _TRANSITIONS["delete"]
        raise flow_error(code, title, "The flow was published; deprecate it instead.")
    transaction.delete(FLOWS, flow.flow_id)
    delete_measurements(transaction, flow.flow_id)
    return GRAPH_SUCCESS


@operation("flows.publish", "POST", Flow, "publish")
async def publish_flow(state: SimulatorState, _call: Call, flow: Flow) -> dict[str, Any]:
    """Publish a draft, if it is valid and its endpoint answers the health check."""
    _check_status(flow, "publish")
    await check_publishable(state, flow)

    def save(transaction: Transaction) -> None:
        known = _check_transition(transaction, flow, "publish")
        if known.asset != flow.asset or known.endpoint_uri != flow.endpoint_uri:
            raise flow_error(139001, "Error while processing Flow JSON", "The flow was changed meanwhile. Try again.")
        save_flow(transaction, _publish(known))

    await state.transact(save)
    return GRAPH_SUCCESS


@operation("flows.deprecate", "POST", Flow, "deprecate")
def deprecate_flow(transaction: Transaction, _call: Call, flow: Flow) -> dict[str, Any]:
    """Deprecate a published flow."""
    save_flow(transaction, _check_transition(transaction, flow, "deprecate"), status=DEPRECATED)
    return GRAPH_SUCCESS


@operation("assets.list", "GET", Flow, "assets")
async def list_assets(state: SimulatorState, call: Call, flow: Flow) -> dict[str, Any]:
    """Return a link to a flow's JSON text that is valid for an hour."""
    if not flow.asset:
        return {"data": []}
    key = state.accounts.by_id[flow.waba_id].token
    until_ms = state.clock.now_ms() + _ASSET_LINK_LIFETIME_MS
    asset = {
        "name": _ASSET_NAME,
        "asset_type": _ASSET_TYPE,
        "download_url": signed_link(call.origin, f"/{FLOW_FILES}/{flow.flow_id}", key, flow.flow_id, until_ms),
    }
    return page(call, [asset], lambda asset: asset["name"], lambda asset: asset)


@operation("assets.upload", "POST", Flow, "assets", is_streamed=True)
async def upload_asset(state: SimulatorState, call: Call, flow: Flow) -> dict[str, Any]:
    """Set a flow's JSON text by a form with `name`, `asset_type` and `file`; an invalid one is stored too."""
    form = open_form(call, max_bytes=MAX_FLOW_JSON_BYTES + 64 * 1024)
    fields: dict[str, str] = dict(call.query)
    asset: str | None = None
    while (head := await form.next_part()) is not None:
        if head.name == "file":
            asset = await form.text(max_bytes=MAX_FLOW_JSON_BYTES)
        else:
            fields[head.name] = await form.text(max_bytes=_MAX_ASSET_FIELD_BYTES)
    if fields.get("name") != _ASSET_NAME:
        raise bad_parameter(f"Param name must be {_ASSET_NAME}.")
    if fields.get("asset_type") != _ASSET_TYPE:
        raise bad_parameter(f"Param asset_type must be one of {{{_ASSET_TYPE}}}.")
    if asset is None:
        raise is_missing("file")
    errors = (await asyncio.to_thread(check_flow_json, asset, list_expired(state))).errors  # a large text takes seconds
    changes = {"asset": asset, "errors": errors}

    def save(transaction: Transaction) -> None:
        save_flow(transaction, replace(_check_transition(transaction, flow, "update"), **changes), status=DRAFT)

    await state.transact(save)
    return {"success": True, "validation_errors": errors}


@operation("flow_assets.read", "GET", FLOW_FILES, is_open=True)
async def download_asset(state: SimulatorState, call: Call) -> Download:
    """Return the JSON text behind a link of `list_assets`."""
    flow = state.values(FLOWS).get(call.edge)
    account = state.accounts.by_id.get(flow.waba_id) if flow is not None else None
    if (
        flow is None
        or account is None
        or not is_valid_link(call.query, account.token, flow.flow_id, state.clock.now_ms())
    ):
        raise no_such_object(call.method, call.edge)
    content = flow.asset.encode()
    return Download("application/json", len(content), content=content)


def _check_transition(transaction: Transaction, flow: Flow, step: str) -> Flow:
    """Return the flow as it is now, which must have a status for a step."""
    known = transaction.find(FLOWS, flow.flow_id) or flow
    _check_status(known, step)
    return known


def _check_status(flow: Flow, step: str) -> None:
    statuses, code, title = _TRANSITIONS[step]
    if flow.status == DEPRECATED and step == "deprecate":
        title = "Flow is already deprecated"
    if flow.status not in statuses:
        raise flow_error(code, title, f"The flow is {flow.status}; it must be {' or '.join(statuses)}.")


def _check_is_free(reader: SimulatorState | Transaction, name: object, waba_id: str) -> None:
    if find_flow_by_name(reader, name, waba_id) is not None:
        raise bad_parameter(
            "Flow name should be unique within one WhatsApp Business Account. Please select another name for your Flow."
        )


def _publish(flow: Flow) -> Flow:
    """Return a draft as published, with its JSON text as the newest version."""
    newest = PublishedFlow(flow.published[-1].number + 1 if flow.published else 1, flow.asset)
    return replace(flow, status=PUBLISHED, published=[*flow.published, newest][-MAX_PUBLISHED_VERSIONS:])


def _iso(at_ms: int) -> str:
    at = datetime.datetime.fromtimestamp(at_ms // 1000, tz=datetime.UTC)
    return at.strftime("%Y-%m-%dT%H:%M:%S+0000")


_FLOW_NODE: Final = NodeKind[_FlowView](
    "Flow",
    ("id", "name", "status", "categories", "validation_errors"),
    {
        "id": lambda view: view.flow.flow_id,
        "name": lambda view: view.flow.name,
        "status": lambda view: view.flow.status,
        "categories": lambda view: view.flow.categories,
        "validation_errors": lambda view: view.flow.errors,
        "json_version": lambda view: text_or_none(view.flow.content.get("version")),
        "data_api_version": lambda view: text_or_none(view.flow.content.get("data_api_version")),
        "endpoint_uri": lambda view: view.flow.endpoint_uri or None,
        "preview": lambda view: view.preview,
        "updated_at": lambda view: _iso(view.flow.updated_ms),
        "whatsapp_business_account": lambda view: {
            "id": view.account.waba_id,
            "name": view.account.name,
            "currency": "USD",
            "timezone_id": "1",
            "message_template_namespace": view.account.namespace,
        },
        "application": lambda view: app_data(view.account, view.flow.app_id or view.account.app_id),
        "health_status": lambda view: view.health,
        "metric": lambda view: view.metric,
    },
)


def show_flow(state: SimulatorState, call: Call, flow: Flow) -> dict[str, Any]:
    """Return a flow's fields; among them a metric of its endpoint, if it has had enough requests."""
    account = state.accounts.by_id[flow.waba_id]
    until_ms = state.clock.now_ms() + PREVIEW_LIFETIME_MS
    preview = {"preview_url": preview_link(call.origin, flow, account.token, until_ms), "expires_at": _iso(until_ms)}
    fields = call.query.get("fields", "")
    query = read_metric_query(fields)
    metric = find_metric(state, flow.flow_id, query) if query is not None else None
    if query is not None and metric is None:
        text = f"The flow has fewer than {MIN_METRIC_REQUESTS} requests."
        raise flow_error(139006, "Metrics threshold is not reached", text)
    names = re.sub(r"\.\w+\([^()]*\)", "", fields)  # preview.invalidate(false)
    return _FLOW_NODE.show(_FlowView(flow, account, preview, flow_health(state, flow), metric), names)
