"""Pages of an app's messages: newest first, complete, its own only, and read from an index."""

from typing import Any

from sqlalchemy import Connection

from tests.support.builders import ANN, APP, AT_MS, BEN, PARTNER, draft, id_number, message, template
from waypost.domain.message import Message, MessageState
from waypost.store.database import Database
from waypost.store.messages.lists import MAX_PAGE_ROWS, MessageCursor, messages_of_app, template_names_by_ids
from waypost.store.messages.messages import MessageChange, change_messages, record_messages
from waypost.store.messages.recipients import get_or_create_recipients
from waypost.store.templates.templates import record_template

OTHER = "01990000-0000-7000-8000-00000000000b"


async def seed(database: Database, count: int) -> None:
    """Messages to Ann and Ben in turn, two of each millisecond, and every third another app's."""
    messages = [
        message(
            n, app_id=OTHER if n % 3 == 0 else APP.id, destination=ANN if n % 2 else BEN, accepted_on_ms=AT_MS + n // 2
        )
        for n in range(1, count + 1)
    ]
    await database.join_all(record_messages, messages)
    await database.write(_record_accepted, messages)


def _record_accepted(connection: Connection, messages: list[Message]) -> None:
    """Write what dispatch writes when the operator has accepted messages."""
    keys = {(sent.app_id, sent.partner_id, sent.destination) for sent in messages}
    recipient_ids = get_or_create_recipients(connection, keys)
    changes = [
        MessageChange(
            sent.id, MessageState.ENQUEUED, AT_MS, recipient_ids[sent.app_id, sent.destination], f"wamid.{sent.id}"
        )
        for sent in messages
    ]
    change_messages(connection, changes, [])


async def all_ids(database: Database, *, at_most: int, destination: str | None = None) -> list[str]:
    """Return the ids of all pages."""
    ids: list[str] = []
    before: MessageCursor | None = None
    while True:
        page = await database.read(_page, destination, before, at_most)
        assert len(page) <= at_most
        if not page:
            return ids
        ids += [row["id"] for row in page]
        before = MessageCursor(page[-1]["accepted_on_ms"], page[-1]["id"])


def _page(
    connection: Connection, destination: str | None, before: MessageCursor | None, at_most: int
) -> list[dict[str, Any]]:
    return messages_of_app(connection, PARTNER.id, APP.id, destination=destination, before=before, at_most=at_most)


async def test_all_pages_hold_all_of_an_apps_messages_newest_first(database: Database) -> None:
    await seed(database, 60)
    expected = [id_number(n) for n in range(60, 0, -1) if n % 3]

    assert await all_ids(database, at_most=7) == expected
    assert await all_ids(database, at_most=50) == expected


async def test_pages_of_one_number_hold_the_messages_sent_to_it(database: Database) -> None:
    await seed(database, 60)

    assert await all_ids(database, at_most=4, destination=ANN) == [id_number(n) for n in range(59, 0, -2) if n % 3]


async def test_another_partner_gets_no_messages(database: Database) -> None:
    await seed(database, 6)

    assert await database.read(messages_of_app, PARTNER.id + 1, APP.id) == []


async def test_page_size_is_bounded_whatever_is_requested(database: Database) -> None:
    await seed(database, MAX_PAGE_ROWS * 2)

    assert len(await database.read(_page, None, None, 10_000)) == MAX_PAGE_ROWS


async def test_template_names_are_read_by_id_for_their_own_partner_only(database: Database) -> None:
    templates = [template(n, draft(element_name=f"offer_{n}")) for n in (1, 2, 3)]
    for new_template in templates:
        await database.write(record_template, new_template)
    ids = [templates[0].id, None, templates[2].id, templates[0].id, "unknown"]

    names = await database.read(template_names_by_ids, PARTNER.id, ids)

    assert names == {templates[0].id: "offer_1 (en_US)", templates[2].id: "offer_3 (en_US)"}
    assert await database.read(template_names_by_ids, PARTNER.id, [None]) == {}
    assert await database.read(template_names_by_ids, PARTNER.id + 1, ids) == {}
