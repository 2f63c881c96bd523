"""What a person does with one message: taps, answers, orders, reacts, reports."""

from typing import Any, Final, cast

import msgspec
from starlette.responses import Response

from waypost.console.desk import Desk
from waypost.console.not_there import NotMeant
from waypost.console.phones.acting import Hand, hand_of
from waypost.console.phones.looks import item_at
from waypost.console.phones.writing import card_of, place_of, send
from waypost.console.visit import Visit
from waypost.domain.app import App

_MOST_EMOJI: Final = 64
_PAYMENTS: Final = {"captured": "Paid.", "pending": "Pending.", "failed": "Failed."}
_READABLE: Final = "Fill the form in and send it again."


async def tap(desk: Desk, visit: Visit) -> Response:
    """Tap a button or a row of a list, by its place or its text, perhaps on a card."""
    hand, app, item = await _meant(desk, visit)
    wish: dict[str, Any] = {"message_id": item["wamid"]}
    for name in ("index", "card"):
        text = await visit.field(name)
        if text.isascii() and text.isdigit() and len(text) < 4:
            wish[name] = int(text)
    text = await visit.field("text")
    if text:
        wish["text"] = text
    if await visit.flag("not_requested"):
        wish = {"message_id": item["wamid"], "not_requested": True}
    await hand.do("tap", wish)
    return hand.done("Tapped.", app.phone_number)


async def answer(desk: Desk, visit: Visit) -> Response:
    """Send a form, an address or a choice back."""
    hand, app, item = await _meant(desk, visit)
    response = _read(await visit.field("response", "{}"))
    await hand.do("answer", {"message_id": item["wamid"], "response": response})
    return hand.done("Sent back.", app.phone_number)


async def order(desk: Desk, visit: Visit) -> Response:
    """Send a basket of a catalog's products."""
    hand, app, item = await _meant(desk, visit)
    basket = _read(await visit.field("order", "{}"))
    await send(hand, app.phone_number, {"type": "order", "order": basket, "context_id": item["wamid"]})
    return hand.done("Ordered.", app.phone_number)


async def pay(desk: Desk, visit: Visit) -> Response:
    """Pay an order, leave its payment pending, or let it fail."""
    hand, app, item = await _meant(desk, visit)
    status = await visit.field("status", "captured")
    if status not in _PAYMENTS:
        raise NotMeant("A payment cannot end like that.", f"Choose {', '.join(_PAYMENTS)}.")
    await hand.do("pay", {"message_id": item["wamid"], "status": status})
    return hand.done(_PAYMENTS[status], app.phone_number)


async def share_place(desk: Desk, visit: Visit) -> Response:
    """Answer a request for a place."""
    hand, app, item = await _meant(desk, visit)
    location = await place_of(visit)
    wish = {"type": "location", "location": location, "context_id": item["wamid"]}
    await send(hand, app.phone_number, wish)
    return hand.done("Sent.", app.phone_number)


async def share_contact(desk: Desk, visit: Visit) -> Response:
    """Answer a request for contact data: the owner's own card."""
    hand, app, item = await _meant(desk, visit)
    name = str((await hand.state())["name"])
    card = card_of(name, f"+{hand.phone}", "")
    wish = {"type": "contacts", "contacts": [card], "context_id": item["wamid"]}
    await send(hand, app.phone_number, wish)
    return hand.done("Sent.", app.phone_number)


async def react(desk: Desk, visit: Visit) -> Response:
    """React to a message; without an emoji the reaction is taken away."""
    hand, app, item = await _meant(desk, visit)
    emoji = (await visit.field("emoji")).strip()
    if len(emoji.encode()) > _MOST_EMOJI or any(sign.isascii() and sign.isalnum() for sign in emoji):
        raise NotMeant("That is not an emoji.", "Choose one, or paste a single emoji.")
    reaction = {"message_id": item["wamid"]} | ({"emoji": emoji} if emoji else {})
    await send(hand, app.phone_number, {"type": "reaction", "reaction": reaction})
    return hand.done("Reacted.", app.phone_number)


async def _meant(desk: Desk, visit: Visit) -> tuple[Hand, App, dict[str, Any]]:
    hand = hand_of(desk, visit)
    app, item = await item_at(desk, visit, hand.phone, str(visit.path["position"]))
    return hand, app, item


def _read(text: str) -> dict[str, Any]:
    try:
        value: object = msgspec.json.decode(text or "{}")  # which takes no half characters
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise NotMeant("What was filled in cannot be read.", _READABLE) from None
    if not isinstance(value, dict):
        raise NotMeant("What was filled in cannot be read.", _READABLE)
    return cast("dict[str, Any]", value)
