"""Actions on the messages that are selected in the list: their texts, and a replay of their callbacks."""

from typing import Final

from starlette.responses import Response

from waypost.client.api_client import ApiResponseError
from waypost.console.messages.listing import MESSAGE_LIST_MACROS, read_list_rows
from waypost.console.page_tools import PageTools
from waypost.console.web.formatting import format_number
from waypost.console.web.page_request import InvalidPageRequest, PageRequest
from waypost.console.web.streams import PageElement, elements_response
from waypost.store.messages.search import current_messages

MAX_SELECTED: Final = 200
"""Messages of one action; the admin API replays the callbacks of as many."""


async def selected_ids(page_request: PageRequest) -> list[str]:
    """Return the ids in the form, each once.

    Raises:
        InvalidPageRequest: there are none, or too many.
    """
    values = (await page_request.form()).getlist("id")
    ids = list(dict.fromkeys(value for value in values if isinstance(value, str) and value))
    if not ids:
        raise InvalidPageRequest("No message is selected.", "Select messages in the list first.")
    if len(ids) > MAX_SELECTED:
        raise InvalidPageRequest(
            f"{format_number(len(ids))} messages are selected.", f"Select at most {MAX_SELECTED} at once."
        )
    return ids


async def show_selected(tools: PageTools, page_request: PageRequest) -> Response:
    """Return the rows of the selected messages with their texts; one-time codes stay hidden.

    Raises:
        InvalidPageRequest: none or too many are selected.
    """
    partner, app = page_request.partner, page_request.app
    rows = await tools.services.database.read(current_messages, partner.id, app.id, await selected_ids(page_request))
    lines = await read_list_rows(tools, page_request, app.id, rows, show_text=True)
    part = tools.services.pages.render_macro
    return elements_response(
        [PageElement(f"m-{line.id}", part(MESSAGE_LIST_MACROS, "row", page_request, app, line)) for line in lines]
    )


async def replay_selected(tools: PageTools, page_request: PageRequest) -> Response:
    """Replay the callbacks of the selected messages that are no longer tried, delivered or not.

    Raises:
        InvalidPageRequest: none or too many are selected.
    """
    ids = await selected_ids(page_request)
    path = f"/apps/{page_request.app.id}"
    body = {"partner_id": page_request.partner.id, "app_id": page_request.app.id, "message_ids": ids}
    try:
        count = (await tools.services.apis.admin.json("POST", "/admin/callbacks/replay", body))["replayed"]
    except ApiResponseError as error:
        return tools.redirect(f"{path}/messages", error.message, kind="bad")
    if not count:
        return tools.redirect(
            f"{path}/messages",
            "Nothing was replayed.",
            hint="These messages have no callbacks, or they are still being delivered.",
            kind="warn",
        )
    return tools.redirect(
        f"{path}/callbacks/deliveries",
        f"Replaying {format_number(count)} {'callback' if count == 1 else 'callbacks'}.",
        hint="Each keeps its id and sequence number, so a receiver that deduplicates by id ignores it.",
    )
