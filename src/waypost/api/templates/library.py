"""The operator's template library."""

from typing import Annotated, Any, Final

import msgspec
from msgspec import Struct

from waypost.api.direct_calls import account_of, call_operator
from waypost.api.fields import Field
from waypost.api.http.requests import ApiResponse
from waypost.api.idempotency import commit
from waypost.api.operation import APP, AppCall, Operations
from waypost.api.responses import StatusFirst
from waypost.api.route import BodyFormat, IdempotencyMode
from waypost.api.services import Services
from waypost.api.templates.sync import list_operator_templates
from waypost.domain.app import App
from waypost.domain.direct_calls import (
    CreatedTemplate,
    CreateFromLibrary,
    GetLibraryTemplate,
    LibraryTemplate,
    LibraryTemplateButton,
    ListLibrary,
    ListTemplates,
    OperatorTemplate,
    TemplateDetail,
)
from waypost.domain.errors import ApiError, ErrorCode
from waypost.domain.lifecycle import OPERATOR_STATUSES
from waypost.domain.templates.buttons import ButtonKind, TemplateButton
from waypost.domain.templates.fields import TEMPLATE_FIELDS, TemplateDraft
from waypost.domain.templates.template import Category, Template, TemplateStatus
from waypost.domain.templates.types import canonical_language
from waypost.store.templates.templates import adopt_template, find_operator_template, templates_by_name
from waypost.wire.templates.library_buttons import LibraryButton, read_library_buttons
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


class LibraryTemplates(StatusFirst, kw_only=True):
    """Library templates as the operator lists them."""

    templates: list[dict[str, Any]]


class CreatedFromLibrary(StatusFirst, kw_only=True):
    """The template that was created."""

    templates: TemplateRecord


@operation("GET", f"{APP}/template/metalibrary", LibraryTemplates)
async def list_library(call: AppCall, query: LibraryFilter) -> LibraryTemplates:
    """Return the operator's library templates as it lists them. Source: facts 3.6."""
    filters = {filter_name: value for name, filter_name in _FILTERS.items() if (value := getattr(query, name))}
    if "language" in filters:
        filters["language"] = canonical_language(filters["language"])
    library = await call_operator(call.services, call.app, ListLibrary(**filters))
    return LibraryTemplates(templates=[template for template in library.raw if isinstance(template, dict)])


@operation(
    "POST",
    f"{APP}/template/metalibrary",
    CreatedFromLibrary,
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
async def create_from_library(call: AppCall) -> ApiResponse:
    """Create a template from the library; the operator approves it at once, so it is called directly.

    Errors in this order: 401 wrong token, 429, 400 the first missing field, 400 another category than
    UTILITY, 400 unreadable buttons, 400 the name exists, 400 the library has no such template, 400
    the operator's error.

    Source: facts 3.6.
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
    business = await services.directory.business_account(account_of(app))
    if business is None:
        raise LookupError(f"app {app.id} has no business account")
    same_name = await services.database.read(templates_by_name, app.partner_id, business.id, name)
    if any(other.draft.language_code == language for other in same_name):
        raise ApiError(ErrorCode.TEMPLATE_EXISTS, f"elementName {name} is taken in {language}.")
    library_name = form.text("libraryTemplateName") or ""
    ready = await _ready_template(services, app, library_name, language)
    created = await _create_at_operator(
        services,
        app,
        CreateFromLibrary(
            business.id, name, language, Category.UTILITY.value, library_name, msgspec.to_builtins(inputs)
        ),
        ready,
    )
    now_ms = services.clock.now_ms()
    template = Template(
        id=services.ids.new(),
        partner_id=app.partner_id,
        app_id=app.id,
        business_account_id=business.id,
        namespace=business.namespace,
        draft=_draft_of(ready, inputs, name, language),
        status=OPERATOR_STATUSES.get(created.status, TemplateStatus.PENDING),
        created_on_ms=now_ms,
        modified_on_ms=now_ms,
        category=Category.UTILITY,
        operator_template_id=created.id,
    )

    def make_response(is_new: bool) -> ApiResponse:
        if not is_new:
            raise ApiError(ErrorCode.TEMPLATE_EXISTS, f"elementName {name} is taken in {language}.")
        return ApiResponse({"status": "success", "templates": template_record(template)})

    return await commit(services, request, adopt_template, template, make_response=make_response)


async def _create_at_operator(
    services: Services, app: App, request: CreateFromLibrary, ready: LibraryTemplate
) -> CreatedTemplate:
    """Create a template at the operator from its library, or return the one that an earlier attempt created.

    The earlier response may have been lost, or we may have stopped before we stored it. The operator then
    rejects the second creation, and its template with the same name and text is the one we requested.

    Raises:
        ApiError: the operator returns an error and has no such template; or it does not respond.
    """
    account_id = request.business_account_id
    try:
        return await call_operator(services, app, request)
    except ApiError as error:
        if error.code is not ErrorCode.OPERATOR_REJECTED:
            raise
        for listed in await list_operator_templates(
            services, app, ListTemplates(account_id, TemplateDetail.TEXTS, request.name)
        ):
            if _is_requested(listed, request, ready) and not await _is_known(services, account_id, listed):
                return CreatedTemplate(listed.id, listed.status)
        raise


def _is_requested(listed: OperatorTemplate, request: CreateFromLibrary, ready: LibraryTemplate) -> bool:
    """True if a template of the operator is the requested one."""
    return (
        (listed.name, listed.language) == (request.name, request.language)
        and not listed.is_being_deleted
        and listed.body in (None, ready.body)
    )


async def _is_known(services: Services, account_id: str, listed: OperatorTemplate) -> bool:
    """True if this template of the operator is or was stored here; it may be about to be deleted."""
    names = (listed.id, listed.name, listed.language)
    known = await services.database.read(find_operator_template, account_id, *names)
    return known is not None


async def _ready_template(services: Services, app: App, name: str, language: str) -> LibraryTemplate:
    """Return the library's template with a name in a language.

    Raises:
        ApiError: the library has none.
    """
    ready = await call_operator(services, app, GetLibraryTemplate(name, language))
    if ready is None:
        raise ApiError(
            ErrorCode.FIELD_BROKEN,
            f"libraryTemplateName must be a template of the library in {language}; see GET on this path.",
        )
    return ready


def _draft_of(ready: LibraryTemplate, inputs: list[LibraryButton], name: str, language: str) -> TemplateDraft:
    """Return the draft that corresponds to the operator's template from the library."""
    example = ready.body
    for nth, value in enumerate(ready.examples, start=1):
        example = example.replace(_VARIABLE_FORMAT % nth, value)
    buttons = [_button(button, inputs[nth] if nth < len(inputs) else None) for nth, button in enumerate(ready.buttons)]
    return TemplateDraft(
        element_name=name,
        language_code=language,
        category=Category.UTILITY.value,
        template_type="TEXT",
        vertical=ready.topic or None,
        content=ready.body,
        example=example,
        header=ready.header or None,
        buttons=tuple(button for button in buttons if button is not None),
    )


def _button(ready: LibraryTemplateButton, inputs: LibraryButton | None) -> TemplateButton | None:
    if ready.kind not in ButtonKind.__members__:
        return None
    url = (inputs.url or {}) if inputs else {}
    return TemplateButton(
        kind=ButtonKind[ready.kind],
        text=ready.text,
        url=url.get("base_url") or ready.url,
        phone_number=(inputs.phone_number if inputs else None) or ready.phone_number,
        example=(url["url_suffix_example"],) if url.get("url_suffix_example") else (),
    )
