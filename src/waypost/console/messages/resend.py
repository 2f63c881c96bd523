"""Resends the content of a message as a new message through the partner API."""

from starlette.responses import Response

from waypost.client.api_client import ApiClient
from waypost.console.messages.requests import ResendRequest, build_resend_request
from waypost.console.page_tools import PageTools
from waypost.console.web.errors import NotFound
from waypost.console.web.page_request import PageRequest
from waypost.store.console.trace import app_message_content


async def resend_message(tools: PageTools, page_request: PageRequest) -> Response:
    """Resend a message and redirect to the new one.

    Raises:
        NotFound: the message does not exist.
        InvalidPageRequest: its request was deleted.
        ApiResponseError: the partner API rejected it.
    """
    stored = await tools.services.database.read(
        app_message_content, page_request.partner.id, page_request.app.id, page_request.path_params["message_id"]
    )
    if stored is None:
        raise NotFound("Message not found.")
    row, _ = stored
    message_id = await _send(
        tools.services.apis.app(page_request.app), build_resend_request(page_request.app.id, row.kind, row.request)
    )
    return tools.redirect(
        f"/apps/{page_request.app.id}/messages/{message_id}",
        "Resent as a new message with its own ID.",
        hint="The original message is unchanged.",
    )


async def _send(client: ApiClient, resend: ResendRequest) -> str:
    """Send the request and return the new message's id; its place depends on the endpoint."""
    if resend.fields is None:
        response = await client.json("POST", resend.path, resend.body)
    else:
        response = await client.form("POST", resend.path, resend.fields)
    return str(response["messageId"] if "messageId" in response else response["messages"][0]["id"])
