"""One person keeps one recipient while its names become known, change, and pass to others."""

import asyncio
import sqlite3
from contextlib import closing
from typing import Any

import pytest
from sqlalchemy import Connection, func, insert, select, update

from benchmarks.statements import Statements
from tests.store.apps.test_apps import SECOND
from tests.support.builders import ANN, APP, AT_MS, BEN, message
from tests.support.store_locations import StoreLocation
from waypost.store.accounts.partners import add_app
from waypost.store.database import Database
from waypost.store.messages.messages import record_messages
from waypost.store.messages.recipients import (
    NumberWithUserId,
    PersonNames,
    add_user_ids,
    find_recipients,
    get_or_create_recipient,
    get_or_create_recipients,
    link_number,
    record_number_change,
    record_user_id_change,
)
from waypost.store.retention.export import find_person
from waypost.store.tables import app_users, callbacks, messages, recipients, subscriptions

NUMBER, WHATSAPP_ID = "5593987654321", "559387654321"
A, B, PARENT = "US.1349", "US.1350", "US.ENT.99"


def find(
    connection: Connection, phone_number: str | None, user_id: str | None = None, parent_id: str | None = None
) -> int:
    return get_or_create_recipient(connection, APP, phone_number, user_id, parent_id)


def change_user_id(connection: Connection, previous: str, *names: str | None) -> int:
    return record_user_id_change(connection, APP, previous, PersonNames(*names), {})


def change_number(connection: Connection, previous: str, *names: str | None) -> int:
    return record_number_change(connection, APP, previous, PersonNames(*names), {})


def link(connection: Connection, number: str, whatsapp_id: str) -> int:
    return link_number(connection, APP, find(connection, whatsapp_id), number, {})


async def test_person_is_one_recipient_from_the_number_alone_to_the_user_id_alone(database: Database) -> None:
    ids = [await database.write(find, *names) for names in [(ANN,), (ANN, A), (None, A), (ANN,), (ANN, A)]]

    assert len(set(ids)) == 1


async def test_rows_of_one_person_become_one_and_messages_follow(database: Database) -> None:
    by_number = await database.write(find, ANN)
    by_user = await database.write(find, None, A)
    await database.write(record_messages, [message(1)])
    await database.write(set_recipient, message(1).id, by_user)

    person = await database.write(find, ANN, A)

    assert person == by_number != by_user
    assert [await database.write(find, *names) for names in [(ANN,), (None, A)]] == [person, person]
    assert await database.read(recipient_of, message(1).id) == person
    await database.write(add_app, APP, "hash")
    assert set((await database.read(find_person, A)).recipient_ids) == {by_number, by_user}
    names = {(APP.id, APP.partner_id, name) for name in (ANN, A)}
    assert set((await database.write(get_or_create_recipients, names)).values()) == {person}


async def test_user_ids_are_stored_with_their_numbers_unless_another_row_is_concerned(database: Database) -> None:
    ann = await database.write(find, ANN)
    ben = await database.write(find, BEN, B)
    given = {
        "new": NumberWithUserId(APP.id, ann, ANN, A),
        "stored before": NumberWithUserId(APP.id, ben, BEN, B),
        "of another person": NumberWithUserId(APP.id, ann, ANN, B),
        "another of a number": NumberWithUserId(APP.id, ben, BEN, A),
        "of another recipient": NumberWithUserId(APP.id, ben, ANN, A),
        "of an unknown number": NumberWithUserId(APP.id, ann, "15550001111", A),
        "of another app": NumberWithUserId("another", ann, ANN, A),
    }

    stored = {name: await database.write(add_user_ids, [user]) == [user] for name, user in reversed(given.items())}

    assert {name for name, is_stored in stored.items() if is_stored} == {"new", "stored before"}
    assert [await database.write(find, None, user_id) for user_id in (A, B)] == [ann, ben]


async def test_many_user_ids_are_stored_at_once(database: Database) -> None:
    numbers = [f"1555000{n:04}" for n in range(50)]
    rows = [await database.write(find, number) for number in numbers]
    users = [NumberWithUserId(APP.id, row, number, f"US.{number}") for row, number in zip(rows, numbers, strict=True)]

    assert await database.write(add_user_ids, users) == users

    assert [await database.write(find, None, user.user_id) for user in users] == rows


@pytest.mark.parametrize("engine", ["sqlite"])
async def test_recipients_are_found_by_their_names_where_most_have_none(
    database: Database, store_location: StoreLocation
) -> None:
    """SQLite's statistics count rows with NULL as if they were alike."""
    await database.write(_add_numbers, 2000)
    await database.write(_analyze)
    statements = Statements(store_location.name)
    try:
        await database.write(find, ANN, A)
        await database.write(add_user_ids, [NumberWithUserId(APP.id, 1, ANN, A)])
        await database.write(get_or_create_recipients, {(APP.id, APP.partner_id, name) for name in (ANN, A)})
    finally:
        statements.end()

    with closing(sqlite3.connect(store_location.name)) as connection:  # one that has read the statistics
        plans = {
            one.text: [step[3] for step in connection.execute(f"EXPLAIN QUERY PLAN {one.text}", one.parameters)]
            for one in statements.all()
        }

    assert len(plans) > 4
    assert {text for text, steps in plans.items() if "SCAN recipients" in steps} == set()


def _analyze(connection: Connection) -> None:
    connection.exec_driver_sql("ANALYZE")


def _add_numbers(connection: Connection, count: int) -> None:
    identities = {(APP.id, APP.partner_id, f"1555{n:07}") for n in range(count)}
    get_or_create_recipients(connection, identities)


@pytest.mark.parametrize("last", ["number", "user id"])
async def test_row_with_the_newest_undelivered_callbacks_counts(database: Database, last: str) -> None:
    by_number = await database.write(find, ANN)
    by_user = await database.write(find, None, A)
    newest, oldest = (by_number, by_user) if last == "number" else (by_user, by_number)
    await database.write(add_open_callbacks, [str(oldest), str(newest), "t:1"])

    assert await database.write(find, ANN, A) == newest


async def test_number_that_passes_to_another_person_leaves_its_former_owner(database: Database) -> None:
    former = await database.write(find, ANN, A)
    other = await database.write(find, BEN, B)

    assert await database.write(find, ANN, B) == other
    assert await database.write(find, None, A) == former
    assert await database.write(find, ANN) == other
    assert await database.write(find, BEN) not in (former, other)


async def test_user_id_that_replaces_another_without_notice_leads_nowhere_near_the_former_one(
    database: Database,
) -> None:
    person = await database.write(find, ANN, A)

    assert await database.write(find, ANN, B) == person
    assert await database.write(find, None, B) == person
    assert await database.write(find, None, A) != person


async def test_new_number_of_a_user_id_takes_the_place_of_the_one_before(database: Database) -> None:
    person = await database.write(find, ANN, A)

    assert await database.write(find, BEN, A) == person
    assert await database.write(find, ANN) != person


@pytest.mark.parametrize("known", [(), ("US.1350",), (None, BEN)], ids=["new", "with a row", "with a number"])
async def test_person_whose_user_id_changes_keeps_its_row_under_both(
    database: Database, known: tuple[str | None, ...]
) -> None:
    person = await database.write(find, ANN, A)
    if known:
        await database.write(find, None, B)

    changed = await database.write(change_user_id, A, None, B, PARENT)

    assert changed == person
    for names in [(None, A), (None, B), (ANN,), (ANN, B), (None, None, PARENT), (None, A, PARENT)]:
        assert await database.write(find, *names) == person
    await database.write(add_app, APP, "hash")
    assert set((await database.read(find_person, A)).names) == {ANN, A, B, PARENT}


@pytest.mark.parametrize("is_known", [False, True], ids=["new", "with a row"])
async def test_person_whose_number_changes_keeps_its_row(database: Database, is_known: bool) -> None:
    person = await database.write(find, ANN, A)
    if is_known:
        await database.write(find, BEN)

    changed = await database.write(change_number, ANN, BEN, None)

    assert await database.write(find, BEN, A) == changed == await database.write(find, None, A)
    assert is_known or changed == person
    assert await database.write(find, ANN) != changed


@pytest.mark.parametrize("known", [(), (NUMBER,), (WHATSAPP_ID,), (NUMBER, WHATSAPP_ID), (WHATSAPP_ID, NUMBER)])
@pytest.mark.parametrize("newest", [None, 0, -1], ids=["delivered", "first", "last"])
async def test_number_and_its_whatsapp_id_are_one_person(
    database: Database, known: tuple[str, ...], newest: int | None
) -> None:
    rows = {name: await database.write(find, name) for name in known}
    await database.write(add_app, APP, "hash")
    if known and newest is not None:
        await database.write(add_open_callbacks, [str(rows[known[newest]])])

    person = await database.write(link, NUMBER, WHATSAPP_ID)

    for _ in range(2):
        assert [await database.write(find, name) for name in (NUMBER, WHATSAPP_ID)] == [person, person]
        assert await database.write(find, WHATSAPP_ID, A) == person  # the second time it is known
    for name in (NUMBER, WHATSAPP_ID):
        found = await database.read(find_person, name)
        assert (set(found.names), set(rows.values()) <= set(found.recipient_ids)) == ({NUMBER, WHATSAPP_ID, A}, True)
    assert (await database.read(current_names, person)) == (WHATSAPP_ID, A)
    if known and newest is not None:
        assert person == rows[known[newest]]


async def test_two_numbers_with_one_whatsapp_id_are_one_person(database: Database) -> None:
    person = await database.write(link, NUMBER, WHATSAPP_ID)

    assert await database.write(link, BEN, WHATSAPP_ID) == person
    assert await database.write(link, NUMBER, BEN) == person
    assert [await database.write(find, name) for name in (NUMBER, WHATSAPP_ID, BEN)] == [person] * 3
    assert await database.write(find, NUMBER, A) == person  # and a status with the number as it was sent to
    assert (await database.read(current_names, person)) == (WHATSAPP_ID, A)


async def test_number_whose_whatsapp_id_becomes_another_leads_to_that_one(database: Database) -> None:
    former = await database.write(link, NUMBER, WHATSAPP_ID)
    current = await database.write(link, NUMBER, BEN)

    assert former != current
    assert [await database.write(find, name) for name in (NUMBER, BEN, WHATSAPP_ID)] == [current, current, former]


async def test_number_with_another_user_id_than_its_whatsapp_id_has_passed_to_that_person(database: Database) -> None:
    former = await database.write(find, NUMBER, A)
    current = await database.write(find, WHATSAPP_ID, B)

    assert await database.write(link, NUMBER, WHATSAPP_ID) == current
    assert [await database.write(find, *names) for names in [(None, A), (NUMBER,)]] == [former, current]


@pytest.mark.parametrize("changed", [NUMBER, WHATSAPP_ID])
@pytest.mark.parametrize("is_known", [False, True], ids=["new", "with a row"])
async def test_person_who_changes_the_number_leaves_it_in_every_spelling(
    database: Database, changed: str, is_known: bool
) -> None:
    person = await database.write(link, NUMBER, WHATSAPP_ID)
    if is_known:
        await database.write(find, BEN)

    current = await database.write(change_number, changed, BEN, A)

    assert await database.write(find, BEN, A) == current
    assert is_known or current == person
    assert not await database.read(find_recipients, {(APP.id, NUMBER), (APP.id, WHATSAPP_ID)})


async def test_notice_of_a_change_to_the_other_spelling_keeps_that_one(database: Database) -> None:
    person = await database.write(link, NUMBER, WHATSAPP_ID)

    assert await database.write(change_number, WHATSAPP_ID, NUMBER, None) == person
    assert await database.read(find_recipients, {(APP.id, NUMBER), (APP.id, WHATSAPP_ID)}) == {(APP.id, NUMBER): person}


@pytest.mark.parametrize("is_known", [False, True], ids=["new", "with a row"])
async def test_new_number_of_a_user_id_takes_the_place_of_every_spelling(database: Database, is_known: bool) -> None:
    person = await database.write(link, NUMBER, WHATSAPP_ID)
    await database.write(find, WHATSAPP_ID, A)
    if is_known:
        await database.write(link, ANN, BEN)

    current = await database.write(find, ANN if is_known else BEN, A)

    assert await database.write(find, BEN) == current == await database.write(find, None, A)
    assert is_known or current == person
    assert not await database.read(find_recipients, {(APP.id, NUMBER), (APP.id, WHATSAPP_ID)})


async def test_other_spelling_that_passes_to_another_person_leaves_its_former_owner(database: Database) -> None:
    former = await database.write(link, NUMBER, WHATSAPP_ID)
    await database.write(find, WHATSAPP_ID, A)
    other = await database.write(find, None, B)

    assert await database.write(find, NUMBER, B) == other
    assert [await database.write(find, name) for name in (WHATSAPP_ID, NUMBER)] == [former, other]


async def test_number_leads_to_what_another_app_has_under_its_whatsapp_id(database: Database) -> None:
    await database.write(add_app, APP, "hash")
    await database.write(add_app, SECOND, "hash of another")
    person = await database.write(link, NUMBER, WHATSAPP_ID)
    elsewhere = await database.write(get_or_create_recipient, SECOND, WHATSAPP_ID)

    found = [await database.read(find_person, name) for name in (NUMBER, WHATSAPP_ID)]

    assert [{person, elsewhere} < set(one.recipient_ids) for one in found] == [True, True]


@pytest.mark.parametrize("engine", ["postgresql"])
@pytest.mark.parametrize("are_known", [False, True], ids=["new", "with rows"])
async def test_processes_that_link_the_same_numbers_at_once_agree(
    database: Database, store_location: StoreLocation, are_known: bool
) -> None:
    pairs = [(f"55939876{number:05}", f"5593876{number:05}") for number in range(20)]
    for name in (name for pair in pairs for name in pair if are_known):
        await database.write(find, name)
    other = Database(store_location.engine())
    await other.open()
    try:
        by_first = [database.write(link, *pair) for pair in pairs]
        by_second = [other.write(link, *pair) for pair in reversed(pairs)]
        await asyncio.gather(*by_first, *by_second)
    finally:
        await other.close()

    for number, whatsapp_id in pairs:
        assert await database.write(find, number) == await database.write(find, whatsapp_id)


async def test_person_of_a_parent_id_is_found_by_each_name(database: Database) -> None:
    person = await database.write(find, None, None, PARENT)

    assert await database.write(find, None, A, PARENT) == person
    assert await database.write(find, ANN, A, PARENT) == person
    for names in [(ANN,), (None, A), (None, None, PARENT)]:
        assert await database.write(find, *names) == person


async def test_opt_out_under_a_user_id_counts_for_the_number_once_it_is_known(database: Database) -> None:
    await database.write(find, None, A)
    row = {"app_id": APP.id, "partner_id": APP.partner_id, "phone_number": A, "opted_in": False, "opted_on_ms": AT_MS}
    await database.write(add_user, row)

    await database.write(find, ANN, A)

    assert await database.read(read_users) == [(ANN, False)]


async def test_nobody_is_no_recipient(database: Database) -> None:
    with pytest.raises(ValueError, match="number or a user id"):
        await database.write(find, None, None)

    assert await database.read(count_recipients) == 0


def add_user(connection: Connection, row: dict[str, Any]) -> None:
    connection.execute(insert(app_users).values(**row))


def read_users(connection: Connection) -> list[tuple[str, bool]]:
    query = select(app_users.c.phone_number, app_users.c.opted_in)
    return [(row.phone_number, row.opted_in) for row in connection.execute(query)]


def count_recipients(connection: Connection) -> int:
    return connection.execute(select(func.count()).select_from(recipients)).scalar_one()


def set_recipient(connection: Connection, message_id: str, recipient_id: int) -> None:
    connection.execute(update(messages).where(messages.c.id == message_id).values(recipient_id=recipient_id))


def current_names(connection: Connection, recipient_id: int) -> tuple[str | None, ...]:
    query = select(recipients.c.phone_number, recipients.c.user_id).where(recipients.c.id == recipient_id)
    return tuple(connection.execute(query).one())


def recipient_of(connection: Connection, message_id: str) -> int | None:
    return connection.execute(select(messages.c.recipient_id).where(messages.c.id == message_id)).scalar_one()


def add_open_callbacks(connection: Connection, subjects: list[str]) -> None:
    """Store a subscription with an undelivered callback to each subject, oldest first."""
    common: dict[str, Any] = {"partner_id": APP.partner_id, "app_id": APP.id, "created_on_ms": AT_MS}
    subscription = {
        **common, "tag": "all", "url": "https://shop.example", "version": 2, "modes": "SENT", "active": True,
        "show_on_ui": False, "modified_on_ms": AT_MS,
    }  # fmt: skip
    [subscription_id] = connection.execute(insert(subscriptions).values(**subscription)).inserted_primary_key or [0]
    for position, subject in enumerate(subjects, 1):
        row = {
            **common, "id": f"c-{position}", "subscription_id": subscription_id, "subject": subject, "sequence": 1,
            "event": "sent", "body": b"", "position": position,
        }  # fmt: skip
        connection.execute(insert(callbacks).values(**row))
