"""Conversations of an app: by last activity, by every filter, page by page, at a bounded cost; on each engine."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Connection, insert

from tests.support.builders import ANN, APP, AT_MS, BEN, PARTNER, message
from waypost.domain.app import CUSTOMER_SERVICE_WINDOW_MS
from waypost.domain.message import Message, MessageState
from waypost.domain.session_messages.plain import SessionText
from waypost.store.console.conversations import (
    ALL_CONVERSATIONS,
    MAX_UNREAD,
    ConversationFilter,
    find_conversation,
    list_conversations,
    mark_conversation_read,
)
from waypost.store.database import Database
from waypost.store.encoding import app_columns
from waypost.store.messages.lists import SearchPage, SearchResults
from waypost.store.messages.messages import MessageChange, change_messages, record_messages
from waypost.store.messages.recipients import (
    PersonNames,
    get_or_create_recipient,
    get_or_create_recipients,
    link_names,
    record_recipient_activity,
)
from waypost.store.messages.threads import ALL_OF_THREAD, ThreadFilter, ThreadPart, ThreadRecipient, search_thread
from waypost.store.tables import apps, inbound_messages, webhook_items

CHI = "15550002003"
OTHER = replace(APP, id="01990000-0000-7000-8000-00000000000b", name="Other", phone_number="15550002222")
MINUTE_MS = 60_000


@pytest.fixture(autouse=True)
async def seed_apps(database: Database) -> None:
    def add(connection: Connection) -> None:
        connection.execute(insert(apps), [app_columns(app, f"hash {app.id}") for app in (APP, OTHER)])

    await database.write(add)


def _at(minute: int) -> int:
    return AT_MS + minute * MINUTE_MS


def _record_outcomes(connection: Connection, sent: Sequence[Message], state: MessageState) -> None:
    ids = get_or_create_recipients(connection, {(one.app_id, one.partner_id, one.destination) for one in sent})
    changes = [MessageChange(one.id, state, AT_MS, ids[one.app_id, one.destination], f"wamid.{one.id}") for one in sent]
    change_messages(connection, changes, [])


async def send(
    database: Database,
    n: int,
    to: str,
    minute: int,
    state: MessageState | None = MessageState.SENT,
    text: str = "Hello",
) -> Message:
    """Store a sent message; without a state it still waits in the queue."""
    sent = message(n, SessionText(text), destination=to, accepted_on_ms=_at(minute))
    await database.join_all(record_messages, [sent])
    if state is not None:
        await database.write(_record_outcomes, [sent], state)
    return sent


async def receive(database: Database, n: int, number: str, minute: int, name: str = "", text: str = "Hi") -> int:
    """Store a received message, and return its sender."""

    def record(connection: Connection) -> int:
        recipient_id = get_or_create_recipient(connection, APP, number)
        record_recipient_activity(connection, recipient_id, name, _at(minute) + CUSTOMER_SERVICE_WINDOW_MS)
        body = {"message": {"id": f"wamid.in.{n}", "type": "text", "text": {"body": text}}}
        item = {
            "id": n, "operator_account_id": "main", "dedupe_key": f"message {n}", "webhook_id": "a", "path": "0",
            "item": json.dumps(body).encode(), "received_on_ms": _at(minute),
        }  # fmt: skip
        connection.execute(insert(webhook_items), item)
        row = {
            "operator_message_id": f"wamid.in.{n}", "partner_id": PARTNER.id, "app_id": APP.id,
            "recipient_id": recipient_id, "kind": "text", "item_id": n, "received_on_ms": _at(minute),
        }  # fmt: skip
        connection.execute(insert(inbound_messages), row)
        return recipient_id

    return await database.write(record)


async def listed(
    database: Database, query: ConversationFilter = ALL_CONVERSATIONS, partner_id: int = PARTNER.id, **page: Any
) -> SearchResults:
    options: dict[str, Any] = {"scan_limit": 5_000, **page}
    search_page = SearchPage(**options)
    return await database.read(list_conversations, partner_id, APP.id, query, search_page)


async def numbers(database: Database, query: ConversationFilter = ALL_CONVERSATIONS, **page: Any) -> list[str]:
    """Return the numbers of all pages, in order."""
    found: list[str] = []
    before = None
    for _ in range(100):
        results = await listed(database, query, before=before, **page)
        found += [row["phone_number"] for row in results.rows]
        if results.next is None:
            return found
        before = results.next
    raise AssertionError("paging never ends")


async def test_last_activity_is_first_whoever_wrote(database: Database) -> None:
    await send(database, 1, ANN, 1)
    await receive(database, 1, BEN, 2, "Ben")
    await send(database, 2, CHI, 3)
    await receive(database, 2, ANN, 4, "Ann")

    results = await listed(database)

    assert [row["phone_number"] for row in results.rows] == [ANN, CHI, BEN]
    ann = results.rows[0]
    assert (ann["name"], ann["last_ms"], ann["unread"]) == ("Ann", _at(4), 1)
    assert ann["sent"]["id"] == message(1).id
    assert ann["received"]["text"] == "Hi"
    assert results.rows[1]["received"] is None
    assert results.next is None


@pytest.mark.parametrize("at_most", [1, 2, 3])
async def test_pages_have_each_recipient_once(database: Database, at_most: int) -> None:
    people = [f"1555000{n}" for n in range(3000, 3007)]
    for n, number in enumerate(people * 2):  # each again later, so that its older messages must not list it twice
        await send(database, n + 1, number, n // 2)
    for n in (2, 5):
        await receive(database, n, people[n], 20)

    found = await numbers(database, at_most=at_most)

    assert found == [people[n] for n in (5, 2, 6, 4, 3, 1, 0)]


async def test_scan_limit_ends_a_page_and_the_next_one_continues_there(database: Database) -> None:
    for n in range(200):
        await send(database, n + 1, ANN, 10 + n)
    await send(database, 300, BEN, 1)

    first = await listed(database, scan_limit=100)

    assert first.searched_to_ms is not None
    assert await numbers(database, scan_limit=100) == [ANN, BEN]


async def test_filters_find_recipients(database: Database) -> None:
    await send(database, 1, ANN, 1, MessageState.FAILED)
    await receive(database, 1, ANN, 2, "Ann O'Brien")
    await send(database, 2, BEN, 3, MessageState.FAILED)
    ben = await receive(database, 2, BEN, 4, "Бен_Ни")
    await send(database, 3, CHI, 5)

    async def find(**query: Any) -> list[str]:
        return await numbers(database, ConversationFilter(**query))

    assert await find(name="o'brIEN") == [ANN]
    assert await find(name="бен_") == [BEN]
    assert await find(name="%") == []
    assert await find(number=CHI[-4:]) == [CHI]
    assert await find(number=CHI) == [CHI]
    assert await find(number="99999") == []
    assert await find(id=message(3).id.upper()) == [CHI]
    assert await find(id=f"wamid.{message(2).id}") == [BEN]
    assert await find(id="wamid.in.1") == [ANN]
    assert await find(id="wamid.in.9") == []
    assert await find(has_failed=True) == [BEN, ANN]
    assert await find(open_at_ms=_at(2) + CUSTOMER_SERVICE_WINDOW_MS) == [BEN]
    assert await find(is_unread=True) == [BEN, ANN]
    await database.write(mark_conversation_read, APP.id, ben, _at(4))
    await send(database, 4, ANN, 6)
    assert await find(is_unread=True) == []
    await receive(database, 3, BEN, 7, "Ben")
    assert await find(is_unread=True) == [BEN]


async def test_name_filter_finds_a_recipient_to_whom_was_sent_later(database: Database) -> None:
    await receive(database, 1, ANN, 1, "Ann")
    await receive(database, 2, BEN, 2, "Anna")
    await send(database, 1, ANN, 3)

    assert await numbers(database, ConversationFilter(name="ann"), at_most=1) == [BEN, ANN]


async def test_unread_messages_are_counted_up_to_a_limit(database: Database) -> None:
    for n in range(MAX_UNREAD + 5):
        await receive(database, n + 1, ANN, n)

    assert (await listed(database)).rows[0]["unread"] == MAX_UNREAD


async def test_earlier_mark_does_not_unread(database: Database) -> None:
    ann = await receive(database, 1, ANN, 5)
    await database.write(mark_conversation_read, APP.id, ann, _at(5))
    await database.write(mark_conversation_read, APP.id, ann, _at(1))
    await database.write(mark_conversation_read, OTHER.id, ann, _at(9))

    row = (await listed(database)).rows[0]

    assert (row["unread"], row["read_until_ms"]) == (0, _at(5))


async def test_conversations_of_another_partner_do_not_exist(database: Database) -> None:
    ann = await receive(database, 1, ANN, 1, "Ann")
    await send(database, 1, ANN, 2)
    stranger = PARTNER.id + 1

    for query in (ALL_CONVERSATIONS, ConversationFilter(number=ANN), ConversationFilter(id="wamid.in.1")):
        assert (await listed(database, query, partner_id=stranger)).rows == []
    assert await database.read(find_conversation, stranger, APP.id, ann) is None
    assert await database.read(find_conversation, PARTNER.id, OTHER.id, ann) is None
    recipient = ThreadRecipient(ann, (ANN,), APP.phone_number)
    assert (await database.read(search_thread, stranger, APP.id, recipient)).rows == []
    assert (await database.read(search_thread, PARTNER.id, OTHER.id, recipient)).rows == []


async def thread(
    database: Database, recipient_id: int, query: ThreadFilter = ALL_OF_THREAD, **page: Any
) -> tuple[list[str], int]:
    """Return the ids of all pages, newest first, and the number of pages."""
    ids: list[str] = []
    before = None
    for pages in range(1, 100):
        recipient = ThreadRecipient(recipient_id, (ANN,), APP.phone_number)
        results = await database.read(
            search_thread, PARTNER.id, APP.id, recipient, query, SearchPage(before=before, **page)
        )
        ids += [row["id"] for row in results.rows]
        if results.next is None:
            return ids, pages
        before = results.next
    raise AssertionError("paging never ends")


@pytest.mark.parametrize("at_most", [1, 2, 50])
async def test_thread_has_both_directions_in_order(database: Database, at_most: int) -> None:
    ann = await receive(database, 1, ANN, 1)
    await send(database, 1, ANN, 2)
    await receive(database, 2, ANN, 3)
    await send(database, 2, BEN, 3)
    await receive(database, 3, BEN, 3)
    await send(database, 3, ANN, 4, MessageState.FAILED)
    await send(database, 4, ANN, 5, None)  # waits, and has no recipient yet
    await send(database, 5, BEN, 5, None)

    async def ids(**query: Any) -> list[str]:
        return (await thread(database, ann, ThreadFilter(**query), at_most=at_most))[0]

    everything = [message(4).id, message(3).id, "wamid.in.2", message(1).id, "wamid.in.1"]
    assert await ids() == everything
    assert await ids(part=ThreadPart.SENT) == [message(4).id, message(3).id, message(1).id]
    assert await ids(part=ThreadPart.RECEIVED) == ["wamid.in.2", "wamid.in.1"]
    assert await ids(part=ThreadPart.FAILED) == [message(3).id]
    assert await ids(from_ms=_at(2), until_ms=_at(4)) == ["wamid.in.2", message(1).id]


async def test_text_of_a_thread_is_searched_step_by_step(database: Database) -> None:
    ann = await receive(database, 1, ANN, 0, text="Where is my PARCEL?")
    for n in range(2, 40):
        await receive(database, n, ANN, n)
    await send(database, 1, ANN, 1, text="Your parcel is here")

    ids, pages = await thread(database, ann, ThreadFilter(text="parcel"))

    assert ids == [message(1).id, "wamid.in.1"]
    assert pages == 1


async def test_hidden_text_of_a_thread_is_found_by_whole_words_only(database: Database) -> None:
    ann = await receive(database, 1, ANN, 0, text="Where is my PARCEL?")
    await send(database, 1, ANN, 1, text="Your parcel is here")
    await send(database, 2, ANN, 2, None, text="Another parcel waits")

    async def ids(text: str) -> list[str]:
        return (await thread(database, ann, ThreadFilter(text=text, whole_words=True)))[0]

    assert await ids("parcel") == [message(2).id, message(1).id, "wamid.in.1"]
    assert [await ids(part) for part in ("parce", "arcel", "p", "my parce")] == [[], [], [], []]


async def test_merged_person_has_one_conversation(database: Database) -> None:
    ann = await receive(database, 1, ANN, 1, "Ann")
    await send(database, 1, "US.1234", 2)
    [other] = (await database.read(get_or_create_ids, "US.1234")).values()

    kept = await database.write(link_names, APP, PersonNames(ANN, "US.1234"), {})

    [row] = (await listed(database)).rows
    assert (row["id"], row["phone_number"], row["user_id"]) == (kept, ANN, "US.1234")
    for known in (ann, other):
        found = await database.read(find_conversation, PARTNER.id, APP.id, known)
        assert found is not None
        assert found["id"] == kept
    assert (await thread(database, kept))[0] == [message(1).id, "wamid.in.1"]


def get_or_create_ids(connection: Connection, name: str) -> dict[tuple[str, str], int]:
    return get_or_create_recipients(connection, {(APP.id, PARTNER.id, name)})
