"""Apps: deleting one deletes its queued jobs; daily usage is counted from messages."""

from dataclasses import replace
from functools import partial

import pytest
from sqlalchemy import Connection

from tests.support.builders import ACCOUNT, APP, AT_MS, PARTNER, draft, message, template
from tests.support.manual_clock import ManualClock
from waypost.base.clock import DAY_MS
from waypost.base.ids import RandomIds
from waypost.domain.app import App
from waypost.domain.message import TemplateSend
from waypost.domain.session_messages.plain import SessionText
from waypost.domain.templates.template import Category
from waypost.store.accounts.partners import add_app, add_business_account, add_partner, app_by_id
from waypost.store.apps.apps import DuplicateApp, change_app, daily_usage, delete_app, list_apps
from waypost.store.database import Database
from waypost.store.messages.messages import record_messages
from waypost.store.queue.job_subjects import QueueName
from waypost.store.queue.jobs import count_jobs_by_state
from waypost.store.templates.events import template_history
from waypost.store.templates.templates import record_template, template_by_id

SANDBOX = replace(APP, live=False)
SECOND = replace(APP, id="01990000-0000-7000-8000-00000000000b", name="AcmeToo", phone_number="15550002222")
TODAY = AT_MS // DAY_MS


async def seed_apps(database: Database, *apps: App) -> None:
    def insert_rows(connection: Connection) -> None:
        add_partner(connection, PARTNER, "no password", AT_MS)
        add_business_account(connection, ACCOUNT)
        for app in apps:
            assert add_app(connection, app, f"hash of {app.id}")

    await database.write(insert_rows)


async def open_submissions(database: Database) -> int:
    return sum((await database.read(count_jobs_by_state, QueueName.OUTBOUND)).values())


async def test_deleting_an_app_deletes_its_open_jobs(database: Database) -> None:
    await seed_apps(database, SANDBOX, SECOND)
    await database.join(record_messages, message(1))
    await database.join(record_messages, message(2, app_id=SECOND.id))

    await database.write(delete_app, SANDBOX)

    assert await database.read(app_by_id, APP.id) is None
    assert await open_submissions(database) == 1


async def test_templates_of_a_deleted_app_move_to_another_app_of_its_business_account(database: Database) -> None:
    await seed_apps(database, SANDBOX, SECOND)
    await database.write(record_template, template(1))

    await database.write(delete_app, SANDBOX)

    stored = await database.read(template_by_id, template(1).id)
    assert stored is not None
    assert stored.app_id == SECOND.id
    assert await database.read(template_history, PARTNER.id, template(1).id)
    assert await open_submissions(database) == 1


async def test_templates_stay_with_their_business_account_when_their_app_has_moved_to_another(
    database: Database,
) -> None:
    other = replace(ACCOUNT, id="1000000000000009")
    moved = replace(SANDBOX, business_account_id=other.id)
    await seed_apps(database, moved, SECOND)
    await database.write(add_business_account, other)
    await database.write(record_template, template(1))
    await database.write(record_template, template(2, business_account_id=other.id))

    await database.write(delete_app, moved)

    stored = await database.read(template_by_id, template(1).id)
    assert stored is not None
    assert stored.app_id == SECOND.id
    assert await database.read(template_by_id, template(2).id) is None
    assert await open_submissions(database) == 1


async def test_templates_of_the_last_app_are_deleted_with_it(database: Database) -> None:
    await seed_apps(database, SANDBOX)
    await database.write(record_template, template(1))

    await database.write(delete_app, SANDBOX)

    assert await database.read(template_by_id, template(1).id) is None
    assert await database.read(template_history, PARTNER.id, template(1).id) == []
    assert await open_submissions(database) == 0


async def test_several_apps_may_have_no_phone_number(database: Database) -> None:
    bare = replace(APP, phone_number="", phone_number_id="", business_account_id="")

    await seed_apps(database, bare, replace(bare, id=SECOND.id, name=SECOND.name))

    numbers = [app.phone_number for app in await database.read(list_apps, PARTNER.id)]
    assert numbers == ["", ""]


async def test_phone_number_of_another_app_cannot_be_used(database: Database) -> None:
    await seed_apps(database, APP, SECOND)

    with pytest.raises(DuplicateApp):
        await database.write(change_app, SECOND.id, partial(replace, phone_number=APP.phone_number))

    assert await database.read(app_by_id, SECOND.id) == SECOND


async def test_changes_of_one_app_add_up(database: Database) -> None:
    await seed_apps(database, APP)

    await database.write(change_app, APP.id, partial(replace, phone_number="15550003333"))
    changed = await database.write(change_app, APP.id, partial(replace, name="Other"))

    assert changed == replace(APP, phone_number="15550003333", name="Other")
    assert await database.read(app_by_id, APP.id) == changed


async def test_missing_app_cannot_be_changed(database: Database) -> None:
    await seed_apps(database, APP)

    assert await database.write(change_app, SECOND.id, partial(replace, name="Other")) is None


async def test_usage_is_counted_by_day_and_category(database: Database) -> None:
    await seed_apps(database, APP, SECOND)
    ids = RandomIds(ManualClock(AT_MS))
    marketing = template(1, draft(category="MARKETING"), category=Category.MARKETING)
    await database.write(record_template, marketing)
    for content in (SessionText("a"), SessionText("b"), TemplateSend(marketing.id, ("Ann",))):
        await database.join(record_messages, message(content=content, id=ids.new()))
    await database.join(record_messages, message(app_id=SECOND.id, id=ids.new()))

    days = await database.read(partial(daily_usage, app_id=APP.id, first_day=TODAY, last_day=TODAY))
    before = await database.read(partial(daily_usage, app_id=APP.id, first_day=TODAY - 9, last_day=TODAY - 1))

    assert [(day.day, day.texts, day.templates) for day in days] == [(TODAY, 2, 1)]
    assert days[0].by_category == {Category.MARKETING: 1}
    assert before == []


async def test_app_that_has_been_made_live_meanwhile_is_not_deleted(database: Database) -> None:
    await seed_apps(database, APP)

    deleted = await database.write(delete_app, SANDBOX)

    assert deleted is False
    assert await database.read(app_by_id, APP.id) == APP
