"""Actions of a conversation, each one call of the partner API: a reply within the window, and the mark as read."""

import json

from starlette.responses import Response

from waypost.client.api_client import ApiResponseError
from waypost.console.actions import action_response, error_response
from waypost.console.conversations.thread import read_head, thread_path
from waypost.console.page_tools import PageTools
from waypost.console.web.errors import InvalidPageRequest
from waypost.console.web.page_request import PageRequest


async def send_reply(tools: PageTools, page_request: PageRequest) -> Response:
    """Send a text to the recipient, and return to the conversation; an open page gets the message from its stream.

    Raises:
        InvalidPageRequest: there is no text.
        NotFound: the app has no such recipient.
    """
    head = await read_head(tools, page_request)
    text = (await page_request.field("text")).strip()
    if not text:
        raise InvalidPageRequest("The reply has no text.", "Enter a text.")
    app = page_request.app
    fields = {
        "channel": "whatsapp",
        "source": app.phone_number or "",
        "src.name": app.name,
        "destination": head.address,
        "message": json.dumps({"type": "text", "text": text}, ensure_ascii=False),
    }
    path = thread_path(page_request, head)
    try:
        await tools.services.apis.app(app).form("POST", f"/partner/app/{app.id}/msg", fields)
    except ApiResponseError as error:
        return error_response(tools, page_request, f"{path}#latest", error)
    return action_response(tools, page_request, f"{path}#latest", "Sent.")


async def mark_read(tools: PageTools, page_request: PageRequest) -> Response:
    """Mark the messages received so far as read, for the recipient too.

    Raises:
        NotFound: the app has no such recipient.
    """
    head = await read_head(tools, page_request)
    path = thread_path(page_request, head)
    app = page_request.app
    if head.last_received_id:
        receipt = {"type": "message-event", "message": {"status": "read", "message_id": head.last_received_id}}
        try:
            await tools.services.apis.app(app).json("POST", f"/partner/app/{app.id}/v1/event", receipt)
        except ApiResponseError as error:
            return error_response(tools, page_request, f"{path}#latest", error)
    return tools.redirect(f"{path}#latest", "Marked as read.")
