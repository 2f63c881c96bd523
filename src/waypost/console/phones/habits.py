"""How a phone behaves: whether it is online, when it reads, what is the matter with it, whom its owner has blocked."""

from typing import Any, Final

import msgspec
from starlette.responses import JSONResponse, Response

from waypost.console.desk import Desk
from waypost.console.not_there import NotMeant
from waypost.console.phones.acting import chat_of, hand_of
from waypost.console.phones.looks import item_at
from waypost.console.phones.places import Place, Places, needed
from waypost.console.visit import Visit

_MOST_S: Final = 7 * 24 * 3600


async def go_offline(desk: Desk, visit: Visit) -> Response:
    """Switch the phone off or on; what has waited arrives then."""
    hand = hand_of(desk, visit)
    is_offline = await visit.flag("is_offline")
    await hand.do("", {"is_offline": is_offline}, "PUT")
    return hand.done("The phone is offline." if is_offline else "The phone is back online.")


async def change_owner(desk: Desk, visit: Visit) -> Response:
    """The owner's name, user name and user id, and whether businesses see the number."""
    hand = hand_of(desk, visit)
    name = (await visit.field("name")).strip()
    if not name:
        raise NotMeant("A phone's owner has a name.", "Type one.")
    wish = {
        "name": name[:256],
        "username": (await visit.field("username")).strip().lstrip("@"),
        "user_id": (await visit.field("user_id")).strip(),
        "shows_number": await visit.flag("shows_number"),
    }
    await hand.do("", wish, "PUT")
    return hand.done("Saved.", tells=True)


async def change_habits(desk: Desk, visit: Visit) -> Response:
    """When it gets and reads messages, and what is the matter with it."""
    hand = hand_of(desk, visit)
    wish: dict[str, Any] = {
        "condition": await visit.field("condition"),
        "deliver_after_ms": await _ms(visit, "deliver_after_s"),
        "sends_read_receipts": await visit.flag("sends_read_receipts"),
        "has_chat_open": await visit.flag("has_chat_open"),
        "read_after_ms": await _ms(visit, "read_after_s") if await visit.flag("reads_itself") else None,
    }
    await hand.do("", wish, "PUT")
    return hand.done("Saved.", tells=True)


async def follow_script(desk: Desk, visit: Visit) -> Response:
    """Give the phone a script of its own; an empty one is none."""
    hand = hand_of(desk, visit)
    text = (await visit.field("script")).strip() or "[]"
    try:
        script: object = msgspec.json.decode(text)  # which takes no half characters
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise NotMeant(f"The script cannot be read: {error}.", "It is a JSON list of steps.") from None
    if not isinstance(script, list):
        raise NotMeant("The script is not a list.", "It is a JSON list of steps.")
    seed = (await visit.field("seed")).strip()[:64]
    await hand.do("", {"script": script, "seed": seed}, "PUT")
    said = "The script is followed from the next message on." if script else "There is no script."
    return hand.done(said, tells=True)


async def move(desk: Desk, visit: Visit) -> Response:
    """The owner takes another number; the businesses of his chats are told."""
    hand = hand_of(desk, visit)
    after = needed(await visit.field("to"))
    await hand.do("number", {"to": after})
    desk.parts.pulse.beat()
    address = Places((Place(hand.phone), Place(after))).address
    if visit.is_quiet:
        return JSONResponse({"to": address})
    return desk.go(address, f"The owner of {hand.phone} now has {after}.", remedy="Both are shown.")


async def block(desk: Desk, visit: Visit) -> Response:
    """Block the business, or take that back."""
    hand, app = hand_of(desk, visit), chat_of(visit)
    blocks = await visit.flag("blocks")
    await hand.do("block", {"to": app.phone_number, "blocks": blocks})
    return hand.done("Blocked. The business is not told." if blocks else "Unblocked.", app.phone_number)


async def report_chat(desk: Desk, visit: Visit) -> Response:
    """Report the business for spam, and perhaps block it as well."""
    hand, app = hand_of(desk, visit), chat_of(visit)
    await hand.do("report", {"to": app.phone_number, "blocks": await visit.flag("blocks")})
    return hand.done("Reported. The business is not told.", app.phone_number, tells=True)


async def want_marketing(desk: Desk, visit: Visit) -> Response:
    """Stop the business's marketing, or take it again; the business is told."""
    hand, app = hand_of(desk, visit), chat_of(visit)
    wants = await visit.flag("wants")
    await hand.do("marketing", {"to": app.phone_number, "wants": wants})
    said = "Marketing is welcome again." if wants else "Marketing is stopped."
    return hand.done(f"{said} The business is told.", app.phone_number, tells=True)


async def read(desk: Desk, visit: Visit) -> Response:
    """Read the chat that a message is in: whoever looks at it has read it."""
    hand = hand_of(desk, visit)
    app, item = await item_at(desk, visit, hand.phone, str(visit.path["position"]))
    await hand.do("read", {"message_id": item["wamid"]})
    return hand.done("Read.", app.phone_number)


async def _ms(visit: Visit, name: str) -> int | None:
    """A time in seconds of a form, as milliseconds; None where it is left to the settings."""
    text = (await visit.field(name)).strip().replace(",", ".")
    if not text:
        return None
    try:
        time_s = float(text)
    except ValueError:
        time_s = -1
    if not 0 <= time_s <= _MOST_S:
        raise NotMeant(f"“{text[:20]}” is not a time.", "Give seconds, from 0 to 604800.")
    return round(time_s * 1000)
