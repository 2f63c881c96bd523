"""What recipients have written: who wrote which message; the words stay in the arrival."""

from typing import Any

from sqlalchemy import Connection, select

from waypost.store.tables import inbound_messages, recipients


def inbound_message(connection: Connection, app_id: str, operator_message_id: str) -> Any | None:
    """The row of a message that one app has received, or None."""
    return connection.execute(
        select(inbound_messages).where(
            inbound_messages.c.operator_message_id == operator_message_id, inbound_messages.c.app_id == app_id
        )
    ).one_or_none()


def inbound_with_sender(connection: Connection, app_id: str, operator_message_id: str) -> Any | None:
    """As `inbound_message`, with `phone_number` and `user_id` of who wrote it; either may be None."""
    return connection.execute(
        select(inbound_messages, recipients.c.phone_number, recipients.c.user_id)
        .outerjoin(recipients, (recipients.c.id == inbound_messages.c.recipient_id) & (recipients.c.app_id == app_id))
        .where(inbound_messages.c.operator_message_id == operator_message_id, inbound_messages.c.app_id == app_id)
    ).one_or_none()
