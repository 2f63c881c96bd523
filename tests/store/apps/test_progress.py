"""One statement reads how far all apps are, on each engine."""

from functools import partial
from typing import Any

from sqlalchemy import Connection, insert, update

from tests.store.apps.test_apps import SANDBOX, SECOND, seed_apps
from tests.support.builders import ACCOUNT, AT_MS, PARTNER, message, template
from waypost.domain.onboarding import AppProgress
from waypost.domain.templates.template import TemplateStatus
from waypost.store.apps.progress import MAX_SEARCHED_MESSAGES, list_progress, progress_of_app
from waypost.store.database import Database
from waypost.store.messages.messages import record_messages
from waypost.store.tables import inbound_messages, messages, templates
from waypost.store.templates.templates import record_template


def change_state(connection: Connection, number: int, state: str, delivered_on_ms: int | None) -> None:
    values = {"state": state, "delivered_on_ms": delivered_on_ms}
    connection.execute(update(messages).where(messages.c.id == message(number).id).values(values))


def receive(connection: Connection) -> None:
    row = {"operator_message_id": "wamid.1", "partner_id": PARTNER.id, "app_id": SECOND.id, "recipient_id": 1}
    connection.execute(insert(inbound_messages), row | {"kind": "text", "item_id": 1, "received_on_ms": AT_MS})


def approve(connection: Connection) -> None:
    connection.execute(update(templates).values(status=TemplateStatus.APPROVED.value))


async def test_progress_of_each_app_is_its_own(database: Database) -> None:
    await seed_apps(database, SANDBOX, SECOND)
    await database.write(record_template, template(1))
    pending = await database.read(progress_of_app, SANDBOX.id)
    await database.write(approve)
    await database.join(record_messages, message(1, accepted_on_ms=AT_MS))
    await database.join(record_messages, message(2, accepted_on_ms=AT_MS + 1))
    await database.write(change_state, 1, "delivered", AT_MS + 9)
    await database.write(change_state, 2, "failed", None)
    await database.write(receive)

    listed = await database.read(list_progress)

    assert pending == AppProgress(SANDBOX, has_pending_template=True)
    sent = AppProgress(SANDBOX, has_template=True, has_delivered=True, message_id=message(2).id, message_state="failed")
    assert listed == [AppProgress(SECOND, has_template=True, has_inbound=True), sent]
    assert await database.read(progress_of_app, "none") is None


async def test_list_is_that_of_a_partner_or_an_operator_account(database: Database) -> None:
    await seed_apps(database, SANDBOX, SECOND)

    async def count(**filters: Any) -> int:
        return len(await database.read(partial(list_progress, **filters)))

    assert [await count(partner_id=PARTNER.id), await count(partner_id=PARTNER.id + 1)] == [2, 0]
    account_id = ACCOUNT.operator_account_id
    assert [await count(operator_account_id=account_id), await count(operator_account_id="none")] == [2, 0]
    assert await count(at_most=1) == 1


async def test_delivery_is_searched_among_the_newest_messages_only(database: Database) -> None:
    await seed_apps(database, SANDBOX)
    for number in range(1, MAX_SEARCHED_MESSAGES + 2):
        await database.join(record_messages, message(number, accepted_on_ms=AT_MS + number))

    await database.write(change_state, 1, "delivered", AT_MS)
    oldest = await database.read(progress_of_app, SANDBOX.id)
    await database.write(change_state, 2, "delivered", AT_MS)
    newer = await database.read(progress_of_app, SANDBOX.id)

    assert oldest is not None
    assert newer is not None
    assert [oldest.has_delivered, newer.has_delivered] == [False, True]
