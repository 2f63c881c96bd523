"""Actions of a template's page: sending and deleting it, through the partner API."""

from starlette.responses import JSONResponse, Response

from waypost.client.api_client import ApiResponseError
from waypost.console.page_tools import PageTools
from waypost.console.templates.lookup import template_of
from waypost.console.templates.page import delete_path, page_of, send_path
from waypost.console.templates.sending import fields_of_send
from waypost.console.web.page_request import PageRequest


async def send_template(desk: PageTools, visit: PageRequest) -> Response:
    """Send it, and redirect to the message's trace; an error is shown with the values as typed.

    Raises:
        NotThere: there is no such template.
        ApiResponseError: the API returned an error to a request of a script; the guard shows it.
    """
    template = await template_of(desk, visit, visit.path["template_id"])
    form = await visit.form()
    values = {name: value.strip() for name, value in form.items() if isinstance(value, str)}
    app = visit.app
    fields = fields_of_send(
        template.draft, template.id, app.phone_number, app.name, values.get("destination", ""), values
    )
    try:
        response = await desk.parts.apis.app(app).form("POST", send_path(visit), fields)
    except ApiResponseError as error:
        if visit.is_quiet:
            raise
        text = error.explanation or error.message
        return await page_of(desk, visit, template, status=400, given=values, refused=text)
    path = f"/apps/{app.id}/messages/{response['messageId']}"
    return JSONResponse({"to": path}) if visit.is_quiet else desk.go(path, "Sent.")


async def delete_template(desk: PageTools, visit: PageRequest) -> Response:
    """Delete it.

    Raises:
        NotThere: there is no such template.
        ApiResponseError: the API returned an error.
    """
    template = await template_of(desk, visit, visit.path["template_id"])
    await desk.parts.apis.app(visit.app).json("DELETE", delete_path(visit, template))
    text = f"Template {template.draft.element_name} ({template.draft.language_code}) deleted."
    hint = "Its name can be reused here at once, and at the operator after 30 days."
    return desk.go(f"/apps/{visit.app.id}/templates", text, remedy=hint)
