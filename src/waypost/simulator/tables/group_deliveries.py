"""The table of messages to groups on the phones of their participants."""

import sqlite3

import msgspec

from waypost.simulator.tables.table import Table


class GroupDelivery(msgspec.Struct, frozen=True):
    """One message of a business to a group, on the phone of one participant. Times may be in the future.

    Args:
        phone: digits of the participant's phone.
        position: of the message.
        delivered_ms: None while the phone is offline.
        read_ms: None if nobody has read it there.
        read_after_ms: delay from delivery to reading; None: it is not read automatically.
        delivered_rest: JSON text of its status `delivered` after the time stamp; empty if no app is subscribed.
        read_rest: the same of `read`; empty also if the phone sends no read receipts.
    """

    phone: str
    position: int
    wamid: str
    waba_id: str
    phone_number_id: str
    at_ms: int
    delivered_ms: int | None
    read_ms: int | None
    read_after_ms: int | None
    delivered_rest: str
    read_rest: str


GROUP_DELIVERIES: Table[GroupDelivery] = Table(
    "group_deliveries", GroupDelivery, key=("phone", "position"), order="position"
)


def find_scheduled_group_deliveries(connection: sqlite3.Connection, phone: str, now_ms: int) -> list[GroupDelivery]:
    """Return the messages to groups that will be delivered to a phone or read on it by schedule."""
    condition = "phone=:phone AND (delivered_ms>:now_ms OR read_ms>:now_ms) ORDER BY position"
    return GROUP_DELIVERIES.select(connection, condition, phone=phone, now_ms=now_ms)


def find_waiting_group_deliveries(connection: sqlite3.Connection, phone: str) -> list[GroupDelivery]:
    """Return the messages to groups that wait for a phone, or for its owner to read them by schedule."""
    condition = (
        "phone=:phone AND (delivered_ms IS NULL OR read_ms IS NULL AND read_after_ms NOT NULL) ORDER BY position"
    )
    return GROUP_DELIVERIES.select(connection, condition, phone=phone)
