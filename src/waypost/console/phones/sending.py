"""What a person sends from a phone: texts, files, places and contacts."""

import contextlib
import math
from typing import Any, Final
from urllib.parse import urlencode

from starlette.datastructures import UploadFile
from starlette.responses import Response

from waypost.client.api_client import ApiResponseError, NotReached
from waypost.console.actions import Fields, fields_of
from waypost.console.page_tools import PageTools
from waypost.console.phones.action_context import Hand, chat_of, hand_of
from waypost.console.phones.error_texts import told
from waypost.console.phones.view_models import control_of
from waypost.console.web.not_found import NotMeant, NotThere
from waypost.console.web.page_request import PageRequest

MOST_BYTES: Final = 100 * 1024 * 1024
SENDS: Final = ("auto", "image", "video", "audio", "document", "sticker")
_UNREADABLE: Final = "That is not a place on earth."

# fmt: off
MANNERS: Final = {  # how a message is marked; Source: operator's facts 7.4, `context`
    "":          {},
    "forwarded": {"forwarded": True},
    "often":     {"forwarded": True, "frequently_forwarded": True},
}
KINDS: Final = (  # how a file's type begins, and what it is sent as if nobody says; Source: operator's facts 6.1
    ("image/webp",  "sticker"),
    ("image/jpeg",  "image"),
    ("image/png",   "image"),
    ("video/",      "video"),
    ("audio/",      "audio"),
    ("",            "document"),
)
# fmt: on


async def send_text(desk: PageTools, visit: PageRequest) -> Response:
    """A text, perhaps in reply to a message."""
    text = (await visit.field("text")).replace("\r\n", "\n").strip()
    if not text:
        raise NotMeant("There is nothing to send.", "Type something first.")
    return await _send(desk, visit, {"text": text})


async def send_file(desk: PageTools, visit: PageRequest) -> Response:
    """A picture, a film, a sound, a document or a sticker."""
    file = await visit.file("file")
    if file is None:
        raise NotMeant("There is no file.", "Choose one first.")
    if (file.size or 0) > MOST_BYTES:
        raise NotMeant("The file is larger than 100 MB.", "Choose a smaller one.")
    wish = await visit.field("kind", "auto")
    if wish not in SENDS:
        raise NotMeant("There is no such kind of message.")
    mime_type = (file.content_type or "application/octet-stream").partition(";")[0].strip().lower()
    kind = wish if wish != "auto" else next(kind for head, kind in KINDS if mime_type.startswith(head))
    caption = (await visit.field("caption")).strip()
    media: dict[str, Any] = {
        "id": (media_id := await _keep(desk, visit, file, mime_type)),
        "voice": await visit.flag("voice"),
    }
    if caption and kind in ("image", "video", "document"):
        media["caption"] = caption
    try:
        return await _send(desk, visit, {"type": kind, "media": media})
    except (NotMeant, NotThere):  # nobody will ask for it
        with contextlib.suppress(ApiResponseError, NotReached):  # what is told is why nothing was sent
            await control_of(desk).json("DELETE", f"/control/media/{media_id}")
        raise


async def _keep(desk: PageTools, visit: PageRequest, file: UploadFile, mime_type: str) -> str:
    """Hand a file to the operator as it is read; gives the id under which a message names it."""
    about = {"to": chat_of(visit).phone_number, "mime_type": mime_type, "file_name": (file.filename or "")[-240:]}
    kept = await told(control_of(desk).plain_file(f"/control/media?{urlencode(about)}", file))
    return str(kept["media_id"])


async def send_place(desk: PageTools, visit: PageRequest) -> Response:
    """A place, with a name and an address or without."""
    return await _send(desk, visit, {"type": "location", "location": place_of(await fields_of(visit))})


async def send_contact(desk: PageTools, visit: PageRequest) -> Response:
    """A contact card."""
    name = (await visit.field("name")).strip()
    if not name:
        raise NotMeant("The card has no name.", "Type whose card it is.")
    number = (await visit.field("number")).strip()
    card = card_of(name, number, (await visit.field("email")).strip())
    return await _send(desk, visit, {"type": "contacts", "contacts": [card]})


async def send_unsupported(desk: PageTools, visit: PageRequest) -> Response:
    """A poll, which the operator does not pass on: businesses hear only that there was something."""
    return await _send(desk, visit, {"type": "unsupported", "unsupported": {"type": "poll"}})


async def _send(desk: PageTools, visit: PageRequest, wish: dict[str, Any]) -> Response:
    hand, app = hand_of(desk, visit), chat_of(visit)
    manner = MANNERS.get(await visit.field("manner"), {})
    context_id = (await visit.field("context_id")).strip()
    if context_id:
        manner = {**manner, "context_id": context_id}
    await send(hand, app.phone_number, {**wish, **manner})
    return hand.done("Sent.", app.phone_number)


async def send(hand: Hand, number: str, wish: dict[str, Any]) -> None:
    """Have the phone send something to a business number of the partner's."""
    await hand.do("messages", {"to": number, **wish})


def place_of(fields: Fields) -> dict[str, Any]:
    """The place that a form tells, as webhooks do.

    Raises:
        NotMeant: it is none.
    """
    location: dict[str, Any] = {
        "latitude": _degrees(fields.get("latitude", ""), 90),
        "longitude": _degrees(fields.get("longitude", ""), 180),
    }
    for name in ("name", "address"):
        text = fields.get(name, "").strip()
        if text:
            location[name] = text
    return location


def card_of(name: str, number: str, email: str) -> dict[str, Any]:
    """A contact card, as webhooks have it. Number and e-mail address may be empty."""
    first, _, last = name.partition(" ")
    names = {"formatted_name": name, "first_name": first} | ({"last_name": last} if last else {})
    card: dict[str, Any] = {"name": names}
    if number:
        card["phones"] = [{"phone": number, "type": "CELL"}]
    if email:
        card["emails"] = [{"email": email, "type": "HOME"}]
    return card


def _degrees(text: str, at_most: int) -> float:
    try:
        degrees = float(text.strip().replace(",", "."))
    except ValueError:
        raise NotMeant(_UNREADABLE, "Give latitude and longitude in degrees, such as 52.5163.") from None
    if not math.isfinite(degrees) or abs(degrees) > at_most:
        raise NotMeant(_UNREADABLE, f"This one goes from -{at_most} to {at_most} degrees.")
    return degrees
