"""Direct calls: a table of the request of each call and the reader of its response."""

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from waypost.base.http.request_bodies import FormPart
from waypost.base.json_values import object_of
from waypost.domain import direct_calls
from waypost.domain.app import OperatorAccount
from waypost.domain.direct_calls import CallFailure, OperatorCall, Response, TemplateDetail, unsupported_call
from waypost.domain.outcome import OperatorAccepted, OperatorRejected, OperatorUnavailable, Outcome
from waypost.operators.cloud import direct_responses
from waypost.operators.cloud.direct_responses import NUMBER_URL_FIELDS, subscription
from waypost.operators.cloud.error_codes import name_conflict
from waypost.operators.cloud.http_calls import OPERATOR_CALL_TIMEOUT_S, CloudHttpClient, whole_list
from waypost.operators.cloud.numbers import number_status
from waypost.operators.cloud.rate_usage import CallCategory
from waypost.operators.cloud.webhook_items import NEEDED_FIELDS

_PRODUCT: Final = {"messaging_product": "whatsapp"}

Request = TypeVar("Request", bound=OperatorCall[Any])
_MakeMembers = Callable[[Request, OperatorAccount], dict[str, Any]]
_Handler = Callable[[CloudHttpClient, OperatorAccount, Any], Awaitable[Any]]
_CallEntry = tuple[type[OperatorCall[Any]], _Handler]

_NUMBER: Final = (  # Source: operator's facts 1, "Phone node"
    "id,display_phone_number,verified_name,quality_rating,throughput,status,"
    "whatsapp_business_manager_messaging_limit,health_status"
)
_NUMBERS: Final = (
    "id,display_phone_number,verified_name,quality_rating,status,code_verification_status,name_status,"
    "platform_type,throughput,whatsapp_business_manager_messaging_limit,webhook_configuration"
)
_BUSINESS: Final = "id,name,timezone_id,message_template_namespace,account_review_status"
_BUSINESS_STATUS: Final = (  # Source: operator's facts 1, "WABA node"
    "id,name,account_review_status,ownership_type,marketing_messages_lite_api_status"
)
_TEMPLATE_FIELDS: Final = "id,name,language,status,category,previous_category,components,quality_score,rejected_reason"
_TEMPLATES: Final = {  # Source: operator's facts 2.1
    TemplateDetail.STATUS: "id,name,language,status",
    TemplateDetail.REVIEW: "name,language,status,category,rejected_reason,quality_score",
    TemplateDetail.CONTENTS: (
        "name,language,status,category,rejected_reason,quality_score,"
        "components,parameter_format,message_send_ttl_seconds,sub_category,source"
    ),
    TemplateDetail.TEXTS: "name,language,status,components",
}


async def call(
    calls: CloudHttpClient, account: OperatorAccount, request: OperatorCall[Response]
) -> Response | CallFailure:
    """Make a direct call."""
    handler = CALLS.get(type(request))
    return unsupported_call(request) if handler is None else await handler(calls, account, request)


def _exchange(
    kind: type[Request],
    method: str,
    path: Callable[[Request], str],
    read: Callable[[dict[str, Any], Request], object],
    *,
    query: _MakeMembers[Request] | None = None,
    body: _MakeMembers[Request] | None = None,
    form: Callable[[Request], list[FormPart]] | None = None,
    business: Callable[[Request], str] | None = None,
    category: CallCategory = CallCategory.MANAGEMENT,
) -> _CallEntry:
    """Return the table row of a call that is one request.

    Args:
        kind: the type of the direct call.
        method: the HTTP method.
        path: below the version.
        read: turns the JSON object of the response into the result; returns an outcome for an invalid object.
        query: of the URL.
        body: JSON.
        form: instead of a body.
        business: the business account that is called itself; the call counts toward its limits only.
        category: the limit that it counts toward.
    """

    async def make_call(calls: CloudHttpClient, account: OperatorAccount, request: Request) -> object:
        response = await calls(
            account,
            method,
            path(request),
            None if body is None else body(request, account),
            None if query is None else query(request, account),
            form=None if form is None else form(request),
            timeout_s=OPERATOR_CALL_TIMEOUT_S,
            category=category,
            business="" if business is None else business(request),
        )
        match response:
            case {"error": error}:  # the template name already exists: every other error is an outcome already
                return name_conflict(object_of(error))
            case dict():
                return read(response, request)
            case OperatorAccepted():
                raise AssertionError("a call has no message to send")
            case _:
                return response

    return kind, make_call


def _full_listing(
    kind: type[Request],
    path: Callable[[Request], str],
    read: Callable[[list[Any]], object],
    *,
    name: str,
    query: _MakeMembers[Request],
    business: Callable[[Request], str],
) -> _CallEntry:
    """Return the table row of a call that reads all pages of a list."""

    async def make_call(calls: CloudHttpClient, account: OperatorAccount, request: Request) -> object:
        items = await whole_list(
            calls,
            account,
            path(request),
            query(request, account),
            name=name,
            business=business(request),
            timeout_s=OPERATOR_CALL_TIMEOUT_S,
        )
        return read(items) if isinstance(items, list) else items

    return kind, make_call


async def _get_subscription(
    calls: CloudHttpClient, account: OperatorAccount, request: direct_calls.GetSubscription
) -> direct_calls.WebhookSubscription | Outcome:
    async def listed(edge: str, query: dict[str, str]) -> list[Any] | Outcome:
        owner = request.business_account_id
        name = edge.replace("_", " ")
        return await whole_list(
            calls, account, f"{owner}/{edge}", query, name=name, business=owner, timeout_s=OPERATOR_CALL_TIMEOUT_S
        )

    apps = await listed("subscribed_apps", {})
    if not isinstance(apps, list):
        return apps
    numbers = await listed("phone_numbers", {"fields": NUMBER_URL_FIELDS})
    return subscription(account["app_id"], apps, numbers) if isinstance(numbers, list) else numbers


def _authorise_as_app(account: OperatorAccount) -> OperatorAccount:
    """Return the account with the app's own token, which calls about the app's subscriptions need."""
    return account.replace_fields(token=f"{account['app_id']}|{account['app_secret']}")


async def _list_app_subscriptions(calls: CloudHttpClient, account: OperatorAccount) -> list[Any] | Outcome:
    app_id = account["app_id"]
    return await whole_list(
        calls,
        _authorise_as_app(account),
        f"{app_id}/subscriptions",
        {},
        name="subscriptions",
        business=app_id,
        timeout_s=OPERATOR_CALL_TIMEOUT_S,
    )


async def _list_missing_fields(
    calls: CloudHttpClient, account: OperatorAccount, _request: direct_calls.ListMissingFields
) -> list[direct_calls.MissingWebhookField] | Outcome:
    """Return the fields that the app is not subscribed to."""
    listed = await _list_app_subscriptions(calls, account)
    return direct_responses.missing_fields(listed) if isinstance(listed, list) else listed


async def _check_token(calls: CloudHttpClient, account: OperatorAccount, request: direct_calls.CheckToken) -> object:
    """Return the state of our token; None also where an operator does not report on tokens."""
    outcome = await _request_token_status(calls, account, request)
    match outcome:
        case OperatorRejected(code=code, operator_code=operator_code) if (
            code if operator_code is None else operator_code
        ) in direct_responses.TOKEN_STATUS_UNSUPPORTED_CODES:
            return None
        case OperatorUnavailable(code=code) if code in direct_responses.TOKEN_STATUS_UNSUPPORTED_CODES:
            return None
        case _:
            return outcome


def _omit_none(**members: Any) -> dict[str, Any]:
    """Return the members that are not None."""
    return {name: value for name, value in members.items() if value is not None}


def _read_receipt(request: direct_calls.MarkRead, _account: OperatorAccount) -> dict[str, Any]:
    body = _PRODUCT | {"status": "read", "message_id": request.message_id}
    return body | {"typing_indicator": {"type": "text"}} if request.typing else body


_, _request_token_status = _exchange(
    direct_calls.CheckToken,
    "GET",
    lambda request: "debug_token",
    direct_responses.token_status,
    query=lambda request, account: {"input_token": account["token"]},
)

_NOT_SUBSCRIBED: Final = "your app must be subscribed"  # of the operator's error text; its code is 100
_, _subscribe_app = _exchange(
    direct_calls.Subscribe,
    "POST",
    lambda request: f"{request.business_account_id}/subscribed_apps",
    direct_responses.call_result,
    business=lambda request: request.business_account_id,
)
_, _override_url = _exchange(
    direct_calls.Subscribe,
    "POST",
    lambda request: f"{request.business_account_id}/subscribed_apps",
    direct_responses.call_result,
    body=lambda request, account: {"override_callback_uri": request.url, "verify_token": account["verify_token"]},
    business=lambda request: request.business_account_id,
)


async def _subscribe_fields(calls: CloudHttpClient, account: OperatorAccount, url: str) -> None:
    """Give the app a subscription with the fields that we need; whether it has one then, the next call shows."""
    body = {
        "object": "whatsapp_business_account",
        "callback_url": url,
        "verify_token": account["verify_token"],
        "fields": ",".join(field.name for field in NEEDED_FIELDS),
    }
    path = f"{account['app_id']}/subscriptions"
    await calls(_authorise_as_app(account), "POST", path, body, timeout_s=OPERATOR_CALL_TIMEOUT_S)


async def _subscribe(calls: CloudHttpClient, account: OperatorAccount, request: direct_calls.Subscribe) -> object:
    """Subscribe the app with our URL; if it is not subscribed yet, subscribe it first: the URL replaces that of a subscription.

    An app that has no subscription at all gets one with the fields that we need. One that exists is left as it is,
    because it may be another system's.

    Source: operator's page "Override webhooks".
    """
    outcome = await _override_url(calls, account, request)
    if not isinstance(outcome, OperatorRejected) or _NOT_SUBSCRIBED not in outcome.text:
        return outcome
    if await _list_app_subscriptions(calls, account) == []:
        await _subscribe_fields(calls, account, request.url)
    await _subscribe_app(calls, account, request)
    return await _override_url(calls, account, request)


CALLS: Final[dict[type[OperatorCall[Any]], _Handler]] = dict(
    [  # Source: operator's facts 1, 2.1, 6.1; its pages "Business profiles", "Block users", "Conversational components", "Flows API", "Groups", "Payments onboarding APIs", "Receive payments via payment gateways on WhatsApp"
        # numbers and business accounts
        _exchange(
            direct_calls.GetNumber,
            "GET",
            lambda request: request.number_id,
            lambda response, _: number_status(response),
            query=lambda request, _: {"fields": _NUMBER},
        ),
        _exchange(
            direct_calls.GetBusinessStatus,
            "GET",
            lambda request: request.business_account_id,
            direct_responses.business_status,
            query=lambda request, _: {"fields": _BUSINESS_STATUS},
            business=lambda request: request.business_account_id,
        ),
        _exchange(
            direct_calls.GetBusinessAccount,
            "GET",
            lambda request: request.business_account_id,
            direct_responses.operator_business,
            query=lambda request, _: {"fields": _BUSINESS},
            business=lambda request: request.business_account_id,
        ),
        _full_listing(
            direct_calls.ListNumbers,
            lambda request: f"{request.business_account_id}/phone_numbers",
            direct_responses.operator_numbers,
            name="phone numbers",
            query=lambda request, _: {"fields": _NUMBERS},
            business=lambda request: request.business_account_id,
        ),
        (direct_calls.CheckToken, _check_token),
        # webhooks
        (direct_calls.GetSubscription, _get_subscription),
        (direct_calls.ListMissingFields, _list_missing_fields),
        (direct_calls.Subscribe, _subscribe),
        _exchange(
            direct_calls.Unsubscribe,
            "DELETE",
            lambda request: f"{request.business_account_id}/subscribed_apps",
            direct_responses.call_result,
            business=lambda request: request.business_account_id,
        ),
        # templates
        _full_listing(
            direct_calls.ListTemplates,
            lambda request: f"{request.business_account_id}/message_templates",
            direct_responses.operator_templates,
            name="templates",
            query=lambda request, _: _omit_none(name=request.name, fields=_TEMPLATES[request.detail]),
            business=lambda request: request.business_account_id,
        ),
        _exchange(
            direct_calls.GetTemplate,
            "GET",
            lambda request: request.template_id,
            direct_responses.operator_template,
            query=lambda request, _: {"fields": _TEMPLATE_FIELDS},
        ),
        _exchange(
            direct_calls.UnpauseTemplate,
            "POST",
            lambda request: f"{request.template_id}/unpause",
            direct_responses.call_result,
        ),
        # business profile, block list, components of chats
        _exchange(
            direct_calls.MarkRead,
            "POST",
            lambda request: f"{request.number_id}/messages",
            direct_responses.call_result,
            body=_read_receipt,
            category=CallCategory.MESSAGES,
        ),
        # media
        _exchange(
            direct_calls.GetMedium,
            "GET",
            lambda request: request.medium_id,
            direct_responses.medium,
            query=lambda request, _: {"phone_number_id": request.number_id},
            category=CallCategory.MESSAGES,
        ),
        _exchange(
            direct_calls.DeleteMedium,
            "DELETE",
            lambda request: request.medium_id,
            direct_responses.call_result,
            query=lambda request, _: {"phone_number_id": request.number_id},
            category=CallCategory.MESSAGES,
        ),
    ]
)
