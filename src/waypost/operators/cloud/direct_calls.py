"""Direct calls: a table of the request of each call and the reader of its response.

Readers are tolerant: a missing or invalid value becomes an empty one.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from typing import Any, Final, NamedTuple

from waypost.base.json_values import boolean_of, list_of, object_of, objects_in
from waypost.domain.app import OperatorAccount
from waypost.domain.direct_calls import (
    BusinessStatus,
    CallFailure,
    CallResult,
    CheckToken,
    DeleteMedium,
    GetBusinessAccount,
    GetBusinessStatus,
    GetMedium,
    GetNumber,
    GetSubscription,
    GetTemplate,
    ListMissingFields,
    ListNumbers,
    ListTemplates,
    MarkRead,
    MissingWebhookField,
    OperatorBusiness,
    OperatorCall,
    OperatorMedium,
    OperatorNumber,
    OperatorTemplate,
    Response,
    Subscribe,
    TemplateDetail,
    TokenStatus,
    UnpauseTemplate,
    Unsubscribe,
    WebhookSubscription,
    unsupported_call,
)
from waypost.domain.outcome import OperatorRejected, OperatorUnavailable
from waypost.operators.cloud.http_calls import CloudHttpClient
from waypost.operators.cloud.numbers import number_status, operator_number, webhook_url
from waypost.operators.cloud.templates import parse_template
from waypost.operators.cloud.tolerant_json import parse_number, parse_text
from waypost.operators.cloud.webhook_items import NEEDED_FIELDS
from waypost.operators.contract import GraphRequest

_NUMBER: Final = (  # Source: operator's facts 1, "Phone node"
    "id,display_phone_number,verified_name,quality_rating,throughput,status,"
    "whatsapp_business_manager_messaging_limit,health_status"
)
_NUMBERS: Final = (
    "id,display_phone_number,verified_name,quality_rating,status,code_verification_status,name_status,"
    "platform_type,is_on_biz_app,throughput,whatsapp_business_manager_messaging_limit,webhook_configuration"
)
_NUMBER_URLS: Final = "id,webhook_configuration"
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
_ACCOUNT: Final = "{business_account_id}"
_NOT_SUBSCRIBED: Final = "your app must be subscribed"  # of the operator's error text; its code is 100


APPROVED: Final = "APPROVED"
REQUIRED_PERMISSIONS: Final = ("whatsapp_business_messaging", "whatsapp_business_management")
"""The permissions that our token needs. Source: operator's facts 1, "Permissions"."""
TOKEN_STATUS_UNSUPPORTED_CODES: Final = frozenset({1, 3, 10, 100})
"""Error codes of an operator that does not report on tokens."""


def call_result(response: dict[str, Any]) -> CallResult:
    """Return the result of a call; a response that does not deny success is a success."""
    return CallResult(boolean_of(response.get("success"), default=True), parse_text(response.get("reason")))


def business_status(response: dict[str, Any]) -> BusinessStatus:
    """Return the status of a business account: ACTIVE if the operator's review approved it."""
    review = parse_text(response.get("account_review_status"))
    return BusinessStatus(
        "ACTIVE" if review == APPROVED else review,
        parse_text(response.get("ownership_type")),
        parse_text(response.get("marketing_messages_lite_api_status")).upper(),
    )


def operator_business(response: dict[str, Any]) -> OperatorBusiness:
    """Return a business account."""
    review = parse_text(response.get("account_review_status"))
    return OperatorBusiness(
        name=parse_text(response.get("name")),
        namespace=parse_text(response.get("message_template_namespace")),
        review="" if review == APPROVED else review,
    )


def token_status(response: dict[str, Any]) -> TokenStatus:
    """Return the state of a token. Source: operator's page "Debug-Token"."""
    data = object_of(response.get("data"))
    scopes = data.get("scopes")
    expires_at = data.get("expires_at")
    return TokenStatus(
        is_valid=boolean_of(data.get("is_valid"), default=False),
        reason=parse_text(object_of(data.get("error")).get("message")),
        missing_permissions=[
            permission for permission in REQUIRED_PERMISSIONS if isinstance(scopes, list) and permission not in scopes
        ],
        expires_at_s=max(expires_at, 0) if isinstance(expires_at, int) else 0,
    )


def subscription(app_id: str, apps: Sequence[Any], numbers: Sequence[Any]) -> WebhookSubscription:
    """Return the webhook URLs, from the subscribed apps and the numbers' own URLs."""
    by_id = {
        parse_text(object_of(object_of(item).get("whatsapp_business_api_data")).get("id")): object_of(item)
        for item in apps
    }
    override = parse_text(by_id.get(app_id, {}).get("override_callback_uri"))
    urls = {parse_text(object_of(item).get("id")): override or webhook_url(object_of(item)) for item in numbers}
    return WebhookSubscription(
        subscriber=app_id,
        is_subscribed=app_id in by_id,
        others=[item for item in by_id if item not in ("", app_id)],
        urls={number_id: url for number_id, url in {"": override, **urls}.items() if url},
    )


def missing_fields(subscriptions: Sequence[Any]) -> list[MissingWebhookField]:
    """Return the fields that we need and an app is not subscribed to. Source: operator's page "App subscriptions"."""
    subscribed = {
        parse_text(object_of(item).get("name")) or parse_text(item)
        for entry in map(object_of, subscriptions)
        if entry.get("object") == "whatsapp_business_account"
        for item in list_of(entry.get("fields"))
    }
    return [field for field in NEEDED_FIELDS if field.name not in subscribed]


def operator_templates(items: list[Any]) -> list[OperatorTemplate] | OperatorUnavailable:
    """Return every template of a list; a list with anything else in it is not reliable."""
    templates = [parse_template(item) for item in items]
    valid = [item for item in templates if item is not None]
    return valid if len(valid) == len(templates) else OperatorUnavailable("the operator's list has what is no template")


def operator_template(response: dict[str, Any]) -> OperatorTemplate | OperatorUnavailable:
    """Return one template."""
    return parse_template(response) or OperatorUnavailable("the operator's response is no template")


def medium(response: dict[str, Any]) -> OperatorMedium:
    """Return type and size of a media file."""
    return OperatorMedium(parse_text(response.get("mime_type")), parse_number(response.get("file_size")))


class _DirectCall(NamedTuple):
    """A direct call that is one request."""

    request: Callable[[Any], GraphRequest]  # of the call
    # turns the object of the response, or the items of a list, into the result; returns an outcome for an invalid one
    read: Callable[[Any], Any]
    items: str = ""  # of a list whose pages are all read, for the text of an outcome; empty: it is no list


async def call(
    client: CloudHttpClient, account: OperatorAccount, request: OperatorCall[Response]
) -> Response | CallFailure:
    """Make a direct call."""
    result: Any
    match CALLS.get(type(request)):
        case None:
            return unsupported_call(request)
        case _DirectCall(make, read, ""):
            result = await client.request(account, make(request))
            return read(result) if isinstance(result, dict) else result
        case _DirectCall(make, read, items):
            result = await client.list_all(account, make(request), items)
            return read(result) if isinstance(result, list) else result
        case make_calls:
            return await make_calls(client, account, request)


async def _get_subscription(
    client: CloudHttpClient, account: OperatorAccount, request: GetSubscription
) -> WebhookSubscription | CallFailure:
    owner = request.business_account_id
    edge = GraphRequest("GET", f"{owner}/subscribed_apps", business=owner)
    apps = await client.list_all(account, edge, "subscribed apps")
    if not isinstance(apps, list):
        return apps
    edge = GraphRequest("GET", f"{owner}/phone_numbers", query={"fields": _NUMBER_URLS}, business=owner)
    numbers = await client.list_all(account, edge, "phone numbers")
    if not isinstance(numbers, list):
        return numbers
    return subscription(account["app_id"], apps, numbers)


def _authorise_as_app(account: OperatorAccount) -> OperatorAccount:
    """Return the account with the app's own token, which calls about the app's subscriptions need."""
    return account.replace_fields(token=f"{account['app_id']}|{account['app_secret']}")


async def _list_app_subscriptions(client: CloudHttpClient, account: OperatorAccount) -> list[Any] | CallFailure:
    app_id = account["app_id"]
    request = GraphRequest("GET", f"{app_id}/subscriptions", business=app_id)
    return await client.list_all(_authorise_as_app(account), request, "subscriptions")


async def _list_missing_fields(
    client: CloudHttpClient, account: OperatorAccount, _request: ListMissingFields
) -> list[MissingWebhookField] | CallFailure:
    listed = await _list_app_subscriptions(client, account)
    return missing_fields(listed) if isinstance(listed, list) else listed


async def _check_token(
    client: CloudHttpClient, account: OperatorAccount, _request: CheckToken
) -> TokenStatus | CallFailure | None:
    """Return the state of our token; None also where an operator does not report on tokens."""
    request = GraphRequest("GET", "debug_token", query={"input_token": account["token"]})
    response = await client.request(account, request)
    match response:
        case dict():
            return token_status(response)
        case OperatorRejected(code=code, operator_code=operator_code) if (
            code if operator_code is None else operator_code
        ) in TOKEN_STATUS_UNSUPPORTED_CODES:
            return None
        case OperatorUnavailable(code=code) if code in TOKEN_STATUS_UNSUPPORTED_CODES:
            return None
        case _:
            return response


async def _subscribe(client: CloudHttpClient, account: OperatorAccount, request: Subscribe) -> object:
    """Subscribe the app with our URL; subscribe it first if it is not: the URL replaces that of a subscription.

    An app that has no subscription at all gets one with the fields that we need. One that exists is left as it is,
    because it may be another system's.

    Source: operator's page "Override webhooks".
    """
    owner, verify_token = request.business_account_id, account["verify_token"]
    subscribe = GraphRequest("POST", f"{owner}/subscribed_apps", business=owner)
    override = subscribe._replace(body={"override_callback_uri": request.url, "verify_token": verify_token})
    response = await client.request(account, override)
    if isinstance(response, OperatorRejected) and _NOT_SUBSCRIBED in response.text:
        if await _list_app_subscriptions(client, account) == []:
            body = {
                "object": "whatsapp_business_account",
                "callback_url": request.url,
                "verify_token": verify_token,
                "fields": ",".join(field.name for field in NEEDED_FIELDS),
            }
            path = f"{account['app_id']}/subscriptions"
            await client.request(_authorise_as_app(account), GraphRequest("POST", path, body))
        await client.request(account, subscribe)
        response = await client.request(account, override)
    return call_result(response) if isinstance(response, dict) else response


def _mark_read(request: MarkRead) -> GraphRequest:
    body = {"messaging_product": "whatsapp", "status": "read", "message_id": request.message_id}
    typing = {"typing_indicator": {"type": "text"}} if request.typing else {}
    return GraphRequest("POST", f"{request.number_id}/messages", {**body, **typing}, is_message=True)


def _list_templates(request: ListTemplates) -> GraphRequest:
    owner, name = request.business_account_id, {} if request.name is None else {"name": request.name}
    query = {**name, "fields": _TEMPLATES[request.detail]}
    return GraphRequest("GET", f"{owner}/message_templates", query=query, business=owner)


def _read_numbers(items: list[Any]) -> list[OperatorNumber]:
    return [operator_number(item) for item in objects_in(items)]


def _make_request(method: str, path: str, fields: str = "") -> Callable[[Any], GraphRequest]:
    """Return a function that makes the request of a call, with members of the call in its path."""

    def make(request: Any) -> GraphRequest:
        members = asdict(request)
        query = {"fields": fields} if fields else None
        business = members.get("business_account_id", "")
        return GraphRequest(method, path.format_map(members), query=query, business=business)

    return make


def _medium_request(method: str) -> Callable[[Any], GraphRequest]:
    return lambda request: GraphRequest(
        method, request.medium_id, query={"phone_number_id": request.number_id}, is_message=True
    )


CALLS: Final[
    dict[type[OperatorCall[Any]], _DirectCall | Callable[[CloudHttpClient, OperatorAccount, Any], Awaitable[Any]]]
] = {  # Source: operator's facts 1, 2.1, 6.1
    GetNumber: _DirectCall(_make_request("GET", "{number_id}", _NUMBER), number_status),
    GetBusinessStatus: _DirectCall(_make_request("GET", _ACCOUNT, _BUSINESS_STATUS), business_status),
    GetBusinessAccount: _DirectCall(_make_request("GET", _ACCOUNT, _BUSINESS), operator_business),
    ListNumbers: _DirectCall(
        _make_request("GET", f"{_ACCOUNT}/phone_numbers", _NUMBERS), _read_numbers, "phone numbers"
    ),
    CheckToken: _check_token,
    GetSubscription: _get_subscription,
    ListMissingFields: _list_missing_fields,
    Subscribe: _subscribe,
    Unsubscribe: _DirectCall(_make_request("DELETE", f"{_ACCOUNT}/subscribed_apps"), call_result),
    ListTemplates: _DirectCall(_list_templates, operator_templates, "templates"),
    GetTemplate: _DirectCall(_make_request("GET", "{template_id}", _TEMPLATE_FIELDS), operator_template),
    UnpauseTemplate: _DirectCall(_make_request("POST", "{template_id}/unpause"), call_result),
    MarkRead: _DirectCall(_mark_read, call_result),
    GetMedium: _DirectCall(_medium_request("GET"), medium),
    DeleteMedium: _DirectCall(_medium_request("DELETE"), call_result),
}
