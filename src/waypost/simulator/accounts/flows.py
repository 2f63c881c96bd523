"""Creating, changing, publishing and deprecating flows; in memory, written through to the file."""

import asyncio
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from waypost.base.clock import Clock
from waypost.base.ids import Ids
from waypost.base.json_values import list_or_none, text_or_none
from waypost.simulator.accounts.flow import (
    DEPRECATED,
    DRAFT,
    FLOW_CATEGORIES,
    MAX_FLOW_ASSET_BYTES,
    MAX_FLOW_NAME_CHARS,
    PUBLISHED,
    Flow,
    validation_errors,
)
from waypost.simulator.errors import GraphApiError, bad_parameter
from waypost.simulator.keyed_store import CachedKeyedValues
from waypost.simulator.store import Store

# fmt: off
_TRANSITIONS: Final = {  # Source: the operator's page "Flows API", error codes 139001 to 139004
    #             only from   code    title when it is in another state
    "update":    (DRAFT,     139001, "Flow can't be updated"),
    "publish":   (DRAFT,     139002, "Flow can't be published"),
    "deprecate": (PUBLISHED, 139003, "Flow can't be deprecated"),
    "delete":    (DRAFT,     139004, "Flow can't be deleted"),
}
# fmt: on


class Flows:
    """Every flow of every account. Changes run one at a time."""

    def __init__(self, store: Store, clock: Clock, ids: Ids) -> None:
        self._clock = clock
        self._ids = ids
        self._changes = asyncio.Lock()
        self._flows = CachedKeyedValues(store, "flow", Flow)
        self.by_id = self._flows.all

    def account_flows(self, waba_id: str) -> list[Flow]:
        """Return the account's flows, oldest first."""
        return [flow for flow in self.by_id.values() if flow.waba_id == waba_id]

    def find(self, flow_id: str, waba_id: str) -> Flow | None:
        """Return an account's flow; None if it is unknown or another account's."""
        flow = self.by_id.get(flow_id)
        return flow if flow is not None and flow.waba_id == waba_id else None

    def find_by_name(self, name: str, waba_id: str) -> Flow | None:
        """Return an account's flow by name; None if there is none."""
        return next((flow for flow in self.account_flows(waba_id) if flow.name == name), None)

    async def create(self, waba_id: str, fields: dict[str, Any]) -> Flow:
        """Create a draft from a JSON text or another flow; publish it at once if requested.

        Raises:
            GraphApiError: code 100, a parameter is missing or invalid; 139002, it is to be
                published and its JSON is not valid.
        """
        name = self._name(waba_id, fields.get("name"))
        categories = _categories(fields.get("categories"))
        asset = _asset(fields.get("flow_json"))
        source_id = text_or_none(fields.get("clone_flow_id"))
        if source_id is not None:
            source = self.find(source_id, waba_id)
            if source is None:
                raise bad_parameter("Param clone_flow_id is no flow of this account.")
            asset = asset or source.asset
        now_ms = self._clock.now_ms()
        flow = Flow(
            flow_id="5" + self._ids.digits(15),  # 16 digits, below 2^53
            waba_id=waba_id,
            name=name,
            categories=categories,
            asset=asset,
            endpoint_uri=text_or_none(fields.get("endpoint_uri")) or "",
            created_ms=now_ms,
            updated_ms=now_ms,
            errors=validation_errors(asset) if asset else [],
        )
        if str(fields.get("publish", "")).lower() == "true":
            _check_valid(flow)
            flow = replace(flow, status=PUBLISHED)
        async with self._changes:
            self._name(waba_id, name)
            await self._save(flow)
        return flow

    async def update(self, flow: Flow, fields: dict[str, Any]) -> Flow:
        """Change a draft's name, categories or endpoint.

        Raises:
            GraphApiError: 139001, it is no draft; 100, a parameter is invalid.
        """
        async with self._changes:
            flow = self._check_transition(flow, "update")
            changes: dict[str, Any] = {}
            if "name" in fields and fields["name"] != flow.name:
                changes["name"] = self._name(flow.waba_id, fields["name"])
            if "categories" in fields:
                changes["categories"] = _categories(fields["categories"])
            if "endpoint_uri" in fields:
                changes["endpoint_uri"] = text_or_none(fields["endpoint_uri"]) or ""
            return await self._save(replace(flow, updated_ms=self._clock.now_ms(), **changes))

    async def put_asset(self, flow: Flow, asset: str) -> Flow:
        """Set a draft's JSON text; an invalid one is stored too, with its validation errors.

        Raises:
            GraphApiError: 139001, it is no draft.
        """
        async with self._changes:
            flow = self._check_transition(flow, "update")
            changed = replace(flow, asset=asset, errors=validation_errors(asset), updated_ms=self._clock.now_ms())
            return await self._save(changed)

    async def publish(self, flow: Flow) -> None:
        """Publish a draft, after which it cannot be changed.

        Raises:
            GraphApiError: 139002, it is no draft or not valid.
        """
        async with self._changes:
            flow = self._check_transition(flow, "publish")
            _check_valid(flow)
            await self._save(replace(flow, status=PUBLISHED, updated_ms=self._clock.now_ms()))

    async def deprecate(self, flow: Flow) -> None:
        """Deprecate a published flow.

        Raises:
            GraphApiError: 139003, it is not published.
        """
        async with self._changes:
            flow = self._check_transition(flow, "deprecate")
            await self._save(replace(flow, status=DEPRECATED, updated_ms=self._clock.now_ms()))

    async def set_status(self, flow: Flow, status: str) -> Flow:
        """Set a flow's status, as the operator's supervision does."""
        async with self._changes:
            flow = self.by_id.get(flow.flow_id, flow)
            return await self._save(replace(flow, status=status, updated_ms=self._clock.now_ms()))

    async def delete(self, flow: Flow) -> None:
        """Delete a draft.

        Raises:
            GraphApiError: 139004, it is no draft.
        """
        async with self._changes:
            flow = self._check_transition(flow, "delete")
            await self._flows.delete(flow.flow_id)

    def _check_transition(self, flow: Flow, step: str) -> Flow:
        flow = self.by_id.get(flow.flow_id, flow)
        only_from, code, title = _TRANSITIONS[step]
        if flow.status != only_from:
            raise _flow_error(code, title, f"The flow is {flow.status}; only {only_from} will do.")
        return flow

    def _name(self, waba_id: str, name: object) -> str:
        if not isinstance(name, str) or not 0 < len(name) <= MAX_FLOW_NAME_CHARS:
            raise bad_parameter(f"Param name must have 1 to {MAX_FLOW_NAME_CHARS} characters.")
        if self.find_by_name(name, waba_id) is not None:
            raise bad_parameter(
                "Flow name should be unique within one WhatsApp Business Account. Please select another name for "
                "your Flow."
            )
        return name

    async def _save(self, flow: Flow) -> Flow:
        await self._flows.save(flow, flow.flow_id)
        return flow


def _categories(value: object) -> list[str]:
    categories = list_or_none(value)
    if not categories or any(category not in FLOW_CATEGORIES for category in categories):
        raise bad_parameter(f"Param categories must be an array of {{{', '.join(FLOW_CATEGORIES)}}}, at least one.")
    return [str(category) for category in dict.fromkeys(categories)]


def _asset(value: object) -> str:
    if value is None:
        return ""
    # A text in a form's field has already been decoded as JSON.
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    if len(text.encode(errors="replace")) > MAX_FLOW_ASSET_BYTES:
        raise bad_parameter(f"A flow's JSON has at most {MAX_FLOW_ASSET_BYTES} bytes.")
    return text


def _check_valid(flow: Flow) -> None:
    if flow.errors or not flow.asset:
        _, code, title = _TRANSITIONS["publish"]
        raise _flow_error(code, title, "The flow's JSON has validation errors, or there is none.")


def _flow_error(code: int, title: str, message: str) -> GraphApiError:
    return GraphApiError(
        400,
        {
            "message": f"(#{code}) {title}",
            "type": "OAuthException",
            "code": code,
            "is_transient": False,
            "error_user_title": title,
            "error_user_msg": message,
        },
    )
