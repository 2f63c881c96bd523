"""Searching an app's messages: every filter, all together, page by page, and at a bounded cost; on each engine."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Connection, insert

from benchmarks.plans import grows
from benchmarks.statements import Statements, plan_of, scans
from tests.support import stores
from tests.support.builders import ACCOUNT, ANN, APP, AT_MS, BEN, PARTNER, id_number, message
from waypost.domain.app import App
from waypost.domain.message import Message, MessageState, Passthrough, TemplateSend
from waypost.domain.session_messages.content import MediaKind, MediaRef
from waypost.domain.session_messages.plain import SessionMedia, SessionText
from waypost.store.database import Database
from waypost.store.encoding import app_columns
from waypost.store.messages.lists import MessageCursor
from waypost.store.messages.messages import MessageChange, change_messages, record_messages
from waypost.store.messages.recipients import get_or_create_recipients
from waypost.store.messages.search import MessageFilter, current_messages, search_messages
from waypost.store.messages.search_pages import SearchPage, SearchResults
from waypost.store.tables import apps

OTHER = replace(APP, id="01990000-0000-7000-8000-00000000000b", name="Other", phone_number="15550002222")
TEMPLATE = "01990000-0000-7000-8000-0000000000ff"


def _add_apps(connection: Connection, made: Sequence[App]) -> None:
    connection.execute(insert(apps), [app_columns(one, f"hash {one.id}") for one in made])


@pytest.fixture(autouse=True)
async def with_apps(database: Database) -> None:
    assert ACCOUNT.partner_id == APP.partner_id
    await database.write(_add_apps, [APP, OTHER])


async def keep(database: Database, made: Sequence[Message]) -> None:
    await database.join_all(record_messages, made)


def move(connection: Connection, moved: Sequence[tuple[Message, MessageState, int | None]]) -> None:
    """What dispatch writes when the operator has said what it makes of messages."""
    wanted = {(one.app_id, one.partner_id, one.destination) for one, _, _ in moved}
    known = get_or_create_recipients(connection, wanted)
    changes = [
        MessageChange(one.id, state, AT_MS, known[one.app_id, one.destination], f"wamid.{one.id}", code=code)
        for one, state, code in moved
    ]
    change_messages(connection, changes, [])


async def found(database: Database, wanted: MessageFilter, **more: Any) -> list[str]:
    """The ids of every page together."""
    ids: list[str] = []
    before: MessageCursor | None = None
    for _ in range(200):
        page = await one_page(database, wanted, before=before, **more)
        ids += [row["id"] for row in page.rows]
        if page.next is None:
            return ids
        before = page.next
    raise AssertionError("it never ends")


async def one_page(database: Database, wanted: MessageFilter, **more: Any) -> SearchResults:
    def look(connection: Connection) -> SearchResults:
        return search_messages(connection, PARTNER.id, APP.id, wanted, SearchPage(**more))

    return await database.read(look)


def plain(count: int, *, each_ms: int = 2) -> list[Message]:
    """To Ann and Ben in turn, two of each millisecond, and every third another app's."""
    return [
        message(
            n,
            content=SessionText(f"Order {n} is ready"),
            app_id=OTHER.id if n % 3 == 0 else APP.id,
            destination=ANN if n % 2 else BEN,
            accepted_on_ms=AT_MS + n // each_ms,
        )
        for n in range(1, count + 1)
    ]


def ids(numbers: Sequence[int]) -> list[str]:
    return [id_number(n) for n in sorted(numbers, reverse=True)]


async def test_everything_comes_newest_first_page_by_page(database: Database) -> None:
    await keep(database, plain(60))
    wanted = ids([n for n in range(1, 61) if n % 3])

    assert await found(database, MessageFilter(), at_most=7) == wanted
    assert await found(database, MessageFilter(), at_most=50) == wanted
    assert await found(database, MessageFilter(state="accepted"), at_most=7, scan_limit=5) == wanted


async def test_states_codes_kinds_and_templates_are_found_alone_and_together(database: Database) -> None:
    made = [
        message(1, SessionText("Hello")),
        message(2, TemplateSend(TEMPLATE, ("Ann",)), destination=BEN),
        message(3, TemplateSend(TEMPLATE, ("Ben",))),
        message(4, SessionMedia(MediaKind.IMAGE, MediaRef(link="https://a.test/b.png"), "A view")),
        message(5, Passthrough("text", {"body": "As it is"})),
    ]
    await keep(database, made)
    await database.write(
        move,
        [
            (made[1], MessageState.FAILED, 131049),
            (made[2], MessageState.FAILED, 131026),
            (made[3], MessageState.READ, None),
        ],
    )

    cases: tuple[tuple[MessageFilter, list[int]], ...] = (
        (MessageFilter(state="failed"), [2, 3]),
        (MessageFilter(code=131026), [3]),
        (MessageFilter(kinds=("media",)), [4]),
        (MessageFilter(kinds=("media", "passthrough")), [4, 5]),
        (MessageFilter(template_id=TEMPLATE), [2, 3]),
        (MessageFilter(template_id=TEMPLATE, state="failed", number=BEN), [2]),
        (MessageFilter(template_id=TEMPLATE, state="read"), []),
        (MessageFilter(state="accepted", number=ANN), [1, 5]),
    )
    for wanted, numbers in cases:
        assert await found(database, wanted) == ids(numbers), wanted


async def test_part_of_a_number_leads_to_messages_that_wait_and_to_those_that_went(database: Database) -> None:
    made = plain(30)
    await keep(database, made)
    of_ben = [n for n in range(1, 31) if n % 3 and n % 2 == 0]

    assert await found(database, MessageFilter(number="4568"), scan_limit=3) == ids(of_ben)
    await database.write(move, [(one, MessageState.SENT, None) for one in made[:15] if one.app_id == APP.id])
    assert await found(database, MessageFilter(number="4568")) == ids(of_ben)
    assert await found(database, MessageFilter(number=BEN)) == ids(of_ben)
    assert await found(database, MessageFilter(number="4568"), at_most=2, scan_limit=4) == ids(of_ben)
    assert await found(database, MessageFilter(number="9999")) == []


async def test_ids_lead_to_a_message_whoever_gave_them(database: Database) -> None:
    made = plain(6)
    await keep(database, made)
    await database.write(move, [(one, MessageState.SENT, None) for one in made])

    assert await found(database, MessageFilter(name=id_number(4))) == [id_number(4)]
    assert await found(database, MessageFilter(name=f"wamid.{id_number(5)}")) == [id_number(5)]
    assert await found(database, MessageFilter(name=id_number(4), state="failed")) == []
    assert await found(database, MessageFilter(name="wamid.unknown")) == []
    assert await found(database, MessageFilter(name=id_number(3))) == []  # another app's
    assert await found(database, MessageFilter(name=f"wamid.{id_number(3)}")) == []


async def test_times_bound_a_search_to_the_millisecond(database: Database) -> None:
    await keep(database, plain(60))
    since, until = AT_MS + 10, AT_MS + 20
    wanted = ids([n for n in range(1, 61) if n % 3 and since <= AT_MS + n // 2 < until])

    assert await found(database, MessageFilter(from_ms=since, until_ms=until), at_most=3) == wanted
    bounded = MessageFilter(state="accepted", from_ms=since, until_ms=until)
    assert await found(database, bounded, at_most=3, scan_limit=4) == wanted


WORDS: tuple[tuple[str, list[int]], ...] = (  # what is looked for, and which messages say it
    ("order 12", [12]),
    ("ORDER", [10, 11, 12]),
    ("naïve", [13]),
    ("NAÏVE", [13]),
    ("Straße", [14]),
    ('say "yes"', [15]),
    ("100% of_it", [16]),
    ("बधाई", [17]),
    ("ПРИВЕТ", [18]),
    ("привет", [18]),
    ("Ann", [19]),
    ("a view", [20]),
    ("as it is", [21]),
    ("preview_url", []),
    ("text", []),
)


@pytest.mark.parametrize(("text", "numbers"), WORDS)
async def test_words_are_found_in_capitals_or_not_and_names_of_members_are_not(
    database: Database, text: str, numbers: list[int]
) -> None:
    said = ["Naïve plans", "Die STRASSE", 'Please say "yes"', "100% of_it", "बधाई हो", "Привет, мир"]
    said[1] = "Die Straße"
    made = [message(n, SessionText(f"Your order {n}")) for n in (10, 11, 12)]
    made += [message(n, SessionText(one)) for n, one in enumerate(said, 13)]
    made += [
        message(19, TemplateSend(TEMPLATE, ("Ann", "4711"))),
        message(20, SessionMedia(MediaKind.IMAGE, MediaRef(link="https://a.test/b"), "A view")),
        message(21, Passthrough("interactive", {"type": "list", "body": {"text": "As it is"}})),
    ]
    await keep(database, made)

    assert await found(database, MessageFilter(text=text, from_ms=AT_MS)) == ids(numbers)


async def test_page_that_ends_at_the_bound_says_how_far_it_looked(database: Database) -> None:
    made = plain(60, each_ms=1)
    await keep(database, made)
    await database.write(move, [(made[0], MessageState.FAILED, 131049)])

    page = await one_page(database, MessageFilter(state="failed"), scan_limit=10)

    assert page.rows == []
    assert page.searched_to_ms is not None
    assert AT_MS < page.searched_to_ms < AT_MS + 60
    assert page.next == MessageCursor(page.searched_to_ms, "")
    assert await found(database, MessageFilter(state="failed"), scan_limit=10) == [id_number(1)]


async def test_another_partner_finds_nothing(database: Database) -> None:
    await keep(database, plain(6))

    def look(connection: Connection, wanted: MessageFilter) -> SearchResults:
        return search_messages(connection, PARTNER.id + 1, APP.id, wanted)

    for wanted in (
        MessageFilter(),
        MessageFilter(number=ANN),
        MessageFilter(name=id_number(1)),
        MessageFilter(state="accepted"),
    ):
        assert await database.read(look, wanted) == SearchResults([])
    assert await database.read(current_messages, PARTNER.id + 1, APP.id, [id_number(1)]) == []
    assert len(await database.read(current_messages, PARTNER.id, APP.id, [id_number(1)])) == 1


async def test_no_search_reads_a_whole_table(database: Database, place: stores.Place) -> None:
    made = plain(30)
    await keep(database, made)
    await database.write(move, [(one, MessageState.SENT, None) for one in made[:15]])
    statements = Statements(place.name)
    for wanted in (
        MessageFilter(),
        MessageFilter(state="failed"),
        MessageFilter(number="4568"),
        MessageFilter(number="9999"),
        MessageFilter(name="wamid.none"),
        MessageFilter(name=id_number(4)),
        MessageFilter(text="order", from_ms=AT_MS),
    ):
        await found(database, wanted, at_most=4, scan_limit=10)
    await database.read(current_messages, PARTNER.id, APP.id, [id_number(1)])
    statements.end()

    def explained(connection: Connection) -> dict[str, list[str]]:
        return {one.text: plan_of(connection, one) for one in statements.all()}

    plans = await database.read(explained)
    wrong = [f"{step.text} in {asked}" for asked, plan in plans.items() for step in scans(plan) if grows(step.table)]

    assert len(plans) > 8
    assert not wrong, "\n".join(wrong)
