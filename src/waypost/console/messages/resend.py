"""Sends what a message said once more: as a new message, through the partner API."""

from starlette.responses import Response

from waypost.client.api_client import ApiClient
from waypost.console.messages.requests import Again, request_of
from waypost.console.page_tools import PageTools
from waypost.console.web.not_found import NotThere
from waypost.console.web.page_request import PageRequest
from waypost.store.console.trace import words_of_app


async def send_again(desk: PageTools, visit: PageRequest) -> Response:
    """Send it, and lead on to the new message.

    Raises:
        NotThere: there is no such message.
        NotMeant: its request is not kept any more.
        DoorRefused: the partner API refuses it.
    """
    found = await desk.parts.database.read(words_of_app, visit.partner.id, visit.app.id, visit.path["message_id"])
    if found is None:
        raise NotThere("You have no such message.")
    row, _ = found
    answer = await _sent(desk.parts.apis.app(visit.app), request_of(visit.app.id, row.kind, row.request))
    return desk.go(
        f"/apps/{visit.app.id}/messages/{answer}",
        "Sent again, as a new message with an id of its own.",
        remedy="The first one stays as it is.",
    )


async def _sent(door: ApiClient, again: Again) -> str:
    """The id of the new message: where it stands depends on the call."""
    if again.fields is None:
        answer = await door.json("POST", again.path, again.body)
    else:
        answer = await door.form("POST", again.path, again.fields)
    return str(answer["messageId"] if "messageId" in answer else answer["messages"][0]["id"])
