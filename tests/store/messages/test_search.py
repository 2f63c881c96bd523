"""Searching an app's messages: every filter, alone and combined, page by page, at a bounded cost; on each engine."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Connection, insert, update

from benchmarks.query_plans import grows
from benchmarks.statements import Statements, plan_of, scans
from tests.support import store_locations
from tests.support.builders import ACCOUNT, ANN, APP, AT_MS, BEN, PARTNER, id_number, message
from waypost.domain.app import App
from waypost.domain.message import Message, MessageState, Passthrough, TemplateSend
from waypost.domain.session_messages.content import MediaKind, MediaRef
from waypost.domain.session_messages.plain import SessionMedia, SessionText
from waypost.store.database import Database
from waypost.store.encoding import app_columns
from waypost.store.messages.lists import MessageCursor, SearchPage, SearchResults
from waypost.store.messages.messages import MessageChange, change_messages, record_messages
from waypost.store.messages.recipients import get_or_create_recipients, recipient_names
from waypost.store.messages.search import MessageFilter, current_messages, search_messages
from waypost.store.tables import apps, recipients

OTHER = replace(APP, id="01990000-0000-7000-8000-00000000000b", name="Other", phone_number="15550002222")
TEMPLATE = "01990000-0000-7000-8000-0000000000ff"


def _add_apps(connection: Connection, new_apps: Sequence[App]) -> None:
    connection.execute(insert(apps), [app_columns(app, f"hash {app.id}") for app in new_apps])


@pytest.fixture(autouse=True)
async def seed_apps(database: Database) -> None:
    assert ACCOUNT.partner_id == APP.partner_id
    await database.write(_add_apps, [APP, OTHER])


async def store_messages(database: Database, messages: Sequence[Message]) -> None:
    await database.join_all(record_messages, messages)


def record_outcomes(connection: Connection, outcomes: Sequence[tuple[Message, MessageState, int | None]]) -> None:
    """Write what dispatch writes once the operator has responded."""
    keys = {(sent.app_id, sent.partner_id, sent.destination) for sent, _, _ in outcomes}
    recipient_ids = get_or_create_recipients(connection, keys)
    changes = [
        MessageChange(
            sent.id, state, AT_MS, recipient_ids[sent.app_id, sent.destination], f"wamid.{sent.id}", code=code
        )
        for sent, state, code in outcomes
    ]
    change_messages(connection, changes, [])


async def all_ids(database: Database, message_filter: MessageFilter, **more: Any) -> list[str]:
    """Return the ids of all pages."""
    ids: list[str] = []
    before: MessageCursor | None = None
    for _ in range(200):
        page = await one_page(database, message_filter, before=before, **more)
        ids += [row["id"] for row in page.rows]
        if page.next is None:
            return ids
        before = page.next
    raise AssertionError("paging never ends")


async def one_page(database: Database, message_filter: MessageFilter, **more: Any) -> SearchResults:
    def search(connection: Connection) -> SearchResults:
        return search_messages(connection, PARTNER.id, APP.id, message_filter, SearchPage(**more))

    return await database.read(search)


def plain_messages(count: int, *, each_ms: int = 2) -> list[Message]:
    """Return messages to Ann and Ben in turn, two of each millisecond, every third of another app."""
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


async def test_all_messages_are_paged_newest_first(database: Database) -> None:
    await store_messages(database, plain_messages(60))
    expected = ids([n for n in range(1, 61) if n % 3])

    assert await all_ids(database, MessageFilter(), at_most=7) == expected
    assert await all_ids(database, MessageFilter(), at_most=50) == expected
    assert await all_ids(database, MessageFilter(state="accepted"), at_most=7, scan_limit=5) == expected


async def test_state_code_kind_and_template_filters_work_alone_and_together(database: Database) -> None:
    messages = [
        message(1, SessionText("Hello")),
        message(2, TemplateSend(TEMPLATE, ("Ann",)), destination=BEN),
        message(3, TemplateSend(TEMPLATE, ("Ben",))),
        message(4, SessionMedia(MediaKind.IMAGE, MediaRef(link="https://a.test/b.png"), "A view")),
        message(5, Passthrough("text", {"body": "As it is"})),
    ]
    await store_messages(database, messages)
    await database.write(
        record_outcomes,
        [
            (messages[1], MessageState.FAILED, 131049),
            (messages[2], MessageState.FAILED, 131026),
            (messages[3], MessageState.READ, None),
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
    for message_filter, numbers in cases:
        assert await all_ids(database, message_filter) == ids(numbers), message_filter


async def test_part_of_a_number_finds_waiting_and_sent_messages(database: Database) -> None:
    messages = plain_messages(30)
    await store_messages(database, messages)
    to_ben = [n for n in range(1, 31) if n % 3 and n % 2 == 0]

    assert await all_ids(database, MessageFilter(number="4568"), scan_limit=3) == ids(to_ben)
    await database.write(
        record_outcomes, [(sent, MessageState.SENT, None) for sent in messages[:15] if sent.app_id == APP.id]
    )
    assert await all_ids(database, MessageFilter(number="4568")) == ids(to_ben)
    assert await all_ids(database, MessageFilter(number=BEN)) == ids(to_ben)
    assert await all_ids(database, MessageFilter(number="4568"), at_most=2, scan_limit=4) == ids(to_ben)
    assert await all_ids(database, MessageFilter(number="9999")) == []


async def test_message_is_found_by_our_id_and_by_the_operators(database: Database) -> None:
    messages = plain_messages(6)
    await store_messages(database, messages)
    await database.write(record_outcomes, [(sent, MessageState.SENT, None) for sent in messages])

    assert await all_ids(database, MessageFilter(name=id_number(4))) == [id_number(4)]
    assert await all_ids(database, MessageFilter(name=f"wamid.{id_number(5)}")) == [id_number(5)]
    assert await all_ids(database, MessageFilter(name=id_number(4), state="failed")) == []
    assert await all_ids(database, MessageFilter(name="wamid.unknown")) == []
    assert await all_ids(database, MessageFilter(name=id_number(3))) == []  # another app's
    assert await all_ids(database, MessageFilter(name=f"wamid.{id_number(3)}")) == []


async def test_recipient_is_found_by_name_in_any_case(database: Database) -> None:
    messages = plain_messages(30)
    await store_messages(database, messages)
    sent_to_ben = [sent for sent in messages if sent.destination == BEN][:2]  # the others wait
    await database.write(record_outcomes, [(sent, MessageState.SENT, None) for sent in sent_to_ben])

    def write(connection: Connection) -> None:
        one = (recipients.c.phone_number == BEN, recipients.c.app_id == APP.id)
        connection.execute(update(recipients).where(*one).values(name="Ömer Ben"))

    await database.write(write)
    to_ben = ids([n for n in range(1, 31) if n % 3 and not n % 2])

    assert await all_ids(database, MessageFilter(person="ÖMER b"), at_most=4, scan_limit=7) == to_ben
    assert await all_ids(database, MessageFilter(person="ben", text="order 4"), at_most=4) == [id_number(4)]
    assert await all_ids(database, MessageFilter(person="ann"), at_most=4) == []
    assert await database.read(recipient_names, APP.id, [ANN, BEN, "US.1"]) == {BEN: "Ömer Ben"}


async def test_times_bound_a_search_to_the_millisecond(database: Database) -> None:
    await store_messages(database, plain_messages(60))
    since, until = AT_MS + 10, AT_MS + 20
    expected = ids([n for n in range(1, 61) if n % 3 and since <= AT_MS + n // 2 < until])

    assert await all_ids(database, MessageFilter(from_ms=since, until_ms=until), at_most=3) == expected
    bounded = MessageFilter(state="accepted", from_ms=since, until_ms=until)
    assert await all_ids(database, bounded, at_most=3, scan_limit=4) == expected


TEXT_CASES: tuple[tuple[str, list[int]], ...] = (  # search text, and the messages that contain it
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


@pytest.mark.parametrize(("text", "numbers"), TEXT_CASES)
async def test_text_is_found_in_any_case_and_names_of_members_are_not(
    database: Database, text: str, numbers: list[int]
) -> None:
    texts = ["Naïve plans", "Die STRASSE", 'Please say "yes"', "100% of_it", "बधाई हो", "Привет, мир"]
    texts[1] = "Die Straße"
    messages = [message(n, SessionText(f"Your order {n}")) for n in (10, 11, 12)]
    messages += [message(n, SessionText(content)) for n, content in enumerate(texts, 13)]
    messages += [
        message(19, TemplateSend(TEMPLATE, ("Ann", "4711"))),
        message(20, SessionMedia(MediaKind.IMAGE, MediaRef(link="https://a.test/b"), "A view")),
        message(21, Passthrough("interactive", {"type": "list", "body": {"text": "As it is"}})),
    ]
    await store_messages(database, messages)

    assert await all_ids(database, MessageFilter(text=text, from_ms=AT_MS)) == ids(numbers)


HIDDEN_TEXT_CASES: tuple[tuple[str, list[int]], ...] = (
    # searched for whole words       numbers of the messages
    ("Zinnia",                       [1, 2]),
    ("zinnia.",                      [1, 2]),
    ("zinnia seeds",                 [2]),
    ("ZINNIA   Seeds!",              [2]),
    ("seeds zinnia",                 []),
    ("zinn",                         []),
    ("innia",                        []),
    ("zinnia seed",                  []),
    ("1250",                         []),
    ("1250.75",                      [2]),
    ("ann@flowers.example",          [3]),
    ("flowers.example",              []),
    ("straße",                       [4]),
    ("हिन्दी",                         [5]),
    ("हिन्",                           []),
    ("你好世界",                      [5]),
    ("你好世界!",                     [5]),
    ("你好世",                        []),
    ("हिन्दी 你好世界",                 [5]),
    ("%",                            []),
    ("...",                          []),
)  # fmt: skip


@pytest.mark.parametrize(("text", "numbers"), HIDDEN_TEXT_CASES)
async def test_hidden_text_is_found_by_whole_words_only(database: Database, text: str, numbers: list[int]) -> None:
    texts = ["Zinnia, please", "One zinnia\nseeds: 1250.75 $", "To <ann@flowers.example>", "(STRASSE)"]
    texts += ["हिन्दी  你好世界。"]
    messages = [message(n, SessionText(one), accepted_on_ms=AT_MS + n) for n, one in enumerate(texts, 1)]
    await store_messages(database, messages)

    for scan_limit in (2, 100):
        found = await all_ids(database, MessageFilter(text=text, whole_words=True), scan_limit=scan_limit)
        assert found == ids(numbers)


async def test_hidden_text_is_not_read_letter_by_letter(database: Database) -> None:
    secret = "zinnia seeds"
    await store_messages(database, [message(1, SessionText(f"Send {secret}"))])

    ends = range(1, len(secret) + 1)
    guesses = {guess for end in ends for start in range(end) if (guess := secret[start:end].strip())}
    found = {guess for guess in guesses if await all_ids(database, MessageFilter(text=guess, whole_words=True))}

    assert found == {"zinnia", "seeds", secret}


async def test_page_that_ends_at_the_scan_limit_reports_how_far_it_searched(database: Database) -> None:
    messages = plain_messages(60, each_ms=1)
    await store_messages(database, messages)
    await database.write(record_outcomes, [(messages[0], MessageState.FAILED, 131049)])

    page = await one_page(database, MessageFilter(state="failed"), scan_limit=10)

    assert page.rows == []
    assert page.searched_to_ms is not None
    assert AT_MS < page.searched_to_ms < AT_MS + 60
    assert page.next == MessageCursor(page.searched_to_ms, "")
    assert await all_ids(database, MessageFilter(state="failed"), scan_limit=10) == [id_number(1)]


async def test_another_partner_finds_nothing(database: Database) -> None:
    await store_messages(database, plain_messages(6))

    def search(connection: Connection, message_filter: MessageFilter) -> SearchResults:
        return search_messages(connection, PARTNER.id + 1, APP.id, message_filter)

    for message_filter in (
        MessageFilter(),
        MessageFilter(number=ANN),
        MessageFilter(name=id_number(1)),
        MessageFilter(state="accepted"),
    ):
        assert await database.read(search, message_filter) == SearchResults([])
    assert await database.read(current_messages, PARTNER.id + 1, APP.id, [id_number(1)]) == []
    assert len(await database.read(current_messages, PARTNER.id, APP.id, [id_number(1)])) == 1


async def test_no_search_reads_a_whole_table(database: Database, store_location: store_locations.StoreLocation) -> None:
    messages = plain_messages(30)
    await store_messages(database, messages)
    await database.write(record_outcomes, [(sent, MessageState.SENT, None) for sent in messages[:15]])
    statements = Statements(store_location.name)
    for message_filter in (
        MessageFilter(),
        MessageFilter(state="failed"),
        MessageFilter(number="4568"),
        MessageFilter(number="9999"),
        MessageFilter(name="wamid.none"),
        MessageFilter(name=id_number(4)),
        MessageFilter(text="order", from_ms=AT_MS),
        MessageFilter(person="ben"),
    ):
        await all_ids(database, message_filter, at_most=4, scan_limit=10)
    await database.read(current_messages, PARTNER.id, APP.id, [id_number(1)])
    await database.read(recipient_names, APP.id, [ANN])
    statements.end()

    def explain(connection: Connection) -> dict[str, list[str]]:
        return {statement.text: plan_of(connection, statement) for statement in statements.all()}

    plans = await database.read(explain)
    wrong = [f"{step.text} in {text}" for text, plan in plans.items() for step in scans(plan) if grows(step.table)]

    assert len(plans) > 8
    assert not wrong, "\n".join(wrong)


async def test_search_ends_if_more_messages_than_the_limit_share_a_millisecond(database: Database) -> None:
    messages = [message(n, SessionText("Hello"), accepted_on_ms=AT_MS + max(n - 30, 0)) for n in range(1, 32)]
    await store_messages(database, messages)
    await database.write(record_outcomes, [(messages[0], MessageState.FAILED, 131049)])

    pages, before = 0, None
    found: list[str] = []
    while pages == 0 or before is not None:
        page = await one_page(database, MessageFilter(state="failed"), before=before, scan_limit=10)
        found += [row["id"] for row in page.rows]
        before, pages = page.next, pages + 1
        assert pages <= 4

    assert found == [id_number(1)]
