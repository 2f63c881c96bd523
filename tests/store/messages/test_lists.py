"""Pages of an app's messages: newest first, whole, one's own, and read from an index."""

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
    made = [
        message(
            n, app_id=OTHER if n % 3 == 0 else APP.id, destination=ANN if n % 2 else BEN, accepted_on_ms=AT_MS + n // 2
        )
        for n in range(1, count + 1)
    ]
    await database.join_all(record_messages, made)
    await database.write(_name, made)


def _name(connection: Connection, made: list[Message]) -> None:
    """What dispatch writes when the operator has taken messages."""
    wanted = {(one.app_id, one.partner_id, one.destination) for one in made}
    known = get_or_create_recipients(connection, wanted)
    changes = [
        MessageChange(one.id, MessageState.ENQUEUED, AT_MS, known[one.app_id, one.destination], f"wamid.{one.id}")
        for one in made
    ]
    change_messages(connection, changes, [])


async def pages(database: Database, *, at_most: int, destination: str | None = None) -> list[str]:
    """Every id, page by page until there is no more."""
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


async def test_pages_together_are_all_of_an_apps_messages_newest_first(database: Database) -> None:
    await seed(database, 60)
    wanted = [id_number(n) for n in range(60, 0, -1) if n % 3]

    assert await pages(database, at_most=7) == wanted
    assert await pages(database, at_most=50) == wanted


async def test_pages_of_one_number_are_what_it_was_sent(database: Database) -> None:
    await seed(database, 60)

    assert await pages(database, at_most=4, destination=ANN) == [id_number(n) for n in range(59, 0, -2) if n % 3]


async def test_another_partner_has_nothing(database: Database) -> None:
    await seed(database, 6)

    assert await database.read(messages_of_app, PARTNER.id + 1, APP.id) == []


async def test_a_page_has_a_bound_whatever_is_asked(database: Database) -> None:
    await seed(database, MAX_PAGE_ROWS * 2)

    assert len(await database.read(_page, None, None, 10_000)) == MAX_PAGE_ROWS


async def test_templates_are_named_by_their_ids_to_their_own_partner(database: Database) -> None:
    made = [template(n, draft(element_name=f"offer_{n}")) for n in (1, 2, 3)]
    for one in made:
        await database.write(record_template, one)
    ids = [made[0].id, None, made[2].id, made[0].id, "unknown"]

    named = await database.read(template_names_by_ids, PARTNER.id, ids)

    assert named == {made[0].id: "offer_1 (en_US)", made[2].id: "offer_3 (en_US)"}
    assert await database.read(template_names_by_ids, PARTNER.id, [None]) == {}
    assert await database.read(template_names_by_ids, PARTNER.id + 1, ids) == {}
