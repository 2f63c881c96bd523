"""The data of a business that sign-up shows already filled in: stored and shown."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

from msgspec import defstruct

from waypost.api.apps.apps import update_app
from waypost.api.fields import Field
from waypost.api.operation import APP, AppCall, Operations
from waypost.api.route import Success, success
from waypost.domain.app import App
from waypost.domain.errors import ErrorCode
from waypost.wire.apps import PREFILLED_FIELDS, prefilled_object, read_prefilled

operation = Operations("ledger 1.3", at_operator=False)
Prefilled = defstruct(
    "Prefilled", [(row.name, Annotated[str, Field(row.meaning, row.example)], "") for row in PREFILLED_FIELDS]
)
_operation_on_data = partial(
    operation,
    path=f"{APP}/onboarding/embed/prefilled",
    returns=success(appId=str, **{row.name: str for row in PREFILLED_FIELDS}),
    by_key=True,
)


@_operation_on_data("POST", body=Prefilled, errors=(ErrorCode.INVALID_PREFILLED,))
async def set_prefilled(call: AppCall) -> dict[str, Any]:
    """Store the data, instead of what was stored before, and return it. Source: ledger 1.3, `prefilled`."""
    return await _store(call, read_prefilled(call.request.form_or_json(), {}))


@_operation_on_data("PUT", body=Prefilled, errors=(ErrorCode.INVALID_PREFILLED,))
async def change_prefilled(call: AppCall) -> dict[str, Any]:
    """Change the named fields, remove empty ones, and return all. Source: ledger 1.3, `prefilled`."""
    return await _store(call, read_prefilled(call.request.form_or_json(), call.app.preferences.prefilled))


@_operation_on_data("GET")
async def show_prefilled(call: AppCall) -> dict[str, Any]:
    """Return the data; fields that were not set are empty. Source: ledger 1.3, `prefilled`."""
    return prefilled_object(call.app)


@_operation_on_data("DELETE", returns=Success)
async def delete_prefilled(call: AppCall) -> Success:
    """Delete the data. Source: ledger 1.3, `prefilled`; the response's format is ours."""
    await _store(call, {})
    return Success()


async def _store(call: AppCall, fields: Mapping[str, str]) -> dict[str, Any]:
    def apply(stored: App) -> App:
        return replace(stored, preferences=replace(stored.preferences, prefilled=fields))

    return prefilled_object(await update_app(call.services, call.app, apply))
