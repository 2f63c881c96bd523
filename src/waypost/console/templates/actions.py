"""Actions of a template's page: sending and deleting it, through the partner API."""

from starlette.responses import JSONResponse, Response

from waypost.client.api_client import ApiResponseError
from waypost.console.page_tools import PageTools
from waypost.console.templates.lookup import get_template
from waypost.console.templates.page import delete_path, send_path, template_page
from waypost.console.templates.sending import encode_send
from waypost.console.web.page_request import PageRequest


async def send_template(tools: PageTools, page_request: PageRequest) -> Response:
    """Send it, and redirect to the message's trace; an error is shown with the values as typed.

    Raises:
        NotFound: there is no such template.
        ApiResponseError: the API returned an error to a request of a script; the guard shows it.
    """
    template = await get_template(tools, page_request, page_request.path_params["template_id"])
    form = await page_request.form()
    values = {name: value.strip() for name, value in form.items() if isinstance(value, str)}
    app = page_request.app
    fields = encode_send(template.draft, template.id, app.phone_number, app.name, values.get("destination", ""), values)
    try:
        response = await tools.services.apis.app(app).form("POST", send_path(page_request), fields)
    except ApiResponseError as error:
        if page_request.is_quiet:
            raise
        text = error.explanation or error.message
        return await template_page(tools, page_request, template, status=400, form_values=values, error=text)
    path = f"/apps/{app.id}/messages/{response['messageId']}"
    return JSONResponse({"to": path}) if page_request.is_quiet else tools.redirect(path, "Sent.")


async def delete_template(tools: PageTools, page_request: PageRequest) -> Response:
    """Delete it.

    Raises:
        NotFound: there is no such template.
        ApiResponseError: the API returned an error.
    """
    template = await get_template(tools, page_request, page_request.path_params["template_id"])
    await tools.services.apis.app(page_request.app).json("DELETE", delete_path(page_request, template))
    text = f"Template {template.draft.element_name} ({template.draft.language_code}) deleted."
    hint = "Its name can be reused here at once, and at the operator after 30 days."
    return tools.redirect(f"/apps/{page_request.app.id}/templates", text, hint=hint)
