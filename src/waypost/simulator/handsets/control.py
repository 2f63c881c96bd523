"""Control API calls that show and change phones, their inboxes and chats."""

from collections.abc import Sequence
from typing import Annotated, Any, Final

from msgspec import UNSET, Meta, Struct, UnsetType

from waypost.base.written_numbers import encode_json
from waypost.simulator.apis.control_error import ControlApiError
from waypost.simulator.apis.control_operations import ControlBody, ControlOperations, present_members, view_of
from waypost.simulator.apis.field_types import USER_ID, DelayMs, Name, Position, WaitMs, accepts
from waypost.simulator.handsets import reachability
from waypost.simulator.handsets.actions import SpamReport, list_spam_reports
from waypost.simulator.handsets.inboxes import (
    PHONES_WITHOUT_CHATS,
    MessageView,
    list_active_phones,
    list_chats,
    list_messages,
    list_quoted,
    message_view,
    wait_for_messages,
    wait_for_new_message,
)
from waypost.simulator.messages.delivery import PHONE_CONDITIONS
from waypost.simulator.state.control_parameters import PathPhone
from waypost.simulator.state.fleets import find_fleet
from waypost.simulator.state.phone import READ_ON_REQUEST, SimulatedPhone
from waypost.simulator.state.phones import (
    PHONES,
    delivery_delays_ms,
    fill_user_id,
    find_number,
    find_phone,
    find_phone_by_user_id,
    window_until_ms,
)
from waypost.simulator.state.script_steps import ScriptStep, read_steps
from waypost.simulator.state.scripts import (
    StepCountView,
    count_steps,
    find_own_script,
    load_received_counts,
    reset_script,
    script_owner,
)
from waypost.simulator.state.simulator_state import SimulatorState, Transaction
from waypost.simulator.storage.tables.messages import find_by_wamids
from waypost.simulator.storage.tables.phone_plans import count_waiting

MAX_RANKED_PHONES: Final = 2_000
"""With more phones outside fleets, only those that the newest messages belong to are listed."""

Seed = Annotated[str, Meta(max_length=64)] | int
Script = Annotated[tuple[Any, ...], accepts("a list of steps")]
_CONDITION = accepts(f"empty, {', '.join(PHONE_CONDITIONS)}", f"^({'|'.join(PHONE_CONDITIONS)})?$")
_NULL_IS_SETTING = accepts("0 to 604800000, or null: the value of the settings")
_NULL_IS_MANUAL = accepts("0 to 604800000, or null: only by a call that reads")
_WHATSAPP_ID = accepts("8 to 15 digits, the first not 0, or empty: the number", "^([1-9][0-9]{7,14})?$")
_OWN_ID = accepts("as in US.1349, or empty: the number's own", f"{USER_ID}|^$")
_PARENT_ID = accepts("as in US.ENT.1349, or empty: none", r"^[A-Z]{2}\.ENT\.[0-9A-Za-z]{1,128}$|^$")
_SHOWS_NUMBER = accepts("true or false; false needs a user_id")


operation = ControlOperations()


class PhoneSettingsBody(ControlBody, frozen=True, kw_only=True):
    """Settings of a phone's behaviour; absent members stay unchanged."""

    deliver_after_ms: Annotated[DelayMs | None, _NULL_IS_SETTING] | UnsetType = UNSET
    read_after_ms: Annotated[DelayMs | None, _NULL_IS_MANUAL] | UnsetType = UNSET
    condition: Annotated[str, _CONDITION] | UnsetType = UNSET
    sends_read_receipts: bool | UnsetType = UNSET
    has_chat_open: bool | UnsetType = UNSET


class PhoneBody(PhoneSettingsBody, frozen=True, kw_only=True):
    """A phone's name, settings and identity; absent members stay unchanged."""

    name: Name | UnsetType = UNSET
    wa_id: Annotated[str, _WHATSAPP_ID] | UnsetType = UNSET
    user_id: Annotated[str, _OWN_ID] | UnsetType = UNSET
    username: Annotated[str, Meta(max_length=64)] | UnsetType = UNSET
    parent_user_id: Annotated[str, _PARENT_ID] | UnsetType = UNSET
    shows_number: Annotated[bool, _SHOWS_NUMBER] | UnsetType = UNSET
    is_offline: bool | UnsetType = UNSET
    script: Script | UnsetType = UNSET
    seed: Seed = ""


class PhoneView(Struct, frozen=True, kw_only=True):
    """A phone with its effective settings; a `read_after_ms` of null: only by a call that reads."""

    phone: str
    name: str
    deliver_after_ms: int
    read_after_ms: int | None
    wa_id: str
    user_id: str
    username: str
    shows_number: bool
    parent_user_id: str
    condition: str
    sends_read_receipts: bool
    has_chat_open: bool
    is_offline: bool
    has_blocked: tuple[str, ...]
    stopped_marketing_of: tuple[str, ...]
    typing: list[str]


class PhoneDetails(PhoneView, frozen=True, kw_only=True):
    """A phone with its fleet and script, the reports of its owner, and how many messages wait for it."""

    fleet: str | None
    script: list[dict[str, Any]]
    seed: str
    steps: list[StepCountView]
    reports: list[SpamReport]
    waiting: int


class PhoneInbox(PhoneDetails, frozen=True, kw_only=True):
    """A phone with the messages that it shows, and those that they reply to."""

    messages: list[MessageView]
    quoted: list[MessageView]


class ActivePhone(PhoneView, frozen=True, kw_only=True):
    """A phone with its newest message."""

    fleet: str | None
    last: MessageView | None
    unread: int


class ChatView(Struct, frozen=True, kw_only=True):
    """The chat of a phone with a business number."""

    phone_number_id: str
    phone_number: str
    name: str
    last: MessageView | None
    unread: int
    window_until_ms: int | None


@operation("GET", "/control/phones", phones=list[PhoneView], next=str | None)
async def list_phones(
    state: SimulatorState, *, after: str = "", limit: Annotated[int, Meta(ge=0, le=10_000)] = 1000, has_chats: str = ""
) -> dict[str, Any]:
    """Return the phones, in order of their digits; paged by `after` and `limit`.

    Includes the phones of a fleet only if one was changed individually. With `has_chats=false` only
    phones without messages.
    """
    if has_chats == "false":
        phones = await state.store.column(PHONES_WITHOUT_CHATS, after=after, limit=limit + 1)
    else:
        phones = sorted(digits for digits in state.values(PHONES) if digits > after)
    page = [phone_view(state, find_phone(state, digits)) for digits in phones[:limit]]
    return {"phones": page, "next": phones[limit - 1] if len(phones) > limit else None}


@operation("GET", "/control/phones/{phone}")
async def show_phone(
    state: SimulatorState,
    phone: PathPhone,
    *,
    after: Annotated[Position | None, accepts("0 to 4611686018427387904")] = None,
    before: Position = 2**62,
    limit: Annotated[int, Meta(ge=0, le=1000)] = 100,
    wait_ms: WaitMs = 0,
    phone_number_id: tuple[str, ...] = (),
) -> PhoneInbox:
    """Return a phone and its inbox, newest message last.

    `after` and `before` are exclusive positions; one or several `phone_number_id` select the chats
    with those business numbers. `quoted` has the messages that replies refer to, if they are not in
    the list. With `wait_ms` the response waits for a message after `after`; without `after`, for an unread
    or a new one.
    """
    if wait_ms and after is None:
        await wait_for_new_message(state, phone, wait_ms=wait_ms)
    elif wait_ms:
        await wait_for_messages(state, phone, wait_ms=wait_ms, is_complete=bool, after=after or 0)
    items = await list_messages(state, phone, after=after or 0, limit=limit, before=before, number_ids=phone_number_id)
    quoted = await list_quoted(state, phone, items)
    now_ms = state.clock.now_ms()
    return view_of(
        PhoneInbox,
        await phone_details(state, phone),
        messages=[message_view(item, now_ms) for item in items],
        quoted=[message_view(item, now_ms) for item in quoted],
    )


@operation("GET", "/control/messages/{wamid}")
async def show_message(state: SimulatorState, wamid: str) -> MessageView:
    """Return one message by the operator's id, as the inbox of its phone shows it."""
    found = await find_by_wamids(state.store, [wamid])
    if not found:
        accepted = "the wamid of a message in GET /control/phones/{phone}"
        raise ControlApiError("wamid", "is of no message", accepted, status=404)
    return message_view(found[0], state.clock.now_ms())


@operation("GET", "/control/phones/{phone}/chats", phone=str, chats=list[ChatView])
async def show_chats(
    state: SimulatorState, phone: PathPhone, *, phone_number_id: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Return a phone's chats, the newest first, then the business numbers without a chat.

    With one or several `phone_number_id` only those.
    """
    number_ids = phone_number_id
    now_ms = state.clock.now_ms()
    chats = {chat.phone_number_id: chat for chat in await list_chats(state, phone)}
    others = [number_id for number_id in state.accounts.numbers if number_id not in chats]
    views = [
        view_of(
            ChatView,
            number,
            last=message_view(chat.last_message, now_ms) if chat else None,
            unread=chat.unread if chat else 0,
            window_until_ms=window_until_ms(state, number.phone_number_id, phone),
        )
        for number_id in (*chats, *others)
        if (not number_ids or number_id in number_ids) and (number := state.accounts.numbers.get(number_id)) is not None
        for chat in (chats.get(number_id),)
    ]
    return {"phone": phone, "chats": views}


@operation("GET", "/control/chats", phones=list[ActivePhone])
async def list_active(
    state: SimulatorState,
    *,
    phone_number_id: tuple[str, ...] = (),
    limit: Annotated[int, Meta(ge=0, le=500)] = 50,
    fleets: str = "",
) -> dict[str, Any]:
    """Return phones with their newest chat with one of these numbers, the most recently active first.

    With `fleets=false` without the phones of fleets, except those that were changed individually.
    """
    number_ids = phone_number_id or list(state.accounts.numbers)
    now_ms = state.clock.now_ms()
    views: list[ActivePhone] = []
    for phone in await _active_phones(state, number_ids, limit, with_fleets=fleets != "false"):
        fleet = find_fleet(state, phone)
        chats = [chat for chat in await list_chats(state, phone) if chat.phone_number_id in number_ids]
        views.append(
            view_of(
                ActivePhone,
                phone_view(state, find_phone(state, phone)),
                fleet=fleet.name if fleet else None,
                last=message_view(chats[0].last_message, now_ms) if chats else None,
                unread=sum(chat.unread for chat in chats),
            )
        )
    return {"phones": views}


async def _active_phones(
    state: SimulatorState, number_ids: Sequence[str], limit: int, *, with_fleets: bool
) -> list[str]:
    if with_fleets:
        return await list_active_phones(state, number_ids, limit=limit)
    known = state.values(PHONES)
    if len(known) <= MAX_RANKED_PHONES:
        return await list_active_phones(state, number_ids, limit=limit, among=known)
    active = await list_active_phones(state, number_ids, limit=MAX_RANKED_PHONES)
    return [phone for phone in active if phone in known][:limit]


@operation("PUT", "/control/phones/{phone}")
async def change_phone(state: SimulatorState, phone: PathPhone, body: PhoneBody) -> PhoneDetails:
    """Set a phone's name, settings, identity, condition, script and online state."""
    apart = ("is_offline", "script", "seed")  # what is stored of these follows below
    changes = {name: value for name, value in _stored_settings(body).items() if name not in apart}
    _check_identity(state, phone, changes)
    if changes.get("shows_number") is False and find_phone(state, phone).shows_number:
        chats = await list_chats(state, phone)  # until now every contact was by the number
        last_ms = {chat.phone_number_id: chat.last_message.at_ms for chat in chats}
        changes["number_known"] = tuple(sorted(last_ms.items()))
    steps: tuple[ScriptStep, ...] | None = None
    if body.script is not UNSET:
        steps = read_steps(body.script)
        script = encode_json([step.raw for step in steps]).decode() if steps else ""
        changes |= {"seed": str(body.seed) if steps else "", "script": script}
        if steps:
            await load_received_counts(state, phone, phone)
    works = [reachability.change_phone(state, phone, changes)]
    if body.is_offline is not UNSET:
        change = reachability.go_offline if body.is_offline else reachability.go_online
        works.append(change(state, phone))

    def write(transaction: Transaction) -> None:
        if steps is not None:
            reset_script(transaction, script_owner(phone), len(steps))
        for work in works:
            work(transaction)

    await state.transact(write)
    return await phone_details(state, phone)


def phone_settings(body: PhoneSettingsBody) -> dict[str, Any]:
    """Return the behaviour settings of a body, as they are stored."""
    return {
        name: value for name, value in _stored_settings(body).items() if name in PhoneSettingsBody.__struct_fields__
    }


def _stored_settings(body: PhoneSettingsBody) -> dict[str, Any]:
    members = present_members(body)
    if members.get("read_after_ms", 0) is None:
        members["read_after_ms"] = READ_ON_REQUEST
    return members


def phone_view(state: SimulatorState, phone: SimulatedPhone) -> PhoneView:
    """Return a phone with its effective settings."""
    deliver_after_ms, read_after_ms = delivery_delays_ms(state, phone)
    return view_of(
        PhoneView,
        fill_user_id(state, phone),
        deliver_after_ms=deliver_after_ms,
        read_after_ms=read_after_ms,
        typing=state.delivery_signals.typing_number_ids(phone.phone),
    )


async def phone_details(state: SimulatorState, phone: str) -> PhoneDetails:
    """Return a phone with its script, reports and pending actions."""
    fleet = find_fleet(state, phone)
    script = find_own_script(state, phone)
    return view_of(
        PhoneDetails,
        phone_view(state, find_phone(state, phone)),
        fleet=fleet.name if fleet else None,
        script=[step.raw for step in script.steps] if script else [],
        seed=script.seed if script else "",
        steps=await count_steps(state, script.owner, script.steps) if script else [],
        reports=await list_spam_reports(state, phone),
        waiting=await count_waiting(state.store, phone, phone),
    )


def _check_identity(state: SimulatorState, phone: str, changes: dict[str, Any]) -> None:
    known = find_phone(state, phone)
    user_id = changes.get("user_id", known.user_id)
    has_own = bool(user_id) or state.settings.value.user_ids
    if not has_own and not changes.get("shows_number", known.shows_number):
        rule = "a phone that shows no number needs a user_id"
        raise ControlApiError("shows_number", rule, "a user_id as in US.1349, or shows_number: true")
    wa_id = changes.get("wa_id", "")
    wa_id_holder = find_number(state, wa_id)
    if wa_id and wa_id_holder not in (wa_id, phone):
        raise ControlApiError("wa_id", f"belongs to {wa_id_holder}", "one not in use", status=409)
    if wa_id == phone:
        changes["wa_id"] = ""
    holder = find_phone_by_user_id(state, user_id) if user_id else None
    if holder is not None and holder.phone != phone:
        raise ControlApiError("user_id", f"belongs to {holder.phone}", "one not in use", status=409)
