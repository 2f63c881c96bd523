"""The phone of a business, for a number that its WhatsApp Business app and the API share: its page and actions.

Its chats have what the app and the API have sent, and what customers wrote. The syncs are requested with the partner
API, as a partner does; everything else is the simulator's.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import quote, urlencode

from starlette.responses import JSONResponse, Response

from waypost.base.json_values import object_of
from waypost.client.api_client import ApiResponseError
from waypost.console.actions import Body, Fields, error_notice, form_texts
from waypost.console.page_request import PageRequest
from waypost.console.phones.sending import build_reaction, send_file
from waypost.console.phones.view_models import (
    ChatMessage,
    build_chat_messages,
    get_app_by_number,
    parse_digits,
    require_digits,
    summarize_item,
    translate_errors,
)
from waypost.console.route import PageRoute, RouteKind
from waypost.console.simulator.context import parse_whole
from waypost.console.web.errors import InvalidPageRequest, NotFound
from waypost.console.web.streams import PageElement
from waypost.domain.app import App

BUSINESS_PATH: Final = "/phones/business/{number}"
MACROS: Final = "phones/business_parts.html"
BUSINESS_REST_S: Final = 0.1
BUSINESS_POLL_S: Final = 1.0
_MAX_SHOWN_CHATS: Final = 100
_MAX_SHOWN_MESSAGES: Final = 100
_SHOWN_STATES: Final = {"played": "read", "error": "failed", "pending": "sent"}
"""States of the history that a bubble has no ticks for."""
_SENDER_NAMES: Final = {"user": "the customer", "business_app": "this phone", "api": "the API"}
_SYNC_LABELS: Final = {"smb_app_state_sync": "Contacts", "history": "History"}

# fmt: off
DISCONNECT_REASONS: Final = (  # value, text; the first is what the menu of the app does
    ("",                     "Disconnected in the app"),
    ("ACCOUNT_DISCONNECTED", "Account deleted or banned"),
    ("BUSINESS_DOWNGRADE",   "Moved to the consumer app"),
    ("CHANGE_NUMBER",        "Number changed"),
    ("COMPANION_INACTIVITY", "Linked device inactive for 30 days"),
    ("PRIMARY_INACTIVITY",   "Phone inactive for 14 days"),
    ("USER_RE_REGISTERED",   "Registered on a new phone"),
)
# fmt: on


@dataclass(frozen=True, slots=True)
class BusinessPhone:
    """The content of the page of a business's phone."""

    app: App
    state: dict[str, Any] | None  # as the control API shows the app; None: the number was never shared
    chats: list[dict[str, Any]] = field(
        default_factory=list[dict[str, Any]]
    )  # each with a `summary` of its newest message
    more_chats: int = 0
    chat: str = ""  # digits of the customer whose chat is open; empty: the list is shown
    chat_name: str = ""
    entries: list[ChatMessage] = field(default_factory=list[ChatMessage])  # of the open chat

    @property
    def number(self) -> str:
        """The digits of the number."""
        return self.app.phone_number or ""

    @property
    def is_connected(self) -> bool:
        """True if the app and the API share the number now."""
        return self.state is not None and self.state["is_connected"]

    @property
    def path(self) -> str:
        """The path of its page and actions."""
        return BUSINESS_PATH.format(number=self.number)


async def list_business_phones(request: PageRequest) -> list[dict[str, Any]]:
    """Return the partner's numbers with `app`, and `state` of those that are or were shared with the app."""
    states = {
        one["phone_number_id"]: one for one in (await request.control.get("/control/business-apps"))["business_apps"]
    }
    return [
        {"app": app, "state": states.get(app.phone_number_id or "")}
        for app in request.apps
        if app.phone_number_id and app.phone_number
    ]


async def show_business_phone(request: PageRequest) -> Response:
    """Return the page of a business's phone: its chats, or one of them, beside its connection and syncs."""
    if request.query("open"):
        chat = require_digits(request.query("open"))
        return request.redirect(_address(str(request.path_params["number"]), chat))
    phone = await _read_business_phone(request)
    return await request.page("phones/business.html", phone=phone, reasons=DISCONNECT_REASONS)


async def live_business_phone(request: PageRequest) -> Response:
    """Stream what changes on it.

    Raises:
        NotFound: it is not a number of the partner.
    """
    get_app_by_number(request, str(request.path_params["number"]))

    async def render_pieces() -> Sequence[PageElement]:
        phone = await _read_business_phone(request)
        number = phone.number
        pieces = [
            PageElement(f"status-{number}", request.macro(MACROS, "status", phone)),
            PageElement(
                f"connection-{number}", request.macro(MACROS, "connection", request, phone, DISCONNECT_REASONS)
            ),
            PageElement(f"sync-{number}", request.macro(MACROS, "sync", request, phone)),
        ]
        if not phone.chat:
            return [*pieces, PageElement(f"chats-{number}", request.macro(MACROS, "chat_list", phone))]
        into = f"items-{number}-{phone.chat}"
        pieces += [
            PageElement(entry.key, request.macro(MACROS, "one", request, entry, phone), into) for entry in phone.entries
        ]
        return [*pieces, PageElement(f"note-{number}", request.macro(MACROS, "note", request, phone))]

    return request.live(render_pieces, rest_s=BUSINESS_REST_S, at_least_s=BUSINESS_POLL_S)


async def _read_business_phone(request: PageRequest) -> BusinessPhone:
    """Return the current state of the phone of a number in the path.

    Raises:
        NotFound: it is not a number of the partner, or not one of the simulator.
    """
    app = get_app_by_number(request, str(request.path_params["number"]))
    path = _control_path(app)
    try:
        state = await request.control.get(path)
    except ApiResponseError as error:
        if error.status == 404:
            raise NotFound("The simulator does not know this business number.") from error
        if error.status != 409:
            raise
        return BusinessPhone(app, None)
    chat = parse_digits(request.query("chat"))
    if not chat:
        chats = (await request.control.get(f"{path}/chats"))["chats"]
        shown = [{**one, "summary": summarize_item(_chat_item(one["last"]))} for one in chats[:_MAX_SHOWN_CHATS]]
        return BusinessPhone(app, state, shown, len(chats) - len(shown))
    opened = await request.control.get(f"{path}/chats/{chat}?limit={_MAX_SHOWN_MESSAGES}")
    items = [_chat_item(message, position) for position, message in enumerate(opened["messages"])]
    entries = [
        replace(entry, key=f"i-{chat}-{entry.item['wamid']}")
        for entry in build_chat_messages(items, (), chat, opened["name"] or f"+{chat}")
    ]
    return BusinessPhone(app, state, chat=chat, chat_name=opened["name"], entries=entries)


def _chat_item(message: dict[str, Any], position: int = 0) -> dict[str, Any]:
    """Return a message as a bubble shows it on the phone of the business: what it has sent is its own."""
    is_own = message["sender"] != "user"
    return {
        **object_of(message["content"]),
        **{name: message[name] for name in ("wamid", "type", "at_ms", "text", "context_id", "sender", "callback_data")},
        "position": position,
        "direction": "from_phone" if is_own else "to_phone",
        "delivered_ms": message["at_ms"],
        "state": _SHOWN_STATES.get(message["state"], message["state"]) if is_own else "",
        "sent_from": _SENDER_NAMES[message["sender"]],
    }


def _control_path(app: App) -> str:
    return f"/control/numbers/{app.phone_number_id}/business-app"


def _address(number: str, chat: str) -> str:
    return BUSINESS_PATH.format(number=number) + (f"?{urlencode({'chat': chat})}" if chat else "")


async def _respond(request: PageRequest, app: App, notice: str, *, notifies: bool = False) -> Response:
    """Return the response to an action; see `PhoneClient.respond`."""
    request.services.change_signal.signal()
    if request.is_quiet:
        return JSONResponse({"notice": notice}) if notifies else Response(status_code=204)
    return request.redirect(_address(app.phone_number or "", parse_digits(await request.field("chat"))), notice)


async def request_sync(request: PageRequest) -> Response:
    """Request the contacts or the history with the partner API, as a partner does after the signup."""
    app = get_app_by_number(request, str(request.path_params["number"]))
    sync_type = str(request.path_params["sync_type"])
    try:
        api = request.services.apis.app(app)
        await api.form("POST", f"/partner/app/{app.id}/coex/sync", {"syncType": sync_type})
    except ApiResponseError as error:
        raise InvalidPageRequest(*error_notice(error)) from error
    return await _respond(request, app, f"{_SYNC_LABELS.get(sync_type, 'Data')} requested.", notifies=True)


async def send_app_file(request: PageRequest) -> Response:
    """Send a file from the phone in the chat of the form, as a reply if a message is quoted.

    Raises:
        InvalidPageRequest: there is no file, or the simulator refuses it.
        NotFound: it is not a number of the partner.
    """
    app = get_app_by_number(request, str(request.path_params["number"]))

    async def send(request: PageRequest, content: Body) -> Response:
        body = _message(await form_texts(request), content)
        await translate_errors(request.control.post(f"{_control_path(app)}/messages", body))
        return await _respond(request, app, "Sent.")

    return await send_file(request, send)


async def generate_history(request: PageRequest) -> Response:
    """Replace the history by a generated one, and set how the app sends it, or that it shares none."""
    app, fields = get_app_by_number(request, str(request.path_params["number"])), await form_texts(request)
    path = _control_path(app)
    state = await translate_errors(request.control.get(path))
    percent = parse_whole(fields.get("duplicates", "") or "0")
    sync = {
        **state["sync"],
        "order": "shuffled" if fields.get("shuffled") == "on" else "in_order",
        "duplicates": percent / 100 if isinstance(percent, int) else percent,
    }
    shares = {"shares_history": fields.get("declined") != "on"} if state["is_connected"] else {}
    plan = {name: parse_whole(fields.get(name, "")) for name in ("messages", "threads") if fields.get(name)}
    await translate_errors(request.control.json("PUT", path, {**shares, "sync": sync}))
    made = await translate_errors(request.control.post(f"{path}/history/generate", plan))
    notice = f"{made['messages']} messages in {made['contacts']} chats."
    return await _respond(request, app, notice, notifies=True)


@dataclass(frozen=True, slots=True)
class BusinessActionRow:
    """One action of the control API: on the phone, in a chat or on a message."""

    path: str  # of the console, after the number
    does: str
    call: str  # after the app's path in the control API; with the placeholders of `path`
    body: Callable[[Fields], Body]
    notice: str
    notifies: bool = False  # an open page shows the notice, too
    method: str = "POST"

    @property
    def page_row(self) -> PageRoute:
        """The row of the route table."""
        return PageRoute(RouteKind.ACT, BUSINESS_PATH + self.path, self.run, self.does)

    async def run(self, request: PageRequest) -> Response:
        """Carry it out with the values of the form."""
        app = get_app_by_number(request, str(request.path_params["number"]))
        values = {name: quote(str(value), safe="") for name, value in request.path_params.items()}
        body = self.body({**await form_texts(request), **request.path_params})
        path = _control_path(app) + self.call.format(**values)
        await translate_errors(request.control.json(self.method, path, body))
        return await _respond(request, app, self.notice, notifies=self.notifies)


def _text(fields: Fields) -> str:
    text = fields.get("text", "").replace("\r\n", "\n").strip()
    if not text:
        raise InvalidPageRequest("The message is empty.", "Enter a text.")
    return text


def _message(fields: Fields, content: Body) -> Body:
    context = {"context_id": fields["context_id"]} if fields.get("context_id") else {}
    return {"to": require_digits(fields.get("chat", "")), **content, **context}


def _disconnection(fields: Fields) -> Body:
    return {"reason": fields["reason"]} if fields.get("reason") else {}


def _contact(fields: Fields) -> Body:
    name = fields.get("name", "").strip()
    if not name:
        raise InvalidPageRequest("A contact needs a name.", "Enter one.")
    return {"full_name": name}


BUSINESS_ACTIONS: Final = (
    BusinessActionRow(
        "/connect",
        does="connect a number's own app",
        call="/connect",
        body=lambda fields: {"shares_history": fields.get("declined") != "on"},
        notice="Connected: the app and the API share the number.",
        notifies=True,
    ),
    BusinessActionRow(
        "/disconnect",
        does="disconnect a number's own app",
        call="/disconnect",
        body=_disconnection,
        notice="Disconnected.",
        notifies=True,
    ),
    BusinessActionRow(
        "/offline",
        does="turn the business's phone off or on",
        call="",
        body=lambda fields: {"is_offline": fields.get("is_offline") == "true"},
        notice="Saved.",
        method="PUT",
    ),
    BusinessActionRow(
        "/text",
        does="send a text from the business's phone",
        call="/messages",
        body=lambda fields: _message(fields, {"text": _text(fields)}),
        notice="Sent.",
    ),
    BusinessActionRow(
        "/messages/{wamid}/react",
        does="react with the business's phone",
        call="/messages",
        body=lambda fields: _message(fields, build_reaction(fields, fields["wamid"])),
        notice="Reacted.",
    ),
    BusinessActionRow(
        "/messages/{wamid}/edit",
        does="edit a message of the business's phone",
        call="/messages/{wamid}/edit",
        body=lambda fields: {"text": _text(fields)},
        notice="Edited.",
    ),
    BusinessActionRow(
        "/messages/{wamid}/revoke",
        does="delete a message of the business's phone",
        call="/messages/{wamid}/revoke",
        body=lambda _: {},
        notice="Deleted for everyone.",
    ),
    BusinessActionRow(
        "/contacts/{phone}",
        does="save a contact on the business's phone",
        call="/contacts/{phone}",
        body=_contact,
        notice="Contact saved.",
        notifies=True,
        method="PUT",
    ),
)
