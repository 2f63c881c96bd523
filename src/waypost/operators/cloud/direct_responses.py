"""The answers of direct calls, read into the contract's responses. Tolerant: what is missing or odd is empty."""

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
"""That our token needs. Source: operator's facts 1, "Permissions"."""
TELLS_NO_TOKENS: Final = frozenset({1, 3, 10, 100})
"""Codes of an operator that does not answer questions about tokens."""
NUMBER_URL_FIELDS: Final = "id,webhook_configuration"

_NO_LIST: Final = "the operator's answer has no list"
_Any = OperatorCall[Any]


def done(answer: dict[str, Any], _: _Any) -> Done:
    """Whether it was done; an answer that does not deny it says so."""
    return Done(answer.get("success") is not False, as_text(answer.get("reason")))


def operator_numbers(items: list[Any]) -> list[OperatorNumber]:
    """The numbers of a list; what is no object in it is left out."""
    return [operator_number(one) for one in objects_in(items)]


def raw_list(answer: dict[str, Any], _: _Any) -> RawList | Unavailable:
    """The list of an answer; one without it says nothing, least of all that nothing is there."""
    return RawList(list_of(answer.get("data"))) if isinstance(answer.get("data"), list) else Unavailable(_NO_LIST)


def raw_with_list(answer: dict[str, Any], _: _Any) -> Raw | Unavailable:
    """The whole answer, which must have a list."""
    return Raw(answer) if isinstance(answer.get("data"), list) else Unavailable(_NO_LIST)


def business_status(answer: dict[str, Any], _: _Any) -> BusinessStatus:
    """ACTIVE where the operator's review approved the account."""
    review = as_text(answer.get("account_review_status"))
    return BusinessStatus("ACTIVE" if review == APPROVED else review, as_text(answer.get("ownership_type")))


def operator_business(answer: dict[str, Any], _: _Any) -> OperatorBusiness:
    """A business account."""
    review = as_text(answer.get("account_review_status"))
    return OperatorBusiness(
        name=as_text(answer.get("name")),
        namespace=as_text(answer.get("message_template_namespace")),
        review="" if review == APPROVED else review,
    )


def token_status(answer: dict[str, Any], _: _Any) -> TokenStatus:
    """The state of a token. Source: operator's page "Debug-Token"."""
    data = object_of(answer.get("data"))
    scopes = data.get("scopes")
    expires_at = data.get("expires_at")
    return TokenStatus(
        is_valid=data.get("is_valid") is True,
        reason=as_text(object_of(data.get("error")).get("message")),
        missing_permissions=[one for one in PERMISSIONS if isinstance(scopes, list) and one not in scopes],
        expires_at_s=max(expires_at, 0) if isinstance(expires_at, int) else 0,
    )


def subscription(app_id: str, apps: Sequence[Any], numbers: Sequence[Any]) -> WebhookSubscription:
    """Where webhooks go, by the subscribed apps and the numbers' own addresses."""
    by_id = {
        as_text(object_of(object_of(one).get("whatsapp_business_api_data")).get("id")): object_of(one) for one in apps
    }
    override = as_text(by_id.get(app_id, {}).get("override_callback_uri"))
    urls = {as_text(object_of(one).get("id")): override or webhook_url(object_of(one)) for one in numbers}
    return WebhookSubscription(
        subscriber=app_id,
        is_subscribed=app_id in by_id,
        others=[one for one in by_id if one not in ("", app_id)],
        urls={number_id: url for number_id, url in {"": override, **urls}.items() if url},
    )


def operator_templates(items: list[Any]) -> list[OperatorTemplate] | Unavailable:
    """Every template of a list; a list with anything else in it is not to be relied on."""
    found = [_template(one) for one in items]
    read = [one for one in found if one is not None]
    return read if len(read) == len(found) else Unavailable("the operator's list has what is no template")


def one_template(answer: dict[str, Any], _: _Any) -> OperatorTemplate | Unavailable:
    """One template."""
    return _template(answer) or Unavailable("the operator's answer is no template")


def _template(given: Any) -> OperatorTemplate | None:
    """A template with its id, name, language and status; None: it has not all of them. Source: operator's facts 2.1."""
    match given:
        case {"id": str(id), "name": str(name), "language": str(language), "status": str(status)} if (
            len(id) <= MOST_ID_CHARS
        ):
            reason = _text(given.get("rejected_reason"))
            texts = {as_text(part.get("type")): _text(part.get("text")) for part in _dicts(given, "components")}
            return OperatorTemplate(
                id=id,
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
    """The ready template of the name and language that were asked for."""
    if not isinstance(answer.get("data"), list):
        return Unavailable(_NO_LIST)
    for given in _dicts(answer, "data"):
        if given.get("name") == request.name and given.get("language") == request.language:
            return LibraryTemplate(
                body=_text(given.get("body")),
                examples=[_text(one) for one in list_of(given.get("body_params"))],
                header=_text(given.get("header")),
                topic=_text(given.get("topic")),
                buttons=[
                    ReadyButton(
                        kind=_text(one.get("type")).upper(),
                        text=_text(one.get("text")),
                        url=_text(one.get("url")),
                        phone_number=_text(one.get("phone_number")),
                    )
                    for one in _dicts(given, "buttons")
                ],
            )
    return None


def created_template(answer: dict[str, Any], _: _Any) -> CreatedTemplate | Unavailable:
    """The id of a template that was made."""
    operator_id = _text(answer.get("id"))
    if not 0 < len(operator_id) <= MOST_ID_CHARS:
        return Unavailable("its answer has no template id")
    return CreatedTemplate(operator_id, _text(answer.get("status")))


def profile(answer: dict[str, Any], _: _Any) -> BusinessProfile | Unavailable:
    """A number's profile; one that is not there has nothing set."""
    if not isinstance(answer.get("data"), list):
        return Unavailable(_NO_LIST)
    given = object_of(next(iter(list_of(answer.get("data"))), None))
    return BusinessProfile(
        about=as_text(given.get("about")),
        address=as_text(given.get("address")),
        description=as_text(given.get("description")),
        email=as_text(given.get("email")),
        vertical=as_text(given.get("vertical")),
        websites=[site for site in list_of(given.get("websites")) if isinstance(site, str)],
        picture_url=as_text(given.get("profile_picture_url")),
    )


def block_result(answer: dict[str, Any], changed: str) -> BlockResult:
    """Who was blocked or unblocked: the users under `added_users` or `removed_users`."""
    told = object_of(answer.get("block_users"))
    phones = {read_phone_number(as_text(one.get("wa_id"))) for one in _dicts(told, changed)}
    failures = [_failure(one) for one in _dicts(told, "failed_users")]
    return BlockResult(frozenset(one for one in phones if one), next(iter(failures), None), answer)


def _failure(given: dict[str, Any]) -> str:
    match given.get("errors"):
        case [{"error_data": {"details": str(details)}}, *_]:
            return details
        case [{"message": str(message)}, *_]:
            return message
        case _:
            return "The operator could not block or unblock the user."


def components(answer: dict[str, Any], _: _Any) -> Raw:
    """Ice breakers, commands and welcome message; empty where none are set."""
    return Raw(object_of(answer.get("conversational_automation")))


def created_flow(answer: dict[str, Any], _: _Any) -> CreatedFlow:
    """The id of a flow that was made, with what the operator finds wrong in it."""
    return CreatedFlow(as_text(answer.get("id")), answer.get("validation_errors", []))


def draft_flow(answer: dict[str, Any], request: FindDraftFlow) -> CreatedFlow | Unavailable | None:
    """The draft that was asked for."""
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
    """The business account of a flow."""
    return as_text(object_of(answer.get("whatsapp_business_account")).get("id"))


def assets_result(answer: dict[str, Any], _: _Any) -> FlowAssetsResult:
    """What the operator finds wrong in a flow's file."""
    return FlowAssetsResult(answer.get("success") is not False, answer.get("validation_errors", []))


def medium(answer: dict[str, Any], _: _Any) -> OperatorMedium:
    """Type and size of a medium."""
    return OperatorMedium(as_text(answer.get("mime_type")), as_number(answer.get("file_size")))


def _dicts(given: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """The objects of a list."""
    return [one for one in list_of(given.get(name)) if isinstance(one, dict)]


def _text(value: Any) -> str:
    """The text, or an empty one for whatever else it is."""
    return value if isinstance(value, str) else ""
