"""Sending from a phone: texts, files, locations and contacts; and the phone and chat of an action."""

import contextlib
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from starlette.datastructures import UploadFile
from starlette.responses import JSONResponse, Response

from waypost.client.api_client import ApiResponseError, ApiUnreachable
from waypost.console.actions import Fields, form_texts
from waypost.console.page_request import PageRequest
from waypost.console.phones.view_models import (
    PhoneSelection,
    apps_by_number_id,
    get_app_by_number,
    require_digits,
    translate_errors,
)
from waypost.console.route import Endpoint
from waypost.console.web.errors import AdministratorRequired, InvalidPageRequest, NotFound


@dataclass(frozen=True, slots=True)
class PhoneClient:
    """Carries out actions of one phone through the simulator control API."""

    request: PageRequest
    phone: str

    async def call(self, action: str, body: dict[str, Any], method: str = "POST") -> Any:
        """Call the control API for the phone: `messages`, `tap`, …; empty: the phone itself.

        Raises:
            InvalidPageRequest: the API returned an error; explains it in plain words.
        """
        path = f"/control/phones/{self.phone}" + (f"/{action}" if action else "")
        return await translate_errors(self.request.control.json(method, path, body))

    async def read_state(self) -> dict[str, Any]:
        """Return the phone as the control API shows it."""
        phone: dict[str, Any] = await translate_errors(
            self.request.control.get(f"/control/phones/{self.phone}?limit=0")
        )
        return phone

    def respond(self, notice: str, chat: str = "", *, notifies: bool = False) -> Response:
        """Return the response to an action; empty for an open page, because its stream shows the result.

        Args:
            notice: notice for a page that is loaded again.
            chat: the business number of the chat.
            notifies: an open page shows the notice too, because the handset does not show the result.
        """
        # The state of the simulator is not in our store, so that no commit wakes the streams.
        self.request.services.change_signal.signal()
        if self.request.is_quiet:
            return JSONResponse({"notice": notice}) if notifies else Response(status_code=204)
        return self.request.redirect(PhoneSelection({self.phone: chat}).address, notice)


def require_own_phone(endpoint: Endpoint) -> Endpoint:
    """Return the endpoint, for users who may use the phone in its path.

    Raises, before the endpoint is called:
        AdministratorRequired: other partners' numbers chat with the phone, and the request is about the phone as
            such, or is in a chat while the partner has none with it. Source: decision 0073.
    """

    async def checked(request: PageRequest) -> Response:
        path = request.path_params
        await check_phone_owner(request, str(path["phone"]), in_chat="number" in path or "position" in path)
        return await endpoint(request)

    return checked


async def check_phone_owner(request: PageRequest, phone: str, *, in_chat: bool) -> None:
    """Check that a user may use a phone; see `require_own_phone`."""
    if request.is_administrator:
        return
    control, own = request.control, apps_by_number_id(request).keys()
    chats = (await translate_errors(control.get(f"/control/phones/{require_digits(phone)}/chats")))["chats"]
    chatting = {chat["phone_number_id"] for chat in chats if chat["last"] is not None}
    if chatting - own and not (in_chat and chatting & own):
        raise AdministratorRequired


def get_phone_client(request: PageRequest) -> PhoneClient:
    """Return the phone in the path.

    Raises:
        InvalidPageRequest: it is not a phone number.
    """
    return PhoneClient(request, require_digits(str(request.path_params["phone"])))


MessageSender = Callable[[PageRequest, dict[str, Any]], Awaitable[Response]]
MAX_FILE_BYTES: Final = 100 * 1024 * 1024
FILE_KINDS: Final = ("auto", "image", "video", "audio", "document", "sticker")
_MAX_EMOJI_BYTES: Final = 64
_INVALID_LOCATION: Final = "Latitude or longitude is not valid."

FORWARDING_FLAGS: Final = {  # forwarding flags of a message. Source: operator's facts 7.4, `context`
    "": {},
    "forwarded": {"forwarded": True},
    "often": {"forwarded": True, "frequently_forwarded": True},
}
DEFAULT_FILE_KINDS: Final = (
    # Prefix of a file's MIME type, and the default kind of its message. Source: operator's facts 6.1
    ("image/webp", "sticker"),
    ("image/jpeg", "image"),
    ("image/png", "image"),
    ("video/", "video"),
    ("audio/", "audio"),
    ("", "document"),
)


async def _send(request: PageRequest, content: dict[str, Any]) -> Response:
    client, app = get_phone_client(request), get_app_by_number(request, request.path_params["number"])
    options = FORWARDING_FLAGS.get(await request.field("send_as"), {})
    context_id = (await request.field("context_id")).strip()
    if context_id:
        options = {**options, "context_id": context_id}
    await client.call("messages", {"to": app.phone_number, **content, **options})
    return client.respond("Sent.", app.phone_number)


async def send_text(request: PageRequest) -> Response:
    """Send a text, as a reply if a message is quoted."""
    text = (await request.field("text")).replace("\r\n", "\n").strip()
    if not text:
        raise InvalidPageRequest("The message is empty.", "Enter a text.")
    return await _send(request, {"text": text})


async def send_file(request: PageRequest, send: MessageSender = _send) -> Response:
    """Send an image, video, audio, document or sticker.

    Args:
        send: sends a message of this `type` and `media` from the phone in the path.
    """
    file = await request.file("file")
    if file is None:
        raise InvalidPageRequest("No file is selected.", "Choose a file.")
    if (file.size or 0) > MAX_FILE_BYTES:
        raise InvalidPageRequest("The file is larger than 100 MB.", "Choose a smaller file.")
    chosen = await request.field("kind", "auto")
    if chosen not in FILE_KINDS:
        raise InvalidPageRequest("Unknown message type.")
    mime_type = file.content_type or "application/octet-stream"
    kind = (
        chosen
        if chosen != "auto"
        else next(kind for prefix, kind in DEFAULT_FILE_KINDS if mime_type.lower().startswith(prefix))
    )
    caption = (await request.field("caption")).strip()
    media: dict[str, Any] = {
        "id": (media_id := await upload_file(request, file, mime_type, _number_of(request))),
        "voice": await request.is_checked("voice"),
    }
    if caption and kind in ("image", "video", "document"):
        media["caption"] = caption
    try:
        return await send(request, {"type": kind, "media": media})
    except (InvalidPageRequest, NotFound):  # the uploaded file is unused now
        await delete_file(request, media_id)  # the first error is the one to report
        raise


def _number_of(request: PageRequest) -> str:
    return get_app_by_number(request, request.path_params["number"]).phone_number


async def upload_file(request: PageRequest, file: UploadFile, mime_type: str, number: str) -> str:
    """Stream a file to the simulator, for a business number, and return its media id."""
    query = {"to": number, "mime_type": mime_type, "file_name": (file.filename or "")[-240:]}
    response = await translate_errors(request.control.plain_file(f"/control/media?{urlencode(query)}", file))
    return str(response["media_id"])


async def delete_file(request: PageRequest, media_id: str) -> None:
    """Delete a file that is not used; if it cannot be deleted, the simulator does it in time."""
    with contextlib.suppress(ApiResponseError, ApiUnreachable):
        await request.control.json("DELETE", f"/control/media/{media_id}")


async def send_location(request: PageRequest) -> Response:
    """Send a location; its name and address are optional."""
    return await _send(request, {"type": "location", "location": parse_location(await form_texts(request))})


async def send_contact(request: PageRequest) -> Response:
    """Send a contact card."""
    name = (await request.field("name")).strip()
    if not name:
        raise InvalidPageRequest("A contact card needs a name.", "Enter a name.")
    number = (await request.field("number")).strip()
    card = build_contact_card(name, number, (await request.field("email")).strip())
    return await _send(request, {"type": "contacts", "contacts": [card]})


async def send_unsupported(request: PageRequest) -> Response:
    """Send a poll, which the operator does not forward: a business learns only that there was a message."""
    return await _send(request, {"type": "unsupported", "unsupported": {"type": "poll"}})


def parse_location(fields: Fields) -> dict[str, Any]:
    """Return the location of a form, in the format of webhooks.

    Raises:
        InvalidPageRequest: latitude or longitude is not valid.
    """
    location: dict[str, Any] = {
        "latitude": _parse_degrees(fields.get("latitude", ""), 90),
        "longitude": _parse_degrees(fields.get("longitude", ""), 180),
    }
    for name in ("name", "address"):
        text = fields.get(name, "").strip()
        if text:
            location[name] = text
    return location


def build_reaction(fields: Fields, wamid: str) -> dict[str, Any]:
    """Return the reaction of a form to a message, as the control API takes it; without an emoji it removes one.

    Raises:
        InvalidPageRequest: it is not an emoji.
    """
    emoji = fields.get("emoji", "").strip()
    if len(emoji.encode()) > _MAX_EMOJI_BYTES or any(sign.isascii() and sign.isalnum() for sign in emoji):
        raise InvalidPageRequest("That is not an emoji.", "Choose one, or paste a single emoji.")
    return {"type": "reaction", "reaction": {"message_id": wamid} | ({"emoji": emoji} if emoji else {})}


def build_contact_card(name: str, number: str, email: str) -> dict[str, Any]:
    """Return a contact card in the format of webhooks; number and e-mail address may be empty."""
    first, _, last = name.partition(" ")
    names = {"formatted_name": name, "first_name": first} | ({"last_name": last} if last else {})
    card: dict[str, Any] = {"name": names}
    if number:
        card["phones"] = [{"phone": number, "type": "CELL"}]
    if email:
        card["emails"] = [{"email": email, "type": "HOME"}]
    return card


def _parse_degrees(text: str, max_degrees: int) -> float:
    try:
        degrees = float(text.strip().replace(",", "."))
    except ValueError:
        raise InvalidPageRequest(_INVALID_LOCATION, "Enter degrees, such as 52.5163.") from None
    if not math.isfinite(degrees) or abs(degrees) > max_degrees:
        raise InvalidPageRequest(_INVALID_LOCATION, f"Enter a value from -{max_degrees} to {max_degrees} degrees.")
    return degrees
