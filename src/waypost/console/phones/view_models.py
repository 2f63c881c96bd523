"""Handsets as the page shows them, read from the control API and limited to the partner's numbers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from waypost.console.api_clients import ControlClient
from waypost.console.messages.list_rows import kind_label
from waypost.console.page_tools import PageTools
from waypost.console.phones.items import ChatMessage, build_chat_messages, summarize_item
from waypost.console.phones.selection import CHAT_LIST, SelectedPhone, number_ids_query
from waypost.console.web.errors import NotFound
from waypost.console.web.page_request import PageRequest
from waypost.domain.app import App
from waypost.store.messages.lists import messages_of_app, template_names_by_ids

MAX_CHAT_MESSAGES: Final = 100
"""Messages of a chat that are shown; older ones are loaded on request."""

MAX_SENT_MESSAGES: Final = 8
"""Messages to a phone that are listed next to it."""

# fmt: off
DELIVERY_PROBLEMS: Final = (  # Source: docs/how-to/simulate-phones.md; values of the control API
    ("",                   "None: messages arrive"),
    ("not_on_whatsapp",    "Number is not on the channel"),
    ("old_client",         "Client app is too old"),
    ("terms_not_accepted", "Terms are not accepted"),
    ("in_experiment",      "In an experiment: no marketing messages"),
    ("marketing_limit",    "Marketing limit reached"),
)
# fmt: on


@dataclass(frozen=True, slots=True)
class ChatView:
    """A chat with one of the partner's numbers, with or without messages.

    Attributes:
        app: the app with this number.
        name: the business name that recipients see.
        last: the newest message; None if there is none.
        window_until_ms: end of the customer service window; None: the phone never wrote.
    """

    app: App
    name: str
    last: dict[str, Any] | None
    unread: int
    window_until_ms: int | None
    is_blocked: bool
    is_typing: bool
    wants_marketing: bool

    @property
    def number(self) -> str:
        """Return the digits of the business number."""
        return self.app.phone_number

    @property
    def summary(self) -> str:
        """Return one line that describes the newest message."""
        return summarize_item(self.last) if self.last else ""


@dataclass(frozen=True, slots=True)
class Handset:
    """The current state of one phone.

    Attributes:
        state: as the control API shows it, limited to the partner's numbers.
        open: the chat that is open; None: the list of chats is shown.
        entries: of the open chat, in the order in which they arrived.
        before: the position below which there are more messages; None: there are none.
        sent: the newest messages of the open chat's app to this phone, delivered or not, from the
            service's store, each with the name of its template or its kind as `label`.
    """

    phone: str
    state: Mapping[str, Any]
    chats: list[ChatView]
    open: ChatView | None
    entries: list[ChatMessage] = field(default_factory=list[ChatMessage])
    before: int | None = None
    sent: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    @property
    def name(self) -> str:
        """Return the owner's name."""
        return str(self.state["name"])

    @property
    def delivery_problems(self) -> tuple[tuple[str, str], ...]:
        """Return the delivery problems that a phone may have, each with its label."""
        return DELIVERY_PROBLEMS

    @property
    def is_offline(self) -> bool:
        """True if nothing reaches the phone."""
        return bool(self.state["is_offline"])

    @property
    def unread_elsewhere(self) -> int:
        """Return the number of unread messages in chats that are not open."""
        return sum(chat.unread for chat in self.chats if chat is not self.open)

    @property
    def unread_open(self) -> str:
        """Return the position of the newest unread message of the open chat; empty if all are read."""
        if self.open is None or not self.open.unread:
            return ""
        unread = [
            entry.item["position"] for entry in self.entries if not entry.is_own and entry.item["state"] != "read"
        ]
        return str(unread[-1]) if unread else ""


def get_control(tools: PageTools) -> ControlClient:
    """Return the client of the simulator control API.

    Raises:
        NotFound: the service has no simulator.
    """
    control = tools.services.apis.control
    if control is None:
        raise NotFound("This service has no simulator, so there are no phones.")
    return control


def apps_by_number_id(page_request: PageRequest) -> dict[str, App]:
    """Return the partner's apps that have a number, by the operator's id of the number."""
    return {app.phone_number_id: app for app in page_request.apps if app.phone_number_id}


def get_app_by_number(page_request: PageRequest, number: str) -> App:
    """Return the partner's app with a business number.

    Raises:
        NotFound: it is not a number of the partner.
    """
    for app in page_request.apps:
        if app.phone_number and app.phone_number == number:
            return app
    raise NotFound("You have no such business number.")


async def read_handset(tools: PageTools, page_request: PageRequest, selected: SelectedPhone) -> Handset:
    """Return the current state of one phone."""
    control, mine = get_control(tools), apps_by_number_id(page_request)
    path = f"/control/phones/{selected.phone}"
    chats: list[dict[str, Any]] = []
    if mine:
        chats = (await control.get(f"{path}/chats?{number_ids_query(list(mine))}"))["chats"]
    open_id = _open_number_id(selected, chats, mine)
    limit = MAX_CHAT_MESSAGES + 1 if open_id else 0
    state = await control.get(f"{path}?{number_ids_query([open_id or next(iter(mine), '0')])}&limit={limit}")
    views = [_build_chat_view(chat, mine[chat["phone_number_id"]], state) for chat in chats]
    open_chat = next((view for view in views if view.app.phone_number_id == open_id), None)
    items, quoted = state.pop("messages"), state.pop("quoted")
    sent: list[dict[str, Any]] = []
    if open_chat is not None:
        scope = {"partner_id": page_request.partner.id, "app_id": open_chat.app.id}
        newest = partial(messages_of_app, **scope, destination=selected.phone, at_most=MAX_SENT_MESSAGES)
        rows = await tools.services.database.read(newest)
        template_ids = [row["template_id"] for row in rows if row["template_id"]]
        names = await tools.services.database.read(template_names_by_ids, page_request.partner.id, template_ids)
        sent = [
            {**row, "label": names.get(row["template_id"]) or kind_label(row["kind"], row["content"])} for row in rows
        ]
    return Handset(
        phone=selected.phone,
        state=_limit_to_partner(state, mine),
        chats=views,
        open=open_chat,
        entries=build_chat_messages(
            items[-MAX_CHAT_MESSAGES:], quoted, selected.phone, "" if open_chat is None else open_chat.name
        ),
        before=items[-MAX_CHAT_MESSAGES]["position"] if len(items) > MAX_CHAT_MESSAGES else None,
        sent=sent,
    )


async def read_older(
    tools: PageTools, page_request: PageRequest, phone: str, number: str, before: int
) -> tuple[list[ChatMessage], int | None]:
    """Return older messages of a chat, and the position below which there are more."""
    app = get_app_by_number(page_request, number)
    path = f"/control/phones/{phone}?{number_ids_query([app.phone_number_id])}"
    state = await get_control(tools).get(f"{path}&before={before}&limit={MAX_CHAT_MESSAGES + 1}")
    items = state["messages"]
    more = items[-MAX_CHAT_MESSAGES]["position"] if len(items) > MAX_CHAT_MESSAGES else None
    return build_chat_messages(items[-MAX_CHAT_MESSAGES:], state["quoted"], phone, app.name), more


async def get_item(
    tools: PageTools, page_request: PageRequest, phone: str, position: str
) -> tuple[App, dict[str, Any]]:
    """Return a message on a phone, and the app of its chat.

    Raises:
        NotFound: there is no such message, or its chat is with another partner's number.
    """
    mine = apps_by_number_id(page_request)
    if mine and position.isascii() and position.isdigit() and len(position) < 18:
        path = f"/control/phones/{phone}?{number_ids_query(list(mine))}"
        state = await get_control(tools).get(f"{path}&before={int(position) + 1}&limit=1")
        for item in state["messages"]:
            if item["position"] == int(position):
                return mine[item["phone_number_id"]], item
    raise NotFound("There is no such message on this phone.")


def _open_number_id(selected: SelectedPhone, chats: list[dict[str, Any]], mine: Mapping[str, App]) -> str:
    """Return the id of the number whose chat is open; a phone with a single chat opens it by default."""
    if selected.chat == CHAT_LIST:
        return ""
    for chat in chats:
        if mine[chat["phone_number_id"]].phone_number == selected.chat:
            return str(chat["phone_number_id"])
    if not selected.chat and len(chats) == 1:
        return str(chats[0]["phone_number_id"])
    return ""


def _build_chat_view(chat: dict[str, Any], app: App, state: Mapping[str, Any]) -> ChatView:
    return ChatView(
        app=app,
        name=chat["name"] or app.name,
        last=chat["last"],
        unread=chat["unread"],
        window_until_ms=chat["window_until_ms"],
        is_blocked=app.phone_number_id in state["has_blocked"],
        is_typing=app.phone_number_id in state["typing"],
        wants_marketing=app.phone_number_id not in state["stopped_marketing_of"],
    )


def _limit_to_partner(state: dict[str, Any], mine: Mapping[str, App]) -> dict[str, Any]:
    """Return the phone's state without data about other partners' numbers."""
    lists = ("has_blocked", "stopped_marketing_of", "typing")
    reports = [report for report in state["reports"] if report["phone_number_id"] in mine]
    own = {name: [number_id for number_id in state[name] if number_id in mine] for name in lists}
    return {**state, **own, "reports": reports}
