"""Onboarding: links and tokens, apps for numbers, registration of a number, and the data of the business."""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Final

from msgspec import Struct, defstruct
from sqlalchemy import Connection

from waypost.api.apps.apps import CALLBACK_EXAMPLE, CALLBACK_MEANING, REGION_MEANING, AppName, partner_of, read_region
from waypost.api.apps.settings import set_preferences
from waypost.api.authorisation import Credential, is_token_of
from waypost.api.fields import Field, keep_text, omit_empty
from waypost.api.operation import APP, AppCall, Operations, OwnPartnerCall, PartnerCall
from waypost.api.requests import ApiResponse
from waypost.api.services import Services
from waypost.base.encryption import hash_secret
from waypost.base.json_values import boolean_of
from waypost.domain.app import (
    MAX_REPLACED_ONBOARDING_LINKS,
    MIGRATION_STATUSES,
    ONBOARDING_LINK_LIFE_MS,
    ONBOARDING_PATH,
    App,
    AppOnboardingProgress,
    OnboardingStep,
)
from waypost.domain.coercion import read_flag
from waypost.domain.direct_calls import ListNumbers
from waypost.domain.errors import ApiError, ErrorCode, invalid_field, missing_parameter
from waypost.domain.phone_number import read_phone_number
from waypost.store.accounts.partners import app_by_source
from waypost.store.apps.apps import app_by_name
from waypost.store.apps.keys import revoke_app_key
from waypost.store.apps.onboarding import add_app_to_onboard, begin_onboarding
from waypost.wire.apps import (
    PREFILLED_FIELDS,
    AppLinkedByToken,
    MigratedNumber,
    app_linked_by_linking_token,
    app_linked_by_token,
    migrated_number,
    prefilled_object,
    read_prefilled,
)
from waypost.wire.responses import Success, success
from waypost.wire.subscriptions import check_url

operation = Operations("ledger 1.3; facts 2", Credential.PARTNER_TOKEN, at_operator=False)


class OnboardingLink(Struct):
    """The link to a page; the flag is read last."""

    regenerate: Annotated[
        bool,
        Field(
            "True replaces the link, also one that has expired.",
            "false",
            read=keep_text,
            errors=(ErrorCode.WRONG_TYPE,),
        ),
    ] = False
    user: Annotated[str, Field("A name of whom the link is for.", "Ada", is_required=True)] = ""
    lang: Annotated[str, Field("The language of the page; it is in English.", "en")] = ""


class PhoneMigration(Struct, rename="camel"):
    """The origin of the number of an app."""

    migration_status: Annotated[
        str,
        Field(
            "META_EMBED_MIGRATION: the number is live elsewhere, and the app is not live yet; MIGRATED_IN: it is live "
            "here already.",
            "META_EMBED_MIGRATION",
            strip=True,
            is_required=True,
        ),
    ] = ""


class LinkingCredential(Struct, rename="camel"):
    """An app, and a token of it."""

    app_id: Annotated[
        str, Field("The id of one of your apps.", "01990000-0000-7000-8000-0000000000a1", "the id of one of your apps")
    ]
    token: Annotated[
        str,
        Field(
            "A token of the app: one of `POST …/token`, which then works no more, or the app token.",
            "sk_0123456789abcdef",
            "a token of the app, such as one of POST A/token",
        ),
    ]


class LinkingToken(Struct):
    """A token that names its app."""

    token: Annotated[
        str,
        Field("A token of one of the partner's apps that expires, such as one of `POST A/token`.", is_required=True),
    ] = ""


@operation(
    "GET",
    f"{APP}/onboarding/embed/link",
    success(link=str),
    errors=(ErrorCode.QUERY_EMPTY, ErrorCode.FIELD_MISSING, ErrorCode.LINK_EXPIRED, ErrorCode.TOO_MANY_LINKS),
)
async def get_onboarding_link(call: AppCall, query: OnboardingLink) -> dict[str, Any]:
    """Return the link to the app's onboarding page, which is valid for 5 days; `regenerate` replaces it.

    The page shows anyone with the link whether the app has a number and is live. `lang` is accepted and
    changes nothing: the page is in English.

    Errors in this order: 401, 429, 400 no query, 400 no user, 400 the link has expired, 400 it was replaced 40 times.
    """
    services, _, app = call
    if not (query.regenerate or query.user or query.lang):
        raise ApiError(ErrorCode.QUERY_EMPTY, "Send at least one of regenerate, user and lang in the query.")
    if not query.user:
        raise missing_parameter("user", "a name of whom the link is for")
    now_ms = services.clock.now_ms()
    created_on_ms = app.preferences.onboarding_link_ms
    if not created_on_ms or read_flag(query.regenerate, "regenerate"):
        replaced = app.preferences.replaced_onboarding_links + (created_on_ms > 0)
        if replaced > MAX_REPLACED_ONBOARDING_LINKS:
            raise ApiError(
                ErrorCode.TOO_MANY_LINKS,
                f"The link was replaced {MAX_REPLACED_ONBOARDING_LINKS} times; no more is possible.",
                text=f"Max Links Already sent, please contact support at {services.public_url}",
            )
        created_on_ms = now_ms
        await set_preferences(services, app, onboarding_link_ms=created_on_ms, replaced_onboarding_links=replaced)
    elif now_ms >= created_on_ms + ONBOARDING_LINK_LIFE_MS:
        raise ApiError(ErrorCode.LINK_EXPIRED, "The link is older than 5 days: regenerate=true replaces it.")
    code = services.secret_box.onboarding_codes(app.id, created_on_ms)[0]
    return {"status": "success", "link": f"{services.public_url}{ONBOARDING_PATH}/{code}"}


@operation(
    "POST",
    f"{APP}/onboarding/phoneMigration",
    success(whatsapp=MigratedNumber),
    errors=(ErrorCode.INVALID_DETAILS,),
    other_app=ErrorCode.APPLICATION_NOT_FOUND,
)
async def set_phone_migration(call: AppCall, fields: PhoneMigration) -> dict[str, Any]:
    """Store that the app's number comes from elsewhere, and return how far its onboarding is.

    The onboarding of an app that has a number begins, or begins again after an error. An app without a number gets one
    from the administrator.

    Errors in this order: 401, 400 no such app, 429, 400 no such status, 400 it contradicts whether the app is live.
    """
    services, status, now_ms = call.services, fields.migration_status, call.services.clock.now_ms()
    if status not in MIGRATION_STATUSES:
        raise ApiError(
            ErrorCode.INVALID_DETAILS,
            f"migrationStatus must be {' or '.join(MIGRATION_STATUSES)}.",
            field="migrationStatus",
        )
    if call.app.live != (status == MIGRATION_STATUSES[1]):
        text = "is live: send MIGRATED_IN" if call.app.live else "is not live yet: send META_EMBED_MIGRATION"
        raise ApiError(ErrorCode.INVALID_DETAILS, f"The app {text}.", field="migrationStatus")
    await set_preferences(services, call.app, migration_status=status, migration_ms=now_ms)
    due_ms = now_ms + services.onboarding_step_ms
    app = await services.database.write(partial(begin_onboarding, app_id=call.app.id, at_ms=now_ms, due_ms=due_ms))
    services.directory.invalidate()
    if app is None:
        raise ApiError(ErrorCode.APPLICATION_NOT_FOUND, "The app has just been deleted.")
    return {"status": "success", "whatsapp": migrated_number(app, services.wallet.currency)}


@operation(
    "POST",
    "/partner/account/api/auth/appLink",
    success(partnerApps=AppLinkedByToken),
    source="ledger 1.2, `auth/appLink`",
    errors=(ErrorCode.RESOURCE_NOT_FOUND, ErrorCode.INVALID_APP_DETAILS),
)
async def link_app_by_token(call: PartnerCall, fields: LinkingCredential) -> dict[str, Any]:
    """Return one of the partner's apps by its id and a token of it: all are linked already.

    A token that expires (`POST A/token`) is revoked, so that it works once; the app token stays.

    Errors in this order: 401, 429, 400 a missing field, 404 no such app of the partner, 400 not a token of the app.
    """
    services = call.services
    app = await services.directory.app(fields.app_id)
    if app is None or app.partner_id != call.partner_id:
        raise ApiError(ErrorCode.RESOURCE_NOT_FOUND, "appId must be the id of one of your apps.", field="appId")
    if not await _use_token(services, app, hash_secret(fields.token)):
        raise ApiError(ErrorCode.INVALID_APP_DETAILS, "token must be a valid token of the app.", field="token")
    account = await services.directory.business_account(app.business_account_id) if app.business_account_id else None
    linked = app_linked_by_token(app, await partner_of(services, app), "" if account is None else account.namespace)
    return {"status": "success", "partnerApps": linked}


@operation(
    "POST",
    "/partner/{partner_id}/app-link/app-token",
    success(linked=bool, appId=str, appName=str, customerId=str, partnerId=int, tokenStatus=str),
    source="ledger 1.11",
    errors=(ErrorCode.FIELD_BROKEN, ErrorCode.FORBIDDEN_ACCESS),
)
async def link_app_by_linking_token(call: OwnPartnerCall, fields: LinkingToken) -> dict[str, Any]:
    """Return the app of a token that expires (`POST A/token`), and revoke the token, so that it works once.

    All apps of a partner are linked already, so that nothing else changes.

    Errors in this order: 401, 429, 403 another partner's path, 400 no token, 400 no token of one of the partner's apps.
    """
    if not fields.token:
        raise ApiError(ErrorCode.FIELD_BROKEN, "token is required", field="token")
    services, token_hash = call.services, hash_secret(fields.token)
    key = await services.directory.app_key(token_hash)
    app = None if key is None else await services.directory.app(key.app_id)
    if app is None or app.partner_id != call.partner_id or not await _use_token(services, app, token_hash):
        raise ApiError(
            ErrorCode.FIELD_BROKEN,
            "SS app link token is not valid (status=error, tokenStatus=INVALID)",
            field="token",
            accepted="a token of one of your apps, such as one of POST A/token",
        )
    return app_linked_by_linking_token(app)


async def _use_token(services: Services, app: App, token_hash: str) -> bool:
    """Return whether the token is one of the app; revoke it if it is one that expires."""
    if is_token_of(services, app, token_hash):
        return True
    key = await services.directory.app_key(token_hash)
    if key is None or key.app_id != app.id or key.expires_on_ms is None:
        return False
    now_ms = services.clock.now_ms()
    revoked = await services.database.write(
        partial(revoke_app_key, app_id=app.id, key_id=key.id, now_ms=now_ms, minted=True)
    )
    services.directory.invalidate()
    return revoked is not None and revoked.revoked_on_ms is None  # another request may have been faster


SYNC_TYPES: Final = ("smb_app_state_sync", "history")  # contacts, and messages. Source: ledger 1.3
_PIN: Final = re.compile(r"[0-9]{6}", re.ASCII)


registration_operation = Operations("ledger 1.3")
_registration = partial(
    registration_operation,
    "POST",
    returns=success(success=bool),
    wrong_credential=ErrorCode.UNAUTHORIZED_ACCESS,
    other_app=ErrorCode.FORBIDDEN_ACCESS,
)


class Registration(Struct):
    """The registration of a number."""

    region: Annotated[
        str,
        Field(
            "The code of the country where the operator stores messages; not changed when absent.",
            "IN",
            read=read_region,
            errors=(ErrorCode.INVALID_REGION,),
        ),
    ] = ""
    pin: Annotated[str, Field("The number's PIN, if it was registered elsewhere: 6 digits.")] = ""


class RequestedSync(Struct, rename="camel"):
    """The data to request."""

    sync_type: Annotated[
        str,
        Field(
            "The data to request: smb_app_state_sync (contacts) or history, in any case.", "history", is_required=True
        ),
    ] = ""


@_registration(path=f"{APP}/onboarding/register", errors=(ErrorCode.FIELD_BROKEN,))
async def register_number(call: AppCall, fields: Registration) -> dict[str, Any]:
    """Register the app's number for sending.

    Its PIN is derived from the instance key, so that repeated registrations send the same one. A number that was
    registered with another PIN is registered with the field `pin`, which is ours. The region is passed on only if
    the request names one: the documented default, IN, would move the data of every number there.

    Errors in this order: 401, 429, 400 an invalid field, 400 no number yet, 400 the operator's error, 503.

    Source: ledger 1.3, `onboarding/register`; the operator's page "Registration".
    """
    pin = fields.pin or call.services.secret_box.number_pin(call.number)
    if not _PIN.fullmatch(pin):
        raise invalid_field("pin", "6 digits")
    body = {"messaging_product": "whatsapp", "pin": pin, "data_localization_region": fields.region}
    return _registration_response(await call.graph("POST", f"{call.number}/register", omit_empty(body)))


@_registration(path=f"{APP}/onboarding/deregister")
async def deregister_number(call: AppCall) -> dict[str, Any]:
    """Deregister the app's number: it can send nothing until it is registered again.

    Errors in this order: 401, 429, 400 no number yet, 400 the operator's error, 503.

    Source: ledger 1.3, `onboarding/deregister`; the operator's page "Registration".
    """
    return _registration_response(await call.graph("POST", f"{call.number}/deregister"))


def _registration_response(response: dict[str, Any]) -> dict[str, Any]:
    return {"status": "success", "success": boolean_of(response.get("success"), default=True)}


@registration_operation(
    "POST", f"{APP}/coex/sync", success(data=dict[str, Any]), rate="app_token", errors=(ErrorCode.INVALID_SYNC_TYPE,)
)
async def request_synchronisation_of_contacts(call: AppCall, fields: RequestedSync) -> dict[str, Any]:
    """Request the contacts or the messages of a number that a person also uses in the WhatsApp Business app.

    They arrive as callbacks of the mode COEXISTENCE. Each may be requested once, within 24 hours of onboarding.

    Errors in this order: 401, 429, 400 no such type, 400 no number yet, 400 the operator's error, 503.
    """
    text = fields.sync_type.strip().lower()
    if text not in SYNC_TYPES:
        raise ApiError(ErrorCode.INVALID_SYNC_TYPE, f"syncType must be one of {', '.join(SYNC_TYPES)}, in any case.")
    body = {"messaging_product": "whatsapp", "sync_type": text}
    return {"status": "success", "data": await call.graph("POST", f"{call.number}/smb_app_data", body)}


prefilled_operation = Operations("ledger 1.3", at_operator=False)
Prefilled = defstruct(
    "Prefilled", [(row.name, Annotated[str, Field(row.meaning, row.example)], "") for row in PREFILLED_FIELDS]
)
_operation_on_data = partial(
    prefilled_operation,
    path=f"{APP}/onboarding/embed/prefilled",
    returns=success(appId=str, **{row.name: str for row in PREFILLED_FIELDS}),
    by_key=True,
)


@_operation_on_data("POST", body=Prefilled, errors=(ErrorCode.INVALID_PREFILLED,))
async def set_prefilled_onboarding_data(call: AppCall) -> dict[str, Any]:
    """Store the data, instead of what was stored before, and return it."""
    return await _store(call, read_prefilled(call.request.form_or_json(), {}))


@_operation_on_data("PUT", body=Prefilled, errors=(ErrorCode.INVALID_PREFILLED,))
async def change_prefilled_onboarding_data(call: AppCall) -> dict[str, Any]:
    """Change the named fields, remove empty ones, and return all."""
    return await _store(call, read_prefilled(call.request.form_or_json(), call.app.preferences.prefilled))


@_operation_on_data("GET")
async def show_prefilled_onboarding_data(call: AppCall) -> dict[str, Any]:
    """Return the data; fields that were not set are empty."""
    return prefilled_object(call.app)


@_operation_on_data("DELETE", returns=Success)
async def delete_prefilled_onboarding_data(call: AppCall) -> None:
    """Delete the data. Source: ledger 1.3, `prefilled`; the response's format is ours."""
    await _store(call, {})


async def _store(call: AppCall, fields: Mapping[str, str]) -> dict[str, Any]:
    return prefilled_object(await set_preferences(call.services, call.app, prefilled=fields))


_NOT_OF_ACCOUNT: Final = "wabaId must be a business account of yours, and phone one of its numbers."
_NO_CALLBACK: Final = "App created, but failed to set callback on the application"


linked_app_operation = Operations("ledger 1.3", Credential.PARTNER_TOKEN)


class NewLinkedApp(Struct, rename="camel"):
    """An app to create for a number."""

    name: AppName
    waba_id: Annotated[str, Field("The id of one of your business accounts.", "1000000000000010", strip=True)]
    phone: Annotated[
        str, Field("One of the account's numbers, 8 to 15 digits.", "15550001000", "a phone number of 8 to 15 digits")
    ]
    callback_url: Annotated[str, Field(CALLBACK_MEANING, CALLBACK_EXAMPLE)] = ""
    storage_region: Annotated[
        str, Field(REGION_MEANING, "IN", read=read_region, errors=(ErrorCode.INVALID_REGION,))
    ] = ""


@linked_app_operation(
    "POST",
    "/partner/tpp/app",
    success(appId=str),
    rate="create_app",
    errors=(ErrorCode.APP_EXISTS, ErrorCode.WRONG_BUSINESS_ACCOUNT),
)
async def create_linked_app(call: PartnerCall, fields: NewLinkedApp) -> dict[str, Any] | ApiResponse:
    """Create an app for a number of one of the partner's business accounts, and begin its onboarding.

    The service checks the number at the operator, subscribes to the business account, registers the number, and makes
    the app live; `GET A/pipeline` shows the stage, and the event `live` its end. Until then a message is sent as from
    any sandbox app: the operator rejects it while the number is not registered. The administrator opens a business
    account to a partner with `waypost account business`. A repeated request is no second app: it gets the first one's
    id.

    Errors in this order: 401, 429, 400 an invalid field, 400 not the partner's account, 409 an app with the number,
    409 a duplicate name, 503, 400 not a number of the account, 400 the app was created without its callback URL.
    """
    services, phone = call.services, read_phone_number(fields.phone)
    account = await services.directory.business_account(fields.waba_id)
    if account is None or account.partner_id != call.partner_id or phone is None:
        raise ApiError(ErrorCode.WRONG_BUSINESS_ACCOUNT, _NOT_OF_ACCOUNT)
    now_ms = services.clock.now_ms()
    app = App(
        id=services.ids.new(),
        partner_id=call.partner_id,
        name=fields.name,
        phone_number=phone,
        phone_number_id="",
        business_account_id=account.id,
        created_on_ms=now_ms,
        modified_on_ms=now_ms,
        live=False,
    )
    taken = await services.database.read(partial(_find_taken, app=app))
    if taken is not None:
        return taken
    listed = await AppCall(services, call.request, app).operator(ListNumbers(account.id))
    number = next((each for each in listed if read_phone_number(each.display_number) == phone), None)
    if number is None:
        raise ApiError(ErrorCode.WRONG_BUSINESS_ACCOUNT, _NOT_OF_ACCOUNT)
    is_callback_valid = True
    try:
        if fields.callback_url:
            check_url(fields.callback_url)
    except ApiError:
        is_callback_valid = False
    preferences = replace(
        app.preferences,
        storage_region=fields.storage_region,
        callback_url=fields.callback_url if is_callback_valid else "",
        onboarding=AppOnboardingProgress(OnboardingStep.CHECK_NUMBER, now_ms + services.onboarding_step_ms),
    )
    app = replace(app, phone_number_id=number.id, per_second=number.per_second, preferences=preferences)
    token_hash = hash_secret(services.secret_box.app_token(app.id, app.token_serial))
    if not await services.database.write(add_app_to_onboard, app, token_hash):  # another request was faster
        taken = await services.database.read(partial(_find_taken, app=app))
        if taken is not None:
            return taken
        raise ApiError(ErrorCode.WRONG_BUSINESS_ACCOUNT, "phone belongs to another partner's app.")
    if not is_callback_valid:
        return ApiResponse({"status": "error", "message": _NO_CALLBACK, "appId": app.id}, 400)
    return {"status": "success", "appId": app.id}


def _find_taken(connection: Connection, app: App) -> ApiResponse | None:
    """Return the response for an app of the partner that has the number, or None."""
    other = app_by_source(connection, app.partner_id, app.phone_number)
    if other is not None:
        text = f"App {other.id} already exists with phone {app.phone_number}"
        return ApiResponse({"status": "error", "message": text, "appId": other.id}, 409)
    if app_by_name(connection, app.partner_id, app.name) is not None:
        raise ApiError(ErrorCode.APP_EXISTS, "name is taken by another of your apps; choose another.")
    return None
