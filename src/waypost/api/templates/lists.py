"""Endpoints that list templates with filters, and show one by its id."""

from dataclasses import replace

from waypost.api.auth.authorisation import authorise_app, authorise_app_by_name
from waypost.api.http.requests import ApiResponse, Request
from waypost.api.services import Services
from waypost.domain.app import App
from waypost.domain.errors import ApiError, ErrorCode
from waypost.domain.templates.filter import TemplateFilter
from waypost.domain.templates.rendering import flatten_template
from waypost.domain.templates.template import Template
from waypost.store.templates.templates import find_templates
from waypost.wire.templates.filters import read_partner_filter, read_self_serve_filter
from waypost.wire.templates.record import template_record


async def list_templates(services: Services, request: Request) -> ApiResponse:
    """Return the templates of the app's business account, newest first, of all its apps.

    Errors in this order: 401 wrong token, 400 an app that is not the partner's, 403 the token of another of its
    apps, 429 eleventh in a minute, 400 an unreadable filter.

    Source: ledger 1.5, C11; facts 3.5; decision 0020.
    """
    app = await authorise_app(services, request, allow_query=True)
    template_filter = read_partner_filter(request.query)
    text = request.query("data")
    if not text:
        return _list_response(await _find(services, app, template_filter))
    # A record's `data` is rendered from the draft, so the store cannot apply this filter.
    templates = await _find(services, app, replace(template_filter, at_most=None, skipped=0))
    matches = [template for template in templates if text in flatten_template(template.draft)]
    end = None if template_filter.at_most is None else template_filter.skipped + template_filter.at_most
    return _list_response(matches[template_filter.skipped : end])


async def list_templates_self_serve(services: Services, request: Request) -> ApiResponse:
    """Return the same list for the self-serve route, which has other filters. Source: facts 3.5."""
    app = await authorise_app(services, request)
    return _list_response(await _find(services, app, read_self_serve_filter(request.query)))


async def list_templates_by_name(services: Services, request: Request) -> ApiResponse:
    """Return the self-serve list by the app's name. Source: public clients of the older messaging API."""
    app = await authorise_app_by_name(services, request)
    return _list_response(await _find(services, app, read_self_serve_filter(request.query)))


async def show_template(services: Services, request: Request) -> ApiResponse:
    """Return one template of the app's business account.

    Raises:
        ApiError: the id is unknown or another partner's.

    Source: facts 3.5: not documented for the partner API; the self-serve route exists.
    """
    app = await authorise_app(services, request)
    template = await template_of(services, app, request.path["template_id"])
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
