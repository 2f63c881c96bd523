"""The trace of one message: by our id or the operator's, for its own partner and app only; on each engine."""

from sqlalchemy import Connection

from tests.support.builders import ANN, APP, AT_MS, PARTNER, id_number, message
from waypost.domain.message import MessageState
from waypost.store.console.trace import app_message_content, app_message_trace
from waypost.store.database import Database
from waypost.store.messages.messages import MessageChange, change_messages, record_messages
from waypost.store.messages.recipients import get_or_create_recipients
from waypost.store.trace_events import SEND_ATTEMPTED, MessageTraceEvent, add_trace_events

WAMID = "wamid.HBgL/+="


async def seed(database: Database) -> None:
    await database.join_all(record_messages, [message(1, request="channel=whatsapp")])
    await database.write(_send)


def _send(connection: Connection) -> None:
    recipient_ids = get_or_create_recipients(connection, {(APP.id, PARTNER.id, ANN)})
    add_trace_events(
        connection, [MessageTraceEvent(id_number(1), SEND_ATTEMPTED, AT_MS, is_applied=False, detail="131016: x")]
    )
    change = MessageChange(id_number(1), MessageState.SENT, AT_MS, recipient_ids[APP.id, ANN], WAMID)
    change_messages(connection, [change], [MessageTraceEvent(id_number(1), "sent", AT_MS, is_applied=True)])


async def test_either_id_finds_the_whole_trace(database: Database) -> None:
    await seed(database)

    ways = [await database.read(app_message_trace, PARTNER.id, APP.id, name) for name in (id_number(1), WAMID)]

    assert ways[0] == ways[1]
    assert ways[0] is not None
    assert ways[0]["request"] == "channel=whatsapp"
    assert [line["event"] for line in ways[0]["events"]] == [SEND_ATTEMPTED, "sent"]


async def test_trace_of_another_partner_or_app_is_not_found(database: Database) -> None:
    await seed(database)

    for partner_id, app_id in ((PARTNER.id + 1, APP.id), (PARTNER.id, "another")):
        for name in (id_number(1), WAMID):
            assert await database.read(app_message_trace, partner_id, app_id, name) is None
        assert await database.read(app_message_content, partner_id, app_id, id_number(1)) is None
    assert await database.read(app_message_content, PARTNER.id, APP.id, id_number(1)) is not None
