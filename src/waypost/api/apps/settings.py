"""Settings of an app, and identity: user ids and regions."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Final

from msgspec import Struct
from sqlalchemy import Connection

from waypost.api.apps.apps import partner_of, update_app
from waypost.api.authorisation import Credential
from waypost.api.fields import Field, keep_text
from waypost.api.operation import APP, AppCall, Operations, PartnerCall
from waypost.api.requests import ApiResponse
from waypost.api.services import Services
from waypost.domain.app import App
from waypost.domain.coercion import read_integer
from waypost.domain.errors import ApiError, ErrorCode
from waypost.store.apps.apps import change_app, list_apps
from waypost.wire.apps import MAX_FEE_CAP, MIN_FEE_CAP, read_callback_modes, read_contact
from waypost.wire.responses import Confirmation, Success, response, success
from waypost.wire.subscriptions import check_url

_STORED_ONLY_HEADERS: Final = (("Waypost-Reason", "Kept and shown; callbacks go where subscriptions say."),)
_NO_OPT_IN_MESSAGE_HEADERS: Final = (("Waypost-Reason", "Kept; no opt-in message is sent by this service."),)
_URL: Final = "An http or https URL; stored and shown."
_URL_EXAMPLE: Final = "https://shop.example/callbacks"
_MODES: Final = Field("Modes separated by commas; stored and shown.", "MESSAGE,SENT")

operation = Operations("facts 2", at_operator=False)


class AppPreference(Struct, rename={"is_on": "isHSMEnabled"}):
    """The switch that shows template messaging as enabled."""

    is_on: Annotated[bool, Field("true shows template messaging as enabled.", "true", "true or false", kind="Boolean")]


class CallbackUrl(Struct, rename="camel"):
    """The URL of an app's callbacks, as the older calls have it."""

    callback_url: Annotated[str, Field(_URL, _URL_EXAMPLE, "an http or https address")]


class CallbackModes(Struct):
    """The modes of an app's callbacks, as the older calls have them; the field may be repeated."""

    modes: Annotated[str, _MODES] = ""


class Callback(Struct, rename="camel"):
    """URL and modes of an app's callbacks, as the older calls have them."""

    url: Annotated[str, Field(_URL, _URL_EXAMPLE, is_required=True)] = ""
    modes: Annotated[str, _MODES] = ""
    direct_forwarding: Annotated[bool, Field("Accepted; callbacks go to the subscriptions.", "false")] = False
    notify_with_phone: Annotated[bool, Field("Accepted; callbacks have the phone number.", "false")] = False


class OptInMessage(Struct, rename="camel"):
    """The switch of a message to users who opt in."""

    enable_optin_message: Annotated[
        bool, Field("Stored; this service sends no opt-in message.", "false", "true or false", kind="Boolean")
    ]


class NewCap(Struct):
    """The cap of an app's fees."""

    cap: Annotated[
        int,
        Field(
            "The cap of the app's fees, 50 to 750; stored and shown.",
            "100",
            f"a whole number from {MIN_FEE_CAP} to {MAX_FEE_CAP}",
            between=(MIN_FEE_CAP, MAX_FEE_CAP),
            kind="Integer",
        ),
    ]


class NewContact(Struct, rename="camel"):
    """The contact of an app; each error has the documented text."""

    contact_email: Annotated[
        str, Field("An e-mail address to contact the business.", "ops@shop.example", is_required=True)
    ] = ""
    contact_name: Annotated[
        str, Field("The contact's name, 1 to 150 characters.", "Ada Lovelace", is_required=True)
    ] = ""
    contact_number: Annotated[str, Field("A phone number of 8 to 15 digits.", "15550009999", is_required=True)] = ""


class AppContact(Struct, rename="camel"):
    """The contact of an app; the format is ours."""

    contact_email: str
    contact_name: str
    contact_number: str


@operation("PUT", f"{APP}/appPreference", Success)
async def set_preference(call: AppCall, fields: AppPreference) -> None:
    """Set whether template messaging is shown as enabled."""
    await set_preferences(call.services, call.app, template_messaging=fields.is_on)


_set_url: Final = partial(operation, "PUT", returns=Success, rate="callback_url", errors=(ErrorCode.INVALID_URL,))


@_set_url(path=f"{APP}/callbackURL", source="public clients; facts 2, deprecated")
@_set_url(path=f"{APP}/callbackUrl", source="facts 2, deprecated")
async def set_callback_url(call: AppCall, fields: CallbackUrl) -> ApiResponse:
    """Store the app's callback URL."""
    check_url(fields.callback_url)
    await set_preferences(call.services, call.app, callback_url=fields.callback_url)
    return ApiResponse(Success(), headers=_STORED_ONLY_HEADERS)


@operation(
    "PUT",
    f"{APP}/callback/mode",
    success(callback=response(custom=bool, modes=list[str])),
    source="facts 2, deprecated",
    body=CallbackModes,
    errors=(ErrorCode.FIELD_BROKEN,),
)
async def set_callback_modes(call: AppCall) -> ApiResponse:
    """Store the modes of the app's callback URL."""
    modes = read_callback_modes(call.request.form_or_json())
    await set_preferences(call.services, call.app, callback_modes=modes)
    stored = {"custom": False, "modes": modes}
    return ApiResponse({"status": "success", "callback": stored}, headers=_STORED_ONLY_HEADERS)


@operation(
    "PUT",
    f"{APP}/callback",
    success(callback=response(url=str, custom=bool, modes=list[str])),
    source="facts 2, deprecated; ledger 1.2",
    body=Callback,
    errors=(ErrorCode.FIELD_BROKEN, ErrorCode.INVALID_CALLBACK, ErrorCode.INVALID_URL),
)
async def set_callback(call: AppCall) -> ApiResponse:
    """Store the app's callback URL and its modes."""
    form = call.request.form_or_json()
    url = form.text("url")
    if not url:
        raise ApiError(ErrorCode.INVALID_CALLBACK, "url must be an http or https address.")
    check_url(url)
    modes = read_callback_modes(form)
    await set_preferences(call.services, call.app, callback_url=url, callback_modes=modes)
    stored = {"url": url, "custom": True, "modes": modes}
    return ApiResponse({"status": "success", "callback": stored}, headers=_STORED_ONLY_HEADERS)


@operation("PUT", f"{APP}/optinMessagePreference", Success, source="ledger 1.9", status=202)
async def set_optin_message(call: AppCall, fields: OptInMessage) -> ApiResponse:
    """Store the opt-in message preference; none is sent."""
    await set_preferences(call.services, call.app, optin_message=fields.enable_optin_message)
    return ApiResponse(Success(), 202, headers=_NO_OPT_IN_MESSAGE_HEADERS)


@operation("PUT", f"{APP}/capping", Success, source="ledger 1.9; decision 0065", rate="app_token")
async def set_spending_cap(call: AppCall, fields: NewCap) -> None:
    """Store the cap of the app's fees; lists of apps show it, and no fees are charged."""
    await set_preferences(call.services, call.app, cap=fields.cap)


@operation("GET", f"{APP}/capping", success(cap=int), source="facts 13; decision 0065", rate="app_token")
async def show_spending_cap(call: AppCall) -> dict[str, Any]:
    """Return the cap; 0 if none was set."""  # the format is ours
    return {"status": "success", "cap": call.app.preferences.cap}


@operation(
    "PUT",
    f"{APP}/onboarding/contact",
    Confirmation,
    source="ledger 1.3",
    credential=Credential.PARTNER_TOKEN,
    body=NewContact,
    errors=(ErrorCode.INVALID_DETAILS,),
    other_app=ErrorCode.APP_ID_UNKNOWN,
)
async def set_contact(call: AppCall) -> dict[str, Any]:
    """Store the contact of the app; another e-mail address is not verified until its holder confirms it.

    The mail with the link that confirms it is not sent: the administrator finds the link in the console, and with
    `waypost app contact-email`.
    """
    email, name, number = read_contact(call.request.form_or_json())
    now_ms = call.services.clock.now_ms()

    def change(app: App) -> App:
        preferences = replace(app.preferences, contact_email=email, contact_name=name, contact_number=number)
        if email != app.preferences.contact_email:
            preferences = replace(preferences, contact_verified=False, verification_sent_ms=now_ms)
        return replace(app, preferences=preferences)

    await update_app(call.services, call.app, change)
    return {"status": "success", "message": "contact details updated successfully"}


@operation(
    "POST",
    f"{APP}/onboarding/contact/email/resend",
    Confirmation,
    source="ledger 1.3",
    credential=Credential.PARTNER_TOKEN,
    errors=(ErrorCode.CONTACT_EMAIL_NOT_SET, ErrorCode.CONTACT_VERIFIED),
    other_app=ErrorCode.AUTHENTICATION_FAILED,
)
async def resend_verification_mail(call: AppCall) -> dict[str, Any]:
    """Make a new mail with a link that confirms the contact's e-mail address; the earlier link ends.

    The mail is not sent: the administrator finds the link in the console, and with `waypost app contact-email`.

    Errors in this order: 401, 429, 400 no address, 400 the address is verified.
    """
    if not call.app.preferences.contact_email:
        raise ApiError(ErrorCode.CONTACT_EMAIL_NOT_SET, "PUT onboarding/contact sets the e-mail address.")
    if call.app.preferences.contact_verified:
        raise ApiError(ErrorCode.CONTACT_VERIFIED, "The address is verified; PUT onboarding/contact sets another one.")
    await set_preferences(call.services, call.app, verification_sent_ms=call.services.clock.now_ms())
    return {"status": "success", "message": "mail sent successfully"}


@operation("GET", f"{APP}/contact", success(contact=AppContact), source="decision 0065")
async def show_contact(call: AppCall) -> dict[str, Any]:
    """Return the contact of the app: the one that was set, or that of the partner's account."""
    preferences = call.app.preferences
    if preferences.contact_email:
        contact = AppContact(preferences.contact_email, preferences.contact_name, preferences.contact_number)
    else:
        partner = await partner_of(call.services, call.app)
        contact = AppContact(partner.email, partner.contact_name, partner.phone_number)
    return {"status": "success", "contact": contact}


async def set_preferences(services: Services, app: App, **preferences: Any) -> App:
    """Set these preferences of an app, leave the others unchanged, and return the app."""
    return await update_app(services, app, partial(_set_preferences, changes=preferences))


identity_operation = Operations("ledger 1.2", at_operator=False)


class UserIdSwitches(Struct, rename={"user_ids": "enableBSUID", "user_ids_v3": "enableBSUIDV3"}):
    """Switches of user ids in callbacks; an absent one stays as it is."""

    user_ids: Annotated[
        bool | None, Field("true: callbacks of version 2 have business-scoped user ids; for a live app.", "true")
    ] = None
    user_ids_v3: Annotated[
        bool | None, Field("true: callbacks of version 3 have business-scoped user ids; for a live app.", "true")
    ] = None


class UserIdSwitch(Struct, rename={"user_ids_v3": "enableBSUIDV3"}):
    """The switch of user ids in the callbacks of all apps."""

    user_ids_v3: Annotated[
        bool,
        Field(
            "true: callbacks of version 3 of every live app have business-scoped user ids.",
            "true",
            "true or false",
            kind="Boolean",
        ),
    ]


class ConfiguredPartner(Struct, rename="camel"):
    """The partner whose apps change; the body is checked before the number is."""

    partner_id: Annotated[
        int,
        Field(
            "The id of the partner whose token is sent.",
            "1",
            "the id of the partner whose token is sent",
            kind="Integer",
            read=keep_text,
            errors=(ErrorCode.WRONG_TYPE,),
        ),
    ]


@identity_operation(
    "PUT", f"{APP}/config/bsuid", Success, rate="app_token", errors=(ErrorCode.NO_USER_ID_FLAG, ErrorCode.APP_NOT_LIVE)
)
async def set_user_ids_in_callbacks(call: AppCall, fields: UserIdSwitches) -> None:
    """Set whether callbacks of versions 2 and 3 have user ids; a flag that is absent stays unchanged.

    Only a live app can enable them. Callbacks of earlier events do not change.
    """
    flags = {"user_ids": fields.user_ids, "user_ids_v3": fields.user_ids_v3}
    changes = {name: flag for name, flag in flags.items() if flag is not None}
    if not changes:
        raise ApiError(
            ErrorCode.NO_USER_ID_FLAG,
            "Send enableBSUID, for callbacks of version 2, enableBSUIDV3, for version 3, or both: true or false.",
        )
    if not call.app.live and any(changes.values()):
        raise ApiError(ErrorCode.APP_NOT_LIVE, "Only a live app can enable user ids; this one is a sandbox app.")
    await set_preferences(call.services, call.app, **changes)


@identity_operation(
    "PUT",
    "/partner/account/apps/config",
    success(message=str, partnerId=str, totalApps=str),
    credential=Credential.PARTNER_TOKEN,
    rate="create_app",
    errors=(ErrorCode.FORBIDDEN_ACCESS,),
)
async def set_user_ids_in_callbacks_of_all_apps(
    call: PartnerCall, query: ConfiguredPartner, fields: UserIdSwitch
) -> dict[str, Any]:
    """Set whether callbacks of version 3 have user ids, for every live app of the partner, in one transaction."""
    services, partner_id = call.services, call.partner_id
    if read_integer(query.partner_id, "partnerId") != partner_id:
        raise ApiError(ErrorCode.FORBIDDEN_ACCESS, "partnerId must be the id of the partner whose token is sent.")
    changes, now_ms = {"user_ids_v3": fields.user_ids_v3}, services.clock.now_ms()

    def change_all(connection: Connection) -> int:
        live = [app for app in list_apps(connection, partner_id) if app.live]
        for app in live:
            change_app(
                connection,
                app.id,
                lambda stored: replace(_set_preferences(stored, changes=changes), modified_on_ms=now_ms),
            )
        return len(live)

    count = await services.database.write(change_all)
    services.directory.invalidate()
    text = f"App config update for partner {partner_id} is complete. No mail is sent."
    return {"status": "success", "message": text, "partnerId": str(partner_id), "totalApps": str(count)}


def _set_preferences(app: App, *, changes: Mapping[str, Any]) -> App:
    return replace(app, preferences=replace(app.preferences, **changes))
