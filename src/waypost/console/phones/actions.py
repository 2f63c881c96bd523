"""What is done with a phone, mostly as rows: what the control API is sent, and what is said when it was done."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

import msgspec
from starlette.responses import JSONResponse, Response

from waypost.console.actions import Body, Fields, fields_of
from waypost.console.page_tools import PageTools
from waypost.console.phones.action_context import chat_of, hand_of
from waypost.console.phones.selection import Place, Places, needed
from waypost.console.phones.sending import card_of, place_of, send
from waypost.console.phones.view_models import item_at
from waypost.console.route import Kind, PageRow
from waypost.console.web.not_found import NotMeant
from waypost.console.web.page_request import PageRequest

CHAT: Final = "/phones/{phone}/chats/{number}"
ITEM: Final = "/phones/{phone}/items/{position}"
_MOST_S: Final = 7 * 24 * 3600
_MOST_EMOJI: Final = 64
_PAYMENTS: Final = {"captured": "Paid.", "pending": "Pending.", "failed": "Failed."}
_TICKED: Final = ("on", "true", "1", "yes")


@dataclass(frozen=True, slots=True)
class PhoneAction:
    """One action, at a phone, in a chat, or with a message.

    Args:
        path: of the console; it names the phone, and perhaps the chat or the message.
        does: in a few words, for whoever reads the table.
        call: the last part of the control API's path; empty: the phone itself is changed.
        body: of the call, from the form; besides it names the chat's number or the message.
        said: for a page that is loaded again; or a function that gives it from the body.
        tells: it is said on an open page, too: the handset shows nothing of it.
    """

    path: str
    does: str
    call: str
    body: Callable[[Fields], Body]
    said: str | Callable[[Body], str]
    tells: bool = False

    @property
    def page_row(self) -> PageRow:
        """The row of the route table."""
        return PageRow(Kind.ACT, self.path, self.act, self.does)

    async def act(self, desk: PageTools, visit: PageRequest) -> Response:
        """Do it with what the form says.

        Raises:
            NotMeant: it was refused; says why in plain words.
            NotThere: the phone has no such message, or the partner no such number.
        """
        hand = hand_of(desk, visit)
        number, named = "", {}
        if "position" in visit.path:
            app, item = await item_at(desk, visit, hand.phone, str(visit.path["position"]))
            number, message_id = app.phone_number, item["wamid"]
            named = {"to": number, "context_id": message_id} if self.call == "messages" else {"message_id": message_id}
        elif "number" in visit.path:
            number = chat_of(visit).phone_number
            named = {"to": number}
        body = {**named, **self.body(await fields_of(visit))}
        await hand.do(self.call, body, "POST" if self.call else "PUT")
        said = self.said if isinstance(self.said, str) else self.said(body)
        return hand.done(said, number, tells=self.tells)


def _nothing(_fields: Fields) -> Body:
    return {}


def _flags(*names: str) -> Callable[[Fields], Body]:
    return lambda fields: {name: _flag(fields, name) for name in names}


def _flag(fields: Fields, name: str) -> bool:
    return fields.get(name, "") in _TICKED


def _owner(fields: Fields) -> Body:
    name = fields.get("name", "").strip()
    if not name:
        raise NotMeant("A phone's owner has a name.", "Type one.")
    return {
        "name": name[:256],
        "username": fields.get("username", "").strip().lstrip("@"),
        "user_id": fields.get("user_id", "").strip(),
        "shows_number": _flag(fields, "shows_number"),
    }


def _habits(fields: Fields) -> Body:
    """When it gets and reads messages, and what is the matter with it."""
    return {
        "condition": fields.get("condition", ""),
        "deliver_after_ms": _ms(fields, "deliver_after_s"),
        "sends_read_receipts": _flag(fields, "sends_read_receipts"),
        "has_chat_open": _flag(fields, "has_chat_open"),
        "read_after_ms": _ms(fields, "read_after_s") if _flag(fields, "reads_itself") else None,
    }


def _ms(fields: Fields, name: str) -> int | None:
    """A time in seconds of a form, as milliseconds; None where it is left to the settings."""
    text = fields.get(name, "").strip().replace(",", ".")
    if not text:
        return None
    try:
        time_s = float(text)
    except ValueError:
        time_s = -1
    if not 0 <= time_s <= _MOST_S:
        raise NotMeant(f"“{text[:20]}” is not a time.", "Give seconds, from 0 to 604800.")
    return round(time_s * 1000)


def _script(fields: Fields) -> Body:
    """A script of its own; an empty one is none."""
    text = fields.get("script", "").strip() or "[]"
    try:
        script: object = msgspec.json.decode(text)  # which takes no half characters
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise NotMeant(f"The script cannot be read: {error}.", "It is a JSON list of steps.") from None
    if not isinstance(script, list):
        raise NotMeant("The script is not a list.", "It is a JSON list of steps.")
    return {"script": script, "seed": fields.get("seed", "").strip()[:64]}


def _tap(fields: Fields) -> Body:
    """A button or a row of a list, by its place or its text, perhaps on a card."""
    if _flag(fields, "not_requested"):
        return {"not_requested": True}
    given = {name: fields.get(name, "") for name in ("index", "card")}
    body: Body = {
        name: int(text) for name, text in given.items() if text.isascii() and text.isdigit() and len(text) < 4
    }
    if fields.get("text"):
        body["text"] = fields["text"]
    return body


def _payment(fields: Fields) -> Body:
    status = fields.get("status", "captured")
    if status not in _PAYMENTS:
        raise NotMeant("A payment cannot end like that.", f"Choose {', '.join(_PAYMENTS)}.")
    return {"status": status}


def _filled_in(fields: Fields, name: str) -> dict[str, Any]:
    try:
        value: object = msgspec.json.decode(fields.get(name) or "{}")  # which takes no half characters
    except (msgspec.MsgspecError, ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise NotMeant("What was filled in cannot be read.", "Fill the form in and send it again.")
    return cast("dict[str, Any]", value)


def _by(name: str, yes: str, no: str) -> Callable[[Mapping[str, Any]], str]:
    return lambda body: yes if body[name] else no


async def react(desk: PageTools, visit: PageRequest) -> Response:
    """React to a message; without an emoji the reaction is taken away."""
    hand = hand_of(desk, visit)
    app, item = await item_at(desk, visit, hand.phone, str(visit.path["position"]))
    emoji = (await visit.field("emoji")).strip()
    if len(emoji.encode()) > _MOST_EMOJI or any(sign.isascii() and sign.isalnum() for sign in emoji):
        raise NotMeant("That is not an emoji.", "Choose one, or paste a single emoji.")
    reaction = {"message_id": item["wamid"]} | ({"emoji": emoji} if emoji else {})
    await send(hand, app.phone_number, {"type": "reaction", "reaction": reaction})
    return hand.done("Reacted.", app.phone_number)


async def share_contact(desk: PageTools, visit: PageRequest) -> Response:
    """Answer a request for contact data: the owner's own card."""
    hand = hand_of(desk, visit)
    app, item = await item_at(desk, visit, hand.phone, str(visit.path["position"]))
    card = card_of(str((await hand.state())["name"]), f"+{hand.phone}", "")
    body = {"type": "contacts", "contacts": [card], "context_id": item["wamid"]}
    await send(hand, app.phone_number, body)
    return hand.done("Sent.", app.phone_number)


async def move(desk: PageTools, visit: PageRequest) -> Response:
    """The owner takes another number; the businesses of his chats are told."""
    hand = hand_of(desk, visit)
    after = needed(await visit.field("to"))
    await hand.do("number", {"to": after})
    desk.parts.pulse.beat()
    address = Places((Place(hand.phone), Place(after))).address
    if visit.is_quiet:
        return JSONResponse({"to": address})
    return desk.go(address, f"The owner of {hand.phone} now has {after}.", remedy="Both are shown.")


# fmt: off
ACTIONS: Final = (
    #           path                       does                                  call       body                          said
    PhoneAction("/phones/{phone}/offline", "switch the phone off or on",         "",        _flags("is_offline"),         _by("is_offline", "The phone is offline.", "The phone is back online.")),
    PhoneAction("/phones/{phone}/owner",   "name, user name, user id",           "",        _owner,                       "Saved.", tells=True),
    PhoneAction("/phones/{phone}/habits",  "how it gets and reads messages",     "",        _habits,                      "Saved.", tells=True),
    PhoneAction("/phones/{phone}/script",  "what it does by itself",             "",        _script,                      _by("script", "The script is followed from the next message on.", "There is no script."), tells=True),
    PhoneAction(f"{CHAT}/block",           "block the business, or not any more", "block",  _flags("blocks"),             _by("blocks", "Blocked. The business is not told.", "Unblocked.")),
    PhoneAction(f"{CHAT}/report",          "report the business",                "report",  _flags("blocks"),             "Reported. The business is not told.", tells=True),
    PhoneAction(f"{CHAT}/marketing",       "stop marketing, or take it again",   "marketing", _flags("wants"),            _by("wants", "Marketing is welcome again. The business is told.", "Marketing is stopped. The business is told."), tells=True),
    PhoneAction(f"{ITEM}/read",            "read the chat of a message",         "read",    _nothing,                     "Read."),
    PhoneAction(f"{ITEM}/tap",             "tap a button",                       "tap",     _tap,                         "Tapped."),
    PhoneAction(f"{ITEM}/answer",          "send a form back",                   "answer",  lambda fields: {"response": _filled_in(fields, "response")}, "Sent back."),
    PhoneAction(f"{ITEM}/order",           "send a basket",                      "messages", lambda fields: {"type": "order", "order": _filled_in(fields, "order")}, "Ordered."),
    PhoneAction(f"{ITEM}/pay",             "pay an order, or fail to",           "pay",     _payment,                     lambda body: _PAYMENTS[body["status"]]),
    PhoneAction(f"{ITEM}/location",        "answer a request for a place",       "messages", lambda fields: {"type": "location", "location": place_of(fields)}, "Sent."),
)
# fmt: on
