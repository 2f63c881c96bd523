"""Actions of a phone, most of them as rows: the call of the control API, and the notice after it."""

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
    """One action, of a phone, in a chat, or on a message.

    Args:
        path: of the console, with the phone and, where it applies, the chat or message.
        does: a short description for readers of the table.
        call: the last part of the control API's path; empty: the phone itself is changed.
        body: of the call, from the form; the chat's number or the message is added.
        said: notice for a page that is loaded again; or a function of the body that returns it.
        tells: an open page shows the notice too, because the handset does not show the result.
    """

    path: str
    does: str
    call: str
    body: Callable[[Fields], Body]
    said: str | Callable[[Body], str]
    tells: bool = False

    @property
    def page_row(self) -> PageRow:
        """Return the row of the route table."""
        return PageRow(Kind.ACT, self.path, self.act, self.does)

    async def act(self, desk: PageTools, visit: PageRequest) -> Response:
        """Carry it out with the values of the form.

        Raises:
            NotMeant: the API returned an error; explains it in plain words.
            NotThere: the phone has no such message, or the partner no such number.
        """
        client = hand_of(desk, visit)
        number, target = "", {}
        if "position" in visit.path:
            app, item = await item_at(desk, visit, client.phone, str(visit.path["position"]))
            number, message_id = app.phone_number, item["wamid"]
            target = {"to": number, "context_id": message_id} if self.call == "messages" else {"message_id": message_id}
        elif "number" in visit.path:
            number = chat_of(visit).phone_number
            target = {"to": number}
        body = {**target, **self.body(await fields_of(visit))}
        await client.do(self.call, body, "POST" if self.call else "PUT")
        notice = self.said if isinstance(self.said, str) else self.said(body)
        return client.done(notice, number, tells=self.tells)


def _nothing(_fields: Fields) -> Body:
    return {}


def _flags(*names: str) -> Callable[[Fields], Body]:
    return lambda fields: {name: _flag(fields, name) for name in names}


def _flag(fields: Fields, name: str) -> bool:
    return fields.get(name, "") in _TICKED


def _owner(fields: Fields) -> Body:
    name = fields.get("name", "").strip()
    if not name:
        raise NotMeant("A phone needs the name of its owner.", "Enter a name.")
    return {
        "name": name[:256],
        "username": fields.get("username", "").strip().lstrip("@"),
        "user_id": fields.get("user_id", "").strip(),
        "shows_number": _flag(fields, "shows_number"),
    }


def _habits(fields: Fields) -> Body:
    """Return when the phone receives and reads messages, and its delivery problem."""
    return {
        "condition": fields.get("condition", ""),
        "deliver_after_ms": _ms(fields, "deliver_after_s"),
        "sends_read_receipts": _flag(fields, "sends_read_receipts"),
        "has_chat_open": _flag(fields, "has_chat_open"),
        "read_after_ms": _ms(fields, "read_after_s") if _flag(fields, "reads_itself") else None,
    }


def _ms(fields: Fields, name: str) -> int | None:
    """Return a form's time in seconds as ms; None if it is left to the settings."""
    text = fields.get(name, "").strip().replace(",", ".")
    if not text:
        return None
    try:
        time_s = float(text)
    except ValueError:
        time_s = -1
    if not 0 <= time_s <= _MOST_S:
        raise NotMeant(f"“{text[:20]}” is not a time.", "Enter seconds, from 0 to 604800.")
    return round(time_s * 1000)


def _script(fields: Fields) -> Body:
    """Return the script of the form; an empty one removes it."""
    text = fields.get("script", "").strip() or "[]"
    try:
        script: object = msgspec.json.decode(text)  # rejects lone surrogates
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise NotMeant(f"The script is not valid JSON: {error}.", "Enter a JSON list of steps.") from None
    if not isinstance(script, list):
        raise NotMeant("The script is not a list.", "Enter a JSON list of steps.")
    return {"script": script, "seed": fields.get("seed", "").strip()[:64]}


def _tap(fields: Fields) -> Body:
    """Return a button or list row, by its index or text; of a card where one is given."""
    if _flag(fields, "not_requested"):
        return {"not_requested": True}
    numbers = {name: fields.get(name, "") for name in ("index", "card")}
    body: Body = {
        name: int(text) for name, text in numbers.items() if text.isascii() and text.isdigit() and len(text) < 4
    }
    if fields.get("text"):
        body["text"] = fields["text"]
    return body


def _payment(fields: Fields) -> Body:
    status = fields.get("status", "captured")
    if status not in _PAYMENTS:
        raise NotMeant("Unknown payment status.", f"Choose one of {', '.join(_PAYMENTS)}.")
    return {"status": status}


def _filled_in(fields: Fields, name: str) -> dict[str, Any]:
    try:
        value: object = msgspec.json.decode(fields.get(name) or "{}")  # rejects lone surrogates
    except (msgspec.MsgspecError, ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise NotMeant("The values of the form cannot be read.", "Fill in the form and submit it again.")
    return cast("dict[str, Any]", value)


def _by(name: str, yes: str, no: str) -> Callable[[Mapping[str, Any]], str]:
    return lambda body: yes if body[name] else no


async def react(desk: PageTools, visit: PageRequest) -> Response:
    """React to a message; without an emoji, remove the reaction."""
    client = hand_of(desk, visit)
    app, item = await item_at(desk, visit, client.phone, str(visit.path["position"]))
    emoji = (await visit.field("emoji")).strip()
    if len(emoji.encode()) > _MOST_EMOJI or any(sign.isascii() and sign.isalnum() for sign in emoji):
        raise NotMeant("That is not an emoji.", "Choose one, or paste a single emoji.")
    reaction = {"message_id": item["wamid"]} | ({"emoji": emoji} if emoji else {})
    await send(client, app.phone_number, {"type": "reaction", "reaction": reaction})
    return client.done("Reacted.", app.phone_number)


async def share_contact(desk: PageTools, visit: PageRequest) -> Response:
    """Respond to a request for contact data with the owner's contact card."""
    client = hand_of(desk, visit)
    app, item = await item_at(desk, visit, client.phone, str(visit.path["position"]))
    card = card_of(str((await client.state())["name"]), f"+{client.phone}", "")
    body = {"type": "contacts", "contacts": [card], "context_id": item["wamid"]}
    await send(client, app.phone_number, body)
    return client.done("Sent.", app.phone_number)


async def move(desk: PageTools, visit: PageRequest) -> Response:
    """Change the owner's number; the businesses of the chats are notified."""
    client = hand_of(desk, visit)
    after = needed(await visit.field("to"))
    await client.do("number", {"to": after})
    desk.parts.pulse.beat()
    address = Places((Place(client.phone), Place(after))).address
    if visit.is_quiet:
        return JSONResponse({"to": address})
    return desk.go(address, f"The owner of {client.phone} now has the number {after}.", remedy="Both phones are shown.")


# fmt: off
ACTIONS: Final = (
    #           path                       does                                  call       body                          said
    PhoneAction("/phones/{phone}/offline", "turn the phone off or on",           "",        _flags("is_offline"),         _by("is_offline", "The phone is offline.", "The phone is online.")),
    PhoneAction("/phones/{phone}/owner",   "name, user name, user id",           "",        _owner,                       "Saved.", tells=True),
    PhoneAction("/phones/{phone}/settings", "how it receives and reads messages", "",       _habits,                      "Saved.", tells=True),
    PhoneAction("/phones/{phone}/script",  "its script",                         "",        _script,                      _by("script", "Saved. The script runs from the next message on.", "Script removed."), tells=True),
    PhoneAction(f"{CHAT}/block",           "block or unblock the business",      "block",   _flags("blocks"),             _by("blocks", "Blocked. The business is not notified.", "Unblocked.")),
    PhoneAction(f"{CHAT}/report",          "report the business",                "report",  _flags("blocks"),             "Reported. The business is not notified.", tells=True),
    PhoneAction(f"{CHAT}/marketing",       "stop or resume marketing",           "marketing", _flags("wants"),            _by("wants", "Marketing resumed. The business is notified.", "Marketing stopped. The business is notified."), tells=True),
    PhoneAction(f"{ITEM}/read",            "read the chat of a message",         "read",    _nothing,                     "Read."),
    PhoneAction(f"{ITEM}/tap",             "tap a button",                       "tap",     _tap,                         "Tapped."),
    PhoneAction(f"{ITEM}/answer",          "submit a flow",                      "answer",  lambda fields: {"response": _filled_in(fields, "response")}, "Submitted."),
    PhoneAction(f"{ITEM}/order",           "send an order",                      "messages", lambda fields: {"type": "order", "order": _filled_in(fields, "order")}, "Ordered."),
    PhoneAction(f"{ITEM}/pay",             "pay an order, or fail the payment",  "pay",     _payment,                     lambda body: _PAYMENTS[body["status"]]),
    PhoneAction(f"{ITEM}/location",        "respond to a request for a location", "messages", lambda fields: {"type": "location", "location": place_of(fields)}, "Sent."),
)
# fmt: on
