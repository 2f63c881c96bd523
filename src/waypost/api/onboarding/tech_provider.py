"""Apps that a partner creates for numbers of its business accounts."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Final

from msgspec import Struct
from sqlalchemy import Connection

from waypost.api.apps.apps import CALLBACK_EXAMPLE, REGION_MEANING, AppName, read_region, webhook_subscription
from waypost.api.authorisation import Credential
from waypost.api.fields import Field
from waypost.api.operation import AppCall, Operations, PartnerCall
from waypost.api.requests import ApiResponse
from waypost.base.encryption import hash_secret
from waypost.domain.app import App, AppOnboardingProgress, OnboardingStep
from waypost.domain.callbacks import MAX_SUBSCRIPTIONS_PER_APP
from waypost.domain.direct_calls import ListNumbers
from waypost.domain.errors import ApiError, ErrorCode
from waypost.domain.phone_number import read_phone_number
from waypost.store.accounts.partners import app_by_source
from waypost.store.apps.apps import app_by_name
from waypost.store.apps.onboarding import add_app_to_onboard, set_pace
from waypost.store.callbacks.subscriptions import add_subscription
from waypost.wire.responses import success
from waypost.wire.subscriptions import check_url

_NOT_OF_ACCOUNT: Final = "wabaId must be a business account of yours, and phone one of its numbers."
_NO_CALLBACK: Final = "App created, but failed to set callback on the application"


operation = Operations("ledger 1.3", Credential.PARTNER_TOKEN)


class NewLinkedApp(Struct, rename="camel"):
    """An app to create for a number."""

    name: AppName
    waba_id: Annotated[str, Field("The id of one of your business accounts.", "1000000000000010", strip=True)]
    phone: Annotated[
        str, Field("One of the account's numbers, 8 to 15 digits.", "15550001000", "a phone number of 8 to 15 digits")
    ]
    callback_url: Annotated[
        str,
        Field(
            "An http or https URL; a subscription with the tag `webhookUrl` sends the callbacks of version 2 there.",
            CALLBACK_EXAMPLE,
        ),
    ] = ""
    storage_region: Annotated[
        str, Field(REGION_MEANING, "IN", read=read_region, errors=(ErrorCode.INVALID_REGION,))
    ] = ""


@operation(
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
    any sandbox app: the operator rejects it while the number is not registered. Callbacks go to `callbackUrl` from the
    beginning, so that the event `live` arrives there. The administrator opens a business
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
    app = set_pace(replace(app, phone_number_id=number.id, preferences=preferences), number)
    token_hash = hash_secret(services.secret_box.app_token(app.id, app.token_serial))
    is_new = await services.database.write(
        partial(_add_app, app=app, token_hash=token_hash, seal=services.directory.seal)
    )
    if not is_new:  # another request was faster
        taken = await services.database.read(partial(_find_taken, app=app))
        if taken is not None:
            return taken
        raise ApiError(ErrorCode.WRONG_BUSINESS_ACCOUNT, "phone belongs to another partner's app.")
    if not is_callback_valid:
        return ApiResponse({"status": "error", "message": _NO_CALLBACK, "appId": app.id}, 400)
    return {"status": "success", "appId": app.id}


def _add_app(connection: Connection, app: App, token_hash: str, seal: Callable[[str, str], bytes]) -> bool:
    """Store an app with the first step of its onboarding, and the subscription of its callback URL, if it has one."""
    if not add_app_to_onboard(connection, app, token_hash):
        return False
    url = app.preferences.callback_url
    if url:
        add_subscription(connection, webhook_subscription(app, url, app.created_on_ms), seal, MAX_SUBSCRIPTIONS_PER_APP)
    return True


def _find_taken(connection: Connection, app: App) -> ApiResponse | None:
    """Return the response for an app of the partner that has the number, or None."""
    other = app_by_source(connection, app.partner_id, app.phone_number)
    if other is not None:
        text = f"App {other.id} already exists with phone {app.phone_number}"
        return ApiResponse({"status": "error", "message": text, "appId": other.id}, 409)
    if app_by_name(connection, app.partner_id, app.name) is not None:
        raise ApiError(ErrorCode.APP_EXISTS, "name is taken by another of your apps; choose another.")
    return None
