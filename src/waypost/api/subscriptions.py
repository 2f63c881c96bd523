"""The subscriptions of an app: create, list, show, change, delete. By app token, or self-serve by API key."""

from dataclasses import asdict, replace
from functools import partial
from typing import Annotated, Any, Final, Self

from msgspec import Struct

from waypost import __version__
from waypost.api.authorisation import Credential
from waypost.api.fields import Field
from waypost.api.idempotency import commit
from waypost.api.operation import APP, KEY_APP, AppCall, Operations
from waypost.api.requests import ApiResponse, Request
from waypost.api.route import BodyFormat, IdempotencyMode
from waypost.api.services import Services
from waypost.base.telemetry.logs import log
from waypost.domain.app import App
from waypost.domain.callbacks import MAX_SUBSCRIPTIONS_PER_APP, Subscription, check_single_voice, resume_subscription
from waypost.domain.errors import ApiError, ErrorCode
from waypost.store.callbacks.subscriptions import (
    DuplicateTag,
    TooManySubscriptions,
    add_subscription,
    change_subscription,
    delete_subscriptions,
    list_app_subscriptions,
    subscription_of_partner,
)
from waypost.wire.callbacks import callback_v2, callback_v3
from waypost.wire.forms import Form
from waypost.wire.responses import success
from waypost.wire.subscriptions import (
    SubscriptionForm,
    SubscriptionMeta,
    SubscriptionObject,
    read_subscription,
    subscription_object,
)

_log = log("api")

operation = Operations("facts 4.1", operator_errors=())
ONE_SUBSCRIPTION: Final = f"{APP}/subscription/{{subscription_id}}"
ONE_SUBSCRIPTION_ERRORS: Final = (ErrorCode.SUBSCRIPTION_DOES_NOT_EXIST, ErrorCode.NOT_SUBSCRIPTION_OWNER)
_KEY_ERRORS: Final = (ErrorCode.KEY_NOT_ASSOCIATED,)
_SUBSCRIPTION: Final = success(subscription=SubscriptionObject)
_operation: Final = partial(operation, rate="subscription", by_key=True, key_errors=_KEY_ERRORS)
_delete_all: Final = partial(
    operation,
    "DELETE",
    returns=None,
    rate="subscription",
    at_operator=False,
    wrong_credential=ErrorCode.UNAUTHORIZED_ACCESS,
)


class NewSubscription(Struct, rename={"show_on_ui": "showOnUI", "do_check": "doCheck"}):
    """A subscription, as a form. Source: facts 4.2."""

    modes: Annotated[
        str,
        Field(
            "The callbacks to send: modes separated by commas, or the field repeated.", "MESSAGE,SENT,DELIVERED,FAILED"
        ),
    ]
    tag: Annotated[str, Field("A name for the subscription, unique within the app; at most 180 characters.", "orders")]
    url: Annotated[str, Field("The URL that callbacks are posted to: http or https.", "https://shop.example/callbacks")]
    version: Annotated[int, Field("The version of the bodies: 2 or 3; 2 for a new subscription when absent.", "2")] = 2
    show_on_ui: Annotated[bool, Field("Stored and returned; no other effect.", "false")] = False
    meta: Annotated[
        SubscriptionMeta | None,
        Field("JSON text; its headers are added to each callback's request.", '{"headers":{"X-Shop":"s-1"}}'),
    ] = None
    do_check: Annotated[bool, Field("false skips the ping of the URL.", "true")] = True


class SubscriptionChange(Struct, rename={"show_on_ui": "showOnUI", "do_check": "doCheck"}):
    """Fields of a subscription to change; absent ones stay as they are."""

    modes: Annotated[str, Field("The callbacks to send from now on.", "MESSAGE,FAILED")] = ""
    tag: Annotated[str, Field("Another name for the subscription.", "orders-2")] = ""
    url: Annotated[str, Field("Another URL that callbacks are posted to.", "https://shop.example/callbacks/2")] = ""
    version: Annotated[int, Field("The version of the bodies: 2 or 3; 2 for a new subscription when absent.", "2")] = 2
    active: Annotated[bool, Field("false pauses the subscription, true resumes it.", "false")] = True
    show_on_ui: Annotated[bool, Field("Stored and returned; no other effect.", "false")] = False
    meta: Annotated[
        SubscriptionMeta | None,
        Field("JSON text; its headers are added to each callback's request.", '{"headers":{"X-Shop":"s-1"}}'),
    ] = None
    do_check: Annotated[bool, Field("false skips the ping of the URL.", "true")] = True


class SubscriptionCall(AppCall):
    """A call about an app's subscriptions: by app token, or by API key if the app is live and the key's partner's."""

    @classmethod
    async def authorise(cls, services: Services, request: Request) -> Self:
        """Return the call.

        Source: facts 4.1; for the self-serve route its last row.
        """
        if request.credential != Credential.API_KEY:
            return await super().authorise(services, request)
        try:
            call = await super().authorise(services, request)
        except ApiError as error:
            if error.code is ErrorCode.NOT_FOR_THIS_APP:
                raise ApiError(ErrorCode.KEY_NOT_ASSOCIATED, error.explanation) from error
            raise
        if not call.app.live:
            raise ApiError(
                request.wrong_credential,
                "The app in the path must be live; the administrator makes it live with `waypost app connect`.",
            )
        return call


@_operation(
    "POST",
    f"{APP}/subscription",
    _SUBSCRIPTION,
    body=NewSubscription,
    body_format=BodyFormat.FORM,
    errors=(
        ErrorCode.FIELD_BROKEN,
        ErrorCode.DUPLICATE_TAG,
        ErrorCode.TOO_MANY_SUBSCRIPTIONS,
        ErrorCode.VOICE_SUBSCRIPTION_EXISTS,
        ErrorCode.INVALID_URL,
    ),
    idempotency=IdempotencyMode.MARKED_FIRST,
)
async def create_subscription(call: SubscriptionCall) -> ApiResponse:
    """Create a subscription, once its URL has responded to one ping.

    Errors in this order: 401 wrong credential, 429 sixth in a minute, 400 unreadable or invalid
    fields, 400 duplicate tag or too many, 400 the URL does not respond with 2xx to the ping.
    """
    services, request, app = call
    form = read_subscription(request.form())
    subscriptions = await stored_subscriptions(services, app)
    if any(other.tag == form.tag for other in subscriptions):
        raise _duplicate_tag_error(form.tag)
    if len(subscriptions) >= MAX_SUBSCRIPTIONS_PER_APP:
        raise too_many_error()
    check_single_voice(form.modes, (other.modes for other in subscriptions))
    await _check_url(services, app, form)
    now_ms = services.clock.now_ms()
    subscription = Subscription(
        id="",
        partner_id=app.partner_id,
        app_id=app.id,
        created_on_ms=now_ms,
        modified_on_ms=now_ms,
        **_stored_values(form),
    )
    try:
        return await commit(
            services,
            request,
            add_subscription,
            subscription,
            services.directory.seal,
            MAX_SUBSCRIPTIONS_PER_APP,
            make_response=lambda new_id: ApiResponse(_response(replace(subscription, id=new_id))),
        )
    except DuplicateTag as error:
        raise _duplicate_tag_error(form.tag) from error
    except TooManySubscriptions as error:
        raise too_many_error() from error


@_operation("GET", f"{APP}/subscription", success(subscriptions=list[SubscriptionObject]), at_operator=False)
async def list_subscriptions(call: SubscriptionCall) -> dict[str, Any]:
    """Return the app's subscriptions, oldest first."""
    subscriptions = await stored_subscriptions(call.services, call.app)
    return {"status": "success", "subscriptions": [subscription_object(each) for each in subscriptions]}


@_operation("GET", ONE_SUBSCRIPTION, _SUBSCRIPTION, at_operator=False, errors=ONE_SUBSCRIPTION_ERRORS)
async def show_subscription(call: SubscriptionCall) -> dict[str, Any]:
    """Return one subscription."""
    return _response(await subscription_in_path(call))


@_operation(
    "PUT",
    ONE_SUBSCRIPTION,
    _SUBSCRIPTION,
    body=SubscriptionChange,
    body_format=BodyFormat.FORM,
    errors=(
        *ONE_SUBSCRIPTION_ERRORS,
        ErrorCode.FIELD_BROKEN,
        ErrorCode.DUPLICATE_TAG,
        ErrorCode.VOICE_SUBSCRIPTION_EXISTS,
        ErrorCode.INVALID_URL,
    ),
)
async def update_subscription(call: SubscriptionCall) -> dict[str, Any]:
    """Change a subscription, or pause it with `active` false; absent fields stay unchanged.

    Callbacks already emitted are sent to the URL that is set when they are sent. A paused subscription
    gets them once it is active again; events during the pause cause none (decision 0027).

    Errors in this order: 401 wrong credential, 429 sixth in a minute, 400 unknown, 403 of another
    app, 400 invalid fields, 400 duplicate tag, 400 a new URL that does not respond with 2xx to the ping.
    """
    services, request, app = call
    subscription = await subscription_in_path(call)
    fields = request.form()
    form = read_subscription(fields, subscription)
    others = [other for other in await stored_subscriptions(services, app) if other.id != subscription.id]
    if any(other.tag == form.tag for other in others):
        raise _duplicate_tag_error(form.tag)
    check_single_voice(form.modes, (other.modes for other in others))
    if form.url != subscription.url or form.do_check:
        await _check_url(services, app, form)
    directory = services.directory
    change = partial(_apply_form, fields, services.clock.now_ms())
    try:
        changed = await services.database.write(
            change_subscription, subscription, change, directory.seal, directory.unseal
        )
    except DuplicateTag as error:
        raise _duplicate_tag_error(form.tag) from error
    if changed is None:
        raise _unknown_error()
    return _response(changed)


def _response(subscription: Subscription) -> dict[str, Any]:
    return {"status": "success", "subscription": subscription_object(subscription)}


def _apply_form(fields: Form, now_ms: int, subscription: Subscription) -> Subscription:
    """Return the subscription as stored now, changed by the form.

    Another call may have changed it during the ping: its changes of other fields stay.
    """
    form = read_subscription(fields, subscription)
    if form.active and (fields.text("active") is not None or form.url != subscription.url):
        subscription = resume_subscription(subscription)
    return replace(subscription, **_stored_values(form), modified_on_ms=now_ms)


def _stored_values(form: SubscriptionForm) -> dict[str, Any]:
    return {name: value for name, value in asdict(form).items() if name != "do_check"}


@_operation("DELETE", ONE_SUBSCRIPTION, None, at_operator=False, errors=ONE_SUBSCRIPTION_ERRORS)
async def delete_subscription(call: SubscriptionCall) -> None:
    """Delete one subscription; 204 with no body."""
    app = call.app
    subscription = await subscription_in_path(call)
    if not await call.services.database.write(delete_subscriptions, app.id, app.partner_id, subscription.id):
        raise _unknown_error()


@_delete_all(path=f"{APP}/subscription", other_app=ErrorCode.UNAUTHORIZED_ACCESS)
@_delete_all(path=f"{KEY_APP}/subscription", credential=Credential.API_KEY, errors=_KEY_ERRORS)
async def delete_all_subscriptions(call: SubscriptionCall) -> None:
    """Delete every subscription of the app; 204 with no body. Source: facts 4.1; its 401 facts 10."""
    await call.services.database.write(delete_subscriptions, call.app.id, call.app.partner_id)


async def subscription_in_path(call: AppCall) -> Subscription:
    """Return the subscription in the path. Another app of the same partner has its own error."""
    services, request, app = call
    subscription_id = request.path["subscription_id"]
    if not (subscription_id.isascii() and subscription_id.isdecimal() and len(subscription_id) < 19):
        raise _unknown_error()
    subscription = await services.database.read(
        subscription_of_partner, app.partner_id, int(subscription_id), services.directory.unseal
    )
    if subscription is None:
        raise _unknown_error()
    if subscription.app_id != app.id:
        raise ApiError(
            ErrorCode.NOT_SUBSCRIPTION_OWNER,
            "The subscription belongs to another of your apps; the path must have the id of that app.",
        )
    return subscription


async def stored_subscriptions(services: Services, app: App) -> list[Subscription]:
    """Return the subscriptions of an app, oldest first."""
    return await services.database.read(list_app_subscriptions, app.id, app.partner_id, services.directory.unseal)


async def _check_url(services: Services, app: App, form: SubscriptionForm) -> None:
    """Vet the URL, and ping it unless the form disables the ping.

    The documented text is misleading, so the reason header explains the error (facts 14).
    """
    reason = await services.outbound.check_url(form.url)
    if reason is not None:
        _log.info("a subscription's URL is not allowed", reason=reason)
        raise ApiError(ErrorCode.INVALID_URL, f"url must lead to public addresses only; {reason}.", field="url")
    if not form.do_check:
        return
    now_ms = services.clock.now_ms()
    is_v2 = form.version == 2
    body = callback_v2.check_body(app, now_ms) if is_v2 else callback_v3.check_body(app)
    headers = {
        **form.headers,
        "Content-Type": "application/json; charset=utf-8",
        "User-Agent": f"Waypost/{__version__}",  # the same as every callback's
    }
    response = await services.outbound.post(form.url, body, headers)
    if response.status is None or not 200 <= response.status < 300:
        problem = response.error or f"it responded with {response.status}"
        _log.info("a subscription's URL failed its ping", reason=problem)
        text = f"url must respond with 2xx to a POST within 10 s, or send doCheck=false; {problem}."
        raise ApiError(ErrorCode.INVALID_URL, text, field="url")


def _unknown_error() -> ApiError:
    return ApiError(ErrorCode.SUBSCRIPTION_DOES_NOT_EXIST, "The path must name one of this app's subscriptions.")


def _duplicate_tag_error(tag: str) -> ApiError:
    return ApiError(ErrorCode.DUPLICATE_TAG, f"tag {tag} is taken; choose another.", field="tag")


def too_many_error() -> ApiError:
    """Return the error of an app that has as many subscriptions as it may."""
    return ApiError(
        ErrorCode.TOO_MANY_SUBSCRIPTIONS,
        f"An app may have at most {MAX_SUBSCRIPTIONS_PER_APP} subscriptions; delete one first.",
    )
