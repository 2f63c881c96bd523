"""What a partner may set for an app: preferences, and the callback calls of old."""

from dataclasses import replace
from typing import Any

from waypost.accept.apps import keep
from waypost.accept.auth import admitted_app, holder_of_api_key, opens
from waypost.accept.requests import Answer, Request
from waypost.accept.services import Services
from waypost.domain.app import App
from waypost.domain.phone_number import read_phone_number
from waypost.domain.refusals import Reason, Refused
from waypost.store.apps import app_by_name
from waypost.wire.apps import read_callback_modes
from waypost.wire.subscriptions import check_url

_SHOWN = (("Waypost-Reason", "Kept and shown; callbacks go where subscriptions say."),)


async def set_preference(services: Services, request: Request) -> Answer:
    """Turn template messaging on or off, as it is shown. Source: facts 2, `appPreference`."""
    app = await admitted_app(services, request)
    form = request.form_or_json()
    form.required("isHSMEnabled", "true or false")
    is_on = form.flag("isHSMEnabled")
    await _prefer(services, app, template_messaging=is_on)
    return Answer({"status": "success"})


async def set_callback_url(services: Services, request: Request) -> Answer:
    """Keep the app's callback address. Source: facts 2, `callbackUrl`; deprecated there."""
    app = await admitted_app(services, request)
    url = request.form_or_json().required("callbackUrl", "an http or https address")
    check_url(url)
    await _prefer(services, app, callback_url=url)
    return Answer({"status": "success"}, headers=_SHOWN)


async def set_callback_modes(services: Services, request: Request) -> Answer:
    """Keep the modes of the app's callback address. Source: facts 2, `callback/mode`; deprecated there."""
    app = await admitted_app(services, request)
    modes = read_callback_modes(request.form_or_json())
    await _prefer(services, app, callback_modes=modes)
    callback = {"custom": False, "modes": list(modes)}
    return Answer({"status": "success", "callback": callback}, headers=_SHOWN)


async def set_callback(services: Services, request: Request) -> Answer:
    """Keep the app's callback address and its modes. Source: facts 2, `callback`; deprecated there."""
    app = await admitted_app(services, request)
    form = request.form_or_json()
    url = form.text("url")
    if not url:
        raise Refused(Reason.INVALID_CALLBACK, "url must be an http or https address.")
    check_url(url)
    modes = read_callback_modes(form)
    await _prefer(services, app, callback_url=url, callback_modes=modes)
    callback = {"url": url, "custom": False, "modes": list(modes)}
    return Answer({"status": "success", "callback": callback}, headers=_SHOWN)


async def opt_in(services: Services, request: Request) -> Answer:
    """Take note that somebody has opted in; nothing is kept, because nothing asks for it any more.

    Source: facts 2: the opt-in calls are withdrawn, and no check is made.
    """
    await admitted_app(services, request)
    _phone(request.form_or_json().required("phone", "a phone number of 8 to 15 digits"))
    return Answer({"status": "success"}, 202)


async def note_opted_in(services: Services, request: Request) -> Answer:
    """The same by the app's name, for holders of an API key. Source: a public client's habit."""
    holder = await holder_of_api_key(services, request)
    app = await services.database.read(app_by_name, holder.partner_id, request.path["app_name"])
    if app is None or not await opens(services, holder, app):
        raise Refused(
            Reason.INVALID_APP_DETAILS, "The path must end in the name of one of your apps."
        )
    await request.spend(services.limiter, app.id)
    _phone(request.form_or_json().required("user", "a phone number of 8 to 15 digits"), "user")
    return Answer({"status": "success"}, 202)


async def user_status(services: Services, request: Request) -> Answer:
    """Whoever is asked about counts as opted in. Source: facts 2, `userStatus`."""
    await admitted_app(services, request)
    phone = request.query("phone")
    if not phone:
        raise Refused(
            Reason.FIELD_MISSING,
            "Required request parameter 'phone' is not present: a phone number of 8 to 15 digits.",
        )
    _phone(phone)
    return Answer({"status": "success", "userStatus": {"status": "OPT_IN"}})


async def _prefer(services: Services, app: App, **preferences: Any) -> None:
    """Set these preferences of an app, and no other."""

    def preferring(held: App) -> App:
        return replace(held, preferences=replace(held.preferences, **preferences))

    await keep(services, app, preferring)


def _phone(text: str, name: str = "phone") -> None:
    if read_phone_number(text) is None:
        raise Refused(Reason.FIELD_BROKEN, f"{name} must be a phone number of 8 to 15 digits.")
