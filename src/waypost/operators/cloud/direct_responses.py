"""Readers of direct call responses. Tolerant: a missing or invalid value becomes an empty one."""

from collections.abc import Sequence
from typing import Any, Final

from waypost.base.json_values import list_of, object_of, objects_in
from waypost.domain.direct_calls import (
    BlockResult,
    BusinessProfile,
    BusinessStatus,
    CreatedFlow,
    CreatedTemplate,
    Done,
    FindDraftFlow,
    FlowAssetsResult,
    GetLibraryTemplate,
    LibraryTemplate,
    OperatorBusiness,
    OperatorCall,
    OperatorMedium,
    OperatorNumber,
    OperatorTemplate,
    Raw,
    RawList,
    ReadyButton,
    TokenStatus,
    WebhookSubscription,
)
from waypost.domain.outcome import MOST_ID_CHARS, Unavailable
from waypost.domain.phone_number import read_phone_number
from waypost.operators.cloud.numbers import operator_number, webhook_url
from waypost.operators.cloud.templates.calls import GOING
from waypost.operators.cloud.tolerant_json import as_number, as_text

APPROVED: Final = "APPROVED"
PERMISSIONS: Final = ("whatsapp_business_messaging", "whatsapp_business_management")
"""The permissions that our token needs. Source: operator's facts 1, "Permissions"."""
TELLS_NO_TOKENS: Final = frozenset({1, 3, 10, 100})
"""Error codes of an operator that does not report on tokens."""
NUMBER_URL_FIELDS: Final = "id,webhook_configuration"

_NO_LIST: Final = "the operator's answer has no list"
_Any = OperatorCall[Any]


def done(answer: dict[str, Any], _: _Any) -> Done:
    """Return the result of a call; a response that does not deny success is a success."""
    return Done(answer.get("success") is not False, as_text(answer.get("reason")))


def operator_numbers(items: list[Any]) -> list[OperatorNumber]:
    """Return the numbers of a list, without values that are not objects."""
    return [operator_number(item) for item in objects_in(items)]


def raw_list(answer: dict[str, Any], _: _Any) -> RawList | Unavailable:
    """Return the list of a response; one without a list proves nothing, least of all an empty list."""
    return RawList(list_of(answer.get("data"))) if isinstance(answer.get("data"), list) else Unavailable(_NO_LIST)


def raw_with_list(answer: dict[str, Any], _: _Any) -> Raw | Unavailable:
    """Return the whole response, which must have a list."""
    return Raw(answer) if isinstance(answer.get("data"), list) else Unavailable(_NO_LIST)


def business_status(answer: dict[str, Any], _: _Any) -> BusinessStatus:
    """Return the status of a business account: ACTIVE if the operator's review approved it."""
    review = as_text(answer.get("account_review_status"))
    return BusinessStatus("ACTIVE" if review == APPROVED else review, as_text(answer.get("ownership_type")))


def operator_business(answer: dict[str, Any], _: _Any) -> OperatorBusiness:
    """Return a business account."""
    review = as_text(answer.get("account_review_status"))
    return OperatorBusiness(
        name=as_text(answer.get("name")),
        namespace=as_text(answer.get("message_template_namespace")),
        review="" if review == APPROVED else review,
    )


def token_status(answer: dict[str, Any], _: _Any) -> TokenStatus:
    """Return the state of a token. Source: operator's page "Debug-Token"."""
    data = object_of(answer.get("data"))
    scopes = data.get("scopes")
    expires_at = data.get("expires_at")
    return TokenStatus(
        is_valid=data.get("is_valid") is True,
        reason=as_text(object_of(data.get("error")).get("message")),
        missing_permissions=[
            permission for permission in PERMISSIONS if isinstance(scopes, list) and permission not in scopes
        ],
        expires_at_s=max(expires_at, 0) if isinstance(expires_at, int) else 0,
    )


def subscription(app_id: str, apps: Sequence[Any], numbers: Sequence[Any]) -> WebhookSubscription:
    """Return the webhook URLs, from the subscribed apps and the numbers' own URLs."""
    by_id = {
        as_text(object_of(object_of(item).get("whatsapp_business_api_data")).get("id")): object_of(item)
        for item in apps
    }
    override = as_text(by_id.get(app_id, {}).get("override_callback_uri"))
    urls = {as_text(object_of(item).get("id")): override or webhook_url(object_of(item)) for item in numbers}
    return WebhookSubscription(
        subscriber=app_id,
        is_subscribed=app_id in by_id,
        others=[item for item in by_id if item not in ("", app_id)],
        urls={number_id: url for number_id, url in {"": override, **urls}.items() if url},
    )


def operator_templates(items: list[Any]) -> list[OperatorTemplate] | Unavailable:
    """Return every template of a list; a list with anything else in it is not reliable."""
    templates = [_template(item) for item in items]
    valid = [item for item in templates if item is not None]
    return valid if len(valid) == len(templates) else Unavailable("the operator's list has what is no template")


def one_template(answer: dict[str, Any], _: _Any) -> OperatorTemplate | Unavailable:
    """Return one template."""
    return _template(answer) or Unavailable("the operator's answer is no template")


def _template(given: Any) -> OperatorTemplate | None:
    """Return a template with id, name, language and status; None if one is missing. Source: operator's facts 2.1."""
    match given:
        case {"id": str(template_id), "name": str(name), "language": str(language), "status": str(status)} if (
            len(template_id) <= MOST_ID_CHARS
        ):
            reason = _text(given.get("rejected_reason"))
            texts = {
                as_text(component.get("type")): _text(component.get("text"))
                for component in _dicts(given, "components")
            }
            return OperatorTemplate(
                id=template_id,
                name=name,
                language=language,
                status=status,
                is_being_deleted=status in GOING,
                category=_text(given.get("category")),
                rejected_reason=reason if reason not in ("", "NONE") else None,
                quality=_text(object_of(given.get("quality_score")).get("score")),
                body=texts.get("BODY"),
                footer=texts.get("FOOTER"),
            )
        case _:
            return None


def library_template(answer: dict[str, Any], request: GetLibraryTemplate) -> LibraryTemplate | Unavailable | None:
    """Return the library template with the requested name and language."""
    if not isinstance(answer.get("data"), list):
        return Unavailable(_NO_LIST)
    for template in _dicts(answer, "data"):
        if template.get("name") == request.name and template.get("language") == request.language:
            return LibraryTemplate(
                body=_text(template.get("body")),
                examples=[_text(member) for member in list_of(template.get("body_params"))],
                header=_text(template.get("header")),
                topic=_text(template.get("topic")),
                buttons=[
                    ReadyButton(
                        kind=_text(member.get("type")).upper(),
                        text=_text(member.get("text")),
                        url=_text(member.get("url")),
                        phone_number=_text(member.get("phone_number")),
                    )
                    for member in _dicts(template, "buttons")
                ],
            )
    return None


def created_template(answer: dict[str, Any], _: _Any) -> CreatedTemplate | Unavailable:
    """Return the id of a created template."""
    operator_id = _text(answer.get("id"))
    if not 0 < len(operator_id) <= MOST_ID_CHARS:
        return Unavailable("its answer has no template id")
    return CreatedTemplate(operator_id, _text(answer.get("status")))


def profile(answer: dict[str, Any], _: _Any) -> BusinessProfile | Unavailable:
    """Return a number's profile; a missing profile has no values."""
    if not isinstance(answer.get("data"), list):
        return Unavailable(_NO_LIST)
    members = object_of(next(iter(list_of(answer.get("data"))), None))
    return BusinessProfile(
        about=as_text(members.get("about")),
        address=as_text(members.get("address")),
        description=as_text(members.get("description")),
        email=as_text(members.get("email")),
        vertical=as_text(members.get("vertical")),
        websites=[site for site in list_of(members.get("websites")) if isinstance(site, str)],
        picture_url=as_text(members.get("profile_picture_url")),
    )


def block_result(answer: dict[str, Any], changed: str) -> BlockResult:
    """Return the users that were blocked or unblocked: those under `added_users` or `removed_users`."""
    block_users = object_of(answer.get("block_users"))
    phones = {read_phone_number(as_text(user.get("wa_id"))) for user in _dicts(block_users, changed)}
    failures = [_failure(user) for user in _dicts(block_users, "failed_users")]
    return BlockResult(frozenset(user for user in phones if user), next(iter(failures), None), answer)


def _failure(given: dict[str, Any]) -> str:
    match given.get("errors"):
        case [{"error_data": {"details": str(details)}}, *_]:
            return details
        case [{"message": str(message)}, *_]:
            return message
        case _:
            return "The operator could not block or unblock the user."


def components(answer: dict[str, Any], _: _Any) -> Raw:
    """Return ice breakers, commands and welcome message; empty if none are set."""
    return Raw(object_of(answer.get("conversational_automation")))


def created_flow(answer: dict[str, Any], _: _Any) -> CreatedFlow:
    """Return the id of a created flow, with the operator's validation errors."""
    return CreatedFlow(as_text(answer.get("id")), answer.get("validation_errors", []))


def draft_flow(answer: dict[str, Any], request: FindDraftFlow) -> CreatedFlow | Unavailable | None:
    """Return the requested draft flow."""
    if not isinstance(answer.get("data"), list):
        return Unavailable(_NO_LIST)
    for flow in _dicts(answer, "data"):
        match flow:
            case {"id": str(), "name": request.name, "status": "DRAFT", "categories": [*categories]} if set(
                categories
            ) == set(request.categories):
                return created_flow(flow, request)
            case _:
                continue
    return None


def flow_owner(answer: dict[str, Any], _: _Any) -> str:
    """Return the business account of a flow."""
    return as_text(object_of(answer.get("whatsapp_business_account")).get("id"))


def assets_result(answer: dict[str, Any], _: _Any) -> FlowAssetsResult:
    """Return the operator's validation result of a flow's file."""
    return FlowAssetsResult(answer.get("success") is not False, answer.get("validation_errors", []))


def medium(answer: dict[str, Any], _: _Any) -> OperatorMedium:
    """Return type and size of a media file."""
    return OperatorMedium(as_text(answer.get("mime_type")), as_number(answer.get("file_size")))


def _dicts(given: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """Return the objects of a list."""
    return [item for item in list_of(given.get(name)) if isinstance(item, dict)]


def _text(value: Any) -> str:
    """Return the text; empty for a value of another type."""
    return value if isinstance(value, str) else ""
