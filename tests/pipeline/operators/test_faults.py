"""One journey for each kind of fault: what the partner sees, and that nothing is lost or doubled."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.builders import ANN, is_event
from tests.support.pipeline import PipelineHarness
from tests.support.waiting import HANGS_AFTER_S, patiently
from waypost.base.clock import ManualClock, VirtualClock
from waypost.simulator import read_scenario
from waypost.simulator.faults.fault_kinds import FAULT_KINDS

Journey = Callable[[PipelineHarness], Awaitable[None]]

SEND: Final = {"on": "call", "call": "messages.send"}
TOLD: Final = {"on": "webhook"}
WHOLE: Final = ["enqueued", "sent", "delivered"]
A_MINUTE_LATE: Final = {**TOLD, "what": {"delay_ms": 60_000}}
BAD_DAY: Final = Path(__file__).parents[3] / "examples" / "scenarios" / "bad-day.toml"


async def refused_for_a_moment(pipeline: PipelineHarness) -> None:
    """Tried again until it is taken, and then no more."""
    [fault] = await arm(pipeline, {**SEND, "what": {"error": 131016}, "when": {"next": 2}})

    message_id = await pipeline.send_text()
    await pass_time_until_heard(pipeline, message_id, "delivered")

    assert await heard(pipeline, message_id) == WHOLE
    assert await times_taken(pipeline, message_id) == 1
    assert await hits(pipeline, fault) == 2


async def failed_afterwards(pipeline: PipelineHarness) -> None:
    """Taken first, and then the partner is told the operator's code."""
    await arm(pipeline, {**SEND, "what": {"fail": 131049}})

    message_id = await pipeline.send_text()

    events = await pipeline.events_of(message_id, until="failed")
    assert [event["type"] for event in events] == ["enqueued", "failed"]
    assert events[1]["payload"]["code"] == 131049
    assert await times_taken(pipeline, message_id) == 1


async def never_answered(pipeline: PipelineHarness) -> None:
    """Doubtful until a status comes, and not sent again for that."""
    await arm(pipeline, {**SEND, "what": {"timeout": True}, "when": {"next": 1}}, A_MINUTE_LATE)

    message_id = await pipeline.send_text()
    await pipeline.wait_for_state(message_id, "uncertain")
    before = await heard(pipeline, message_id)
    await pass_time_until_heard(pipeline, message_id, "delivered")
    await doubts_are_over(pipeline)

    assert before == []
    assert await heard(pipeline, message_id) == WHOLE
    assert await times_taken(pipeline, message_id) == 1


async def cut_off(pipeline: PipelineHarness) -> None:
    """Cut off afterwards, a status settles it; cut off before, the partner is told of the doubt."""
    await arm(pipeline, {**SEND, "what": {"reset": "after"}, "when": {"next": 1}}, A_MINUTE_LATE)
    taken = await pipeline.send_text("taken")
    await pipeline.wait_for_state(taken, "uncertain")
    await arm(pipeline, {**SEND, "what": {"reset": "before"}, "when": {"next": 1}})
    lost = await pipeline.send_text("lost")
    await pipeline.wait_for_state(lost, "uncertain")

    await pass_time_until_heard(pipeline, taken, "delivered")
    await pass_time_until_heard(pipeline, lost, "failed", step_ms=60_000)
    await doubts_are_over(pipeline)

    assert await heard(pipeline, taken) == WHOLE
    assert await heard(pipeline, lost) == ["failed"]
    [failed] = await pipeline.events_of(lost, until="failed")
    assert failed["payload"]["code"] == 4002
    assert [await times_taken(pipeline, one) for one in (taken, lost)] == [1, 0]


async def answered_late(pipeline: PipelineHarness) -> None:
    """Statuses that overtake the answer come after `enqueued` all the same."""
    await arm(pipeline, {**SEND, "what": {"slow_ms": 200}})

    message_id = await pipeline.send_text()

    await pipeline.events_of(message_id, until="delivered")
    await at_rest(pipeline)
    assert await heard(pipeline, message_id) == WHOLE
    assert await times_taken(pipeline, message_id) == 1


async def answered_with_garbage(pipeline: PipelineHarness) -> None:
    """Whatever stands there in place of an answer, what was taken is not sent again."""
    wish = {"status": 200, "taken": True}
    await arm(
        pipeline,
        *(
            {**SEND, "what": {"garbage": how, **wish}, "when": {"next": 1}}
            for how in ("html", "truncated", "empty", "not_json")
        ),
        A_MINUTE_LATE,
    )

    message_ids = [await pipeline.send_text(str(number)) for number in range(4)]
    for message_id in message_ids:
        await pipeline.wait_for_state(message_id, "uncertain")
    for message_id in message_ids:
        await pass_time_until_heard(pipeline, message_id, "delivered")
    await doubts_are_over(pipeline)

    assert [await heard(pipeline, one) for one in message_ids] == [WHOLE] * 4
    assert [await times_taken(pipeline, one) for one in message_ids] == [1] * 4


async def status_dropped(pipeline: PipelineHarness) -> None:
    """A later status stands for the one that never came."""
    await arm(pipeline, {**TOLD, "webhook": "sent", "what": {"drop": True}})

    message_id = await pipeline.send_text()

    await pipeline.events_of(message_id, until="delivered")
    assert await heard(pipeline, message_id) == ["enqueued", "delivered"]
    assert await times_taken(pipeline, message_id) == 1


async def status_delayed(pipeline: PipelineHarness) -> None:
    """What comes behind the state is kept in the trace, and called back to nobody."""
    [fault] = await arm(pipeline, {**TOLD, "webhook": "sent", "what": {"delay_ms": 60_000}})

    message_id = await pipeline.send_text()
    await pipeline.events_of(message_id, until="delivered")
    posts = await webhook_posts(pipeline)
    moving(pipeline).advance(ms=60_000)
    await patiently(lambda: webhook_posts(pipeline), lambda now: now > posts)
    await at_rest(pipeline)

    assert await heard(pipeline, message_id) == ["enqueued", "delivered"]
    assert await hits(pipeline, fault) == 1


async def told_twice(pipeline: PipelineHarness) -> None:
    """Statuses and messages that come again are called back once."""
    await arm(pipeline, {**TOLD, "what": {"duplicate": 2}})

    message_id = await pipeline.send_text()
    reply = await pipeline.reply(ANN, "Twice?")
    await pipeline.events_of(message_id, until="delivered")
    await told_everything(pipeline)

    assert await heard(pipeline, message_id) == WHOLE
    replies = [one for one in pipeline.callbacks if one["payload"].get("id") == reply["payload"]["id"]]
    assert len(replies) == 1


async def told_out_of_order(pipeline: PipelineHarness) -> None:
    """States never go back."""
    await arm(pipeline, {**TOLD, "what": {"reorder": True}})

    message_id = await pipeline.send_text()

    await pipeline.events_of(message_id, until="delivered")
    await told_everything(pipeline)
    assert await heard(pipeline, message_id) == ["enqueued", "delivered"]
    assert await times_taken(pipeline, message_id) == 1


async def told_together(pipeline: PipelineHarness) -> None:
    """Many updates in one POST are called back one by one, in order."""
    await arm(pipeline, {**TOLD, "what": {"batch": 12}})
    posts = await webhook_posts(pipeline)

    message_ids = [await pipeline.send_text(str(number)) for number in range(6)]
    for message_id in message_ids:
        await pipeline.events_of(message_id, until="delivered")

    assert [await heard(pipeline, one) for one in message_ids] == [WHOLE] * 6
    assert await webhook_posts(pipeline) == posts + 1


async def signed_wrongly(pipeline: PipelineHarness) -> None:
    """Refused, tried again by the operator, and nothing is missing in the end."""
    await refused_until_signed(pipeline, {"wrong_signature": True})


async def not_signed(pipeline: PipelineHarness) -> None:
    """As if it were signed wrongly."""
    await refused_until_signed(pipeline, {"unsigned": True})


async def told_garbage(pipeline: PipelineHarness) -> None:
    """What is rightly signed and no JSON is taken, and does not stand in the way."""
    await arm(pipeline, {**TOLD, "what": {"garbage": True}})

    message_id = await pipeline.send_text()
    await pipeline.events_of(message_id, until="delivered")
    await told_everything(pipeline)

    assert await heard(pipeline, message_id) == WHOLE


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
async def test_nothing_is_lost_or_doubled(make_pipeline: Any, kind: tuple[str, str]) -> None:
    # Only where a call is never answered: elsewhere a machine that stands still would make calls fail.
    changes = {"operator_timeout_s": 0.5} if kind == ("call", "timeout") else {}
    pipeline: PipelineHarness = await make_pipeline(clock=ManualClock(), changes=changes)
    await pipeline.open_window()

    await JOURNEYS[kind](pipeline)

    await at_rest(pipeline)


async def test_bad_day_ends_with_every_message_accounted_for(make_pipeline: Any) -> None:
    pipeline: PipelineHarness = await make_pipeline(clock=VirtualClock())
    template_id = await pipeline.approved_template()
    await pipeline.simulator.arm_scenario(read_scenario(BAD_DAY))

    phones = [str(15551300000 + number) for number in range(80)]
    message_ids = await asyncio.gather(*(pipeline.send(template_id, to=one) for one in phones))
    ongoing = list(message_ids)
    async with asyncio.timeout(HANGS_AFTER_S):
        while ongoing := [one for one in ongoing if not await heard_the_end(pipeline, one)]:
            await pipeline.travel(ms=1000)

    for message_id in message_ids:
        assert await times_taken(pipeline, message_id) == 1
        events = await heard(pipeline, message_id)
        assert events in (WHOLE, ["enqueued", "delivered"])
    armed = (await pipeline.control("GET", "faults"))["faults"]
    assert sum(fault["hits"] for fault in armed) > 20


def moving(pipeline: PipelineHarness) -> ManualClock:
    """The clock that the test moves."""
    assert isinstance(pipeline.clock, ManualClock)
    return pipeline.clock


async def refused_until_signed(pipeline: PipelineHarness, what: dict[str, bool]) -> None:
    [fault] = await arm(pipeline, {**TOLD, "what": what, "when": {"next": 3}})

    message_id = await pipeline.send_text()
    await pass_time_until_heard(pipeline, message_id, "delivered")

    assert await heard(pipeline, message_id) == WHOLE
    assert await hits(pipeline, fault) == 3


async def arm(pipeline: PipelineHarness, *faults: dict[str, Any]) -> list[dict[str, Any]]:
    """Arm faults, and give them as they are shown."""
    return (await pipeline.control("POST", "faults", {"faults": list(faults)}))["faults"]


async def hits(pipeline: PipelineHarness, fault: dict[str, Any]) -> int:
    """How often a fault has fired."""
    return (await pipeline.control("GET", f"faults/{fault['id']}"))["hits"]


async def heard(pipeline: PipelineHarness, message_id: str) -> list[str]:
    """What the partner has been told of a message, in order."""
    return [
        one["payload"]["type"]
        for one in pipeline.callbacks
        if one["type"] == "message-event" and message_id in (one["payload"]["id"], one["payload"].get("gsId"))
    ]


async def heard_the_end(pipeline: PipelineHarness, message_id: str) -> bool:
    """Whether the partner knows what became of a message."""
    return bool({"delivered", "failed"} & {*await heard(pipeline, message_id)})


async def pass_time_until_heard(pipeline: PipelineHarness, message_id: str, news: str, *, step_ms: int = 1000) -> None:
    """Move the clock until the partner has been told."""
    event = is_event("message-event", type=news)

    def is_told() -> bool:
        return any(
            event(one) and message_id in (one["payload"]["id"], one["payload"].get("gsId"))
            for one in pipeline.callbacks
        )

    await pipeline.pass_time_until(is_told, step_ms=step_ms)


async def times_taken(pipeline: PipelineHarness, message_id: str) -> int:
    """How often the operator has the message."""
    return len(await pipeline.deliveries(message_id))


async def webhook_posts(pipeline: PipelineHarness) -> int:
    """How many POSTs the operator has made."""
    return (await pipeline.control("GET", "state"))["webhook_posts"]


async def told_everything(pipeline: PipelineHarness) -> None:
    """Return when the operator has nothing more to tell, moving the clock for what waits."""

    async def waiting() -> int:
        moving(pipeline).advance(ms=1000)
        state = await pipeline.control("GET", "state")
        return sum(account["updates_waiting"] for account in state["accounts"])

    await patiently(waiting, lambda count: count == 0)
    await at_rest(pipeline)


async def doubts_are_over(pipeline: PipelineHarness) -> None:
    """Let the time pass that an uncertain message waits for a status, and what is left to say be said."""
    moving(pipeline).advance(ms=901_000)
    await at_rest(pipeline)


async def at_rest(pipeline: PipelineHarness) -> None:
    """Return when no queue of the journal holds anything."""
    await patiently(pipeline.queue_depths, lambda queues: not any(queues.values()))
