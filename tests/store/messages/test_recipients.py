"""Recipients: met by phone number, by business-scoped id, or by both."""

from sqlalchemy import Connection

from tests.support.builders import ANN, APP
from waypost.store.database import Database
from waypost.store.messages.recipients import get_or_create_recipient, get_or_create_recipients

USER = "US.1349"


async def test_recipient_met_under_each_name_alone_keeps_the_row_with_the_number(database: Database) -> None:
    by_number = await database.write(met, ANN, None)
    by_user = await database.write(met, None, USER)

    both = await database.write(met, ANN, USER)

    assert by_number != by_user
    assert both == by_number


async def test_name_that_was_missing_is_added(database: Database) -> None:
    first = await database.write(met, ANN, None)

    await database.write(met, ANN, USER)

    assert await database.write(met, None, USER) == first


async def test_destination_that_is_no_number_is_a_business_scoped_id(database: Database) -> None:
    by_user = await database.write(met, None, USER)

    assert await database.write(met, USER, None) == by_user


async def test_several_are_found_or_made_under_either_name(database: Database) -> None:
    by_user = await database.write(met, None, USER)
    wanted = {(APP.id, APP.partner_id, name) for name in (ANN, USER, "US.1350")}

    found = await database.write(get_or_create_recipients, wanted)

    assert found[APP.id, USER] == by_user
    assert len(set(found.values())) == 3
    assert await database.write(get_or_create_recipients, wanted) == found


def met(connection: Connection, phone_number: str | None, user_id: str | None) -> int:
    return get_or_create_recipient(connection, APP, phone_number, user_id)
