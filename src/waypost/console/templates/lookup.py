"""Lookup of one template of the app's business account."""

from waypost.base.ids import is_uuid
from waypost.console.page_tools import PageTools
from waypost.console.web.errors import NotFound
from waypost.console.web.page_request import PageRequest
from waypost.domain.templates.template import Template
from waypost.store.templates.gallery import template_of_account


async def get_template(tools: PageTools, page_request: PageRequest, template_id: str) -> Template:
    """Return a template, including deleted ones.

    Raises:
        NotFound: there is no template with this id, or it is another partner's.
    """
    template = None
    if is_uuid(template_id) and page_request.app.business_account_id:
        template = await tools.services.database.read(
            template_of_account, page_request.partner.id, page_request.app.business_account_id, template_id
        )
    if template is None:
        raise NotFound("There is no such template.")
    return template
