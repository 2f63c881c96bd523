"""Recipients: met by phone number, by business-scoped id, or by both."""

from sqlalchemy import Connection

from tests.support.builders import ANN, APP
from waypost.store.database import Database
from waypost.store.recipients import recipient_id

USER = "US.1349"


async def test_recipient_met_under_each_name_alone_keeps_the_row_with_the_number(
    database: Database,
) -> None:
    by_number = await database.write(met, ANN, None)
    by_user = await database.write(met, None, USER)

    both = await database.write(met, ANN, USER)

    assert by_number != by_user
    assert both == by_number


async def test_name_that_was_missing_is_added(database: Database) -> None:
    first = await database.write(met, ANN, None)

    await database.write(met, ANN, USER)

    assert await database.write(met, None, USER) == first


def met(connection: Connection, phone_number: str | None, user_id: str | None) -> int:
    return recipient_id(connection, APP, phone_number, user_id)
