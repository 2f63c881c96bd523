"""Forms of flows, loaded when a flow is opened on a phone."""

from typing import Final

from starlette.responses import Response

from waypost.base.json_values import object_of
from waypost.client.api_client import ApiResponseError
from waypost.console.bubbles.flow_forms import parse_screens
from waypost.console.bubbles.json_fields import text_of
from waypost.console.page_tools import PageTools
from waypost.console.web.errors import NotFound
from waypost.console.web.page_request import PageRequest

_FILE: Final = "bubbles/flow.html"


async def show_flow(tools: PageTools, page_request: PageRequest) -> Response:
    """Return the form of a flow of the partner's business accounts; 204 if it has none.

    Raises:
        NotFound: there is no such flow, or it is another partner's.
    """
    control, flow_id = tools.services.apis.control, str(page_request.path_params["flow_id"])
    missing = NotFound("You have no such flow.")
    if control is None or not (flow_id.isascii() and flow_id.isdigit()):
        raise missing
    try:
        flow = object_of(await control.get(f"/control/flows/{flow_id}"))
    except ApiResponseError as error:
        raise missing from error
    own = {app.business_account_id for app in page_request.apps if app.business_account_id}
    if text_of(flow.get("waba_id")) not in own:
        raise missing
    screens = parse_screens(flow.get("content"))
    if not screens:
        return Response(status_code=204)
    return tools.fragment(page_request, _FILE, screens=screens, flow_id=flow_id)
