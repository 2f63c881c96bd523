"""What is done with a template from its page: it is sent, or deleted, through the partner API."""

from starlette.responses import JSONResponse, Response

from waypost.client.api_client import ApiResponseError
from waypost.console.page_tools import PageTools
from waypost.console.templates.lookup import template_of
from waypost.console.templates.page import delete_path, page_of, send_path
from waypost.console.templates.sending import fields_of_send
from waypost.console.web.page_request import PageRequest


async def send_template(desk: PageTools, visit: PageRequest) -> Response:
    """Send it, and lead to the message's trace; a refusal comes back with what was typed.

    Raises:
        NotThere: there is no such template.
        DoorRefused: the API refuses it; where a module asked, the guard tells it.
    """
    template = await template_of(desk, visit, visit.path["template_id"])
    form = await visit.form()
    given = {name: value.strip() for name, value in form.items() if isinstance(value, str)}
    app = visit.app
    fields = fields_of_send(
        template.draft, template.id, app.phone_number, app.name, given.get("destination", ""), given
    )
    try:
        answer = await desk.parts.apis.app(app).form("POST", send_path(visit), fields)
    except ApiResponseError as refused:
        if visit.is_quiet:
            raise
        said = refused.explanation or refused.message
        return await page_of(desk, visit, template, status=400, given=given, refused=said)
    path = f"/apps/{app.id}/messages/{answer['messageId']}"
    return JSONResponse({"to": path}) if visit.is_quiet else desk.go(path, "Sent.")


async def delete_template(desk: PageTools, visit: PageRequest) -> Response:
    """Delete it.

    Raises:
        NotThere: there is no such template.
        DoorRefused: the API refuses it.
    """
    template = await template_of(desk, visit, visit.path["template_id"])
    await desk.parts.apis.app(visit.app).json("DELETE", delete_path(visit, template))
    said = f"{template.draft.element_name} in {template.draft.language_code} is deleted."
    remedy = "Its name is free again here; the operator keeps it for 30 days."
    return desk.go(f"/apps/{visit.app.id}/templates", said, remedy=remedy)
