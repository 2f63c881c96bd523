"""Endpoints for the settings of an app: preferences, contact, cap, and the deprecated callback calls."""

from dataclasses import replace
from typing import Any

from waypost.api.apps.apps import partner_of, update_app
from waypost.api.auth.authorisation import authorise_app
from waypost.api.http.requests import ApiResponse, Request
from waypost.api.services import Services
from waypost.domain.app import App
from waypost.domain.errors import ApiError, ErrorCode
from waypost.wire.apps import contact_object, read_callback_modes, read_cap, read_contact
from waypost.wire.subscriptions import check_url

_STORED_ONLY_HEADERS = (("Waypost-Reason", "Kept and shown; callbacks go where subscriptions say."),)
_NO_OPT_IN_MESSAGE_HEADERS = (("Waypost-Reason", "Kept; no opt-in message is sent by this service."),)


async def set_preference(services: Services, request: Request) -> ApiResponse:
    """Set whether template messaging is shown as enabled. Source: facts 2, `appPreference`."""
    app = await authorise_app(services, request)
    form = request.form_or_json()
    form.required("isHSMEnabled", "true or false", "Boolean")
    is_on = form.flag("isHSMEnabled")
    await set_preferences(services, app, template_messaging=is_on)
    return ApiResponse({"status": "success"})


async def set_callback_url(services: Services, request: Request) -> ApiResponse:
    """Store the app's callback URL. Source: facts 2, `callbackUrl`; deprecated there."""
    app = await authorise_app(services, request)
    url = request.form_or_json().required("callbackUrl", "an http or https address")
    check_url(url)
    await set_preferences(services, app, callback_url=url)
    return ApiResponse({"status": "success"}, headers=_STORED_ONLY_HEADERS)


async def set_callback_modes(services: Services, request: Request) -> ApiResponse:
    """Store the modes of the app's callback URL. Source: facts 2, `callback/mode`; deprecated there."""
    app = await authorise_app(services, request)
    modes = read_callback_modes(request.form_or_json())
    await set_preferences(services, app, callback_modes=modes)
    callback = {"custom": False, "modes": list(modes)}
    return ApiResponse({"status": "success", "callback": callback}, headers=_STORED_ONLY_HEADERS)


async def set_callback(services: Services, request: Request) -> ApiResponse:
    """Store the app's callback URL and its modes. Source: facts 2, `callback`; deprecated there; ledger 1.2, C9."""
    app = await authorise_app(services, request)
    form = request.form_or_json()
    url = form.text("url")
    if not url:
        raise ApiError(ErrorCode.INVALID_CALLBACK, "url must be an http or https address.")
    check_url(url)
    modes = read_callback_modes(form)
    await set_preferences(services, app, callback_url=url, callback_modes=modes)
    callback = {"url": url, "custom": True, "modes": list(modes)}
    return ApiResponse({"status": "success", "callback": callback}, headers=_STORED_ONLY_HEADERS)


async def set_optin_message(services: Services, request: Request) -> ApiResponse:
    """Store the opt-in message preference; none is sent. Source: ledger 1.9, `optinMessagePreference`."""
    app = await authorise_app(services, request)
    form = request.form_or_json()
    form.required("enableOptinMessage", "true or false", "Boolean")
    await set_preferences(services, app, optin_message=form.flag("enableOptinMessage"))
    return ApiResponse({"status": "success"}, 202, headers=_NO_OPT_IN_MESSAGE_HEADERS)


async def set_cap(services: Services, request: Request) -> ApiResponse:
    """Store the cap of the app's fees; lists of apps show it, and no fees are charged.

    Source: ledger 1.9, `PUT capping`.
    """
    app = await authorise_app(services, request)
    cap = read_cap(request.form_or_json())
    await set_preferences(services, app, cap=cap)
    return ApiResponse({"status": "success"})


async def show_cap(services: Services, request: Request) -> ApiResponse:
    """Return the cap; 0 if none was set. Source: facts 13, `capping`; the response's format is ours."""
    app = await authorise_app(services, request)
    return ApiResponse({"status": "success", "cap": app.preferences.cap})


async def set_contact(services: Services, request: Request) -> ApiResponse:
    """Store the contact of the app. Source: ledger 1.3, `onboarding/contact`."""
    app = await authorise_app(services, request)
    email, name, number = read_contact(request.form_or_json())
    await set_preferences(services, app, contact_email=email, contact_name=name, contact_number=number)
    return ApiResponse({"status": "success", "message": "contact details updated successfully"})


async def show_contact(services: Services, request: Request) -> ApiResponse:
    """Return the contact of the app: the one that was set, or that of the partner's account.

    Source: decision 0065; the response's format is ours.
    """
    app = await authorise_app(services, request)
    return ApiResponse({"status": "success", "contact": contact_object(app, await partner_of(services, app))})


async def set_preferences(services: Services, app: App, **preferences: Any) -> None:
    """Set these preferences of an app and leave the others unchanged."""

    def apply(stored: App) -> App:
        return replace(stored, preferences=replace(stored.preferences, **preferences))

    await update_app(services, app, apply)
