"""Pages of an app's inbound messages: newest first over all kinds, by number, its own only; on each engine."""

import json
from typing import Any

from sqlalchemy import Connection, insert, update

from tests.support.builders import ANN, APP, AT_MS, BEN, PARTNER, draft, message, template
from waypost.domain.message import TemplateSend
from waypost.domain.templates.template import Category
from waypost.store.database import Database
from waypost.store.messages.lists import MessageCursor, SearchPage, SearchResults
from waypost.store.messages.messages import record_messages
from waypost.store.messages.received import search_inbound
from waypost.store.messages.search import MessageFilter
from waypost.store.queue.inbound_webhooks import NO_RECIPIENT
from waypost.store.tables import inbound_messages, recipients, webhook_items
from waypost.store.templates.templates import record_template

KINDS = ("text", "image", "button")
CONTENTS: dict[str, dict[str, Any]] = {
    "text": {"body": "Where is it?"},
    "image": {"id": "1", "mime_type": "image/png", "sha256": "abc", "caption": "Like this"},
    "button": {"text": "Yes please", "payload": "secret-1"},
}


def _seed(connection: Connection, count: int) -> None:
    for number, phone in ((1, ANN), (2, BEN)):
        connection.execute(
            insert(recipients), {"id": number, "partner_id": PARTNER.id, "app_id": APP.id, "phone_number": phone}
        )
    for n in range(1, count + 1):
        kind = KINDS[n % 3]
        message = {"id": f"wamid.{n:04d}", "type": kind, kind: CONTENTS[kind], "context": {"id": "wamid.ours"}}
        item = {
            "id": n,
            "operator_account_id": "main",
            "dedupe_key": f"message {n}",
            "webhook_id": "a",
            "path": "0",
            "item": json.dumps({"message": message}).encode(),
            "received_on_ms": AT_MS,
        }
        connection.execute(insert(webhook_items), item)
        row = {
            "operator_message_id": f"wamid.{n:04d}",
            "partner_id": PARTNER.id,
            "app_id": APP.id,
            "recipient_id": 1 + n % 2,
            "kind": kind,
            "item_id": n,
            "received_on_ms": AT_MS + n // 2,
        }
        connection.execute(insert(inbound_messages), row)


async def all_rows(database: Database, message_filter: MessageFilter, **more: Any) -> list[dict[str, Any]]:
    """Return the rows of all pages."""
    rows: list[dict[str, Any]] = []
    before: MessageCursor | None = None
    for _ in range(100):

        def search(connection: Connection, before: MessageCursor | None = before) -> SearchResults:
            page = SearchPage(before, at_most=7, **more)
            return search_inbound(connection, PARTNER.id, APP.id, message_filter, page)

        page = await database.read(search)
        rows += page.rows
        if page.next is None:
            return rows
        before = page.next
    raise AssertionError("paging never ends")


def ids(rows: list[dict[str, Any]]) -> list[str]:
    return [row["operator_message_id"] for row in rows]


async def test_all_kinds_are_listed_newest_first_each_with_its_text(database: Database) -> None:
    await database.write(_seed, 30)

    rows = await all_rows(database, MessageFilter())

    assert ids(rows) == [f"wamid.{n:04d}" for n in range(30, 0, -1)]
    assert {row["text"] for row in rows} == {"Where is it?", "Like this", "Yes please"}
    assert {row["replies_to"] for row in rows} == {"wamid.ours"}


async def test_number_and_time_filters_find_matching_messages(database: Database) -> None:
    await database.write(_seed, 30)
    from_ben = [f"wamid.{n:04d}" for n in range(30, 0, -1) if n % 2]

    assert ids(await all_rows(database, MessageFilter(number="4568"))) == from_ben
    assert ids(await all_rows(database, MessageFilter(number=BEN), scan_limit=9)) == from_ben
    assert ids(await all_rows(database, MessageFilter(number="9999"))) == []
    bounded = MessageFilter(from_ms=AT_MS + 3, until_ms=AT_MS + 5)
    assert ids(await all_rows(database, bounded)) == [f"wamid.{n:04d}" for n in (9, 8, 7, 6)]


async def test_text_is_found_in_any_case_and_a_reply_to_a_code_is_not(database: Database) -> None:
    def seed(connection: Connection) -> None:
        _seed(connection, 12)
        for n, text in ((3, "CAFÉ tomorrow"), (6, "a café"), (9, "cafe")):
            item = json.dumps({"message": {"type": "text", "text": {"body": text}}})
            connection.execute(update(webhook_items).where(webhook_items.c.id == n).values(item=item.encode()))
        record_template(connection, template(1, draft(category="AUTHENTICATION"), category=Category.AUTHENTICATION))
        record_messages(connection, [message(1, TemplateSend(template(1).id, ("123456",)))])
        reply = {"message": {"type": "text", "text": {"body": "My café code"}, "context": {"id": message(1).id}}}
        values = {"item": json.dumps(reply).encode()}
        connection.execute(update(webhook_items).where(webhook_items.c.id == 12).values(**values))

    await database.write(seed)

    for text, expected in {"café": [6, 3], "CAFE": [9], "é": [6, 3], "tomorrow": [3], "mime_type": []}.items():
        found = await all_rows(database, MessageFilter(text=text), scan_limit=9)
        assert ids(found) == [f"wamid.{n:04d}" for n in expected], text


async def test_hidden_text_is_found_by_whole_words_only(database: Database) -> None:
    await database.write(_seed, 12)
    cases = {"where": 4, "Where is": 4, "wh": 0, "here": 0, "please": 4, "pleas": 0, "yes please": 4, "s please": 0}

    found = {
        text: len(await all_rows(database, MessageFilter(text=text, whole_words=True), scan_limit=9)) for text in cases
    }

    assert found == cases


async def test_sender_is_found_by_name_and_by_id(database: Database) -> None:
    def seed(connection: Connection) -> None:
        _seed(connection, 12)
        connection.execute(update(recipients).where(recipients.c.id == 2).values(name="Ömer Ben", user_id="US.1349"))

    await database.write(seed)
    from_ben = [f"wamid.{n:04d}" for n in range(12, 0, -1) if n % 2]

    for message_filter in (MessageFilter(person="ömer b"), MessageFilter(person="BEN"), MessageFilter(name="US.1349")):
        assert ids(await all_rows(database, message_filter, scan_limit=9)) == from_ben
    assert ids(await all_rows(database, MessageFilter(name="wamid.0004"))) == ["wamid.0004"]
    assert ids(await all_rows(database, MessageFilter(person="ann"))) == []


async def test_another_partner_gets_no_inbound_messages(database: Database) -> None:
    await database.write(_seed, 6)

    def search(connection: Connection) -> SearchResults:
        return search_inbound(connection, PARTNER.id + 1, APP.id, MessageFilter())

    assert (await database.read(search)).rows == []


async def test_message_from_a_group_names_the_group_and_no_sender(database: Database) -> None:
    def seed(connection: Connection, count: int) -> None:
        _seed(connection, count)
        item = json.dumps({"message": {"type": "text", "text": {"body": "Hi"}, "group_id": "G"}})
        changes = {"item": item.encode()}
        connection.execute(update(webhook_items).where(webhook_items.c.id == 1).values(**changes))
        connection.execute(update(inbound_messages).values(recipient_id=NO_RECIPIENT))

    await database.write(seed, 1)

    [row] = await all_rows(database, MessageFilter())

    assert (row["phone_number"], row["user_id"], row["group_id"], row["text"]) == (None, None, "G", "Hi")
