"""Direct calls: a table of what each sends and how its answer is read."""

import io
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

import aiohttp

from waypost.base.json_values import object_of
from waypost.domain import direct_calls as contract
from waypost.domain.app import OperatorAccount
from waypost.domain.direct_calls import Failure, OperatorCall, Response, TemplateDetail, not_offered
from waypost.domain.outcome import Outcome, Rejected, Sent, Unavailable
from waypost.operators.cloud import direct_responses
from waypost.operators.cloud.direct_responses import NUMBER_URL_FIELDS, subscription
from waypost.operators.cloud.error_codes import name_is_taken
from waypost.operators.cloud.http_calls import Calls
from waypost.operators.cloud.numbers import number_status
from waypost.operators.cloud.paging import whole_list
from waypost.operators.cloud.rate_usage import Kind

WITHIN_S: Final = 10
"""For one exchange of a direct call. Source: decision 0026."""
MOST_FLOWS: Final = "1000"
FLOW_FILE: Final = "flow.json"
FLOW_TYPE: Final = "FLOW_JSON"
_PRODUCT: Final = {"messaging_product": "whatsapp"}

Request = TypeVar("Request", bound=OperatorCall[Any])
_Make = Callable[[Request, OperatorAccount], dict[str, Any]]
_Handler = Callable[[Calls, OperatorAccount, Any], Awaitable[Any]]
_Row = tuple[type[OperatorCall[Any]], _Handler]

_PROFILE: Final = "about,address,description,email,profile_picture_url,websites,vertical"
_NUMBER: Final = (  # Source: operator's facts 1, "Phone node"
    "id,display_phone_number,verified_name,quality_rating,throughput,status,"
    "whatsapp_business_manager_messaging_limit,health_status"
)
_NUMBERS: Final = (
    "id,display_phone_number,verified_name,quality_rating,status,code_verification_status,name_status,"
    "platform_type,throughput,whatsapp_business_manager_messaging_limit,webhook_configuration"
)
_BUSINESS: Final = "id,name,timezone_id,message_template_namespace,account_review_status"
_BUSINESS_STATUS: Final = "id,name,account_review_status,ownership_type"  # Source: operator's facts 1, "WABA node"
_TEMPLATE: Final = "id,name,language,status,category,previous_category,components,quality_score,rejected_reason"
_TEMPLATES: Final = {  # Source: operator's facts 2.1
    TemplateDetail.STATUS: "id,name,language,status",
    TemplateDetail.REVIEW: "name,language,status,category,rejected_reason,quality_score",
    TemplateDetail.TEXTS: "name,language,status,components",
}
_DRAFT: Final = "id,name,status,categories,validation_errors"


async def call(calls: Calls, account: OperatorAccount, request: OperatorCall[Response]) -> Response | Failure:
    """Make a direct call."""
    handler = CALLS.get(type(request))
    return not_offered(request) if handler is None else await handler(calls, account, request)


def _row(
    kind: type[Request],
    method: str,
    path: Callable[[Request], str],
    read: Callable[[dict[str, Any], Request], object],
    *,
    query: _Make[Request] | None = None,
    body: _Make[Request] | None = None,
    form: Callable[[Request], aiohttp.FormData] | None = None,
    business: Callable[[Request], str] | None = None,
    spends: Kind = Kind.MANAGEMENT,
) -> _Row:
    """Return one row: a call that is one exchange.

    Args:
        kind: of the request.
        method: of HTTP.
        path: below the version.
        read: makes the response of the answer's object; an outcome where the object is not as it has to be.
        query: of the address.
        body: JSON.
        form: instead of a body.
        business: the business account that is asked itself, and whose limits alone it surely spends.
        spends: whose limit it counts against.
    """

    async def handler(calls: Calls, account: OperatorAccount, request: Request) -> object:
        answer = await calls(
            account,
            method,
            path(request),
            None if body is None else body(request, account),
            None if query is None else query(request, account),
            form=None if form is None else form(request),
            within_s=WITHIN_S,
            kind=spends,
            business="" if business is None else business(request),
        )
        match answer:
            case {"error": error}:  # a template's name is taken: everything else is an outcome already
                return name_is_taken(object_of(error))
            case dict():
                return read(answer, request)
            case Sent():
                raise AssertionError("a call has no message to send")
            case _:
                return answer

    return kind, handler


def _listing(
    kind: type[Request],
    path: Callable[[Request], str],
    read: Callable[[list[Any]], object],
    *,
    name: str,
    query: _Make[Request],
    business: Callable[[Request], str],
) -> _Row:
    """Return one row: a call that asks for all pages of a list."""

    async def handler(calls: Calls, account: OperatorAccount, request: Request) -> object:
        items = await whole_list(
            calls,
            account,
            path(request),
            query(request, account),
            name=name,
            business=business(request),
            within_s=WITHIN_S,
        )
        return read(items) if isinstance(items, list) else items

    return kind, handler


async def _get_subscription(
    calls: Calls, account: OperatorAccount, request: contract.GetSubscription
) -> contract.WebhookSubscription | Outcome:
    async def listed(edge: str, query: dict[str, str]) -> list[Any] | Outcome:
        owner = request.business_account_id
        name = edge.replace("_", " ")
        return await whole_list(calls, account, f"{owner}/{edge}", query, name=name, business=owner, within_s=WITHIN_S)

    apps = await listed("subscribed_apps", {})
    if not isinstance(apps, list):
        return apps
    numbers = await listed("phone_numbers", {"fields": NUMBER_URL_FIELDS})
    return subscription(account["app_id"], apps, numbers) if isinstance(numbers, list) else numbers


async def _check_token(calls: Calls, account: OperatorAccount, request: contract.CheckToken) -> object:
    """The state of our token; None also where an operator answers that it tells nothing of tokens."""
    outcome = await _ask_token(calls, account, request)
    match outcome:
        case Rejected(code=code, operator_code=own) if (
            code if own is None else own
        ) in direct_responses.TELLS_NO_TOKENS:
            return None
        case Unavailable(code=code) if code in direct_responses.TELLS_NO_TOKENS:
            return None
        case _:
            return outcome


def _given(**members: Any) -> dict[str, Any]:
    """The members that are not None."""
    return {name: value for name, value in members.items() if value is not None}


def _set(**members: str) -> dict[str, str]:
    """The members that are not empty."""
    return {name: value for name, value in members.items() if value}


def _profile(request: contract.SetProfile, _account: OperatorAccount) -> dict[str, Any]:
    return _PRODUCT | _given(
        about=request.about,
        address=request.address,
        websites=request.websites,
        description=request.description,
        email=request.email,
        vertical=request.vertical,
        profile_picture_handle=request.picture,
    )


def _users(request: contract.Block | contract.Unblock, _account: OperatorAccount) -> dict[str, Any]:
    return _PRODUCT | {"block_users": [{"user": user} for user in request.users]}


def _components(request: contract.SetComponents, _account: OperatorAccount) -> dict[str, Any]:
    commands = request.commands
    return _given(
        enable_welcome_message=request.enable_welcome_message,
        commands=None
        if commands is None
        else [{"command_name": name, "command_description": description} for name, description in commands],
        prompts=request.prompts,
    )


def _read_receipt(request: contract.MarkRead, _account: OperatorAccount) -> dict[str, Any]:
    body = _PRODUCT | {"status": "read", "message_id": request.message_id}
    return body | {"typing_indicator": {"type": "text"}} if request.typing else body


def _library_template(request: contract.CreateFromLibrary, _account: OperatorAccount) -> dict[str, Any]:
    body: dict[str, Any] = {
        "name": request.name,
        "language": request.language,
        "category": request.category,
        "library_template_name": request.library_name,
    }
    return body | {"library_template_button_inputs": request.button_inputs} if request.button_inputs else body


def _flow_parts(request: contract.CreateFlow | contract.ChangeFlow) -> dict[str, str]:
    return _set(clone_flow_id=request.clone_flow_id, endpoint_uri=request.endpoint_uri, flow_json=request.flow_json)


def _flow_file(request: contract.PutFlowAssets) -> aiohttp.FormData:
    form = aiohttp.FormData(quote_fields=False)
    form.add_field("name", FLOW_FILE)
    form.add_field("asset_type", FLOW_TYPE)
    form.add_field("file", io.BytesIO(request.content), filename=request.file_name, content_type=request.mime_type)
    return form


_, _ask_token = _row(
    contract.CheckToken,
    "GET",
    lambda one: "debug_token",
    direct_responses.token_status,
    query=lambda one, account: {"input_token": account["token"]},
)

# fmt: off
CALLS: Final[dict[type[OperatorCall[Any]], _Handler]] = dict([  # Source: operator's facts 1, 2.1, 6.1; its pages "Business profiles", "Block users", "Conversational components", "Flows API"
    # numbers and business accounts
    _row(contract.GetNumber,          "GET",    lambda one: one.number_id,                          lambda answer, _: number_status(answer), query=lambda one, _: {"fields": _NUMBER}),
    _row(contract.GetBusinessStatus,  "GET",    lambda one: one.business_account_id,                direct_responses.business_status,  query=lambda one, _: {"fields": _BUSINESS_STATUS}, business=lambda one: one.business_account_id),
    _row(contract.GetBusinessAccount, "GET",    lambda one: one.business_account_id,                direct_responses.operator_business, query=lambda one, _: {"fields": _BUSINESS}, business=lambda one: one.business_account_id),
    _listing(contract.ListNumbers,              lambda one: f"{one.business_account_id}/phone_numbers", direct_responses.operator_numbers, name="phone numbers", query=lambda one, _: {"fields": _NUMBERS}, business=lambda one: one.business_account_id),
    (contract.CheckToken,     _check_token),
    # webhooks
    (contract.GetSubscription, _get_subscription),
    _row(contract.Subscribe,          "POST",   lambda one: f"{one.business_account_id}/subscribed_apps", direct_responses.done,       body=lambda one, account: {"override_callback_uri": one.url, "verify_token": account["verify_token"]}, business=lambda one: one.business_account_id),
    _row(contract.Unsubscribe,        "DELETE", lambda one: f"{one.business_account_id}/subscribed_apps", direct_responses.done,       business=lambda one: one.business_account_id),
    # templates
    _listing(contract.ListTemplates,            lambda one: f"{one.business_account_id}/message_templates", direct_responses.operator_templates, name="templates", query=lambda one, _: _given(name=one.name, fields=_TEMPLATES[one.detail]), business=lambda one: one.business_account_id),
    _row(contract.GetTemplate,        "GET",    lambda one: one.template_id,                        direct_responses.one_template,     query=lambda one, _: {"fields": _TEMPLATE}),
    _row(contract.UnpauseTemplate,    "POST",   lambda one: f"{one.template_id}/unpause",           direct_responses.done),
    _row(contract.ListLibrary,        "GET",    lambda one: "message_template_library",             direct_responses.raw_list,         query=lambda one, _: _set(name=one.name, industry=one.industry, language=one.language, topic=one.topic, usecase=one.usecase)),
    _row(contract.GetLibraryTemplate, "GET",    lambda one: "message_template_library",             direct_responses.library_template, query=lambda one, _: {"name": one.name, "language": one.language}),
    _row(contract.CreateFromLibrary,  "POST",   lambda one: f"{one.business_account_id}/message_templates", direct_responses.created_template, body=_library_template, business=lambda one: one.business_account_id),
    # business profile, block list, components of chats
    _row(contract.GetProfile,         "GET",    lambda one: f"{one.number_id}/whatsapp_business_profile", direct_responses.profile,    query=lambda one, _: {"fields": _PROFILE}),
    _row(contract.SetProfile,         "POST",   lambda one: f"{one.number_id}/whatsapp_business_profile", direct_responses.done,       body=_profile),
    _row(contract.Block,              "POST",   lambda one: f"{one.number_id}/block_users",         lambda answer, _: direct_responses.block_result(answer, "added_users"), body=_users),
    _row(contract.Unblock,            "DELETE", lambda one: f"{one.number_id}/block_users",         lambda answer, _: direct_responses.block_result(answer, "removed_users"), body=_users),
    _row(contract.ListBlocked,        "GET",    lambda one: f"{one.number_id}/block_users",         direct_responses.raw_with_list,    query=lambda one, _: _set(limit=one.limit, after=one.after, before=one.before)),
    _row(contract.GetComponents,      "GET",    lambda one: one.number_id,                          direct_responses.components,       query=lambda one, _: {"fields": "conversational_automation"}),
    _row(contract.SetComponents,      "POST",   lambda one: f"{one.number_id}/conversational_automation", direct_responses.done,       body=_components),
    _row(contract.MarkRead,           "POST",   lambda one: f"{one.number_id}/messages",            direct_responses.done,             body=_read_receipt, spends=Kind.MESSAGES),
    # flows
    _row(contract.CreateFlow,         "POST",   lambda one: f"{one.business_account_id}/flows",     direct_responses.created_flow,     body=lambda one, _: {"name": one.name, "categories": one.categories, **_flow_parts(one)}, business=lambda one: one.business_account_id),
    _row(contract.FindDraftFlow,      "GET",    lambda one: f"{one.business_account_id}/flows",     direct_responses.draft_flow,       query=lambda one, _: {"limit": MOST_FLOWS, "fields": _DRAFT}, business=lambda one: one.business_account_id),
    _row(contract.ListFlows,          "GET",    lambda one: f"{one.business_account_id}/flows",     direct_responses.raw_list,         query=lambda one, _: {"limit": MOST_FLOWS}, business=lambda one: one.business_account_id),
    _row(contract.GetFlow,            "GET",    lambda one: one.flow_id,                            lambda answer, _: contract.Raw(answer), query=lambda one, _: {"fields": ",".join(one.fields)}),
    _row(contract.GetFlowOwner,       "GET",    lambda one: one.flow_id,                            direct_responses.flow_owner,       query=lambda one, _: {"fields": "id,whatsapp_business_account"}),
    _row(contract.ChangeFlow,         "POST",   lambda one: one.flow_id,                            direct_responses.done,             body=lambda one, _: _flow_parts(one) | _given(name=one.name, categories=one.categories)),
    _row(contract.DeleteFlow,         "DELETE", lambda one: one.flow_id,                            direct_responses.done),
    _row(contract.PublishFlow,        "POST",   lambda one: f"{one.flow_id}/publish",               direct_responses.done),
    _row(contract.DeprecateFlow,      "POST",   lambda one: f"{one.flow_id}/deprecate",             direct_responses.done),
    _row(contract.ListFlowAssets,     "GET",    lambda one: f"{one.flow_id}/assets",                direct_responses.raw_list),
    _row(contract.PutFlowAssets,      "POST",   lambda one: f"{one.flow_id}/assets",                direct_responses.assets_result,    form=_flow_file),
    # media
    _row(contract.GetMedium,          "GET",    lambda one: one.medium_id,                          direct_responses.medium,           query=lambda one, _: {"phone_number_id": one.number_id}, spends=Kind.MESSAGES),
    _row(contract.DeleteMedium,       "DELETE", lambda one: one.medium_id,                          direct_responses.done,             query=lambda one, _: {"phone_number_id": one.number_id}, spends=Kind.MESSAGES),
])
# fmt: on
