"""Lists of templates, and their synchronisation with the operator."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Final, Self

from msgspec import Struct
from sqlalchemy import Connection

from waypost.api.authorisation import Credential, authorise_app
from waypost.api.fields import Field
from waypost.api.operation import APP, KEY_APP, OLDER_API_ENDED_S, AppCall, Operations
from waypost.api.requests import ApiResponse, Request
from waypost.api.services import Services
from waypost.base.ids import Ids
from waypost.domain.app import App
from waypost.domain.direct_calls import ListTemplates, OperatorTemplate, TemplateDetail
from waypost.domain.errors import ApiError, ErrorCode
from waypost.domain.templates.rendering import flatten_template
from waypost.domain.templates.template import Template, TemplateFilter, TemplateStatus
from waypost.notifications.state_changes import StateChangeRecorder
from waypost.notifications.template_changes import apply_status_change, make_review_event
from waypost.notifications.template_sync import add_found_template, align_templates, present_ids
from waypost.store.accounts.partners import app_by_id
from waypost.store.templates.templates import find_templates, queued_template_ids, templates_by_ids
from waypost.wire.responses import Success, success
from waypost.wire.templates.record import TemplateRecord, read_partner_filter, read_self_serve_filter, template_record

operation = Operations("facts 3.5", at_operator=False)
ONE_TEMPLATE: Final = f"{APP}/templates/{{template_id}}"
KEY_TEMPLATES: Final = f"{KEY_APP}/template"
KEY_TEMPLATE: Final = f"{KEY_TEMPLATES}/{{template_id}}"
OLDER_LIST: Final = "/sm/api/v1/template/list/{app_name}"
ONE_RECORD: Final = success(template=TemplateRecord)
_RECORDS: Final = success(templates=list[TemplateRecord])


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


class ListCall(AppCall):
    """A call about an app, whose token may be in the query."""

    @classmethod
    async def authorise(cls, services: Services, request: Request) -> Self:
        """Return the call."""
        return cls(services, request, await authorise_app(services, request, allow_query=True))


@operation(
    "GET",
    f"{APP}/templates",
    _RECORDS,
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
    _RECORDS,
    source="facts 3.5, self-serve twin",
    credential=Credential.API_KEY,
    query=KeyTemplateFilter,
    errors=(ErrorCode.FIELD_BROKEN,),
)
async def list_templates_self_serve(call: AppCall) -> ApiResponse:
    """Return the same list for the self-serve route, which has other filters."""
    services, request, app = call
    return _list_response(await _find(services, app, read_self_serve_filter(request.query)))


@operation(
    "GET",
    OLDER_LIST,
    _RECORDS,
    source="facts 9.2; public clients",
    credential=Credential.API_KEY,
    query=KeyTemplateFilter,
    errors=(ErrorCode.FIELD_BROKEN, ErrorCode.INVALID_APP_DETAILS),
    deprecated_s=OLDER_API_ENDED_S,
)
async def list_templates_by_app_name(call: AppCall) -> ApiResponse:
    """Return the self-serve list by the app's name. Source: public clients of the older messaging API."""
    services, request, app = call
    return _list_response(await _find(services, app, read_self_serve_filter(request.query)))


_show: Final = partial(operation, "GET", returns=ONE_RECORD, errors=(ErrorCode.TEMPLATE_NOT_FOUND,))


@_show(path=ONE_TEMPLATE, source="facts 3.5; ours")
@_show(path=KEY_TEMPLATE, source="facts 3.5, self-serve twin", credential=Credential.API_KEY)
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


sync_operation = Operations("facts 3.6")


def _rejected_sync(_request: Request, error: ApiError) -> ApiError:
    """Return the error with another text, if it is that of a wrong credential."""
    is_credential = error.code in (ErrorCode.AUTHENTICATION_FAILED, ErrorCode.NOT_FOR_THIS_APP)
    return ApiError(ErrorCode.UNAUTHORIZED_ACCESS, error.explanation) if is_credential else error


@sync_operation(
    "GET",
    f"{APP}/template/sync",
    Success,
    rate="template_sync",
    status=202,
    errors=(ErrorCode.UNAUTHORIZED_ACCESS,),
    rejection=_rejected_sync,
)
async def synchronise_templates(call: AppCall) -> None:
    """Synchronise contents, status, category, quality and reason of our templates with the operator's.

    Templates that the operator no longer has are deleted here; those that only the operator has become
    templates of the app (decision 0021). Changes cause the same callbacks as the operator's own events.

    Errors in this order: 401, 429, 400 the operator's error, 503 the operator's list is not complete
    within 10 s: then nothing is changed, because a template missing in a partial list may exist.

    Source: facts 3.6: 202, once an hour, 401 `Unauthorized Access`; decision 0026.
    """
    services, app = call.services, call.app
    account_id = call.account
    known = await services.database.read(find_templates, app.partner_id, account_id, TemplateFilter())
    listed = await list_operator_templates(call, ListTemplates(account_id, TemplateDetail.CONTENTS))
    business = await services.directory.business_account(account_id)
    namespace = "" if business is None else business.namespace
    now_ms = services.clock.now_ms()
    await services.database.write(_align_with_operator, services.ids, app, namespace, known, listed, now_ms)
    services.directory.invalidate()  # so that every process sends by the contents that the operator has


async def list_operator_templates(call: AppCall, request: ListTemplates) -> Sequence[OperatorTemplate]:
    """Return the operator's complete list of templates.

    Raises:
        ApiError: 503, the list is not complete within 10 s.
    """
    async with call.deadline("ListTemplates"):
        return await call.operator(request)


def _align_with_operator(
    connection: Connection,
    ids: Ids,
    app: App,
    namespace: str,
    known: list[Template],
    listed: Sequence[OperatorTemplate],
    now_ms: int,
) -> None:
    """Apply the operator's list to an app's business account.

    Templates with changes that the operator has not received yet, and those that have changed since the list was
    requested, are left unchanged.
    """
    account_id = app.business_account_id
    recorder = StateChangeRecorder(connection, ids, now_ms)
    pending_ids = queued_template_ids(connection, account_id)
    current = templates_by_ids(connection, {template.id for template in known})
    unchanged = [template for template in known if current.get(template.id) == template]
    pending_ids |= current.keys() - {template.id for template in unchanged}
    others = align_templates(connection, recorder, account_id, listed, pending_ids=pending_ids, now_ms=now_ms)
    for found in others:
        add_found_template(connection, ids, app, namespace, found, now_ms)
    operator_ids = present_ids(listed)
    for template in unchanged:
        is_deleted = template.operator_template_id and template.operator_template_id not in operator_ids
        if is_deleted and template.id not in pending_ids:
            event = make_review_event(template, "DELETED", None)
            owner = app_by_id(connection, template.app_id)
            apply_status_change(connection, recorder, owner, template, TemplateStatus.DELETED, event, now_ms)
    recorder.write()
