"""Users of an app: the latest change counts, each app has its own, and they are deleted with their app."""

from dataclasses import replace
from functools import partial

import pytest

from tests.store.apps.test_apps import SANDBOX, SECOND, seed_apps
from tests.support.builders import ANN, AT_MS
from waypost.domain.app import CUSTOMER_SERVICE_WINDOW_MS, App, AppUser
from waypost.store.apps.apps import delete_app
from waypost.store.apps.users import app_user, list_opted_users, list_users, set_blocked, set_opt_in
from waypost.store.database import Database
from waypost.store.messages.recipients import get_or_create_recipient, link_number, record_recipient_activity

BOB = "447700900123"
NUMBER, WHATSAPP_ID = "5593987654321", "559387654321"


async def opt(database: Database, phone: str, *, opted_in: bool, at_ms: int, app: App = SANDBOX) -> bool:
    change = partial(set_opt_in, app=app, phone_number=phone, opted_in=opted_in, source="API", at_ms=at_ms)
    return await database.write(change)


async def opted_users(database: Database, app: App = SANDBOX) -> list[AppUser]:
    return await database.read(partial(list_opted_users, app=app, offset=0, at_most=10))


@pytest.mark.parametrize("first", [True, False])
async def test_only_changes_count_and_the_last_one_wins(database: Database, first: bool) -> None:
    await seed_apps(database, SANDBOX)

    changed = [
        await opt(database, ANN, opted_in=opted_in, at_ms=AT_MS + at)
        for at, opted_in in enumerate((first, first, not first, not first))
    ]

    assert changed == [True, False, True, False]
    assert await opted_users(database) == [AppUser(ANN, not first, "API", AT_MS + 2)]
    assert await database.read(app_user, SANDBOX, ANN) == AppUser(ANN, not first, "API", AT_MS + 2)


async def test_users_are_paged_with_the_latest_change_first(database: Database) -> None:
    await seed_apps(database, SANDBOX, SECOND)
    await opt(database, ANN, opted_in=True, at_ms=AT_MS)
    await opt(database, BOB, opted_in=False, at_ms=AT_MS + 1)
    await opt(database, ANN, opted_in=False, at_ms=AT_MS + 2, app=SECOND)

    pages = [
        await database.read(partial(list_opted_users, app=SANDBOX, offset=first, at_most=1)) for first in (0, 1, 2)
    ]

    assert [[user.phone_number for user in page] for page in pages] == [[BOB], [ANN], []]
    assert [(user.phone_number, user.opted_in) for user in await opted_users(database, SECOND)] == [(ANN, False)]


async def test_user_who_is_only_blocked_has_not_opted_in_or_out(database: Database) -> None:
    await seed_apps(database, SANDBOX)
    await opt(database, BOB, opted_in=True, at_ms=AT_MS)

    await database.write(partial(set_blocked, app=SANDBOX, whatsapp_ids={ANN: ANN, BOB: BOB}, blocked=True))

    assert await database.read(app_user, SANDBOX, ANN) == AppUser(ANN, blocked=True)
    assert await opted_users(database) == [AppUser(BOB, True, "API", AT_MS, blocked=True)]
    await database.write(partial(set_blocked, app=SANDBOX, whatsapp_ids={BOB: BOB}, blocked=False))
    assert [user.blocked for user in await opted_users(database)] == [False]


async def test_user_shows_when_it_last_wrote(database: Database) -> None:
    await seed_apps(database, SANDBOX)
    unknown = await database.read(app_user, SANDBOX, ANN)
    recipient = await database.write(get_or_create_recipient, SANDBOX, ANN)
    await database.write(record_recipient_activity, recipient, "Ann", AT_MS + CUSTOMER_SERVICE_WINDOW_MS)

    known = await database.read(app_user, SANDBOX, ANN)
    await opt(database, ANN, opted_in=True, at_ms=AT_MS)

    assert unknown == AppUser(ANN)
    assert known == replace(unknown, last_written_ms=AT_MS)
    assert [user.last_written_ms for user in await opted_users(database)] == [AT_MS]


async def test_users_are_deleted_with_their_app(database: Database) -> None:
    await seed_apps(database, SANDBOX, SECOND)
    await opt(database, ANN, opted_in=True, at_ms=AT_MS)
    await opt(database, ANN, opted_in=True, at_ms=AT_MS, app=SECOND)

    await database.write(delete_app, SANDBOX)

    assert await opted_users(database) == []
    assert len(await opted_users(database, SECOND)) == 1


async def test_user_is_one_by_the_number_and_by_its_whatsapp_id(database: Database) -> None:
    await seed_apps(database, SANDBOX)
    await opt(database, NUMBER, opted_in=True, at_ms=AT_MS)
    await opt(database, WHATSAPP_ID, opted_in=False, at_ms=AT_MS + 1)

    await database.write(partial(set_blocked, app=SANDBOX, whatsapp_ids={NUMBER: WHATSAPP_ID}, blocked=True))

    expected = AppUser(WHATSAPP_ID, False, "API", AT_MS + 1, blocked=True)
    assert await opted_users(database) == [expected]
    for name in (NUMBER, WHATSAPP_ID):
        assert await database.read(app_user, SANDBOX, name) == replace(expected, phone_number=name)
    assert not await opt(database, NUMBER, opted_in=False, at_ms=AT_MS + 2)
    assert await opt(database, NUMBER, opted_in=True, at_ms=AT_MS + 3)
    assert await opted_users(database) == [replace(expected, opted_in=True, opted_on_ms=AT_MS + 3)]
    await database.write(partial(set_blocked, app=SANDBOX, whatsapp_ids={WHATSAPP_ID: WHATSAPP_ID}, blocked=False))
    assert not (await database.read(app_user, SANDBOX, NUMBER)).blocked


async def test_user_that_opted_by_the_number_keeps_that_entry(database: Database) -> None:
    await seed_apps(database, SANDBOX)
    await opt(database, NUMBER, opted_in=True, at_ms=AT_MS)
    person = await database.write(get_or_create_recipient, SANDBOX, WHATSAPP_ID)
    await database.write(record_recipient_activity, person, "Ann", AT_MS + CUSTOMER_SERVICE_WINDOW_MS)
    await database.write(link_number, SANDBOX, person, NUMBER, {})

    await database.write(partial(set_blocked, app=SANDBOX, whatsapp_ids={NUMBER: WHATSAPP_ID}, blocked=True))

    expected = AppUser(NUMBER, True, "API", AT_MS, blocked=True, last_written_ms=AT_MS)
    assert await database.read(partial(list_users, app=SANDBOX, offset=0, at_most=10)) == [expected]
    assert await database.read(app_user, SANDBOX, WHATSAPP_ID) == replace(expected, phone_number=WHATSAPP_ID)
