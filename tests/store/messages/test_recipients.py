"""Recipients: identified by phone number, by business-scoped id, or by both."""

from sqlalchemy import Connection

from tests.support.builders import ANN, APP
from waypost.store.database import Database
from waypost.store.messages.recipients import get_or_create_recipient, get_or_create_recipients

USER = "US.1349"


async def test_recipient_with_a_row_for_each_identifier_keeps_the_row_with_the_number(database: Database) -> None:
    by_number = await database.write(recipient_id, ANN, None)
    by_user = await database.write(recipient_id, None, USER)

    both = await database.write(recipient_id, ANN, USER)

    assert by_number != by_user
    assert both == by_number


async def test_missing_identifier_is_added(database: Database) -> None:
    first = await database.write(recipient_id, ANN, None)

    await database.write(recipient_id, ANN, USER)

    assert await database.write(recipient_id, None, USER) == first


async def test_destination_that_is_no_number_is_a_business_scoped_id(database: Database) -> None:
    by_user = await database.write(recipient_id, None, USER)

    assert await database.write(recipient_id, USER, None) == by_user


async def test_several_recipients_are_found_or_created_by_either_identifier(database: Database) -> None:
    by_user = await database.write(recipient_id, None, USER)
    keys = {(APP.id, APP.partner_id, name) for name in (ANN, USER, "US.1350")}

    ids = await database.write(get_or_create_recipients, keys)

    assert ids[APP.id, USER] == by_user
    assert len(set(ids.values())) == 3
    assert await database.write(get_or_create_recipients, keys) == ids


def recipient_id(connection: Connection, phone_number: str | None, user_id: str | None) -> int:
    return get_or_create_recipient(connection, APP, phone_number, user_id)
