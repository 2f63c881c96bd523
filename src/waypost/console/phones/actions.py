"""Actions of a phone, most of them as rows: the call of the control API, and the notice after it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

import msgspec
from starlette.responses import JSONResponse, Response

from waypost.base.written_numbers import json_decoder
from waypost.console.actions import Body, Fields, empty_body, form_texts
from waypost.console.page_request import PageRequest
from waypost.console.phones.sending import (
    build_contact_card,
    build_reaction,
    check_phone_owner,
    get_phone_client,
    parse_location,
    require_own_phone,
)
from waypost.console.phones.view_models import PhoneSelection, get_app_by_number, get_item, require_digits
from waypost.console.route import PageRoute, RouteKind
from waypost.console.web.errors import InvalidPageRequest

CHAT_PATH: Final = "/phones/{phone}/chats/{number}"
ITEM_PATH: Final = "/phones/{phone}/items/{position}"
_MAX_DELAY_S: Final = 7 * 24 * 3600
_PAYMENT_NOTICES: Final = {"captured": "Paid.", "pending": "Pending.", "failed": "Failed."}
_CHECKED_VALUES: Final = ("on", "true", "1", "yes")


@dataclass(frozen=True, slots=True)
class PhoneActionRow:
    """One action, of a phone, in a chat, or on a message.

    Args:
        notice: notice for a page that is loaded again; or a function of the body that returns it.
    """

    path: str  # of the console, with the phone and, where it applies, the chat or message
    does: str  # a short description for readers of the table
    call: str  # the last part of the control API's path; empty: the phone itself is changed
    body: Callable[[Fields], Body]  # of the call, from the form; the chat's number or the message is added
    notice: str | Callable[[Body], str]
    notifies: bool = False  # an open page shows the notice too, because the handset does not show the result

    @property
    def page_row(self) -> PageRoute:
        """Return the row of the route table."""
        return PageRoute(RouteKind.ACT, self.path, require_own_phone(self.handle), self.does)

    async def handle(self, request: PageRequest) -> Response:
        """Carry it out with the values of the form.

        Raises:
            InvalidPageRequest: the API returned an error; explains it in plain words.
            NotFound: the phone has no such message, or the partner no such number.
        """
        client = get_phone_client(request)
        number, target = "", {}
        if "position" in request.path_params:
            app, item = await get_item(request, client.phone, str(request.path_params["position"]))
            number, message_id = app.phone_number, item["wamid"]
            target = {"to": number, "context_id": message_id} if self.call == "messages" else {"message_id": message_id}
        elif "number" in request.path_params:
            number = get_app_by_number(request, request.path_params["number"]).phone_number
            target = {"to": number}
        body = {**target, **self.body(await form_texts(request))}
        await client.call(self.call, body, "POST" if self.call else "PUT")
        notice = self.notice if isinstance(self.notice, str) else self.notice(body)
        return client.respond(notice, number, notifies=self.notifies)


def _flags(*names: str) -> Callable[[Fields], Body]:
    return lambda fields: {name: _flag(fields, name) for name in names}


def _flag(fields: Fields, name: str) -> bool:
    return fields.get(name, "") in _CHECKED_VALUES


def _owner(fields: Fields) -> Body:
    name = fields.get("name", "").strip()
    if not name:
        raise InvalidPageRequest("A phone needs the name of its owner.", "Enter a name.")
    return {
        "name": name[:256],
        "username": fields.get("username", "").strip().lstrip("@"),
        "wa_id": fields.get("wa_id", "").strip().removeprefix("+"),
        "user_id": fields.get("user_id", "").strip(),
        "shows_number": _flag(fields, "shows_number"),
    }


def _message_settings(fields: Fields) -> Body:
    """Return when the phone receives and reads messages, and its delivery problem."""
    return {
        "condition": fields.get("condition", ""),
        "deliver_after_ms": _parse_seconds(fields, "deliver_after_s"),
        "sends_read_receipts": _flag(fields, "sends_read_receipts"),
        "has_chat_open": _flag(fields, "has_chat_open"),
        "read_after_ms": _parse_seconds(fields, "read_after_s") if _flag(fields, "reads_itself") else None,
    }


def _parse_seconds(fields: Fields, name: str) -> int | None:
    """Return a form's time in seconds as ms; None if it is left to the settings."""
    text = fields.get(name, "").strip().replace(",", ".")
    if not text:
        return None
    try:
        time_s = float(text)
    except ValueError:
        time_s = -1
    if not 0 <= time_s <= _MAX_DELAY_S:
        raise InvalidPageRequest(f"“{text[:20]}” is not a time.", "Enter seconds, from 0 to 604800.")
    return round(time_s * 1000)


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
    if status not in _PAYMENT_NOTICES:
        raise InvalidPageRequest("Unknown payment status.", f"Choose one of {', '.join(_PAYMENT_NOTICES)}.")
    return {"status": status}


def _decode_object(fields: Fields, name: str) -> dict[str, Any]:
    try:
        value: object = json_decoder().decode(fields.get(name) or "{}")  # rejects lone surrogates
    except (msgspec.MsgspecError, ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise InvalidPageRequest("The values of the form cannot be read.", "Fill in the form and submit it again.")
    return cast("dict[str, Any]", value)


def _choose_notice(name: str, yes: str, no: str) -> Callable[[Mapping[str, Any]], str]:
    return lambda body: yes if body[name] else no


async def react(request: PageRequest) -> Response:
    """React to a message; without an emoji, remove the reaction."""
    client = get_phone_client(request)
    app, item = await get_item(request, client.phone, str(request.path_params["position"]))
    reaction = build_reaction(await form_texts(request), item["wamid"])
    await client.call("messages", {"to": app.phone_number, **reaction})
    return client.respond("Reacted.", app.phone_number)


async def share_contact(request: PageRequest) -> Response:
    """Respond to a request for contact data with the owner's contact card."""
    client = get_phone_client(request)
    app, item = await get_item(request, client.phone, str(request.path_params["position"]))
    card = build_contact_card(str((await client.read_state())["name"]), f"+{client.phone}", "")
    body = {"to": app.phone_number, "type": "contacts", "contacts": [card], "context_id": item["wamid"]}
    await client.call("messages", body)
    return client.respond("Sent.", app.phone_number)


async def change_number(request: PageRequest) -> Response:
    """Change the owner's number; the businesses of the chats are notified."""
    client = get_phone_client(request)
    after = require_digits(await request.field("to"))
    await check_phone_owner(request, after, in_chat=False)
    await client.call("number", {"to": after})
    request.services.change_signal.signal()
    address = PhoneSelection({client.phone: "", after: ""}).address
    if request.is_quiet:
        return JSONResponse({"to": address})
    return request.redirect(
        address, f"The owner of {client.phone} now has the number {after}.", hint="Both phones are shown."
    )


PHONE_ACTIONS: Final = (
    # path, name, call, body, notice
    PhoneActionRow(
        "/phones/{phone}/offline",
        does="turn the phone off or on",
        call="",
        body=_flags("is_offline"),
        notice=_choose_notice("is_offline", "The phone is offline.", "The phone is online."),
    ),
    PhoneActionRow("/phones/{phone}/owner", "name, user name, user id", "", _owner, "Saved.", notifies=True),
    PhoneActionRow(
        "/phones/{phone}/settings",
        does="how it receives and reads messages",
        call="",
        body=_message_settings,
        notice="Saved.",
        notifies=True,
    ),
    PhoneActionRow(
        f"{CHAT_PATH}/block",
        does="block or unblock the business",
        call="block",
        body=_flags("blocks"),
        notice=_choose_notice("blocks", "Blocked. The business is not notified.", "Unblocked."),
    ),
    PhoneActionRow(
        f"{CHAT_PATH}/report",
        does="report the business",
        call="report",
        body=_flags("blocks"),
        notice="Reported. The business is not notified.",
        notifies=True,
    ),
    PhoneActionRow(
        f"{CHAT_PATH}/marketing",
        does="stop or resume marketing",
        call="marketing",
        body=_flags("wants"),
        notice=_choose_notice(
            "wants", "Marketing resumed. The business is notified.", "Marketing stopped. The business is notified."
        ),
        notifies=True,
    ),
    PhoneActionRow(f"{ITEM_PATH}/read", "read the chat of a message", "read", empty_body, "Read."),
    PhoneActionRow(f"{ITEM_PATH}/tap", "tap a button", "tap", _tap, "Tapped."),
    PhoneActionRow(
        f"{ITEM_PATH}/respond",
        does="submit a flow",
        call="respond",
        body=lambda fields: {"response": _decode_object(fields, "response")},
        notice="Submitted.",
    ),
    PhoneActionRow(
        f"{ITEM_PATH}/order",
        does="send an order",
        call="messages",
        body=lambda fields: {"type": "order", "order": _decode_object(fields, "order")},
        notice="Ordered.",
    ),
    PhoneActionRow(
        f"{ITEM_PATH}/pay",
        does="pay an order, or fail the payment",
        call="pay",
        body=_payment,
        notice=lambda body: _PAYMENT_NOTICES[body["status"]],
    ),
    PhoneActionRow(
        f"{ITEM_PATH}/location",
        does="respond to a request for a location",
        call="messages",
        body=lambda fields: {"type": "location", "location": parse_location(fields)},
        notice="Sent.",
    ),
)
