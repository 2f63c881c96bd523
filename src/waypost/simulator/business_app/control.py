"""Control API calls for a business's own app: its connection, messages, contacts, linked devices and history."""

from collections.abc import Callable
from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import replace
from starlette.requests import Request

from waypost.base.invalid_values import accepted_by
from waypost.simulator.apis.control_error import ControlApiError
from waypost.simulator.apis.control_operations import (
    ControlBody,
    ControlOperations,
    ParameterReader,
    find,
    present_members,
    view_of,
)
from waypost.simulator.apis.field_types import Digits, Id, Name, Text
from waypost.simulator.business_app.connection import (
    DISCONNECT_RULES,
    NumberNotConnectable,
    connect_number,
    disconnect_number,
    save_business_app,
)
from waypost.simulator.business_app.contacts import delete_contact, save_contact
from waypost.simulator.business_app.history import (
    HISTORY,
    MEDIA_TYPES,
    UNSUPPORTED,
    HistoryMessage,
    HistoryPlan,
    HistoryStatus,
    add_generated_contacts,
    generate_history,
    make_message,
    replace_history,
)
from waypost.simulator.business_app.messages import change_from_app, send_from_app
from waypost.simulator.business_app.sync import count_waiting_webhooks, resume_syncs
from waypost.simulator.handsets.actions import build_phone_media
from waypost.simulator.handsets.inboxes import list_active_phones
from waypost.simulator.handsets.message_changes import build_edit, build_revoke
from waypost.simulator.handsets.phone_messages import PHONE_MEDIA_KINDS, PhoneMedia, PhoneMessage, build_message
from waypost.simulator.state.accounts import SHARED_THROUGHPUT, Number
from waypost.simulator.state.business_apps import (
    BUSINESS_APPS,
    BUSINESS_CONTACTS,
    DEFAULT_APP_VERSION,
    MAX_COMPANIONS,
    SYNC_WITHIN_MS,
    AppVersion,
    BusinessApp,
    BusinessContact,
    Companion,
    CompanionKind,
    Disconnection,
    DisconnectReason,
    Initiator,
    SyncOptions,
    SyncStepName,
    find_business_app,
)
from waypost.simulator.state.control_parameters import PathNumber, PathPhone
from waypost.simulator.state.phones import find_number
from waypost.simulator.state.records import SYNCS
from waypost.simulator.state.simulator_state import SimulatorState, Transaction
from waypost.simulator.storage.tables.messages import MESSAGES, SimulatedMessage, find_by_wamids

_APP: Final = "/control/numbers/{phone_number_id}/business-app"

HistoryType = Literal["text", "image", "video", "audio", "document", "sticker", "location", "contacts", "unsupported"]
AppMessageType = Literal[HistoryType, "reaction"]
MAX_GIVEN_MESSAGES: Final = 20_000
_COMPANION_ID_DIGITS: Final = 8
_MAX_CHATS: Final = 500
_SELECT_CHAT: Final = (
    "SELECT body FROM state WHERE kind=:kind AND owner=:owner AND body->>'$.phone'=:phone "
    "ORDER BY body->>'$.at_ms' DESC, position DESC LIMIT :limit"
)
_SELECT_NEWEST: Final = (  # of each chat: SQLite takes the other columns from the row with the maximum
    "SELECT body FROM (SELECT body, max(body->>'$.at_ms') AS at_ms FROM state WHERE kind=:kind AND owner=:owner "
    "GROUP BY body->>'$.phone') ORDER BY at_ms DESC LIMIT :limit"
)

operation = ControlOperations()


def _read_shared(state: SimulatorState, request: Request) -> Number:
    number_id = request.path_params["phone_number_id"]
    number = find(state.accounts.numbers, number_id, field="phone_number_id", rule="is no number")
    if find_business_app(state, number) is None:
        rule = "is not on the WhatsApp Business app"
        accepted = f"POST /control/numbers/{number_id}/business-app/connect first"
        raise ControlApiError("phone_number_id", rule, accepted, status=409)
    return number


PathSharedNumber = Annotated[Number, ParameterReader(_read_shared)]


class SyncProgressView(Struct, frozen=True):
    """A part of what the app has sent, and how many of its webhooks are still to be delivered."""

    name: SyncStepName
    webhooks: int
    count: int
    waiting: int


class BusinessAppView(Struct, frozen=True, kw_only=True):
    """The app of a number: its connection, devices, and what was requested of it."""

    phone_number_id: str
    waba_id: str
    phone_number: str
    name: str
    is_connected: bool
    app_version: str
    throughput: int
    shares_history: bool
    is_offline: bool
    onboarded_ms: int | None
    disconnects_ms: int | None
    disconnection: Disconnection | None
    companions: tuple[Companion, ...]
    sync: SyncOptions
    sync_until_ms: int | None
    requested_syncs: dict[str, int]
    waiting_syncs: tuple[str, ...]
    sync_progress: list[SyncProgressView]
    contacts: int
    history: int


class BusinessAppBody(ControlBody, frozen=True, kw_only=True):
    """Settings of an app; absent members stay unchanged."""

    app_version: AppVersion | UnsetType = UNSET
    shares_history: bool | UnsetType = UNSET
    is_offline: bool | UnsetType = UNSET
    sync: SyncOptions | UnsetType = UNSET


class AppMessageBody(ControlBody, frozen=True, kw_only=True):
    """A message that the business sends with its app, or a linked device; its content is named like its type."""

    to: Digits
    type: AppMessageType = "text"
    text: Text | None = None
    media: PhoneMedia | None = None
    location: dict[str, Any] | None = None
    contacts: list[dict[str, Any]] | None = None
    reaction: dict[str, Any] | None = None
    unsupported: dict[str, Any] | None = None
    context_id: Name | None = None
    companion_id: Name | None = None


class GivenMessage(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One message of the history; `media_id` is one of the number's, and its absence a small file."""

    phone: Digits
    is_own: bool = False
    at_ms: Annotated[int, Meta(ge=0, le=2**53)]
    type: HistoryType = "text"
    text: Text | None = None
    location: dict[str, Any] | None = None
    contacts: list[dict[str, Any]] | None = None
    media_id: Id | None = None
    status: HistoryStatus = "READ"


class AppMessageView(Struct, frozen=True, kw_only=True):
    """A message as the app shows it: of the history, or of the time since."""

    wamid: str
    sender: Literal["user", "business_app", "api"]
    type: str
    text: str
    at_ms: int
    state: str
    media: dict[str, Any] | None
    content: dict[str, Any]  # what the chat shows of it, as in a phone's inbox
    callback_data: str | None  # the id that the partner's API gave it
    context_id: str | None
    edited_ms: int | None
    revoked_ms: int | None


class AppChatView(Struct, frozen=True, kw_only=True):
    """A chat of the app with its newest message; `name` is that of the contact, or empty."""

    phone: str
    name: str
    last: AppMessageView


@operation("GET", "/control/business-apps", business_apps=list[BusinessAppView])
async def list_business_apps(state: SimulatorState) -> dict[str, Any]:
    """Return the apps of all numbers that are, or were, shared between an app and the API."""
    known = state.values(BUSINESS_APPS)
    numbers = [each for key, each in state.accounts.numbers.items() if each.is_on_business_app or key in known]
    return {"business_apps": [await _view(state, number) for number in numbers]}


@operation("GET", _APP)
async def show_business_app(state: SimulatorState, number: PathSharedNumber) -> BusinessAppView:
    """Return the app of a number, also after it was disconnected."""
    return await _view(state, number)


@operation("POST", f"{_APP}/connect")
async def connect_business_app(
    state: SimulatorState,
    number: PathNumber,
    *,
    app_version: AppVersion = DEFAULT_APP_VERSION,
    shares_history: bool = True,
) -> BusinessAppView:
    """Make a number shared between its WhatsApp Business app and the API, as the end of the signup does."""

    def write(transaction: Transaction) -> None:
        try:
            connect_number(transaction, number, app_version=app_version, shares_history=shares_history)
        except NumberNotConnectable as error:
            rule = f"{error.rule} (error {error.code} in the signup window)"
            raise ControlApiError(error.field, rule, error.accepted, status=409) from error

    await state.transact(write)
    return await _view(state, state.accounts.numbers[number.phone_number_id])


@operation("PUT", _APP)
async def change_business_app(
    state: SimulatorState, number: PathSharedNumber, body: BusinessAppBody
) -> BusinessAppView:
    """Set an app's version, the choice to share history, whether it is offline, and how it sends its data.

    A phone that is offline for 14 days is disconnected by the system; what was requested meanwhile comes when it is
    online again.
    """
    app = _connected(state, number)
    if body.is_offline is False and app.offline_since_ms is not None:
        await state.transact(await resume_syncs(state, number, app))
    members = {name: value for name, value in present_members(body).items() if name not in ("is_offline", "sync")}
    if body.sync is not UNSET:
        members["sync"] = body.sync

    def write(transaction: Transaction) -> None:
        known = _connected(transaction, number)
        if body.is_offline is True and known.offline_since_ms is None:
            members["offline_since_ms"] = state.clock.now_ms()
        save_business_app(transaction, number, replace(known, **members))

    await state.transact(write)
    return await _view(state, number)


@operation("POST", f"{_APP}/disconnect")
async def disconnect_business_app(
    state: SimulatorState,
    number: PathSharedNumber,
    *,
    reason: DisconnectReason | None = None,
    initiated_by: Initiator | None = None,
) -> BusinessAppView:
    """Disconnect a number from the API in its app, or by the system; without a reason the business tapped Disconnect.

    CHANGE_NUMBER and USER_RE_REGISTERED offboard the account: a new phone, or the same app registered again.
    """
    initiators = DISCONNECT_RULES[reason].initiators
    by = initiated_by or initiators[0]
    if by not in initiators:
        raise ControlApiError("initiated_by", f"does not cause {reason or 'this'}", ", ".join(initiators), status=409)

    def write(transaction: Transaction) -> None:
        disconnect_number(transaction, number, _connected(transaction, number), reason, by)

    await state.transact(write)
    return await _view(state, state.accounts.numbers[number.phone_number_id])


@operation("POST", f"{_APP}/companions")
async def link_companion(state: SimulatorState, number: PathSharedNumber, *, kind: CompanionKind = "web") -> Companion:
    """Link a device to the app: at most four, none for Windows or WearOS."""

    def write(transaction: Transaction) -> Companion:
        app = _connected(transaction, number)
        if len(app.companions) >= MAX_COMPANIONS:
            rule = f"has {MAX_COMPANIONS} linked devices already"
            raise ControlApiError("companions", rule, "one fewer: unlink another first", status=409)
        companion = Companion(state.ids.digits(_COMPANION_ID_DIGITS), kind, state.clock.now_ms())
        save_business_app(transaction, number, replace(app, companions=(*app.companions, companion)))
        return companion

    return await state.transact(write)


@operation("PUT", f"{_APP}/companions/{{companion_id}}")
async def change_companion(
    state: SimulatorState, number: PathSharedNumber, companion_id: str, *, is_offline: bool
) -> Companion:
    """Take a linked device offline, or bring it back; after 30 days the system disconnects the number."""

    def change(companion: Companion) -> Companion:
        since_ms = companion.offline_since_ms or state.clock.now_ms()
        return replace(companion, offline_since_ms=since_ms if is_offline else None)

    return await state.transact(_companion_change(number, companion_id, change))


@operation("DELETE", f"{_APP}/companions/{{companion_id}}")
async def unlink_companion(state: SimulatorState, number: PathSharedNumber, companion_id: str) -> Companion:
    """Unlink a device."""
    return await state.transact(_companion_change(number, companion_id, lambda _: None))


def _companion_change(
    number: Number, companion_id: str, change: Callable[[Companion], Companion | None]
) -> Callable[[Transaction], Companion]:
    """Return the function that changes one linked device, or unlinks it; its result is the device."""

    def write(transaction: Transaction) -> Companion:
        app = _connected(transaction, number)
        companion = _find_companion(app, companion_id)
        changed = change(companion)
        listed = [changed if each is companion else each for each in app.companions]
        companions = tuple(each for each in listed if each is not None)
        save_business_app(transaction, number, replace(app, companions=companions))
        return changed or companion

    return write


@operation("GET", f"{_APP}/contacts", contacts=list[BusinessContact])
async def list_contacts(state: SimulatorState, number: PathSharedNumber) -> dict[str, Any]:
    """Return the address book of the phone with the app."""
    return {"contacts": list(state.values(BUSINESS_CONTACTS, number.phone_number_id).values())}


@operation("PUT", f"{_APP}/contacts/{{phone}}")
async def put_contact(
    state: SimulatorState,
    number: PathSharedNumber,
    phone: PathPhone,
    *,
    full_name: Name,
    first_name: Name | None = None,
) -> BusinessContact:
    """Add a contact or change its names; the partner learns of it once it has requested the contacts."""
    contact = BusinessContact(phone, full_name, first_name or full_name.split()[0], state.clock.now_ms())
    await state.transact(lambda transaction: save_contact(transaction, number, _app_of(transaction, number), contact))
    return contact


@operation("DELETE", f"{_APP}/contacts/{{phone}}")
async def drop_contact(state: SimulatorState, number: PathSharedNumber, phone: PathPhone) -> BusinessContact:
    """Delete a contact."""

    def write(transaction: Transaction) -> BusinessContact:
        contacts = transaction.values(BUSINESS_CONTACTS, number.phone_number_id)
        contact = find(contacts, phone, field="phone", rule="is no contact")
        delete_contact(transaction, number, _app_of(transaction, number), contact)
        return contact

    return await state.transact(write)


@operation("PUT", f"{_APP}/history", messages=int)
async def put_history(
    state: SimulatorState,
    number: PathSharedNumber,
    *,
    messages: Annotated[list[GivenMessage], Meta(max_length=MAX_GIVEN_MESSAGES)],
) -> dict[str, int]:
    """Set the messages of before the number was shared, in place of all others. They are not on customers' phones."""
    given = [_given_message(state, number, index, message) for index, message in enumerate(messages)]
    given.sort(key=lambda message: message.at_ms)
    return {"messages": await state.transact(lambda transaction: replace_history(transaction, number, iter(given)))}


@operation("POST", f"{_APP}/history/generate", messages=int, contacts=int)
async def generate_messages(state: SimulatorState, number: PathSharedNumber, body: HistoryPlan) -> dict[str, int]:
    """Generate a history by a seed, in place of all others, with a contact for each thread."""
    now_ms = state.clock.now_ms()
    if len(str(int(body.first_phone) + body.threads - 1)) > len(body.first_phone):
        rule = f"leaves no room for {body.threads} numbers of as many digits"
        raise ControlApiError("first_phone", rule, "a lower number, or fewer threads")

    def write(transaction: Transaction) -> dict[str, int]:
        until_ms = _app_of(transaction, number).onboarded_ms or now_ms
        generated = generate_history(body, number, state.ids, until_ms)
        count = replace_history(transaction, number, generated)
        return {"messages": count, "contacts": add_generated_contacts(transaction, body, number, until_ms)}

    return await state.transact(write)


@operation("POST", f"{_APP}/messages", wamid=str)
async def send_app_message(state: SimulatorState, number: PathSharedNumber, body: AppMessageBody) -> dict[str, str]:
    """Send a message with the app to a user, which opens no window; the partner gets it as an echo."""
    app, phone = _app_of(state, number), find_number(state, body.to.lstrip("+"))
    if phone in state.accounts.numbers_by_digits:
        raise ControlApiError("to", "is a business number", "the number of a user", status=409)
    _check_device(app, body.companion_id)
    context: dict[str, str] | None = None
    if body.context_id is not None:
        author = await _find_author(state, number, phone, body.context_id, "context_id")
        context = {"from": author, "id": body.context_id}
    message = await _build_content(state, number, phone, body)
    return {"wamid": await state.transact(send_from_app(state, number, phone, message, context))}


@operation("POST", f"{_APP}/messages/{{wamid}}/edit", wamid=str, message_id=str)
async def edit_app_message(
    state: SimulatorState, number: PathSharedNumber, wamid: str, *, text: Text
) -> dict[str, str]:
    """Edit the text or caption of a message that the app has sent in the last 15 minutes."""
    original = await _find_own(state, number, wamid)
    notice = build_edit(original, text, state.clock.now_ms())
    return {"wamid": await state.transact(change_from_app(state, number, original, notice)), "message_id": wamid}


@operation("POST", f"{_APP}/messages/{{wamid}}/revoke", wamid=str, message_id=str)
async def revoke_app_message(state: SimulatorState, number: PathSharedNumber, wamid: str) -> dict[str, str]:
    """Delete a message, which the app has sent in the last 2 days, for everyone."""
    original = await _find_own(state, number, wamid)
    notice = build_revoke(original, state.clock.now_ms())
    return {"wamid": await state.transact(change_from_app(state, number, original, notice)), "message_id": wamid}


@operation("GET", f"{_APP}/chats", chats=list[AppChatView])
async def list_app_chats(state: SimulatorState, number: PathSharedNumber) -> dict[str, Any]:
    """Return the chats of the app, the newest first: history and messages since."""
    names = {"kind": HISTORY.name, "owner": number.phone_number_id, "limit": _MAX_CHATS}
    newest = [HISTORY.decode(body) for body in await state.store.column(_SELECT_NEWEST, **names)]
    chats = {message.phone: _history_view(message) for message in newest}
    for phone in await list_active_phones(state, [number.phone_number_id], limit=_MAX_CHATS):
        found = await _list_live(state, number, phone, 1)
        if found:
            chats[phone] = _live_view(state, found[0])
    names = state.values(BUSINESS_CONTACTS, number.phone_number_id)
    views = [
        AppChatView(phone=phone, name=names[phone].full_name if phone in names else "", last=last)
        for phone, last in chats.items()
    ]
    views.sort(key=lambda chat: chat.last.at_ms, reverse=True)
    return {"chats": views[:_MAX_CHATS]}


@operation("GET", f"{_APP}/chats/{{phone}}", phone=str, name=str, messages=list[AppMessageView])
async def show_app_chat(
    state: SimulatorState,
    number: PathSharedNumber,
    phone: PathPhone,
    *,
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100,
) -> dict[str, Any]:
    """Return the newest messages of one chat as the app shows them, newest last."""
    old = [_history_view(message) for message in await _read_history(state, number, phone, limit)]
    live = [_live_view(state, message) for message in await _list_live(state, number, phone, limit)]
    contact = state.values(BUSINESS_CONTACTS, number.phone_number_id).get(phone)
    return {"phone": phone, "name": contact.full_name if contact else "", "messages": [*old, *live][-limit:]}


def _connected(reader: SimulatorState | Transaction, number: Number) -> BusinessApp:
    app = _app_of(reader, number)
    if not app.is_connected:
        accepted = f"POST /control/numbers/{number.phone_number_id}/business-app/connect first"
        raise ControlApiError("phone_number_id", "is disconnected from the API", accepted, status=409)
    return app


def _app_of(reader: SimulatorState | Transaction, number: Number) -> BusinessApp:
    return find_business_app(reader, number) or BusinessApp()


def _find_companion(app: BusinessApp, companion_id: str) -> Companion:
    companions = {companion.companion_id: companion for companion in app.companions}
    return find(companions, companion_id, field="companion_id", rule="is no linked device")


def _check_device(app: BusinessApp, companion_id: str | None) -> None:
    """Check that the app, or the linked device, is online."""
    if companion_id is None and app.offline_since_ms is not None:
        accepted = "PUT business-app with is_offline: false first, or the companion_id of a linked device"
        raise ControlApiError("companion_id", "is absent, and the app is offline", accepted, status=409)
    if companion_id is not None and _find_companion(app, companion_id).offline_since_ms is not None:
        raise ControlApiError("companion_id", "is offline", "a linked device that is online", status=409)


async def _build_content(state: SimulatorState, number: Number, phone: str, body: AppMessageBody) -> PhoneMessage:
    if body.type in PHONE_MEDIA_KINDS:
        medium = body.media or PhoneMedia()
        if not medium.media_id and not (medium.content and medium.mime_type):
            raise ControlApiError("media", "has neither an id nor a content and its mime_type", "one of them")
        return await build_phone_media(state, number, body.type, medium)
    content = getattr(body, body.type)
    if content is None:
        raise ControlApiError(body.type, f"is required for the type {body.type}", accepted_by(AppMessageBody))
    message = build_message(body.type, content)
    if body.type == "reaction":
        await _find_author(state, number, phone, message.content["reaction"]["message_id"], "reaction.message_id")
    return message


async def _find_author(state: SimulatorState, number: Number, phone: str, wamid: str, field: str) -> str:
    """Return the digits of who sent a message of the chat, of the history or since."""
    found = await MESSAGES.find(state.store, wamid=wamid, phone=phone, phone_number_id=number.phone_number_id)
    old = await state.store.read(lambda connection: HISTORY.find_on(connection, wamid, number.phone_number_id))
    if found:
        return phone if found[0].is_inbound else number.phone_number
    if old is not None and old.phone == phone:
        return number.phone_number if old.is_own else phone
    raise ControlApiError(field, "is not in this chat", "the wamid of one of its messages", status=404)


async def _find_own(state: SimulatorState, number: Number, wamid: str) -> SimulatedMessage:
    for message in await find_by_wamids(state.store, [wamid]):
        if message.phone_number_id == number.phone_number_id and message.content.get("sent_by") == "business_app":
            return message
    raise ControlApiError("wamid", "was not sent with this app", "a wamid of POST business-app/messages", status=404)


def _given_message(state: SimulatorState, number: Number, index: int, message: GivenMessage) -> HistoryMessage:
    field = f"messages[{index}]"
    content: dict[str, Any]
    if message.type in MEDIA_TYPES:
        content = {"caption": message.text} if message.text else {}
        content |= {"media_id": message.media_id} if message.media_id else {}
    elif message.type == "unsupported":
        content = {}
    else:
        given = getattr(message, message.type)
        if given is None:
            raise ControlApiError(f"{field}.{message.type}", "is required for this type", accepted_by(GivenMessage))
        content = build_message(message.type, given).content[message.type]
    return make_message(
        state.ids,
        number,
        message.phone.lstrip("+"),
        is_own=message.is_own,
        at_ms=message.at_ms,
        type_=UNSUPPORTED if message.type == "unsupported" else message.type,
        content=content,
        status=message.status,
    )


async def _read_history(state: SimulatorState, number: Number, phone: str, limit: int) -> list[HistoryMessage]:
    """Return the newest messages of one chat of the history, newest last."""
    names = {"kind": HISTORY.name, "owner": number.phone_number_id, "phone": phone, "limit": limit}
    return [HISTORY.decode(body) for body in await state.store.column(_SELECT_CHAT, **names)][::-1]


async def _list_live(state: SimulatorState, number: Number, phone: str, limit: int) -> list[SimulatedMessage]:
    """Return the newest messages of a chat, newest last, delivered or not: the business has sent or got them."""
    condition = "phone=:phone AND phone_number_id=:number_id ORDER BY position DESC LIMIT :limit"
    number_id = number.phone_number_id
    return (await MESSAGES.rows(state.store, condition, phone=phone, number_id=number_id, limit=limit))[::-1]


def _live_view(state: SimulatorState, message: SimulatedMessage) -> AppMessageView:
    content = message.content
    own = "business_app" if content.get("sent_by") == "business_app" else "api"
    return AppMessageView(
        wamid=message.wamid,
        sender="user" if message.is_inbound else own,
        type=message.type,
        text=str(content.get("text", "")),
        at_ms=message.at_ms,
        state=message.state_at(state.clock.now_ms()),
        media=content.get("media"),
        content=content,
        callback_data=message.callback_data,
        context_id=message.context_id,
        edited_ms=content.get("edited_ms"),
        revoked_ms=content.get("revoked_ms"),
    )


def _history_view(message: HistoryMessage) -> AppMessageView:
    media = message.content if message.type in MEDIA_TYPES else None
    return AppMessageView(
        wamid=message.wamid,
        sender="business_app" if message.is_own else "user",
        type="unsupported" if message.type == UNSUPPORTED else message.type,
        text=str(message.content.get("body", message.content.get("caption", ""))),
        at_ms=message.at_ms,
        state=message.status.lower(),
        media=media,
        content={"media": {"kind": message.type, **media}} if media else {message.type: message.content},
        callback_data=None,
        context_id=None,
        edited_ms=None,
        revoked_ms=None,
    )


async def _view(state: SimulatorState, number: Number) -> BusinessAppView:
    app, number_id = _app_of(state, number), number.phone_number_id
    requested = state.record(number_id, SYNCS)
    count = "SELECT count(*) FROM state WHERE kind=:kind AND owner=:owner"
    waiting = await count_waiting_webhooks(state, number) if app.sync_steps else {}
    begun_ms = app.onboarded_ms or min(requested.values(), default=None)
    return view_of(
        BusinessAppView,
        app,
        phone_number_id=number_id,
        waba_id=number.waba_id,
        phone_number=number.phone_number,
        name=number.name,
        throughput=SHARED_THROUGHPUT,
        is_offline=app.offline_since_ms is not None,
        disconnects_ms=min((due_ms for due_ms, _ in app.inactivities()), default=None) if app.is_connected else None,
        sync_until_ms=None if begun_ms is None else begun_ms + SYNC_WITHIN_MS,
        requested_syncs=requested,
        sync_progress=[
            SyncProgressView(step.name, step.webhooks, step.count, waiting.get(step.name, 0)) for step in app.sync_steps
        ],
        contacts=len(state.values(BUSINESS_CONTACTS, number_id)),
        history=await state.store.value(count, kind=HISTORY.name, owner=number_id),
    )
