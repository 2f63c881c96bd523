"""Endpoints for the data of a business that sign-up shows already filled in: stored and shown."""

from collections.abc import Mapping
from dataclasses import replace

from waypost.api.apps.apps import update_app
from waypost.api.auth.authorisation import authorise_app
from waypost.api.http.requests import ApiResponse, Request
from waypost.api.services import Services
from waypost.domain.app import App
from waypost.wire.prefilled import prefilled_object, read_prefilled


async def set_prefilled(services: Services, request: Request) -> ApiResponse:
    """Store the data, instead of what was stored before, and return it. Source: ledger 1.3, `prefilled`."""
    app = await authorise_app(services, request)
    return await _store(services, app, read_prefilled(request.form_or_json(), {}))


async def change_prefilled(services: Services, request: Request) -> ApiResponse:
    """Change the named fields, remove empty ones, and return all. Source: ledger 1.3, `prefilled`."""
    app = await authorise_app(services, request)
    return await _store(services, app, read_prefilled(request.form_or_json(), app.preferences.prefilled))


async def show_prefilled(services: Services, request: Request) -> ApiResponse:
    """Return the data; fields that were not set are empty. Source: ledger 1.3, `prefilled`."""
    return ApiResponse(prefilled_object(await authorise_app(services, request)))


async def delete_prefilled(services: Services, request: Request) -> ApiResponse:
    """Delete the data. Source: ledger 1.3, `prefilled`; the response's format is ours."""
    app = await authorise_app(services, request)
    await _store(services, app, {})
    return ApiResponse({"status": "success"})


async def _store(services: Services, app: App, fields: Mapping[str, str]) -> ApiResponse:
    def apply(stored: App) -> App:
        return replace(stored, preferences=replace(stored.preferences, prefilled=fields))

    return ApiResponse(prefilled_object(await update_app(services, app, apply)))
