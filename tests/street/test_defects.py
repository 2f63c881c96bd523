"""What is wrong on our side is nobody's doubt: the message waits, and goes when it is mended."""

from sqlalchemy import Connection, delete, select

from tests.support.builders import OPERATOR
from tests.support.patience import patiently
from tests.support.street import Street
from waypost.admin import actions
from waypost.store.tables import journal, operator_accounts


async def test_message_without_a_way_to_the_operator_waits_and_is_not_uncertain(
    street: Street,
) -> None:
    await street.open_window()
    way = await street.waypost.directory.operator_account(OPERATOR.id)
    assert way is not None
    await street.waypost.database.write(forget_operator_accounts)
    street.waypost.directory.forget()

    message_id = await street.send_text("Soon")

    await patiently(
        lambda: street.waypost.database.read(defects_and_states), lambda found: found == [(1, 0)]
    )
    assert (await street.trace(message_id))["state"] == "accepted"
    await actions.put_operator_account(street.waypost.office, way)
    assert (await street.wait_for_state(message_id, "delivered"))["news"]
    assert len(await street.deliveries(message_id)) == 1


def forget_operator_accounts(connection: Connection) -> None:
    connection.execute(delete(operator_accounts))


def defects_and_states(connection: Connection) -> list[tuple[int, int]]:
    rows = connection.execute(select(journal.c.defects, journal.c.state)).all()
    return [(row.defects, row.state) for row in rows]
