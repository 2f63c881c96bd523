"""The phones page: list of phones, open handsets, their stream, older messages and media files."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from starlette.responses import JSONResponse, Response

from waypost.client.api_client import ApiResponseError, ApiUnreachable
from waypost.console.api_clients import open_file, proxy_response
from waypost.console.page_request import PageRequest
from waypost.console.phones.business import list_business_phones
from waypost.console.phones.view_models import (
    CHAT_LIST,
    ChatMessage,
    Handset,
    PhoneSelection,
    apps_by_number_id,
    get_app_by_number,
    number_ids_query,
    parse_digits,
    read_handset,
    read_older,
    require_digits,
    summarize_item,
    translate_errors,
)
from waypost.console.web.assets import DISPLAYABLE_TYPES, SANDBOX_HEADERS
from waypost.console.web.errors import NotFound
from waypost.console.web.streams import PageElement, elements_response

HANDSET_MACROS: Final = "phones/handset.html"
CHAT_MACROS: Final = "phones/chat.html"
ABOUT_MACROS: Final = "phones/about.html"
PHONES_REST_S: Final = 0.06
"""Pause between two updates of a stream; short, so that a message appears right after it was sent."""
PHONES_POLL_S: Final = 0.8
_MAX_LISTED_PHONES: Final = 100

# fmt: off
PHONE_VIEWS: Final[tuple[tuple[str, str, Callable[[Mapping[str, Any]], Any]], ...]] = (
    # query value  label                 condition of a phone, as the control API shows it
    ("",           "All",                lambda phone: True),
    ("unread",     "Unread",             lambda phone: phone.get("unread")),
    ("offline",    "Offline",            lambda phone: phone["is_offline"]),
    ("problem",    "Delivery problems",  lambda phone: phone["condition"]),
    ("fleets",     "Phones of fleets",   lambda phone: phone.get("fleet")),
)
# fmt: on


async def show_phones(request: PageRequest) -> Response:
    """Return the selected phones side by side; the list of phones if none is selected."""
    if request.services.apis.control is None:
        return await request.page("phones/none.html")
    if request.query("add"):
        selection = PhoneSelection.parse(request).select(require_digits(request.query("add")), "")
        return request.redirect(selection.address)
    selection = PhoneSelection.parse(request)
    if not selection.chats:
        view = request.query("view")
        shown = await _list_phones(request, view)
        business = [] if view else await list_business_phones(request)
        return await request.page("phones/list.html", view=view, views=PHONE_VIEWS, business=business, **shown)
    handsets = [await translate_errors(read_handset(request, *selected)) for selected in selection.chats.items()]
    selection = _resolve_open_chats(selection, handsets)
    phones = await _list_phones(request)
    return await request.page("phones/page.html", selection=selection, handsets=handsets, **phones)


async def live_phones(request: PageRequest) -> Response:
    """Stream what changes on the handsets."""
    selection = PhoneSelection.parse(request)
    renderer = HandsetRenderer(request, selection)

    async def render_pieces() -> Sequence[PageElement]:
        pieces: list[PageElement] = []
        for phone, chat in selection.chats.items():
            pieces += await renderer.render(await read_handset(request, phone, chat))
        return pieces

    return request.live(render_pieces, rest_s=PHONES_REST_S, at_least_s=PHONES_POLL_S)


async def show_handset(request: PageRequest) -> Response:
    """Return a whole handset, for a page that opens another chat on it: `{pieces, live, address}`."""
    selection = PhoneSelection.parse(request)
    phone = parse_digits(str(request.path_params["phone"]))
    if phone not in selection.chats:
        raise NotFound("This phone is not shown.")
    handset = await translate_errors(read_handset(request, phone, selection.chats[phone]))
    selection = _resolve_open_chats(selection, [handset])
    html = request.macro(HANDSET_MACROS, "handset", request, handset, selection)
    piece = PageElement(f"phone-{phone}", html)
    return elements_response([piece], live=f"/phones/live?{selection.query}", address=selection.address)


async def show_older(request: PageRequest) -> Response:
    """Return messages before those that are shown, as HTML, and the position below which there are more."""
    phone, number = require_digits(str(request.path_params["phone"])), str(request.path_params["number"])
    before = request.query("before")
    if not (before.isascii() and before.isdigit() and len(before) < 18):
        raise NotFound("There are no older messages.")
    entries, more = await translate_errors(read_older(request, phone, number, int(before)))
    app = get_app_by_number(request, number)
    html = [request.macro(CHAT_MACROS, "one", request, entry, phone, app) for entry in entries]
    return JSONResponse({"html": html, "before": more})


class HandsetRenderer:
    """Renders handsets for one stream; messages that have not changed are not rendered again."""

    def __init__(self, request: PageRequest, selection: PhoneSelection) -> None:
        self._request = request
        self._selection = selection
        self._rendered: dict[str, tuple[ChatMessage, str]] = {}

    async def render(self, handset: Handset) -> list[PageElement]:
        """Return the pieces of one handset that may change."""
        request, phone = self._request, handset.phone
        pieces = [
            PageElement(f"status-{phone}", request.macro(HANDSET_MACROS, "status", handset)),
            PageElement(
                f"outside-{phone}", request.macro(HANDSET_MACROS, "outside", request, handset, self._selection)
            ),
            PageElement(f"facts-{phone}", request.macro(ABOUT_MACROS, "facts", request, handset)),
        ]
        if handset.open is None:
            chats = request.macro(HANDSET_MACROS, "chat_list", handset, self._selection)
            return [*pieces, PageElement(f"chats-{phone}", chats)]
        into = f"items-{phone}-{handset.open['number']}"
        known, self._rendered = (
            self._rendered,
            {key: item for key, item in self._rendered.items() if key.split("-")[1] != phone},
        )
        for entry in handset.entries:
            rendered = known.get(entry.key)
            if rendered is None or rendered[0] != entry:
                await asyncio.sleep(0)  # a hundred bubbles take some time: let other tasks run
                html = request.macro(CHAT_MACROS, "one", request, entry, phone, handset.open["app"])
                rendered = (entry, html)
            self._rendered[entry.key] = rendered
            pieces.append(PageElement(entry.key, rendered[1], into))
        return [
            *pieces,
            PageElement(f"older-{phone}", request.macro(CHAT_MACROS, "older", handset), into, "start"),
            PageElement(f"head-{phone}", request.macro(CHAT_MACROS, "head", request, handset, self._selection)),
            PageElement(f"typing-{phone}", request.macro(CHAT_MACROS, "typing", handset)),
            PageElement(f"note-{phone}", request.macro(CHAT_MACROS, "note", request, handset)),
        ]


def _resolve_open_chats(selection: PhoneSelection, handsets: Sequence[Handset]) -> PhoneSelection:
    """Return the selection with the chat that each handset shows, so that streams keep showing it."""
    for handset in handsets:
        selection = selection.select(handset.phone, handset.open["number"] if handset.open else CHAT_LIST)
    return selection


async def _list_phones(request: PageRequest, view: str = "") -> dict[str, Any]:
    """Return the phones that have chats with the partner's numbers, and those without any chat.

    Phones of fleets are left out unless they were changed individually, or the view is of fleets.
    """
    control, mine = request.control, list(apps_by_number_id(request))
    try:
        active: list[dict[str, Any]] = []
        if mine:
            fleets = "" if view == "fleets" else "&fleets=false"
            query = f"{number_ids_query(mine)}&limit={_MAX_LISTED_PHONES}{fleets}"
            chats = await control.get(f"/control/chats?{query}")
            active = chats["phones"]
        unused = await control.get(f"/control/phones?has_chats=false&limit={_MAX_LISTED_PHONES}")
    except (ApiResponseError, ApiUnreachable) as error:
        raise ApiUnreachable(str(error)) from error
    for phone in active:
        phone["summary"] = summarize_item(phone["last"]) if phone["last"] else ""
    matches = next((condition for name, _, condition in PHONE_VIEWS if name == view), PHONE_VIEWS[0][2])
    return {
        "active": [phone for phone in active if matches(phone)],
        "unused": [phone for phone in unused["phones"] if matches(phone)],
        "no_chat": CHAT_LIST,
    }


async def show_media(request: PageRequest) -> Response:
    """Return a file of the partner's numbers: inline if its type is safe, else as a download."""
    control, media_id = request.control, str(request.path_params["media_id"])
    if not (media_id.isascii() and media_id.isdigit() and len(media_id) <= 32):
        raise NotFound("There is no such file.")
    try:
        media = await control.get(f"/control/media/{media_id}")
    except ApiResponseError as error:
        raise NotFound("There is no such file.") from error
    if media["phone_number_id"] not in apps_by_number_id(request):
        raise NotFound("There is no such file.")
    source = await open_file(control, request.http, f"/control/media/{media_id}/content")
    if source.status not in (200, 206, 416):
        await source.aclose()
        raise NotFound("The file has expired: the operator stores files for a few days only.")
    kind, name = media["mime_type"], media["file_name"] or f"file-{media_id}"
    is_safe = kind in DISPLAYABLE_TYPES
    headers = {
        **SANDBOX_HEADERS,
        "Content-Disposition": f"{'inline' if is_safe else 'attachment'}; filename*=UTF-8''{quote(name, safe='')}",
        "Cache-Control": "private, max-age=3600",
    }
    return proxy_response(source, headers, media_type=kind if is_safe else "application/octet-stream")
