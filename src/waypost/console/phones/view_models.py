"""What a handset shows: read from the control door, and of it only what is with the partner's own numbers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from waypost.console.api_clients import Control
from waypost.console.messages.list_rows import kind_label
from waypost.console.page_tools import PageTools
from waypost.console.phones.items import Entry, entries_of, summary_of
from waypost.console.phones.selection import LIST, Place, asked
from waypost.console.web.not_found import NotThere
from waypost.console.web.page_request import PageRequest
from waypost.domain.app import App
from waypost.store.messages.lists import messages_of_app

NEWEST: Final = 100
"""Messages of a chat that are shown; older ones are asked for."""

SENT: Final = 8
"""Messages to a phone that are listed beside it."""

# fmt: off
CONDITIONS: Final = (  # Source: docs/how-to/simulate-phones.md; what the control door takes
    ("",                   "Nothing; messages arrive"),
    ("not_on_whatsapp",    "The number is not on the channel"),
    ("old_client",         "Its app is too old"),
    ("terms_not_accepted", "The terms are not accepted"),
    ("in_experiment",      "It is part of an experiment: no marketing"),
    ("marketing_limit",    "It has had enough marketing"),
)
# fmt: on


@dataclass(frozen=True, slots=True)
class Chat:
    """A chat with one of the partner's numbers, begun or not.

    Attributes:
        app: whose number it is.
        name: what recipients see of the business.
        last: the newest message; None where there is none.
        window_until_ms: until when the business may write freely; None: the phone never wrote.
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
        """The business number's digits."""
        return self.app.phone_number

    @property
    def summary(self) -> str:
        """One line that says what the newest message is."""
        return summary_of(self.last) if self.last else ""


@dataclass(frozen=True, slots=True)
class Handset:
    """One phone as it is now.

    Attributes:
        state: as the control door shows it, without what is with others.
        open: the chat that is open; None: the list is shown.
        entries: of the open chat, in the order in which they came.
        before: the position below which there is more; None: there is not.
        sent: the newest messages of the open chat's app to this phone, arrived or not, as the service
            knows them, each with the `label` of its kind.
    """

    phone: str
    state: Mapping[str, Any]
    chats: list[Chat]
    open: Chat | None
    entries: list[Entry] = field(default_factory=list[Entry])
    before: int | None = None
    sent: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    @property
    def name(self) -> str:
        """Of its owner."""
        return str(self.state["name"])

    @property
    def conditions(self) -> tuple[tuple[str, str], ...]:
        """What may be the matter with a phone, each with its words."""
        return CONDITIONS

    @property
    def is_offline(self) -> bool:
        """Whether nothing reaches it."""
        return bool(self.state["is_offline"])

    @property
    def unread_elsewhere(self) -> int:
        """In the chats that are not open."""
        return sum(chat.unread for chat in self.chats if chat is not self.open)

    @property
    def unread_open(self) -> str:
        """Position of the newest message of the open chat that is unread; empty where all is read."""
        if self.open is None or not self.open.unread:
            return ""
        unread = [
            entry.item["position"] for entry in self.entries if not entry.is_own and entry.item["state"] != "read"
        ]
        return str(unread[-1]) if unread else ""


def control_of(desk: PageTools) -> Control:
    """The simulator's control door.

    Raises:
        NotThere: there is no simulator behind this service.
    """
    control = desk.parts.apis.control
    if control is None:
        raise NotThere("There is no simulator behind this service, so there are no phones.")
    return control


def numbers_of(visit: PageRequest) -> dict[str, App]:
    """The partner's apps that have a number, by the operator's id of it."""
    return {app.phone_number_id: app for app in visit.apps if app.phone_number_id}


def app_of(visit: PageRequest, number: str) -> App:
    """The partner's app with a business number.

    Raises:
        NotThere: it is none of the partner's.
    """
    for app in visit.apps:
        if app.phone_number and app.phone_number == number:
            return app
    raise NotThere("You have no such business number.")


async def look_at(desk: PageTools, visit: PageRequest, place: Place) -> Handset:
    """One phone as it is now."""
    control, mine = control_of(desk), numbers_of(visit)
    path = f"/control/phones/{place.phone}"
    found: list[dict[str, Any]] = []
    if mine:
        found = (await control.get(f"{path}/chats?{asked(list(mine))}"))["chats"]
    chosen = _chosen(place, found, mine)
    here = chosen or next(iter(mine), "0")
    limit = NEWEST + 1 if chosen else 0
    state = await control.get(f"{path}?{asked([here])}&limit={limit}")
    chats = [_chat(one, mine[one["phone_number_id"]], state) for one in found]
    open_chat = next((one for one in chats if one.app.phone_number_id == chosen), None)
    items, quoted = state.pop("messages"), state.pop("quoted")
    sent: list[dict[str, Any]] = []
    if open_chat is not None:
        wanted = {"partner_id": visit.partner.id, "app_id": open_chat.app.id}
        newest = partial(messages_of_app, **wanted, destination=place.phone, at_most=SENT)
        rows = await desk.parts.database.read(newest)
        sent = [{**row, "label": kind_label(row["kind"])} for row in rows]
    return Handset(
        phone=place.phone,
        state=_own(state, mine),
        chats=chats,
        open=open_chat,
        entries=entries_of(items[-NEWEST:], quoted, place.phone),
        before=items[-NEWEST]["position"] if len(items) > NEWEST else None,
        sent=sent,
    )


async def older_than(
    desk: PageTools, visit: PageRequest, phone: str, number: str, before: int
) -> tuple[list[Entry], int | None]:
    """Older messages of a chat, and the position below which there is still more."""
    app = app_of(visit, number)
    path = f"/control/phones/{phone}?{asked([app.phone_number_id])}"
    state = await control_of(desk).get(f"{path}&before={before}&limit={NEWEST + 1}")
    items = state["messages"]
    more = items[-NEWEST]["position"] if len(items) > NEWEST else None
    return entries_of(items[-NEWEST:], state["quoted"], phone), more


async def item_at(desk: PageTools, visit: PageRequest, phone: str, position: str) -> tuple[App, dict[str, Any]]:
    """One message on a phone, and the app it is with.

    Raises:
        NotThere: there is none, or it is with another partner's number.
    """
    mine = numbers_of(visit)
    if mine and position.isascii() and position.isdigit() and len(position) < 18:
        path = f"/control/phones/{phone}?{asked(list(mine))}"
        state = await control_of(desk).get(f"{path}&before={int(position) + 1}&limit=1")
        for item in state["messages"]:
            if item["position"] == int(position):
                return mine[item["phone_number_id"]], item
    raise NotThere("There is no such message on this phone.")


def _chosen(place: Place, found: list[dict[str, Any]], mine: Mapping[str, App]) -> str:
    """The id of the number whose chat is open; a phone with one possible chat opens it by itself."""
    if place.chat == LIST:
        return ""
    for one in found:
        if mine[one["phone_number_id"]].phone_number == place.chat:
            return str(one["phone_number_id"])
    if not place.chat and len(found) == 1:
        return str(found[0]["phone_number_id"])
    return ""


def _chat(one: dict[str, Any], app: App, state: Mapping[str, Any]) -> Chat:
    return Chat(
        app=app,
        name=one["name"] or app.name,
        last=one["last"],
        unread=one["unread"],
        window_until_ms=one["window_until_ms"],
        is_blocked=app.phone_number_id in state["has_blocked"],
        is_typing=app.phone_number_id in state["typing"],
        wants_marketing=app.phone_number_id not in state["stopped_marketing_of"],
    )


def _own(state: dict[str, Any], mine: Mapping[str, App]) -> dict[str, Any]:
    """A phone's state without what its owner has with the numbers of others."""
    lists = ("has_blocked", "stopped_marketing_of", "typing")
    reports = [one for one in state["reports"] if one["phone_number_id"] in mine]
    own = {name: [one for one in state[name] if one in mine] for name in lists}
    return {**state, **own, "reports": reports}
