"""Every script there is, and the rows in which what they decide is kept (decision 0036)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from waypost.simulator.phones.fleets import Fleet, Fleets
from waypost.simulator.phones.intentions import Script, intentions
from waypost.simulator.phones.script_steps import Shown, Step, read_steps
from waypost.simulator.store import Row, Statement, Store

ADD_ACT: Final = (
    "INSERT INTO planned_acts (due_ms, after_ms, phone, phone_number_id, wamid, owner, step, act) "
    "VALUES (?,?,?,?,?,?,?,?)"
)
COUNT_PLANNED: Final = "UPDATE script_counts SET planned=planned+? WHERE owner=? AND step=?"
COUNT_DONE: Final = "UPDATE script_counts SET done=done+1 WHERE owner=? AND step=?"
KEEP_USES: Final = "INSERT OR REPLACE INTO script_uses VALUES (?,?,?,?)"
_ADD_COUNT: Final = "INSERT OR IGNORE INTO script_counts VALUES (?,?,0,0)"
_KEEP: Final = "INSERT OR REPLACE INTO phone_scripts VALUES (?,?,?)"
_DROP: Final = "DELETE FROM phone_scripts WHERE phone=?"
_FORGET: Final = tuple(
    f"DELETE FROM {table} WHERE owner=?"  # noqa: S608
    for table in ("planned_acts", "script_counts", "script_uses")
)
_RECEIVED: Final = (
    "SELECT phone, count(*) FROM messages WHERE is_inbound=0 AND phone BETWEEN ? AND ? "
    "AND length(phone)=? GROUP BY phone"
)
_UNPLANNED: Final = frozenset({"read", "nothing"})
_encode: Final = msgspec.json.Encoder().encode


@dataclass(frozen=True)
class Plan:
    """What a phone will do about one message.

    Args:
        says_reading: whether the script decides about reading; if not, the phone's habits do.
        read_after_ms: from delivery; None: it is not read by itself.
        acts: rows for `ADD_ACT`.
        chosen: owner and step, for `COUNT_PLANNED`.
        uses: rows for `KEEP_USES`.
    """

    says_reading: bool = False
    read_after_ms: int | None = None
    acts: tuple[Row, ...] = ()
    chosen: tuple[tuple[str, int], ...] = ()
    uses: tuple[Row, ...] = ()

    def put_off(self) -> "Plan":
        """The same, with acts that wait until the message arrives, whenever that is."""
        return replace(self, acts=tuple((None, *act[1:]) for act in self.acts))


NO_PLAN: Final = Plan()


class Scripts:
    """Every script, how many messages each scripted phone has had, and how often it did what."""

    def __init__(self, store: Store, fleets: Fleets) -> None:
        self._store = store
        self._fleets = fleets
        self._own: dict[str, Script] = {}
        self._of_fleets: dict[str, Script] = {}
        self._received: dict[str, int] = {}
        self._uses: dict[tuple[str, str, int], int] = {}

    async def open(self) -> None:
        """Read everything from the file."""
        for phone, seed, raw in await self._store.rows("SELECT * FROM phone_scripts"):
            self._own[phone] = _script_of_phone(phone, seed, msgspec.json.decode(raw))
            await self._count(phone, phone)
        for fleet in self._fleets.by_name.values():
            await self.learn_fleet(fleet.name)
        for owner, phone, step, uses in await self._store.rows("SELECT * FROM script_uses"):
            self._uses[owner, phone, step] = uses

    async def learn_fleet(self, name: str) -> None:
        """A fleet is there whose script applies from now on."""
        fleet = self._fleets.by_name[name]
        self._of_fleets[name] = Script(fleet.owner, fleet.seed, fleet.steps)
        if fleet.steps:
            await self._count(str(fleet.first), str(fleet.last))

    async def give(self, phone: str, seed: str, steps: tuple[Step, ...]) -> None:
        """Give a phone a script of its own, or none; what an earlier one planned is dropped."""
        script = Script(f"phone {phone}", seed, steps)
        statements = forgetting(script.owner)
        if steps:
            raw = _encode([step.raw for step in steps]).decode()
            statements += [(_KEEP, (phone, seed, raw)), *counting(script.owner, len(steps))]
        else:
            statements.append((_DROP, (phone,)))
        await self._store.run(statements)
        self._own.pop(phone, None)
        self.forget_uses(script.owner)
        if steps:
            await self._count(phone, phone)
            self._own[phone] = script

    def of(self, phone: str) -> Script | None:
        """The script that a phone follows: its own, else its fleet's."""
        script = self._own.get(phone)
        if script is not None:
            return script
        fleet = self._fleets.of(phone)
        return None if fleet is None else self._of_fleets.get(fleet.name)

    def own(self, phone: str) -> Script | None:
        """The phone's own script."""
        return self._own.get(phone)

    def plan(
        self, phone: str, phone_number_id: str, wamid: str, shown: Shown, *, arrives_ms: int | None, is_delivered: bool
    ) -> Plan:
        """Decide what a phone will do about a message that is being taken; it is counted as received.

        Args:
            phone: its digits.
            phone_number_id: the sender.
            wamid: the message's id.
            shown: what the phone will show.
            arrives_ms: when; None: when the phone is back.
            is_delivered: False: it will never arrive, and nothing is done.
        """
        script = self.of(phone)
        if script is None or not script.steps:
            return NO_PLAN
        ordinal = self._received[phone] = self._received.get(phone, 0) + 1
        if not is_delivered:
            return NO_PLAN
        uses = {
            step: self._uses.get((script.owner, phone, step), 0)
            for step, one in enumerate(script.steps)
            if one.times is not None
        }
        chosen = intentions(script, phone, ordinal, shown, uses)
        rows: list[Row] = []
        counted: list[Row] = []
        read_after_ms: int | None = None
        for one in chosen:
            if one.step in uses:
                count = self._uses[script.owner, phone, one.step] = uses[one.step] + 1
                counted.append((script.owner, phone, one.step, count))
            if script.steps[one.step].do == "read":
                sooner = one.after_ms if read_after_ms is None else min(read_after_ms, one.after_ms)
                read_after_ms = sooner
            elif one.act:
                due_ms = None if arrives_ms is None else arrives_ms + one.after_ms
                act = _encode(one.act).decode()
                rows.append((due_ms, one.after_ms, phone, phone_number_id, wamid, script.owner, one.step, act))
        return Plan(
            says_reading=any(step.do == "read" for step in script.steps),
            read_after_ms=read_after_ms,
            acts=tuple(rows),
            chosen=tuple((script.owner, one.step) for one in chosen),
            uses=tuple(counted),
        )

    async def counts(self, owner: str, steps: Sequence[Step]) -> list[dict[str, Any]]:
        """Of each step how often it was decided on, and how often it has been done."""
        rows = await self._store.rows("SELECT step, planned, done FROM script_counts WHERE owner=?", (owner,))
        by_step = {row[0]: row[1:] for row in rows}
        views: list[dict[str, Any]] = []
        for place, step in enumerate(steps):
            planned, done = by_step.get(place, (0, 0))
            view = {"step": place, "on": step.on, "do": step.do, "planned": planned}
            views.append(view if step.do in _UNPLANNED else view | {"done": done})
        return views

    def forget_fleet(self, fleet: Fleet) -> None:
        """A fleet is gone, and with it the scripts of its own that its phones had."""
        self._of_fleets.pop(fleet.name, None)
        self.forget_uses(fleet.owner)
        for phone in [phone for phone in self._own if self._fleets.of(phone) is fleet]:
            self.forget_uses(self._own.pop(phone).owner)

    def forget_uses(self, owner: str) -> None:
        """Drop from memory how often phones did what a script says."""
        self._uses = {key: uses for key, uses in self._uses.items() if key[0] != owner}

    def forget(self) -> None:
        """Drop everything from memory; the file is the caller's matter."""
        self._own.clear()
        self._of_fleets.clear()
        self._received.clear()
        self._uses.clear()

    async def _count(self, first: str, last: str) -> None:
        rows = await self._store.rows(_RECEIVED, (first, last, len(first)))
        self._received.update(rows)


def counting(owner: str, steps: int) -> list[Statement]:
    """The statements that begin to count a script's steps."""
    return [(_ADD_COUNT, (owner, step)) for step in range(steps)]


def forgetting(owner: str) -> list[Statement]:
    """The statements that drop what a script has planned and counted."""
    return [(statement, (owner,)) for statement in _FORGET]


def _script_of_phone(phone: str, seed: str, raw: list[Any]) -> Script:
    return Script(f"phone {phone}", seed, read_steps(raw))
