"""Resends the content of a message as a new message through the partner API."""

from starlette.responses import Response

from waypost.client.api_client import ApiClient
from waypost.console.messages.requests import Again, request_of
from waypost.console.page_tools import PageTools
from waypost.console.web.not_found import NotThere
from waypost.console.web.page_request import PageRequest
from waypost.store.console.trace import words_of_app


async def send_again(desk: PageTools, visit: PageRequest) -> Response:
    """Resend a message and redirect to the new one.

    Raises:
        NotFound: the message does not exist.
        InvalidPageRequest: its request was deleted.
        ApiResponseError: the partner API rejected it.
    """
    stored = await desk.parts.database.read(words_of_app, visit.partner.id, visit.app.id, visit.path["message_id"])
    if stored is None:
        raise NotThere("Message not found.")
    row, _ = stored
    message_id = await _sent(desk.parts.apis.app(visit.app), request_of(visit.app.id, row.kind, row.request))
    return desk.go(
        f"/apps/{visit.app.id}/messages/{message_id}",
        "Resent as a new message with its own ID.",
        remedy="The original message is unchanged.",
    )


async def _sent(door: ApiClient, again: Again) -> str:
    """Send the request and return the new message's id; its place depends on the endpoint."""
    if again.fields is None:
        response = await door.json("POST", again.path, again.body)
    else:
        response = await door.form("POST", again.path, again.fields)
    return str(response["messageId"] if "messageId" in response else response["messages"][0]["id"])
