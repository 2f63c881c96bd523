"""Templates: the lists with their filters, and one by its id."""

from dataclasses import replace

from waypost.api.auth.authorisation import admitted_app, admitted_app_by_name, app_of_app_token
from waypost.api.http.requests import Answer, Request
from waypost.api.services import Services
from waypost.domain.app import App
from waypost.domain.errors import ApiError, ErrorCode
from waypost.domain.templates.filter import TemplateWish
from waypost.domain.templates.rendering import flattened
from waypost.domain.templates.template import Template
from waypost.store.templates.templates import find_templates
from waypost.wire.templates.filters import partner_wish, self_serve_wish
from waypost.wire.templates.record import template_record


async def list_templates(services: Services, request: Request) -> Answer:
    """The templates of the app's business account, newest first, whichever of its apps made them.

    Refuses in this order: 401 wrong token, 429 eleventh in a minute, 400 a filter that cannot be read.

    Source: facts 3.5; decision 0020.
    """
    app = await app_of_app_token(services, request, query=True)
    await request.spend(services.limiter, app.id)
    wish = partner_wish(request.query)
    said = request.query("data")
    if not said:
        return _listed(await _find(services, app, wish))
    # What a record shows as `data` is made from the draft, so this one filter is not the store's.
    every = await _find(services, app, replace(wish, at_most=None, skipped=0))
    found = [one for one in every if said in flattened(one.draft)]
    end = None if wish.at_most is None else wish.skipped + wish.at_most
    return _listed(found[wish.skipped : end])


async def list_own_templates(services: Services, request: Request) -> Answer:
    """The same list for the self-serve twin, with filters of its own. Source: facts 3.5."""
    app = await admitted_app(services, request)
    return _listed(await _find(services, app, self_serve_wish(request.query)))


async def list_templates_by_name(services: Services, request: Request) -> Answer:
    """The self-serve list by the app's name. Source: public clients of the older messaging API."""
    app = await admitted_app_by_name(services, request)
    return _listed(await _find(services, app, self_serve_wish(request.query)))


async def show_template(services: Services, request: Request) -> Answer:
    """One template of the app's business account.

    Raises:
        Refused: there is none of this id; another partner's is no other than none.

    Source: facts 3.5: no page of the partner API; the self-serve twin has the call.
    """
    app = await admitted_app(services, request)
    template = await template_of(services, app, request.path["template_id"])
    return Answer({"status": "success", "template": template_record(template)})


async def template_of(services: Services, app: App, template_id: str) -> Template:
    """One template of the app's business account.

    Raises:
        Refused: there is none of this id.
    """
    found = await _find(services, app, TemplateWish(template_id=template_id))
    if not found:
        raise ApiError(ErrorCode.TEMPLATE_NOT_FOUND, "The path must name a template of the app's business account.")
    return found[0]


async def _find(services: Services, app: App, wish: TemplateWish) -> list[Template]:
    return await services.database.read(find_templates, app.partner_id, app.business_account_id, wish)


def _listed(templates: list[Template]) -> Answer:
    return Answer({"status": "success", "templates": [template_record(one) for one in templates]})
