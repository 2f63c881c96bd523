"""Sending from a phone: texts, files, locations and contacts."""

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
_UNREADABLE: Final = "Latitude or longitude is not valid."

# fmt: off
MANNERS: Final = {  # forwarding flags of a message. Source: operator's facts 7.4, `context`
    "":          {},
    "forwarded": {"forwarded": True},
    "often":     {"forwarded": True, "frequently_forwarded": True},
}
KINDS: Final = (  # prefix of a file's MIME type, and the default kind of its message. Source: operator's facts 6.1
    ("image/webp",  "sticker"),
    ("image/jpeg",  "image"),
    ("image/png",   "image"),
    ("video/",      "video"),
    ("audio/",      "audio"),
    ("",            "document"),
)
# fmt: on


async def send_text(desk: PageTools, visit: PageRequest) -> Response:
    """Send a text, as a reply if a message is quoted."""
    text = (await visit.field("text")).replace("\r\n", "\n").strip()
    if not text:
        raise NotMeant("The message is empty.", "Enter a text.")
    return await _send(desk, visit, {"text": text})


async def send_file(desk: PageTools, visit: PageRequest) -> Response:
    """Send an image, video, audio, document or sticker."""
    file = await visit.file("file")
    if file is None:
        raise NotMeant("No file is selected.", "Choose a file.")
    if (file.size or 0) > MOST_BYTES:
        raise NotMeant("The file is larger than 100 MB.", "Choose a smaller file.")
    chosen = await visit.field("kind", "auto")
    if chosen not in SENDS:
        raise NotMeant("Unknown message type.")
    mime_type = (file.content_type or "application/octet-stream").partition(";")[0].strip().lower()
    kind = chosen if chosen != "auto" else next(kind for prefix, kind in KINDS if mime_type.startswith(prefix))
    caption = (await visit.field("caption")).strip()
    media: dict[str, Any] = {
        "id": (media_id := await _keep(desk, visit, file, mime_type)),
        "voice": await visit.flag("voice"),
    }
    if caption and kind in ("image", "video", "document"):
        media["caption"] = caption
    try:
        return await _send(desk, visit, {"type": kind, "media": media})
    except (NotMeant, NotThere):  # the uploaded file is unused now
        with contextlib.suppress(ApiResponseError, NotReached):  # the first error is the one to report
            await control_of(desk).json("DELETE", f"/control/media/{media_id}")
        raise


async def _keep(desk: PageTools, visit: PageRequest, file: UploadFile, mime_type: str) -> str:
    """Stream a file to the simulator, and return its media id."""
    query = {"to": chat_of(visit).phone_number, "mime_type": mime_type, "file_name": (file.filename or "")[-240:]}
    response = await told(control_of(desk).plain_file(f"/control/media?{urlencode(query)}", file))
    return str(response["media_id"])


async def send_place(desk: PageTools, visit: PageRequest) -> Response:
    """Send a location; its name and address are optional."""
    return await _send(desk, visit, {"type": "location", "location": place_of(await fields_of(visit))})


async def send_contact(desk: PageTools, visit: PageRequest) -> Response:
    """Send a contact card."""
    name = (await visit.field("name")).strip()
    if not name:
        raise NotMeant("A contact card needs a name.", "Enter a name.")
    number = (await visit.field("number")).strip()
    card = card_of(name, number, (await visit.field("email")).strip())
    return await _send(desk, visit, {"type": "contacts", "contacts": [card]})


async def send_unsupported(desk: PageTools, visit: PageRequest) -> Response:
    """Send a poll, which the operator does not forward: a business learns only that there was a message."""
    return await _send(desk, visit, {"type": "unsupported", "unsupported": {"type": "poll"}})


async def _send(desk: PageTools, visit: PageRequest, wish: dict[str, Any]) -> Response:
    client, app = hand_of(desk, visit), chat_of(visit)
    options = MANNERS.get(await visit.field("manner"), {})
    context_id = (await visit.field("context_id")).strip()
    if context_id:
        options = {**options, "context_id": context_id}
    await send(client, app.phone_number, {**wish, **options})
    return client.done("Sent.", app.phone_number)


async def send(hand: Hand, number: str, wish: dict[str, Any]) -> None:
    """Send a message from the phone to a business number of the partner."""
    await hand.do("messages", {"to": number, **wish})


def place_of(fields: Fields) -> dict[str, Any]:
    """Return the location of a form, in the format of webhooks.

    Raises:
        NotMeant: latitude or longitude is not valid.
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
    """Return a contact card in the format of webhooks; number and e-mail address may be empty."""
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
        raise NotMeant(_UNREADABLE, "Enter degrees, such as 52.5163.") from None
    if not math.isfinite(degrees) or abs(degrees) > at_most:
        raise NotMeant(_UNREADABLE, f"Enter a value from -{at_most} to {at_most} degrees.")
    return degrees
