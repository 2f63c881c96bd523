"""Tables of what phones will do and get: planned actions, step counts, and messages that wait for offline phones."""

import sqlite3
from typing import Any, Final

import msgspec

from waypost.simulator.storage.store import Statement, Store
from waypost.simulator.storage.tables.messages import PHONE_RANGE, SimulatedMessage
from waypost.simulator.storage.tables.table import Table

HELD_KIND: Final = "held"
"""The kind of held messages in the table `state`."""
_RESUME: Final = "UPDATE planned_acts SET due_ms=:at_ms+after_ms WHERE due_ms IS NULL AND "
_UNDELIVERED: Final = """
SELECT count(*) FROM waiting JOIN messages USING (wamid) WHERE waiting.waba_id=:waba_id AND waiting.is_delivered=0
    AND messages.type='template' AND json_extract(messages.content, '$.template.name')=:name
    AND json_extract(messages.content, '$.template.language')=:language
"""


class WaitingMessage(msgspec.Struct, frozen=True):
    """A message that an offline phone will get when it is online again."""

    phone: str
    position: int  # of the message
    wamid: str
    waba_id: str
    phone_number_id: str
    until_ms: int  # when it is dropped
    is_delivered: int  # 1 if it is delivered and only the reading waits, else 0
    read_after_ms: int | None  # delay from delivery to reading; None: not read automatically
    status: dict[str, Any] | None  # content of its first status to come; None: no app is subscribed
    callback_data: str | None  # of the message


class PlannedAction(msgspec.Struct, frozen=True):
    """An action that a phone will take about a message."""

    due_ms: int | None  # None: `after_ms` after the phone is online again
    after_ms: int
    phone: str
    phone_number_id: str
    wamid: str
    owner: str  # the owner of the script: `fleet` and its name, or `phone` and its digits
    step: int  # index of the script's step
    action: dict[str, Any]  # `do` and its parameters
    id: int = 0  # 0 until it is in the file


class StepCount(msgspec.Struct, frozen=True):
    """The counts of a script's step: how often it was planned, and how often it was done."""

    owner: str
    step: int
    planned: int = 0
    done: int = 0


WAITING_MESSAGES: Final = Table("waiting", WaitingMessage, key=("phone", "position"), order="position")
PLANNED_ACTIONS: Final = Table(
    "planned_acts", PlannedAction, key=("id",), order="due_ms, id", is_numbered=True,
    indexes=(
        "INDEX IF NOT EXISTS planned_acts_by_due ON planned_acts (due_ms, id)",
        "INDEX IF NOT EXISTS planned_acts_by_phone ON planned_acts (phone)",
    ),
)  # fmt: skip
COUNT_PLANNED_STEP: Final = "UPDATE script_counts SET planned=planned+1 WHERE owner=? AND step=?"
COUNT_DONE_STEP: Final = "UPDATE script_counts SET done=done+1 WHERE owner=? AND step=?"
STEP_COUNTS: Final = Table("script_counts", StepCount, key=("owner", "step"), order="step")


def build_waiting_message(
    message: SimulatedMessage,
    waba_id: str,
    until_ms: int,
    read_after_ms: int | None,
    status: dict[str, Any] | None,
    *,
    is_delivered: bool = False,
) -> WaitingMessage:
    """Return the record of a message that waits for its phone."""
    return WaitingMessage(
        phone=message.phone,
        position=message.position,
        wamid=message.wamid,
        waba_id=waba_id,
        phone_number_id=message.phone_number_id,
        until_ms=until_ms,
        is_delivered=is_delivered,
        read_after_ms=read_after_ms,
        status=status,
        callback_data=message.callback_data,
    )


async def count_waiting(store: Store, first: str, last: str) -> int:
    """Return how many messages wait for a range of phones."""
    return int(await store.value(f"SELECT count(*) FROM waiting WHERE {PHONE_RANGE}", first=first, last=last))


def has_undelivered(connection: sqlite3.Connection, waba_id: str, name: str, language: str) -> bool:
    """True if a message sent with a template waits for its phone."""
    values = {"waba_id": waba_id, "name": name, "language": language}
    [[is_undelivered]] = connection.execute(_UNDELIVERED, values).fetchall()
    return bool(is_undelivered)


def resume_actions(phone: str, at_ms: int) -> Statement:
    """Return the statement that makes a phone's actions due again, except those about held messages."""
    held_wamids = "SELECT key FROM state WHERE kind=:held"
    return f"{_RESUME} phone=:phone AND wamid NOT IN ({held_wamids})", {
        "phone": phone,
        "at_ms": at_ms,
        "held": HELD_KIND,
    }


def resume_message_actions(wamid: str, at_ms: int | None) -> Statement:
    """Return the statement that makes the actions about a message due again."""
    return f"{_RESUME} wamid=:wamid", {"wamid": wamid, "at_ms": at_ms}


async def next_action_ms(store: Store) -> int | None:
    """Return when the next action is due; None if none is planned."""
    due_ms: int | None = await store.value("SELECT min(due_ms) FROM planned_acts")
    return due_ms


def delete_range(first: str, last: str) -> list[Statement]:
    """Return the statements that delete planned actions and waiting messages of a range of phones."""
    values = {"first": first, "last": last}
    return [(f"DELETE FROM {table} WHERE {PHONE_RANGE}", values) for table in ("waiting", "planned_acts")]
