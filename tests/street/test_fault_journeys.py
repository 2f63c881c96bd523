"""One journey for each kind of fault: what the partner sees, and that nothing is lost or doubled."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.builders import ANN, is_event
from tests.support.patience import HANGS_AFTER_S, patiently
from tests.support.street import Street
from waypost.base.clock import ManualClock, VirtualClock
from waypost.simulator import read_scenario
from waypost.simulator.faults.fault_kinds import FAULT_KINDS

Journey = Callable[[Street], Awaitable[None]]

SEND: Final = {"on": "call", "call": "messages.send"}
TOLD: Final = {"on": "webhook"}
WHOLE: Final = ["enqueued", "sent", "delivered"]
A_MINUTE_LATE: Final = {**TOLD, "what": {"delay_ms": 60_000}}
BAD_DAY: Final = Path(__file__).parents[2] / "examples" / "scenarios" / "bad-day.toml"


async def refused_for_a_moment(street: Street) -> None:
    """Tried again until it is taken, and then no more."""
    [fault] = await arm(street, {**SEND, "what": {"error": 131016}, "when": {"next": 2}})

    message_id = await street.send_text()
    await pass_time_until_heard(street, message_id, "delivered")

    assert await heard(street, message_id) == WHOLE
    assert await times_taken(street, message_id) == 1
    assert await hits(street, fault) == 2


async def failed_afterwards(street: Street) -> None:
    """Taken first, and then the partner is told the operator's code."""
    await arm(street, {**SEND, "what": {"fail": 131049}})

    message_id = await street.send_text()

    events = await street.events_of(message_id, until="failed")
    assert [event["type"] for event in events] == ["enqueued", "failed"]
    assert events[1]["payload"]["code"] == 131049
    assert await times_taken(street, message_id) == 1


async def never_answered(street: Street) -> None:
    """Doubtful until a status comes, and not sent again for that."""
    await arm(street, {**SEND, "what": {"timeout": True}, "when": {"next": 1}}, A_MINUTE_LATE)

    message_id = await street.send_text()
    await street.wait_for_state(message_id, "uncertain")
    before = await heard(street, message_id)
    await pass_time_until_heard(street, message_id, "delivered")
    await doubts_are_over(street)

    assert before == []
    assert await heard(street, message_id) == WHOLE
    assert await times_taken(street, message_id) == 1


async def cut_off(street: Street) -> None:
    """Cut off afterwards, a status settles it; cut off before, the partner is told of the doubt."""
    await arm(street, {**SEND, "what": {"reset": "after"}, "when": {"next": 1}}, A_MINUTE_LATE)
    taken = await street.send_text("taken")
    await street.wait_for_state(taken, "uncertain")
    await arm(street, {**SEND, "what": {"reset": "before"}, "when": {"next": 1}})
    lost = await street.send_text("lost")
    await street.wait_for_state(lost, "uncertain")

    await pass_time_until_heard(street, taken, "delivered")
    await pass_time_until_heard(street, lost, "failed", step_ms=60_000)
    await doubts_are_over(street)

    assert await heard(street, taken) == WHOLE
    assert await heard(street, lost) == ["failed"]
    [failed] = await street.events_of(lost, until="failed")
    assert failed["payload"]["code"] == 4002
    assert [await times_taken(street, one) for one in (taken, lost)] == [1, 0]


async def answered_late(street: Street) -> None:
    """Statuses that overtake the answer come after `enqueued` all the same."""
    await arm(street, {**SEND, "what": {"slow_ms": 200}})

    message_id = await street.send_text()

    await street.events_of(message_id, until="delivered")
    await at_rest(street)
    assert await heard(street, message_id) == WHOLE
    assert await times_taken(street, message_id) == 1


async def answered_with_garbage(street: Street) -> None:
    """Whatever stands there in place of an answer, what was taken is not sent again."""
    wish = {"status": 200, "taken": True}
    await arm(
        street,
        *(
            {**SEND, "what": {"garbage": how, **wish}, "when": {"next": 1}}
            for how in ("html", "truncated", "empty", "not_json")
        ),
        A_MINUTE_LATE,
    )

    message_ids = [await street.send_text(str(number)) for number in range(4)]
    for message_id in message_ids:
        await street.wait_for_state(message_id, "uncertain")
    for message_id in message_ids:
        await pass_time_until_heard(street, message_id, "delivered")
    await doubts_are_over(street)

    assert [await heard(street, one) for one in message_ids] == [WHOLE] * 4
    assert [await times_taken(street, one) for one in message_ids] == [1] * 4


async def status_dropped(street: Street) -> None:
    """A later status stands for the one that never came."""
    await arm(street, {**TOLD, "webhook": "sent", "what": {"drop": True}})

    message_id = await street.send_text()

    await street.events_of(message_id, until="delivered")
    assert await heard(street, message_id) == ["enqueued", "delivered"]
    assert await times_taken(street, message_id) == 1


async def status_delayed(street: Street) -> None:
    """What comes behind the state is kept in the trace, and called back to nobody."""
    [fault] = await arm(street, {**TOLD, "webhook": "sent", "what": {"delay_ms": 60_000}})

    message_id = await street.send_text()
    await street.events_of(message_id, until="delivered")
    posts = await webhook_posts(street)
    moving(street).advance(ms=60_000)
    await patiently(lambda: webhook_posts(street), lambda now: now > posts)
    await at_rest(street)

    assert await heard(street, message_id) == ["enqueued", "delivered"]
    assert await hits(street, fault) == 1


async def told_twice(street: Street) -> None:
    """Statuses and messages that come again are called back once."""
    await arm(street, {**TOLD, "what": {"duplicate": 2}})

    message_id = await street.send_text()
    reply = await street.reply(ANN, "Twice?")
    await street.events_of(message_id, until="delivered")
    await told_everything(street)

    assert await heard(street, message_id) == WHOLE
    replies = [one for one in street.callbacks if one["payload"].get("id") == reply["payload"]["id"]]
    assert len(replies) == 1


async def told_out_of_order(street: Street) -> None:
    """States never go back."""
    await arm(street, {**TOLD, "what": {"reorder": True}})

    message_id = await street.send_text()

    await street.events_of(message_id, until="delivered")
    await told_everything(street)
    assert await heard(street, message_id) == ["enqueued", "delivered"]
    assert await times_taken(street, message_id) == 1


async def told_together(street: Street) -> None:
    """Many updates in one POST are called back one by one, in order."""
    await arm(street, {**TOLD, "what": {"batch": 12}})
    posts = await webhook_posts(street)

    message_ids = [await street.send_text(str(number)) for number in range(6)]
    for message_id in message_ids:
        await street.events_of(message_id, until="delivered")

    assert [await heard(street, one) for one in message_ids] == [WHOLE] * 6
    assert await webhook_posts(street) == posts + 1


async def signed_wrongly(street: Street) -> None:
    """Refused, tried again by the operator, and nothing is missing in the end."""
    await refused_until_signed(street, {"wrong_signature": True})


async def not_signed(street: Street) -> None:
    """As if it were signed wrongly."""
    await refused_until_signed(street, {"unsigned": True})


async def told_garbage(street: Street) -> None:
    """What is rightly signed and no JSON is taken, and does not stand in the way."""
    await arm(street, {**TOLD, "what": {"garbage": True}})

    message_id = await street.send_text()
    await street.events_of(message_id, until="delivered")
    await told_everything(street)

    assert await heard(street, message_id) == WHOLE


# fmt: off
JOURNEYS: Final[dict[tuple[str, str], Journey]] = {
    ("call",    "error"):           refused_for_a_moment,
    ("call",    "fail"):            failed_afterwards,
    ("call",    "timeout"):         never_answered,
    ("call",    "reset"):           cut_off,
    ("call",    "slow_ms"):         answered_late,
    ("call",    "garbage"):         answered_with_garbage,
    ("webhook", "drop"):            status_dropped,
    ("webhook", "delay_ms"):        status_delayed,
    ("webhook", "duplicate"):       told_twice,
    ("webhook", "reorder"):         told_out_of_order,
    ("webhook", "batch"):           told_together,
    ("webhook", "wrong_signature"): signed_wrongly,
    ("webhook", "unsigned"):        not_signed,
    ("webhook", "garbage"):         told_garbage,
}
# fmt: on


def test_every_kind_of_fault_has_a_journey() -> None:
    assert set(JOURNEYS) == {(kind.target, kind.name) for kind in FAULT_KINDS}


@pytest.mark.parametrize("kind", JOURNEYS, ids=lambda kind: " ".join(kind))
async def test_nothing_is_lost_or_doubled(make_street: Any, kind: tuple[str, str]) -> None:
    # Only where a call is never answered: elsewhere a machine that stands still would make calls fail.
    changes = {"operator_timeout_s": 0.5} if kind == ("call", "timeout") else {}
    street: Street = await make_street(clock=ManualClock(), changes=changes)
    await street.open_window()

    await JOURNEYS[kind](street)

    await at_rest(street)


async def test_bad_day_ends_with_every_message_accounted_for(make_street: Any) -> None:
    street: Street = await make_street(clock=VirtualClock())
    template_id = await street.approved_template()
    await street.simulator.arm_scenario(read_scenario(BAD_DAY))

    phones = [str(15551300000 + number) for number in range(80)]
    message_ids = await asyncio.gather(*(street.send(template_id, to=one) for one in phones))
    ongoing = list(message_ids)
    async with asyncio.timeout(HANGS_AFTER_S):
        while ongoing := [one for one in ongoing if not await heard_the_end(street, one)]:
            await street.travel(ms=1000)

    for message_id in message_ids:
        assert await times_taken(street, message_id) == 1
        events = await heard(street, message_id)
        assert events in (WHOLE, ["enqueued", "delivered"])
    armed = (await street.control("GET", "faults"))["faults"]
    assert sum(fault["hits"] for fault in armed) > 20


def moving(street: Street) -> ManualClock:
    """The clock that the test moves."""
    assert isinstance(street.clock, ManualClock)
    return street.clock


async def refused_until_signed(street: Street, what: dict[str, bool]) -> None:
    [fault] = await arm(street, {**TOLD, "what": what, "when": {"next": 3}})

    message_id = await street.send_text()
    await pass_time_until_heard(street, message_id, "delivered")

    assert await heard(street, message_id) == WHOLE
    assert await hits(street, fault) == 3


async def arm(street: Street, *faults: dict[str, Any]) -> list[dict[str, Any]]:
    """Arm faults, and give them as they are shown."""
    return (await street.control("POST", "faults", {"faults": list(faults)}))["faults"]


async def hits(street: Street, fault: dict[str, Any]) -> int:
    """How often a fault has fired."""
    return (await street.control("GET", f"faults/{fault['id']}"))["hits"]


async def heard(street: Street, message_id: str) -> list[str]:
    """What the partner has been told of a message, in order."""
    return [
        one["payload"]["type"]
        for one in street.callbacks
        if one["type"] == "message-event" and message_id in (one["payload"]["id"], one["payload"].get("gsId"))
    ]


async def heard_the_end(street: Street, message_id: str) -> bool:
    """Whether the partner knows what became of a message."""
    return bool({"delivered", "failed"} & {*await heard(street, message_id)})


async def pass_time_until_heard(street: Street, message_id: str, news: str, *, step_ms: int = 1000) -> None:
    """Move the clock until the partner has been told."""
    event = is_event("message-event", type=news)

    def is_told() -> bool:
        return any(
            event(one) and message_id in (one["payload"]["id"], one["payload"].get("gsId")) for one in street.callbacks
        )

    await street.pass_time_until(is_told, step_ms=step_ms)


async def times_taken(street: Street, message_id: str) -> int:
    """How often the operator has the message."""
    return len(await street.deliveries(message_id))


async def webhook_posts(street: Street) -> int:
    """How many POSTs the operator has made."""
    return (await street.control("GET", "state"))["webhook_posts"]


async def told_everything(street: Street) -> None:
    """Return when the operator has nothing more to tell, moving the clock for what waits."""

    async def waiting() -> int:
        moving(street).advance(ms=1000)
        state = await street.control("GET", "state")
        return sum(account["updates_waiting"] for account in state["accounts"])

    await patiently(waiting, lambda count: count == 0)
    await at_rest(street)


async def doubts_are_over(street: Street) -> None:
    """Let the time pass that an uncertain message waits for a status, and what is left to say be said."""
    moving(street).advance(ms=901_000)
    await at_rest(street)


async def at_rest(street: Street) -> None:
    """Return when no queue of the journal holds anything."""
    await patiently(street.queue_depths, lambda queues: not any(queues.values()))
