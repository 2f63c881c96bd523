"""What phones will do and get: acts that scripts have planned, counts of them, and what waits for offline phones."""

from typing import Final, NamedTuple

import msgspec

from waypost.simulator.store import Statement, Store, Values

HELD: Final = "held"
"""The kind of held messages in the table of what is found by its key."""
_RANGE: Final = "phone BETWEEN :first AND :last AND length(phone)=length(:first)"
_RESUME: Final = "UPDATE planned_acts SET due_ms=:at_ms+after_ms WHERE due_ms IS NULL AND "
_UNDELIVERED: Final = """
SELECT count(*) FROM waiting JOIN messages USING (wamid) WHERE waiting.waba_id=:waba_id AND waiting.is_delivered=0
    AND messages.type='template' AND json_extract(messages.shown, '$.template.name')=:name
    AND json_extract(messages.shown, '$.template.language')=:language
"""


class WaitingRow(msgspec.Struct, frozen=True):
    """A message that an offline phone will get when it is back.

    Args:
        position: of the message.
        until_ms: then it is dropped.
        is_delivered: 1 where only its reading waits, else 0.
        read_after_ms: after how long it is read then; None: not by itself.
        rest: of its status; empty: nobody hears of it.
        callback_data: of the message; given where it is read back.
    """

    phone: str
    position: int
    wamid: str
    waba_id: str
    phone_number_id: str
    until_ms: int
    is_delivered: int
    read_after_ms: int | None
    rest: str
    callback_data: str | None = None


class PlannedAct(msgspec.Struct, frozen=True):
    """What a phone will do about a message.

    Args:
        due_ms: None: so long after the phone is back.
        owner: whose script said so: `fleet` and its name, or `phone` and its digits.
        step: which step of it.
        act: `do`, and what that needs, as JSON.
        id: 0 until it is in the file.
    """

    due_ms: int | None
    after_ms: int
    phone: str
    phone_number_id: str
    wamid: str
    owner: str
    step: int
    act: str
    id: int = 0


class StepCount(NamedTuple):
    """How often a step of a script was decided on, and how often it has been done."""

    step: int
    planned: int
    done: int


def add_waiting(row: WaitingRow) -> Statement:
    """The statement that lets a message wait for its phone."""
    return (
        "INSERT OR REPLACE INTO waiting VALUES (:phone, :position, :wamid, :waba_id, :phone_number_id, :until_ms, "
        ":is_delivered, :read_after_ms, :rest)",
        msgspec.structs.asdict(row),
    )


def drop_waiting(phone: str, position: int | None = None) -> Statement:
    """The statement that drops what waits for a phone, or one message of it."""
    values = {"phone": phone, "position": position}
    return "DELETE FROM waiting WHERE phone=:phone AND (:position IS NULL OR position=:position)", values


async def waiting(store: Store, phone: str) -> list[WaitingRow]:
    """What waits for a phone, oldest first."""
    return await store.rows(
        WaitingRow,
        "SELECT waiting.*, callback_data FROM waiting JOIN messages USING (position) WHERE waiting.phone=:phone "
        "ORDER BY waiting.position",
        phone=phone,
    )


async def waiting_count(store: Store, first: str, last: str) -> int:
    """How many messages wait for a range of phones."""
    found: int = await store.value(f"SELECT count(*) FROM waiting WHERE {_RANGE}", first=first, last=last)
    return found


async def has_undelivered(store: Store, waba_id: str, name: str, language: str) -> bool:
    """Return whether a message made of a template waits for its phone."""
    return bool(await store.value(_UNDELIVERED, waba_id=waba_id, name=name, language=language))


def add_act(act: PlannedAct) -> Statement:
    """The statement that plans an act."""
    return (
        "INSERT INTO planned_acts (due_ms, after_ms, phone, phone_number_id, wamid, owner, step, act) "
        "VALUES (:due_ms, :after_ms, :phone, :phone_number_id, :wamid, :owner, :step, :act)",
        msgspec.structs.asdict(act),
    )


def drop_act(act_id: int) -> Statement:
    """The statement that drops an act."""
    return "DELETE FROM planned_acts WHERE id=:id", {"id": act_id}


def drop_acts_about(wamid: str) -> Statement:
    """The statement that drops the acts about a message."""
    return "DELETE FROM planned_acts WHERE wamid=:wamid", {"wamid": wamid}


def drop_acts_on(phone: str, wamid: str) -> Statement:
    """The statement that drops the acts of a phone about a message."""
    return "DELETE FROM planned_acts WHERE phone=:phone AND wamid=:wamid", {"phone": phone, "wamid": wamid}


def postpone_acts(phone: str) -> Statement:
    """The statement that lets a phone's acts wait until it is back."""
    statement = "UPDATE planned_acts SET due_ms=NULL WHERE phone=:phone AND json_extract(act, '$.do')<>'return'"
    return statement, {"phone": phone}


def resume_acts(phone: str, at_ms: int) -> Statement:
    """The statement that makes a phone's acts due again, except for those about messages that are held."""
    held = "SELECT key FROM state WHERE kind=:held"
    return f"{_RESUME} phone=:phone AND wamid NOT IN ({held})", {"phone": phone, "at_ms": at_ms, "held": HELD}


def resume_acts_about(wamid: str, at_ms: int | None) -> Statement:
    """The statement that makes the acts about a message due again."""
    return f"{_RESUME} wamid=:wamid", {"wamid": wamid, "at_ms": at_ms}


async def due_acts(store: Store, now_ms: int, at_most: int) -> list[PlannedAct]:
    """The acts that are due, in the order of due time and id."""
    return await store.rows(
        PlannedAct,
        "SELECT * FROM planned_acts WHERE due_ms<=:now_ms ORDER BY due_ms, id LIMIT :at_most",
        now_ms=now_ms,
        at_most=at_most,
    )


async def next_act_ms(store: Store) -> int | None:
    """When the next act is due; None when none is planned."""
    found: int | None = await store.value("SELECT min(due_ms) FROM planned_acts")
    return found


def drop_range(first: str, last: str) -> list[Statement]:
    """The statements that drop what a range of phones will do and get."""
    values = {"first": first, "last": last}
    return [(f"DELETE FROM {table} WHERE {_RANGE}", values) for table in ("waiting", "planned_acts")]


def drop_script(owner: str) -> list[Statement]:
    """The statements that drop what a script has planned and counted."""
    values = {"owner": owner}
    return [(f"DELETE FROM {table} WHERE owner=:owner", values) for table in ("planned_acts", "script_counts")]


def add_steps(owner: str, steps: int) -> list[Statement]:
    """The statements that begin to count a script's steps."""
    statement = "INSERT OR IGNORE INTO script_counts VALUES (:owner, :step, 0, 0)"
    return [(statement, {"owner": owner, "step": step}) for step in range(steps)]


def count_planned(owner: str, step: int, count: int) -> Statement:
    """The statement that counts a step that was decided on."""
    return _counted("planned=planned+:count", {"owner": owner, "step": step, "count": count})


def count_done(owner: str, step: int) -> Statement:
    """The statement that counts a step that was done."""
    return _counted("done=done+1", {"owner": owner, "step": step})


async def step_counts(store: Store, owner: str) -> dict[int, StepCount]:
    """The counts of a script's steps."""
    statement = "SELECT step, planned, done FROM script_counts WHERE owner=:owner"
    return {row.step: row for row in await store.rows(StepCount, statement, owner=owner)}


def _counted(change: str, values: Values) -> Statement:
    return f"UPDATE script_counts SET {change} WHERE owner=:owner AND step=:step", values
