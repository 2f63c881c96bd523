"""The operator's template library."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec
from msgspec import Struct

from waypost.api.fields import Field
from waypost.api.idempotency import commit
from waypost.api.operation import APP, AppCall, Operations
from waypost.api.requests import ApiResponse
from waypost.api.route import BodyFormat, IdempotencyMode
from waypost.api.templates.lists import list_operator_templates
from waypost.base.json_values import list_of, objects_in, text_or_none
from waypost.domain.direct_calls import ListTemplates, TemplateDetail
from waypost.domain.errors import ApiError, ErrorCode
from waypost.domain.lifecycle import OPERATOR_STATUSES
from waypost.domain.outcome import MAX_OPERATOR_ID_CHARS
from waypost.domain.templates.buttons import ButtonKind, TemplateButton
from waypost.domain.templates.fields import TEMPLATE_FIELDS, TemplateDraft
from waypost.domain.templates.template import Category, Template, TemplateStatus
from waypost.domain.templates.types import canonical_language
from waypost.store.templates.templates import adopt_template, find_operator_template, templates_by_name
from waypost.wire.responses import success
from waypost.wire.templates.drafts import LibraryButton, read_library_buttons
from waypost.wire.templates.record import TemplateRecord, template_record

_FIELD_OF: Final = {field.name: field for field in TEMPLATE_FIELDS}
_VARIABLE_FORMAT: Final = "{{%d}}"

# fmt: off
_FILTERS: Final = {  # Source: facts 3.6; the operator's page "Template library"
    # ours           the operator call's
    "element_name":  "name",
    "industry":     "industry",
    "language_code": "language",
    "topic":        "topic",
    "usecase":      "usecase",
}
_REQUIRED_FIELDS: Final = {  # Source: facts 3.6, in this order
    "elementName":         ErrorCode.TEMPLATE_NAME_MISSING,
    "category":            ErrorCode.CATEGORY_MISSING,
    "languageCode":        ErrorCode.LANGUAGE_MISSING,
    "libraryTemplateName": ErrorCode.LIBRARY_NAME_MISSING,
}
# fmt: on


operation = Operations("facts 3.6")


class LibraryFilter(Struct, rename="camel"):
    """Filters of the library."""

    element_name: Annotated[str, Field("Only templates with exactly this name.", "order_update")] = ""
    industry: Annotated[str, Field("Only library templates for this industry.", "E_COMMERCE")] = ""
    language_code: Annotated[str, Field("Only templates in this language.", "en_US")] = ""
    topic: Annotated[str, Field("Only library templates on this topic.", "ORDER_MANAGEMENT")] = ""
    usecase: Annotated[str, Field("Only library templates for this use case.", "SHIPMENT_CONFIRMATION")] = ""


class NewLibraryTemplate(Struct, rename="camel"):
    """A template to create from the library."""

    element_name: Annotated[
        str, Field(_FIELD_OF["elementName"].meaning, _FIELD_OF["elementName"].example, is_required=True)
    ] = ""
    category: Annotated[str, Field(_FIELD_OF["category"].meaning, _FIELD_OF["category"].example, is_required=True)] = ""
    language_code: Annotated[str, Field("The language of the library template.", "en_US", is_required=True)] = ""
    library_template_name: Annotated[
        str, Field("The name of the library template.", "order_on_its_way", is_required=True)
    ] = ""
    buttons: Annotated[
        list[LibraryButton] | None,
        Field(
            "The targets of the library template's buttons, in their order.",
            '[{"type":"URL","url":{"base_url":"https://shop.example/{{1}}",'
            '"url_suffix_example":"https://shop.example/1"}}]',
        ),
    ] = None


@operation("GET", f"{APP}/template/metalibrary", success(templates=list[dict[str, Any]]))
async def list_library_templates(call: AppCall, query: LibraryFilter) -> dict[str, Any]:
    """Return the operator's library templates as it lists them."""
    filters = {filter_name: value for name, filter_name in _FILTERS.items() if (value := getattr(query, name))}
    if "language" in filters:
        filters["language"] = canonical_language(filters["language"])
    return {"status": "success", "templates": await _list_library(call, filters)}


@operation(
    "POST",
    f"{APP}/template/metalibrary",
    success(templates=TemplateRecord),
    body=NewLibraryTemplate,
    body_format=BodyFormat.FORM,
    errors=(
        ErrorCode.FIELD_BROKEN,
        ErrorCode.INVALID_CATEGORY,
        ErrorCode.TEMPLATE_EXISTS,
        ErrorCode.TEMPLATE_NAME_MISSING,
        ErrorCode.CATEGORY_MISSING,
        ErrorCode.LANGUAGE_MISSING,
        ErrorCode.LIBRARY_NAME_MISSING,
    ),
    idempotency=IdempotencyMode.MARKED_FIRST,
)
async def create_template_from_library(call: AppCall) -> ApiResponse:
    """Create a template from the library; the operator approves it at once, so it is called directly.

    Errors in this order: 401 wrong token, 429, 400 the first missing field, 400 another category than
    UTILITY, 400 unreadable buttons, 400 the name exists, 400 the library has no such template, 400
    the operator's error.
    """
    services, request, app = call
    form = request.form()
    for name, reason in _REQUIRED_FIELDS.items():
        if not form.text(name):
            raise ApiError(reason, f"{name} is required.")
    if form.text("category") not in Category.__members__:
        raise ApiError(ErrorCode.INVALID_CATEGORY)
    if form.text("category") != Category.UTILITY:
        raise ApiError(ErrorCode.FIELD_BROKEN, "category must be UTILITY: the library has no other.")
    inputs = read_library_buttons(form.text("buttons"))
    name, language = form.text("elementName") or "", canonical_language(form.text("languageCode") or "")
    business = await services.directory.business_account(call.account)
    if business is None:
        raise LookupError(f"app {app.id} has no business account")
    same_name = await services.database.read(templates_by_name, app.partner_id, business.id, name)
    if any(other.draft.language_code == language for other in same_name):
        raise ApiError(ErrorCode.TEMPLATE_EXISTS, f"elementName {name} is taken in {language}.")
    library_name = form.text("libraryTemplateName") or ""
    ready = await _ready_template(call, library_name, language)
    body: dict[str, Any] = {
        "name": name,
        "language": language,
        "category": Category.UTILITY.value,
        "library_template_name": library_name,
    }
    if inputs:
        body["library_template_button_inputs"] = msgspec.to_builtins(inputs)
    operator_id, status = await _create_at_operator(call, business.id, body, ready)
    now_ms = services.clock.now_ms()
    template = Template(
        id=services.ids.new(),
        partner_id=app.partner_id,
        app_id=app.id,
        business_account_id=business.id,
        namespace=business.namespace,
        draft=_draft_of(ready, inputs, name, language),
        status=OPERATOR_STATUSES.get(status, TemplateStatus.PENDING),
        created_on_ms=now_ms,
        modified_on_ms=now_ms,
        category=Category.UTILITY,
        operator_template_id=operator_id,
    )

    def make_response(is_new: bool) -> ApiResponse:
        if not is_new:
            raise ApiError(ErrorCode.TEMPLATE_EXISTS, f"elementName {name} is taken in {language}.")
        return ApiResponse({"status": "success", "templates": template_record(template)})

    return await commit(services, request, adopt_template, template, make_response=make_response)


async def _list_library(call: AppCall, query: Mapping[str, str]) -> list[dict[str, Any]]:
    return objects_in((await call.graph_page("message_template_library", query))["data"])


async def _create_at_operator(
    call: AppCall, account_id: str, body: Mapping[str, Any], ready: Mapping[str, Any]
) -> tuple[str, str]:
    """Create a template at the operator from its library, or find the one that an earlier attempt created.

    The earlier response may have been lost, or we may have stopped before we stored it. The operator then
    rejects the second creation, and its template with the same name and text is the one we requested.

    Returns:
        Its id and its status.

    Raises:
        ApiError: the operator returns an error and has no such template; or it does not respond.
    """
    services, path, name = call.services, f"{account_id}/message_templates", body["name"]
    try:
        created = await call.graph("POST", path, body)
    except ApiError as error:
        if error.code is not ErrorCode.OPERATOR_REJECTED:
            raise
        for listed in await list_operator_templates(call, ListTemplates(account_id, TemplateDetail.TEXTS, name)):
            is_requested = (
                (listed.name, listed.language) == (name, body["language"])
                and not listed.is_being_deleted
                and listed.body in (None, _text(ready.get("body")))
            )
            identity = (account_id, listed.id, listed.name, listed.language)
            # One that is or was stored here may be about to be deleted.
            if is_requested and await services.database.read(find_operator_template, *identity) is None:
                return listed.id, listed.status
        raise
    operator_id = _text(created.get("id"))
    if not 0 < len(operator_id) <= MAX_OPERATOR_ID_CHARS:
        raise call.unavailable(path, "its response has no template id")
    return operator_id, _text(created.get("status"))


async def _ready_template(call: AppCall, name: str, language: str) -> dict[str, Any]:
    """Return the library's template with a name in a language."""
    for listed in await _list_library(call, {"name": name, "language": language}):
        if (listed.get("name"), listed.get("language")) == (name, language):
            return listed
    raise ApiError(
        ErrorCode.FIELD_BROKEN,
        f"libraryTemplateName must be a template of the library in {language}; see GET on this path.",
    )


def _draft_of(ready: Mapping[str, Any], inputs: list[LibraryButton], name: str, language: str) -> TemplateDraft:
    """Return the draft that corresponds to the operator's template from the library."""
    content = example = _text(ready.get("body"))
    for nth, value in enumerate(map(_text, list_of(ready.get("body_params"))), start=1):
        example = example.replace(_VARIABLE_FORMAT % nth, value)
    buttons = [
        _button(button, inputs[nth] if nth < len(inputs) else None)
        for nth, button in enumerate(objects_in(ready.get("buttons")))
    ]
    return TemplateDraft(
        element_name=name,
        language_code=language,
        category=Category.UTILITY.value,
        template_type="TEXT",
        vertical=_text(ready.get("topic")) or None,
        content=content,
        example=example,
        header=_text(ready.get("header")) or None,
        buttons=tuple(button for button in buttons if button is not None),
    )


def _button(ready: Mapping[str, Any], inputs: LibraryButton | None) -> TemplateButton | None:
    kind = _text(ready.get("type")).upper()
    if kind not in ButtonKind.__members__:
        return None
    url = (inputs.url or {}) if inputs else {}
    return TemplateButton(
        kind=ButtonKind[kind],
        text=_text(ready.get("text")),
        url=url.get("base_url") or _text(ready.get("url")),
        phone_number=(inputs.phone_number if inputs else None) or _text(ready.get("phone_number")),
        example=(url["url_suffix_example"],) if url.get("url_suffix_example") else (),
    )


def _text(value: object) -> str:
    """Return the text; empty for a value of another type."""
    return text_or_none(value) or ""
