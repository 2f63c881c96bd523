"""The synchronisation of an app's contacts and history, which a partner requests once each (`smb_app_data`).

Contacts come in sets, history in webhooks of three phases by age, then one webhook for each file of the last 14 days.

Source: the operator's page "Onboard WhatsApp Business app users", Synchronizing WhatsApp Business app data and
History; decision 0124.
"""

import random
import struct
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final, NamedTuple

from msgspec.structs import replace

from waypost.base.clock import DAY_MS
from waypost.base.object_ids import make_id
from waypost.base.written_numbers import ascii_json
from waypost.simulator.apis.errors import bad_parameter
from waypost.simulator.apis.parameters import ProductParameters, one_of, read_parameters
from waypost.simulator.apis.requests import Call
from waypost.simulator.business_app.connection import save_business_app
from waypost.simulator.business_app.contacts import CONTACTS_FIELD, send_contacts
from waypost.simulator.business_app.history import HISTORY, MEDIA_TYPES, UNSUPPORTED, HistoryMessage
from waypost.simulator.media.model import SimulatedMedia, add_inbound_media, find_media
from waypost.simulator.state.accounts import Number
from waypost.simulator.state.business_apps import SYNC_WITHIN_MS, BusinessApp, SyncStep, SyncStepName, find_business_app
from waypost.simulator.state.graph_operations import GraphOperations
from waypost.simulator.state.records import SYNCS
from waypost.simulator.state.simulator_state import SimulatorState, Transaction
from waypost.simulator.storage.tables.updates import BARE_PREFIX, FIELD_PREFIX, HISTORY_FIELD, Update

operation = GraphOperations()

SYNC_TYPES: Final = (CONTACTS_FIELD, HISTORY_FIELD)
PHASES: Final = ((0, 1), (1, 90), (90, 180))
"""The ages of the messages of each phase, in days before onboarding."""
PHASE_STEPS: Final[tuple[SyncStepName, ...]] = ("phase 0", "phase 1", "phase 2")
MEDIA_DAYS: Final = 14
MAX_CHUNK_BYTES: Final = 2_500_000  # Source: facts 7.1: a webhook has at most 3 MB
_DECLINED_TEXT: Final = "History sync is turned off by the business from the WhatsApp Business App"
_DECLINED: Final = {
    "code": 2593109,
    "title": _DECLINED_TEXT,
    "message": _DECLINED_TEXT,
    "error_data": {"details": "History sharing is turned off by the business"},
}
_UNSUPPORTED: Final = {  # Source: the vendor's page "Coexistence Events", the sample of April 2026
    "code": 131051,
    "title": "Message type unknown",
    "message": "Message type unknown",
    "error_data": {"details": "Unsupported message received"},
}
_COUNT_WAITING: Final = f"""
SELECT CASE
    WHEN kind LIKE '%{CONTACTS_FIELD}' THEN 'contacts'
    WHEN content->>'$.messages' IS NOT NULL THEN 'files'
    WHEN content->>'$.history[0].errors' IS NOT NULL THEN 'declined'
    ELSE 'phase ' || (content->>'$.history[0].metadata.phase')
END AS step, count(DISTINCT id) AS webhooks
FROM (SELECT waba_id, kind, content, id FROM outbox UNION ALL SELECT waba_id, kind, content, id FROM judged_updates)
WHERE waba_id=:waba_id AND kind IN ('{FIELD_PREFIX}{CONTACTS_FIELD}', '{FIELD_PREFIX}{HISTORY_FIELD}',
    '{BARE_PREFIX}{HISTORY_FIELD}') AND content->>'$.metadata.phone_number_id'=:number_id
GROUP BY step
"""  # noqa: S608  the names of fields are ours


class _WaitingWebhooks(NamedTuple):
    step: str
    webhooks: int


_MediaOf = dict[str, SimulatedMedia]
_Send = Callable[[Transaction, BusinessApp], list[SyncStep]]


class SyncParameters(ProductParameters, frozen=True):
    """The data of the app on a phone that is requested."""

    sync_type: Annotated[str, one_of(*SYNC_TYPES)]


@operation("numbers.smb_app_data", "POST", Number, "smb_app_data")
async def request_sync(state: SimulatorState, call: Call, number: Number) -> dict[str, Any]:
    """Accept a request for the contacts or the messages of the app: each once, within a day of onboarding.

    A number that was created as shared has no onboarding: its day begins with the first request. The operator
    documents no code for what is refused. The webhooks of an app that is offline come when it is online again.

    Raises:
        GraphApiError: 100, the number is not shared, the data was requested before, or the day is over.
    """
    sync_type = read_parameters(SyncParameters, call.fields).sync_type
    _check_sync(state, number, sync_type)
    send = await _prepare(state, number, sync_type)

    def write(transaction: Transaction) -> str:
        app = _check_sync(transaction, number, sync_type)
        transaction.change_record(number.phone_number_id, SYNCS, **{sync_type: state.clock.now_ms()})
        if app.offline_since_ms is not None:
            app = replace(app, waiting_syncs=(*app.waiting_syncs, sync_type))
        else:
            app = replace(app, sync_steps=(*app.sync_steps, *send(transaction, app)))
        save_business_app(transaction, number, app)
        return make_id(state.ids, "sync request")

    return {"messaging_product": "whatsapp", "request_id": await state.transact(write)}


def _check_sync(reader: SimulatorState | Transaction, number: Number, sync_type: str) -> BusinessApp:
    state = reader.state if isinstance(reader, Transaction) else reader
    app = find_business_app(reader, number)
    if app is None or not app.is_connected:
        raise bad_parameter("The phone number is not on the WhatsApp Business app; it has no data to synchronize.")
    record, now_ms = reader.record(number.phone_number_id, SYNCS), state.clock.now_ms()
    if sync_type in record:
        raise bad_parameter(
            f"Param sync_type: {sync_type} was requested before; each can be requested once. To repeat it, the "
            "business disconnects in the app and completes the signup again."
        )
    since_ms = min(record.values(), default=now_ms) if app.onboarded_ms is None else app.onboarded_ms
    if now_ms - since_ms >= SYNC_WITHIN_MS:
        raise bad_parameter(
            "Data can be requested within 24 hours of onboarding only. To request it, the business disconnects in the "
            "app and completes the signup again."
        )
    return app


async def resume_syncs(state: SimulatorState, number: Number, app: BusinessApp) -> Callable[[Transaction], BusinessApp]:
    """Return the function that brings an app online: it sends what was requested while the app was offline."""
    prepared = {sync_type: await _prepare(state, number, sync_type) for sync_type in app.waiting_syncs}

    def write(transaction: Transaction) -> BusinessApp:
        known = find_business_app(transaction, number) or app
        online = replace(known, offline_since_ms=None, waiting_syncs=())
        for sync_type in known.waiting_syncs:
            if sync_type in prepared:
                online = replace(online, sync_steps=(*online.sync_steps, *prepared[sync_type](transaction, online)))
        save_business_app(transaction, number, online)
        return online

    return write


async def _prepare(state: SimulatorState, number: Number, sync_type: str) -> _Send:
    """Return the function that sends the webhooks of one sync; what it needs of files is stored before."""
    if sync_type == CONTACTS_FIELD:
        return lambda transaction, app: send_contacts(transaction, number, app)
    app = find_business_app(state, number) or BusinessApp()
    stored = await state.store.read(lambda connection: HISTORY.values_on(connection, number.phone_number_id))
    messages = list(stored.values())
    media = await _store_media(state, number, app, messages) if app.shares_history else {}

    def send(transaction: Transaction, app: BusinessApp) -> list[SyncStep]:
        return _send_history(transaction, number, app, messages, media)

    return send


def _send_history(
    transaction: Transaction, number: Number, app: BusinessApp, messages: Sequence[HistoryMessage], media: _MediaOf
) -> list[SyncStep]:
    if not app.shares_history:
        kind = BARE_PREFIX if app.sync.declines_without_envelope else FIELD_PREFIX
        _send_value(transaction, number, number.webhook_value(history=[{"errors": [_DECLINED]}]), kind)
        return [SyncStep("declined", 1, 0)]
    webhooks, items = Counter[SyncStepName](), Counter[SyncStepName]()
    for chunk in plan_history(messages, number, app, transaction.state.clock.now_ms()):
        _send_value(transaction, number, number.webhook_value(history=[chunk]))
        step = PHASE_STEPS[int(chunk["metadata"]["phase"])]
        webhooks[step] += 1
        items[step] += sum(len(thread["messages"]) for thread in chunk["threads"])
    for message in messages:
        if (medium := media.get(message.wamid)) is not None:
            _send_value(transaction, number, number.webhook_value(messages=[_media_message(message, number, medium)]))
            webhooks["files"] += 1
            items["files"] += 1
    return [SyncStep(step, count, items[step]) for step, count in sorted(webhooks.items(), key=_step_order)]


def _step_order(counted: tuple[SyncStepName, int]) -> tuple[bool, str]:
    return counted[0] == "files", counted[0]


async def count_waiting_webhooks(state: SimulatorState, number: Number) -> dict[str, int]:
    """Return how many webhooks of each step of a number's sync are still to be delivered."""
    rows = await state.store.rows(
        _WaitingWebhooks, _COUNT_WAITING, waba_id=number.waba_id, number_id=number.phone_number_id
    )
    return {row.step: row.webhooks for row in rows}


def _send_value(transaction: Transaction, number: Number, value: dict[str, Any], kind: str = FIELD_PREFIX) -> None:
    now_ms = transaction.state.clock.now_ms()
    transaction.send(Update(number.waba_id, now_ms, kind + HISTORY_FIELD, "", "", value))


def plan_history(
    messages: Sequence[HistoryMessage], number: Number, app: BusinessApp, now_ms: int
) -> list[dict[str, Any]]:
    """Return the parts of the history, each the content of one webhook, in the order in which they are sent.

    A phase without messages has none. A part ends with its number of messages, or its size.
    """
    until_ms = now_ms if app.onboarded_ms is None else app.onboarded_ms
    options, chance = app.sync, random.Random(app.sync.seed)  # noqa: S311  repeatable on purpose
    newest_first = sorted(messages, key=lambda message: message.at_ms, reverse=True)
    chunks: list[tuple[int, int, list[dict[str, Any]]]] = []
    for phase, (from_days, to_days) in enumerate(PHASES):
        ages = range(from_days * DAY_MS, to_days * DAY_MS)
        aged = [message for message in newest_first if max(until_ms - message.at_ms, 0) in ages]
        pieces = _cut(
            [_history_message(message, number, app) for message in _sort_by_thread(aged)], options.chunk_messages
        )
        for message in chance.sample(aged, round(len(aged) * options.duplicates)):
            chance.choice(pieces).append(_history_message(message, number, app))
        chunks += [(phase, order, piece) for order, piece in enumerate(pieces, 1)]
    total, done, planned = sum(len(piece) for _, _, piece in chunks), 0, list[dict[str, Any]]()
    for phase, order, piece in chunks:
        done += len(piece)
        if options.order == "shuffled":
            chance.shuffle(piece)
        threads: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        for item in piece:
            threads[item.pop("thread")].append(item)
        metadata = {"phase": phase, "chunk_order": order, "progress": 100 * done // total}
        listed = [{"id": phone, "messages": items} for phone, items in threads.items()]
        planned.append({"metadata": metadata, "threads": listed})
    if options.order == "shuffled":
        chance.shuffle(planned)
    return planned


def _sort_by_thread(newest_first: Sequence[HistoryMessage]) -> list[HistoryMessage]:
    """Return messages by thread: that with the newest first."""
    threads: defaultdict[str, list[HistoryMessage]] = defaultdict(list)
    for message in newest_first:
        threads[message.phone].append(message)
    return [message for thread in threads.values() for message in thread]


def _cut(messages: Sequence[dict[str, Any]], at_most: int) -> list[list[dict[str, Any]]]:
    pieces: list[list[dict[str, Any]]] = []
    size = MAX_CHUNK_BYTES
    for message in messages:
        size += len(ascii_json(message))
        if size >= MAX_CHUNK_BYTES or len(pieces[-1]) >= at_most:
            pieces.append([])
            size = 0
        pieces[-1].append(message)
    return pieces


def _history_message(message: HistoryMessage, number: Number, app: BusinessApp) -> dict[str, Any]:
    """Return a message as history has it, with its `thread`."""
    options = app.sync
    content: dict[str, Any] = {"type": message.type, message.type: message.content}
    if message.type in MEDIA_TYPES:
        content = {"type": "media_placeholder"}
    elif message.type == UNSUPPORTED:
        content = {"type": UNSUPPORTED, "errors": [_UNSUPPORTED]}
    marks = {"from_me": True} if message.is_own and options.marks_own else {}
    status = message.status.lower() if options.lowercase_statuses else message.status
    return {
        "thread": message.phone,
        "from": number.phone_number if message.is_own else message.phone,
        **({"to": message.phone} if message.is_own and not options.marks_own else {}),
        "id": message.wamid,
        "timestamp": str(message.at_ms // 1000),
        **content,
        "history_context": {**marks, "status": status},
    }


def _media_message(message: HistoryMessage, number: Number, medium: SimulatedMedia) -> dict[str, Any]:
    """Return the message with the file of a placeholder: its id is the same."""
    caption = {"caption": message.content["caption"]} if message.content.get("caption") else {}
    content = {**caption, "mime_type": medium.mime_type, "sha256": medium.sha256_base64, "id": medium.media_id}
    return {
        "from": number.phone_number if message.is_own else message.phone,
        "id": message.wamid,
        "timestamp": str(message.at_ms // 1000),
        "type": message.type,
        message.type: content,
    }


async def _store_media(
    state: SimulatorState, number: Number, app: BusinessApp, messages: Sequence[HistoryMessage]
) -> _MediaOf:
    """Return the media of the messages of the last 14 days before onboarding; those without a file get a small one."""
    until_ms = state.clock.now_ms() if app.onboarded_ms is None else app.onboarded_ms
    media: _MediaOf = {}
    for message in messages:
        if message.type not in MEDIA_TYPES or until_ms - message.at_ms > MEDIA_DAYS * DAY_MS:
            continue
        known = find_media(state, message.content.get("media_id", ""), number.phone_number_id)
        media[message.wamid] = known or await add_inbound_media(
            state, number.phone_number_id, message.content["mime_type"], "", _make_file(message)
        )
    return media


def _make_file(message: HistoryMessage) -> bytes:
    """Return the bytes of a small file: a picture of one pixel, or the beginning of its format and the message's id."""
    if message.type == "image":
        colour = zlib.crc32(message.wamid.encode()).to_bytes(4)[:3]
        header = struct.pack(">2I5B", 1, 1, 8, 2, 0, 0, 0)
        parts = ((b"IHDR", header), (b"IDAT", zlib.compress(b"\0" + colour)), (b"IEND", b""))
        return b"\x89PNG\r\n\x1a\n" + b"".join(
            len(body).to_bytes(4) + name + body + zlib.crc32(name + body).to_bytes(4) for name, body in parts
        )
    begin = {"video": b"\0\0\0\x18ftypmp42", "audio": b"OggS", "sticker": b"RIFF\x10\0\0\0WEBP"}.get(message.type, b"")
    return begin + message.wamid.encode()
