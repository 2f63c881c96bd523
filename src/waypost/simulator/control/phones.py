"""The control door's calls about phones: look, name, read."""

from collections.abc import Callable
from typing import Any, Final

import msgspec
from starlette.requests import Request

from waypost.simulator.accounts.accounts import Number
from waypost.simulator.control.guard import ControlRefused
from waypost.simulator.control.shapes import PhoneShape, ReadShape, given, read_shape
from waypost.simulator.handsets.inboxes import item_view
from waypost.simulator.parts import Parts
from waypost.simulator.phones.phone import ONLY_WHEN_TOLD, Phone
from waypost.simulator.phones.phones import phone_digits
from waypost.simulator.phones.script_steps import NotScripted, Step, read_steps
from waypost.simulator.store import Statement
from waypost.simulator.tables.messages import Message
from waypost.simulator.tables.phone_plans import waiting_count

_INBOX: Final = 100


async def list_phones(parts: Parts, request: Request) -> dict[str, Any]:
    """Every phone, in the order of their digits; paged by `after` and `limit`.

    Of a fleet only those on which something has changed alone. With `has_chats=false` only those
    that have no message from or to anybody.
    """
    after = request.query_params.get("after", "")
    limit = whole_number(request, "limit", default=1000, at_most=10_000)
    if request.query_params.get("has_chats") == "false":
        found = await parts.chats.without(after=after, at_most=limit + 1)
        shown = [phone_view(parts, parts.phones.known(digits)) for digits in found[:limit]]
        return {"phones": shown, "next": found[limit - 1] if len(found) > limit else None}
    phones = [parts.phones.all[digits] for digits in sorted(parts.phones.all) if digits > after]
    shown = [phone_view(parts, phone) for phone in phones[:limit]]
    return {"phones": shown, "next": shown[-1]["phone"] if len(phones) > limit else None}


async def show_phone(parts: Parts, request: Request) -> dict[str, Any]:
    """A phone and its inbox, newest last.

    With `after` and `before` only what is beyond and below these positions; with one or several
    `phone_number_id` only the chats with those business numbers. What replies refer to and is not
    among the messages is in `quoted`. With `wait_ms` the answer waits until there is something beyond
    `after`.
    """
    phone = digits_of(request)
    after = whole_number(request, "after", default=0, at_most=2**62)
    limit = whole_number(request, "limit", default=_INBOX, at_most=1000)
    wait_ms = whole_number(request, "wait_ms", default=0, at_most=60_000)
    if wait_ms:
        await parts.inboxes.wait_for(phone, wait_ms=wait_ms, found=bool, after=after)
    items = await parts.inboxes.inbox(
        phone,
        after=after,
        at_most=limit,
        before=whole_number(request, "before", default=2**62, at_most=2**62),
        number_ids=request.query_params.getlist("phone_number_id"),
    )
    quoted = await parts.inboxes.quoted(phone, items)
    now_ms = parts.clock.now_ms()
    view = await whole_view(parts, parts.phones.known(phone))
    return {
        **view,
        "messages": [item_view(item, now_ms) for item in items],
        "quoted": [item_view(item, now_ms) for item in quoted],
    }


async def show_chats(parts: Parts, request: Request) -> dict[str, Any]:
    """What a phone's list of chats shows, the newest first; then the business numbers without a chat.

    With one or several `phone_number_id` only those.
    """
    phone = digits_of(request)
    wanted = request.query_params.getlist("phone_number_id")
    now_ms = parts.clock.now_ms()
    begun = {chat.phone_number_id: chat for chat in await parts.chats.of(phone)}
    others = [number_id for number_id in parts.accounts.numbers if number_id not in begun]
    shown = [
        {
            "phone_number_id": number.phone_number_id,
            "phone_number": number.phone_number,
            "name": number.name,
            "last": item_view(chat.last, now_ms) if chat else None,
            "unread": chat.unread if chat else 0,
            "window_until_ms": parts.phones.window_until_ms(number.phone_number_id, phone),
        }
        for number_id in (*begun, *others)
        if (not wanted or number_id in wanted) and (number := parts.accounts.numbers.get(number_id)) is not None
        for chat in (begun.get(number_id),)
    ]
    return {"phone": phone, "chats": shown}


async def list_active(parts: Parts, request: Request) -> dict[str, Any]:
    """Phones with their newest chat with one of these numbers, the most active of late first."""
    wanted = request.query_params.getlist("phone_number_id") or list(parts.accounts.numbers)
    limit = whole_number(request, "limit", default=50, at_most=500)
    now_ms = parts.clock.now_ms()
    shown: list[dict[str, Any]] = []
    for phone in await parts.chats.active(wanted, at_most=limit):
        chats = [chat for chat in await parts.chats.of(phone) if chat.phone_number_id in wanted]
        shown.append(
            {
                **phone_view(parts, parts.phones.known(phone)),
                "last": item_view(chats[0].last, now_ms) if chats else None,
                "unread": sum(chat.unread for chat in chats),
            }
        )
    return {"phones": shown}


async def change_phone(parts: Parts, request: Request) -> dict[str, Any]:
    """Set a phone's name, habits, identity, condition and script, and whether it is online."""
    phone = digits_of(request)
    changes = given(read_shape(PhoneShape, await request.body()))
    if changes.get("read_after_ms", 0) is None:
        changes["read_after_ms"] = ONLY_WHEN_TOLD
    _check_identity(parts, phone, changes)
    seed = str(changes.pop("seed", ""))
    steps = steps_of(changes.pop("script")) if "script" in changes else None
    is_offline = changes.pop("is_offline", None)
    also: list[Statement] = []
    if steps is not None:
        script = msgspec.json.encode([step.raw for step in steps]).decode() if steps else ""
        changes |= {"seed": seed if steps else "", "script": script}
        also = await parts.scripts.begin(phone, steps)
    await parts.absences.change(phone, changes, also)
    if is_offline is not None:
        await (parts.absences.leave if is_offline else parts.absences.come_back)(phone)
    return await whole_view(parts, parts.phones.known(phone))


async def read_messages(parts: Parts, request: Request) -> dict[str, Any]:
    """A phone reads everything in the chat of one message, or in all its chats."""
    phone = digits_of(request)
    wish = read_shape(ReadShape, await request.body())
    check_online(parts, phone)
    numbers: list[Number] = list(parts.accounts.numbers.values())
    if wish.message_id is not None:
        item = await arrived(parts, phone, lambda item: item.wamid == wish.message_id, wish.message_id, wish.wait_ms)
        numbers = [parts.accounts.numbers[item.phone_number_id]]
    elif wish.wait_ms:
        await parts.inboxes.wait_for(phone, wait_ms=wish.wait_ms, found=_has_unread(parts))
    return {"read": await parts.handsets.read(phone, numbers)}


def phone_view(parts: Parts, phone: Phone) -> dict[str, Any]:
    """A phone as the door shows it, with the habits that apply; null: only when told."""
    phone = parts.phones.seen(phone)
    deliver_after_ms, read_after_ms = parts.phones.habits_ms(phone)
    return {
        "phone": phone.phone,
        "name": phone.name,
        "deliver_after_ms": deliver_after_ms,
        "read_after_ms": read_after_ms,
        "user_id": phone.user_id,
        "username": phone.username,
        "shows_number": phone.shows_number,
        "condition": phone.condition,
        "sends_read_receipts": phone.sends_read_receipts,
        "has_chat_open": phone.has_chat_open,
        "is_offline": phone.is_offline,
        "stopped_marketing_of": phone.stopped_marketing_of,
        "has_blocked": phone.has_blocked,
        "typing": parts.arrivals.typing_to(phone.phone),
    }


async def whole_view(parts: Parts, phone: Phone) -> dict[str, Any]:
    """A phone with what it follows, reports and waits for."""
    fleet = parts.fleets.of(phone.phone)
    script = parts.scripts.own(phone.phone)
    return {
        **phone_view(parts, phone),
        "fleet": fleet.name if fleet else None,
        "script": [step.raw for step in script.steps] if script else [],
        "seed": script.seed if script else "",
        "steps": await parts.scripts.counts(script.owner, script.steps) if script else [],
        "reports": await parts.feedback.reports(phone.phone),
        "waiting": await waiting_count(parts.store, phone.phone, phone.phone),
    }


def steps_of(script: list[Any]) -> tuple[Step, ...]:
    """The steps of a script.

    Raises:
        ControlRefused: 400, for the first thing that is wrong in it.
    """
    try:
        return read_steps(script)
    except NotScripted as wrong:
        raise ControlRefused(400, field=wrong.field, rule=wrong.rule, accepted=wrong.accepted) from wrong


def check_online(parts: Parts, phone: str) -> None:
    """Refuse what only a phone that is online can do.

    Raises:
        ControlRefused: 409.
    """
    if parts.phones.known(phone).is_offline:
        raise ControlRefused(
            409, field="phone", rule="is offline", accepted=f"PUT /control/phones/{phone} with is_offline: false first"
        )


def _check_identity(parts: Parts, phone: str, changes: dict[str, Any]) -> None:
    known = parts.phones.known(phone)
    user_id = changes.get("user_id", known.user_id)
    has_own = bool(user_id) or parts.settings.value.user_ids
    if not has_own and not changes.get("shows_number", known.shows_number):
        raise ControlRefused(
            400,
            field="shows_number",
            rule="a phone that shows no number needs a user_id",
            accepted="a user_id as in US.1349, or shows_number: true",
        )
    holder = parts.phones.of_user_id(user_id) if user_id else None
    if holder is not None and holder.phone != phone:
        raise ControlRefused(409, field="user_id", rule=f"belongs to {holder.phone}", accepted="one not in use")


def digits_of(request: Request) -> str:
    """The phone that the path names.

    Raises:
        ControlRefused: it is not 8 to 15 digits.
    """
    digits = phone_digits(request.path_params["phone"])
    if digits is None:
        raise ControlRefused(400, field="phone", rule="is not a phone number", accepted="8 to 15 digits")
    return digits


def whole_number(request: Request, name: str, *, default: int, at_most: int) -> int:
    """A whole number of the query.

    Raises:
        ControlRefused: it is none, or out of range.
    """
    text = request.query_params.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 20) or int(text) > at_most:
        raise ControlRefused(400, field=name, rule="is not a whole number in range", accepted=f"0 to {at_most}")
    return int(text)


async def arrived(
    parts: Parts, phone: str, is_meant: Callable[[Message], bool], wamid: str | None, wait_ms: int
) -> Message:
    """The newest message that is meant, as soon as it has arrived.

    Raises:
        ControlRefused: there is none when the time is over.
    """
    if wamid is not None and not wait_ms:
        items = [item] if (item := await parts.inboxes.item(phone, wamid)) else []
        items = [one for one in items if _has_arrived(one, parts.clock.now_ms())]
    else:
        items = await parts.inboxes.wait_for(phone, wait_ms=wait_ms, found=lambda items: any(map(is_meant, items)))
    meant = [item for item in items if is_meant(item)]
    if not meant:
        raise ControlRefused(
            404,
            field="message_id",
            rule="no such message has arrived on this phone",
            accepted="a wamid of its inbox, or none for the newest with buttons; wait_ms for one that is on its way",
        )
    return meant[-1]


def _has_arrived(item: Message, now_ms: int) -> bool:
    delivered_ms = item.delivered_ms
    return bool(item.is_inbound) or (delivered_ms is not None and delivered_ms <= now_ms)


def _has_unread(parts: Parts) -> Callable[[list[Message]], bool]:
    def has_unread(items: list[Message]) -> bool:
        now_ms = parts.clock.now_ms()
        return any(not item.is_inbound and (item.read_ms is None or item.read_ms > now_ms) for item in items)

    return has_unread
