"""Lists of templates with filters, and one template by its id."""

from dataclasses import replace
from typing import Annotated, Final, Self

from msgspec import Struct

from waypost.api.authorisation import Credential, authorise_app
from waypost.api.fields import Field
from waypost.api.operation import APP, KEY_APP, OLDER_API_ENDED_S, AppCall, NamedAppCall, Operations
from waypost.api.requests import ApiResponse, Request
from waypost.api.route import StatusFirst
from waypost.api.services import Services
from waypost.domain.app import App
from waypost.domain.errors import ApiError, ErrorCode
from waypost.domain.templates.rendering import flatten_template
from waypost.domain.templates.template import Template, TemplateFilter
from waypost.store.templates.templates import find_templates
from waypost.wire.templates.record import TemplateRecord, read_partner_filter, read_self_serve_filter, template_record

operation = Operations("facts 3.5", at_operator=False)
ONE_TEMPLATE: Final = f"{APP}/templates/{{template_id}}"
KEY_TEMPLATES: Final = f"{KEY_APP}/template"
KEY_TEMPLATE: Final = f"{KEY_TEMPLATES}/{{template_id}}"
OLDER_LIST: Final = "/sm/api/v1/template/list/{app_name}"


_PageNumber = Annotated[int, Field("The page number; 1 is the newest, and 0 counts as absent.", "1")]
_PageSize = Annotated[int, Field("Templates per page; without pageNo and pageSize all are returned.", "20")]


class PartnerTemplateFilter(Struct, rename="camel"):
    """The parameters of the partner API's list."""

    template_type: Annotated[
        str, Field("Only templates of this type, or of one of several separated by commas.", "TEXT")
    ] = ""
    status: Annotated[
        str, Field("Only templates with this status, or one of several separated by commas.", "APPROVED")
    ] = ""
    stages: Annotated[
        str, Field("Only templates of these stages, separated by commas; every template has the stage NONE.", "NONE")
    ] = ""
    stage: Annotated[str, Field("An older name of `stages`.", "NONE")] = ""
    useable: Annotated[bool | None, Field("Only templates that can be sent, or only those that cannot.", "true")] = None
    start_time: Annotated[
        int | None,
        Field("Only templates created at or after this time; milliseconds since the epoch.", "1760000000000"),
    ] = None
    end_time: Annotated[
        int | None,
        Field("Only templates created at or before this time; milliseconds since the epoch.", "1790000000000"),
    ] = None
    element_name: Annotated[str, Field("Only templates with exactly this name.", "order_update")] = ""
    data: Annotated[str, Field("Only templates whose data contains this text.", "your order")] = ""
    id: Annotated[str, Field("Only the template with this id.")] = ""
    page_no: _PageNumber = 0
    page_size: _PageSize = 0
    token: Annotated[str, Field("The app token, if no header holds it.")] = ""


class KeyTemplateFilter(Struct, rename="camel"):
    """The parameters of the list by API key."""

    page_no: _PageNumber = 0
    page_size: _PageSize = 0
    template_status: Annotated[
        str, Field("Only templates with this status, or one of several separated by commas.", "APPROVED")
    ] = ""
    template_category: Annotated[
        str, Field("Only templates of this category, or of one of several separated by commas.", "UTILITY")
    ] = ""
    template_type: Annotated[
        str, Field("Only templates of this type, or of one of several separated by commas.", "TEXT")
    ] = ""
    quality: Annotated[str, Field("Only templates of this quality: HIGH, MEDIUM, LOW or UNKNOWN.", "UNKNOWN")] = ""
    language_code: Annotated[str, Field("Only templates in this language.", "en_US")] = ""


class OneTemplate(StatusFirst, kw_only=True):
    """A template."""

    template: TemplateRecord


class TemplateList(StatusFirst, kw_only=True):
    """Templates, newest first."""

    templates: list[TemplateRecord]


class ListCall(AppCall):
    """A call about an app, whose token may be in the query."""

    @classmethod
    async def authorise(cls, services: Services, request: Request) -> Self:
        """Return the call.

        Raises:
            ApiError: as `authorise_app`.
        """
        return cls(services, request, await authorise_app(services, request, allow_query=True))


@operation(
    "GET",
    f"{APP}/templates",
    TemplateList,
    source="ledger 1.5; facts 3.5",
    rate="templates",
    query=PartnerTemplateFilter,
    errors=(ErrorCode.FIELD_BROKEN, ErrorCode.NO_PERMISSION),
    other_app=ErrorCode.APP_ID_UNKNOWN,
)
async def list_templates(call: ListCall) -> ApiResponse:
    """Return the templates of the app's business account, newest first, of all its apps.

    Errors in this order: 401 wrong token, 400 an app that is not the partner's, 403 the token of another of its
    apps, 429 eleventh in a minute, 400 an unreadable filter.

    Source: ledger 1.5, C11; facts 3.5; decision 0020.
    """
    services, request, app = call
    template_filter = read_partner_filter(request.query)
    text = request.query("data")
    if not text:
        return _list_response(await _find(services, app, template_filter))
    # A record's `data` is rendered from the draft, so the store cannot apply this filter.
    templates = await _find(services, app, replace(template_filter, at_most=None, skipped=0))
    matches = [template for template in templates if text in flatten_template(template.draft)]
    end = None if template_filter.at_most is None else template_filter.skipped + template_filter.at_most
    return _list_response(matches[template_filter.skipped : end])


@operation(
    "GET",
    KEY_TEMPLATES,
    TemplateList,
    source="facts 3.5, self-serve twin",
    credential=Credential.API_KEY,
    query=KeyTemplateFilter,
    errors=(ErrorCode.FIELD_BROKEN,),
)
async def list_templates_self_serve(call: AppCall) -> ApiResponse:
    """Return the same list for the self-serve route, which has other filters. Source: facts 3.5."""
    services, request, app = call
    return _list_response(await _find(services, app, read_self_serve_filter(request.query)))


@operation(
    "GET",
    OLDER_LIST,
    TemplateList,
    source="facts 9.2; public clients",
    credential=Credential.API_KEY,
    query=KeyTemplateFilter,
    errors=(ErrorCode.FIELD_BROKEN, ErrorCode.INVALID_APP_DETAILS),
    deprecated_s=OLDER_API_ENDED_S,
)
async def list_templates_by_name(call: NamedAppCall) -> ApiResponse:
    """Return the self-serve list by the app's name. Source: public clients of the older messaging API."""
    services, request, app = call
    return _list_response(await _find(services, app, read_self_serve_filter(request.query)))


@operation("GET", ONE_TEMPLATE, OneTemplate, source="facts 3.5; ours", errors=(ErrorCode.TEMPLATE_NOT_FOUND,))
@operation(
    "GET",
    KEY_TEMPLATE,
    OneTemplate,
    source="facts 3.5, self-serve twin",
    credential=Credential.API_KEY,
    errors=(ErrorCode.TEMPLATE_NOT_FOUND,),
)
async def show_template(call: AppCall) -> ApiResponse:
    """Return one template of the app's business account.

    Raises:
        ApiError: the id is unknown or another partner's.

    Source: facts 3.5: not documented for the partner API; the self-serve route exists.
    """
    template = await template_of(call.services, call.app, call.request.path["template_id"])
    return ApiResponse({"status": "success", "template": template_record(template)})


async def template_of(services: Services, app: App, template_id: str) -> Template:
    """Return one template of the app's business account.

    Raises:
        ApiError: the id is unknown.
    """
    matches = await _find(services, app, TemplateFilter(template_id=template_id))
    if not matches:
        raise ApiError(ErrorCode.TEMPLATE_NOT_FOUND, "The path must name a template of the app's business account.")
    return matches[0]


async def _find(services: Services, app: App, template_filter: TemplateFilter) -> list[Template]:
    return await services.database.read(find_templates, app.partner_id, app.business_account_id, template_filter)


def _list_response(templates: list[Template]) -> ApiResponse:
    return ApiResponse({"status": "success", "templates": [template_record(template) for template in templates]})
