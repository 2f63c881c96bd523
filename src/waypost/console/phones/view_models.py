"""The selected phones, what their handsets show, and errors in the words of a phone's user."""

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Self

from waypost.base.json_values import object_of
from waypost.client.api_client import ApiResponseError
from waypost.console.bubbles.items import prepare_messages, quote_of, text_of
from waypost.console.messages.list_rows import kind_label
from waypost.console.page_request import PageRequest
from waypost.console.web.errors import InvalidPageRequest, NotFound
from waypost.domain.app import App
from waypost.store.messages.lists import messages_of_app, template_names_by_ids

MAX_HANDSETS: Final = 6
"""Handsets side by side; three fit on most screens."""
CHAT_LIST: Final = "-"
"""Value instead of a chat: the phone shows its list of chats."""
_PUNCTUATION: Final = str.maketrans("", "", "+ -().\u00a0\u202f")


@dataclass(frozen=True, slots=True)
class PhoneSelection:
    """The phones of the page, left to right."""

    # of each phone's digits: the digits of the business number whose chat is open; `CHAT_LIST`; or empty: not chosen
    chats: Mapping[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def parse(cls, request: PageRequest) -> Self:
        """Return the selection in the query; invalid parts are left out."""
        shown = request.http.query_params.getlist("show")
        phones = [parse_digits(text) for text in ",".join(shown).split(",") if text.strip()]
        chats = [text.strip() for text in request.query("chats").split(",")]
        selected: dict[str, str] = {}
        for index, phone in enumerate(phones):
            chat = chats[index] if index < len(chats) else ""
            if phone and phone not in selected and len(selected) < MAX_HANDSETS:
                is_valid = chat == CHAT_LIST or (chat.isascii() and chat.isdigit() and len(chat) <= 15)
                selected[phone] = chat if is_valid else ""
        return cls(selected)

    @property
    def query(self) -> str:
        """Return the query of the page's URL: `show=…&chats=…`."""
        chats = ",".join(self.chats.values())
        return f"show={','.join(self.chats)}" + (f"&chats={chats}" if chats.strip(",") else "")

    @property
    def address(self) -> str:
        """Return the path and query of the page."""
        return f"/phones?{self.query}" if self.chats else "/phones"

    def select(self, phone: str, chat: str) -> Self:
        """Return the selection with a chat open on a phone, which is added if it is not selected."""
        return type(self)(dict([*{**self.chats, phone: chat}.items()][-MAX_HANDSETS:]))

    def remove(self, phone: str) -> Self:
        """Return the selection without one phone."""
        return type(self)({shown: chat for shown, chat in self.chats.items() if shown != phone})


def parse_digits(text: str) -> str:
    """Return the digits of a phone number as typed; empty if it is not a phone number.

    Source: decision 0084.
    """
    digits = text.translate(_PUNCTUATION)
    return digits if digits.isascii() and digits.isdigit() and 8 <= len(digits) <= 15 else ""


def require_digits(text: str) -> str:
    """Return the digits of a required phone number.

    Raises:
        InvalidPageRequest: it is not a phone number.
    """
    digits = parse_digits(text)
    if not digits:
        raise InvalidPageRequest(
            f"“{text.strip()[:40]}” is not a phone number.",
            "Enter 8 to 15 digits, starting with the country code, such as +1 555 000 2009.",
        )
    return digits


def number_ids_query(number_ids: Sequence[str]) -> str:
    """Return the query of the control API that selects business numbers."""
    return "&".join(f"phone_number_id={number_id}" for number_id in number_ids)


PHONE_ERROR_TEXTS: Final[dict[tuple[str, int | str], tuple[str, str]]] = {  # of simulator/control
    # field          status, or rule where several share the status
    ("phone", 409): ("This phone is offline.", "Turn it on first."),
    ("companion_id", 409): ("This phone is offline.", "Turn it on first."),
    ("to", "has been blocked by the phone's owner"): (
        "This phone has blocked the business.",
        "Unblock it to send messages again.",
    ),
    ("to", 404): (
        "The simulator does not know this business number.",
        "An app that is connected to the real channel has no simulated phones.",
    ),
    ("context_id", 404): ("The message you reply to is no longer on this phone.", "Remove the quote and send again."),
    ("reaction.message_id", 404): ("The message is no longer on this phone.", "Reload the page."),
    ("message_id", 404): ("The message has not arrived on this phone.", "Reload the page."),
    ("message_id", "the message has nothing to reply to"): ("This message has nothing to respond to.", ""),
    ("message_id", "the order is paid already"): ("The order is already paid.", ""),
    ("message_id", "the message is not an order"): ("This message is not an order.", ""),
    ("text", 404): ("This message has no such button.", "Reload the page."),
    ("index", 404): ("This message has no such button.", "Reload the page."),
    ("text", 400): ("The message is too long.", "Send at most 4,096 characters."),
    ("media.caption", 400): ("The caption is too long.", "Use at most 1,024 characters."),
    ("to", "cannot be moved to"): (
        "The phone cannot have that number.",
        "Choose a number that no business has and that is not its own.",
    ),
    ("wa_id", 400): (
        "A WhatsApp ID has 8 to 15 digits, the first of them not 0.",
        "Enter such digits, or leave the field empty.",
    ),
    ("wa_id", 409): ("Another phone has this WhatsApp ID.", "Choose another one."),
    ("user_id", 409): ("Another phone has this user ID.", "Choose another one."),
    ("shows_number", 400): (
        "A phone that hides its number needs a user ID.",
        "Enter one, such as US.1349, or show the number.",
    ),
}


async def translate_errors(call: Awaitable[Any]) -> Any:
    """Return the result of a call to the control API.

    Raises:
        InvalidPageRequest: the API returned an error; explains it and suggests what to do.
        NotFound: the API responded with 404.
    """
    try:
        return await call
    except ApiResponseError as error:
        known = PHONE_ERROR_TEXTS.get((error.field, error.rule)) or PHONE_ERROR_TEXTS.get((error.field, error.status))
        if known is not None:
            raise InvalidPageRequest(*known) from error
        if error.status == 404 and not error.accepted:
            raise NotFound from error
        text = (error.rule or error.message).strip().rstrip(".")
        hint = f"Accepted: {error.accepted}." if error.accepted else ""
        raise InvalidPageRequest(f"{text[:1].upper()}{text[1:]}.", hint) from error


_TYPES_NAMED_IN_SUMMARY: Final = ("location", "contacts", "order", "unsupported")
"""Types that a summary names, because their text alone is unclear."""


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """A message of a chat."""

    key: str  # id of its HTML element
    arrived_ms: int  # when it arrived on the phone, or was written on it
    item: dict[str, Any]  # as the control API shows it, with what its bubble needs (see bubbles/bubble.html)

    @property
    def is_own(self) -> bool:
        """True if the phone sent it."""
        return bool(self.item["direction"] == "from_phone")

    @property
    def own_reaction(self) -> str:
        """Return the emoji of the owner's reaction; empty if there is none."""
        own = [reaction["emoji"] for reaction in self.item["reactions"] if reaction["who"] == "phone"]
        return str(own[0]) if own else ""

    @property
    def summary(self) -> str:
        """Return one line of text for a quote."""
        return summarize_item(self.item)


def build_chat_messages(
    items: Sequence[dict[str, Any]], quoted: Sequence[dict[str, Any]], phone: str, business_name: str
) -> list[ChatMessage]:
    """Return the messages, oldest first, each with its reactions.

    Args:
        items: of one chat.
        quoted: messages that these refer to and that are not among them.
        phone: the phone's digits.
        business_name: above quotes of the business's messages.
    """

    def name_author(item: dict[str, Any]) -> dict[str, Any]:
        return {**item, "author": business_name} if item["direction"] == "to_phone" else item

    def find_media(media_id: str) -> dict[str, str]:
        return {"url": f"/phones/media/{media_id}"} if media_id.isascii() and media_id.isdigit() else {}

    ordered = sorted(map(name_author, items), key=lambda item: (_arrived_ms(item), item["position"]))
    quoted_ids = {item["wamid"] for item in quoted}
    return [
        ChatMessage(f"i-{phone}-{item['position']}", _arrived_ms(item), item)
        for item in prepare_messages([*map(name_author, quoted), *ordered], find_media)
        if item["wamid"] not in quoted_ids
    ]


def summarize_item(item: dict[str, Any]) -> str:
    """Return one line that describes a message, for lists of chats and for quotes."""
    if item["type"] == "reaction":
        emoji = text_of(object_of(item.get("reaction")).get("emoji"))
        return f"Reacted {emoji}" if emoji else "Removed a reaction"
    quote = quote_of(item)
    if quote["kind"] in ("", quote["text"]) or not (item.get("media") or item["type"] in _TYPES_NAMED_IN_SUMMARY):
        return quote["text"]
    return f"{quote['kind']} · {quote['text']}"


def _arrived_ms(item: dict[str, Any]) -> int:
    """Return when the message arrived on the phone, or was sent by it."""
    delivered_ms = item.get("delivered_ms")
    return int(delivered_ms if delivered_ms is not None else item["at_ms"])


MAX_CHAT_MESSAGES: Final = 100
"""Messages of a chat that are shown; older ones are loaded on request."""

MAX_SENT_MESSAGES: Final = 8
"""Messages to a phone that are listed next to it."""


@dataclass(frozen=True, slots=True)
class Handset:
    """The current state of one phone."""

    phone: str
    state: Mapping[str, Any]  # as the control API shows it, limited to the partner's numbers
    # with the partner's numbers, as the control API shows them, each with its `app`, the `number`, a `summary` of the
    # newest message, and `is_blocked`, `is_typing` and `wants_marketing`
    chats: list[dict[str, Any]]
    open: dict[str, Any] | None  # the chat that is open; None: the list of chats is shown
    # of the open chat, in the order in which they arrived
    entries: list[ChatMessage] = field(default_factory=list[ChatMessage])
    before: int | None = None  # the position below which there are more messages; None: there are none
    # the newest messages of the open chat's app to this phone, delivered or not, from the service's store, each with
    # the name of its template or its kind as `label`
    sent: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    @property
    def unread_elsewhere(self) -> int:
        """Return the number of unread messages in chats that are not open."""
        return sum(chat["unread"] for chat in self.chats if chat is not self.open)

    @property
    def unread_open(self) -> str:
        """Return the position of the newest unread message of the open chat; empty if all are read."""
        if self.open is None or not self.open["unread"]:
            return ""
        unread = [
            entry.item["position"] for entry in self.entries if not entry.is_own and entry.item["state"] != "read"
        ]
        return str(unread[-1]) if unread else ""


def apps_by_number_id(request: PageRequest) -> dict[str, App]:
    """Return the partner's apps that have a number, by the operator's id of the number."""
    return {app.phone_number_id: app for app in request.apps if app.phone_number_id}


def get_app_by_number(request: PageRequest, number: str) -> App:
    """Return the partner's app with a business number.

    Raises:
        NotFound: it is not a number of the partner.
    """
    for app in request.apps:
        if app.phone_number and app.phone_number == number:
            return app
    raise NotFound("You have no such business number.")


async def read_handset(request: PageRequest, phone: str, chat: str) -> Handset:
    """Return the current state of one phone; `chat` as in `PhoneSelection`."""
    control, mine = request.control, apps_by_number_id(request)
    path = f"/control/phones/{phone}"
    chats: list[dict[str, Any]] = []
    if mine:
        chats = (await control.get(f"{path}/chats?{number_ids_query(list(mine))}"))["chats"]
    open_id = _open_number_id(chat, chats, mine)
    limit = MAX_CHAT_MESSAGES + 1 if open_id else 0
    state = await control.get(f"{path}?{number_ids_query([open_id or next(iter(mine), '0')])}&limit={limit}")
    views = [_chat_view(one, mine[one["phone_number_id"]], state) for one in chats]
    open_chat = next((view for view in views if view["phone_number_id"] == open_id), None)
    items, quoted = state.pop("messages"), state.pop("quoted")
    sent: list[dict[str, Any]] = []
    if open_chat is not None:
        scope = {"partner_id": request.partner.id, "app_id": open_chat["app"].id}
        newest = partial(messages_of_app, **scope, destination=phone, at_most=MAX_SENT_MESSAGES)
        rows = await request.read(newest)
        template_ids = [row["template_id"] for row in rows if row["template_id"]]
        names = await request.read(template_names_by_ids, request.partner.id, template_ids)
        sent = [
            {**row, "label": names.get(row["template_id"]) or kind_label(row["kind"], row["content"])} for row in rows
        ]
    return Handset(
        phone=phone,
        state=_limit_to_partner(state, mine),
        chats=views,
        open=open_chat,
        entries=build_chat_messages(
            items[-MAX_CHAT_MESSAGES:], quoted, phone, "" if open_chat is None else open_chat["name"]
        ),
        before=items[-MAX_CHAT_MESSAGES]["position"] if len(items) > MAX_CHAT_MESSAGES else None,
        sent=sent,
    )


async def read_older(
    request: PageRequest, phone: str, number: str, before: int
) -> tuple[list[ChatMessage], int | None]:
    """Return older messages of a chat, and the position below which there are more."""
    app = get_app_by_number(request, number)
    path = f"/control/phones/{phone}?{number_ids_query([app.phone_number_id])}"
    state = await request.control.get(f"{path}&before={before}&limit={MAX_CHAT_MESSAGES + 1}")
    items = state["messages"]
    more = items[-MAX_CHAT_MESSAGES]["position"] if len(items) > MAX_CHAT_MESSAGES else None
    return build_chat_messages(items[-MAX_CHAT_MESSAGES:], state["quoted"], phone, app.name), more


async def get_item(request: PageRequest, phone: str, position: str) -> tuple[App, dict[str, Any]]:
    """Return a message on a phone, and the app of its chat.

    Raises:
        NotFound: there is no such message, or its chat is with another partner's number.
    """
    mine = apps_by_number_id(request)
    if mine and position.isascii() and position.isdigit() and len(position) < 18:
        path = f"/control/phones/{phone}?{number_ids_query(list(mine))}"
        state = await request.control.get(f"{path}&before={int(position) + 1}&limit=1")
        for item in state["messages"]:
            if item["position"] == int(position):
                return mine[item["phone_number_id"]], item
    raise NotFound("There is no such message on this phone.")


def _open_number_id(selected: str, chats: list[dict[str, Any]], mine: Mapping[str, App]) -> str:
    """Return the id of the number whose chat is open; a phone with a single chat opens it by default."""
    if selected == CHAT_LIST:
        return ""
    for chat in chats:
        if mine[chat["phone_number_id"]].phone_number == selected:
            return str(chat["phone_number_id"])
    return str(chats[0]["phone_number_id"]) if not selected and len(chats) == 1 else ""


def _chat_view(chat: dict[str, Any], app: App, state: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **chat,
        "app": app,
        "number": app.phone_number,
        "name": chat["name"] or app.name,
        "summary": summarize_item(chat["last"]) if chat["last"] else "",
        "is_blocked": app.phone_number_id in state["has_blocked"],
        "is_typing": app.phone_number_id in state["typing"],
        "wants_marketing": app.phone_number_id not in state["stopped_marketing_of"],
    }


def _limit_to_partner(state: dict[str, Any], mine: Mapping[str, App]) -> dict[str, Any]:
    """Return the phone's state without data about other partners' numbers."""
    lists = ("has_blocked", "stopped_marketing_of", "typing")
    reports = [report for report in state["reports"] if report["phone_number_id"] in mine]
    own = {name: [number_id for number_id in state[name] if number_id in mine] for name in lists}
    return {**state, **own, "reports": reports}
