"""Timed changes of templates: pauses, announced categories, archiving and deletions."""

from pathlib import Path
from typing import Any

import aiohttp

from tests.simulator.conftest import ANN, TOKEN, WABA, Bench, Receiver, make_bench
from tests.support.manual_clock import ManualClock
from waypost.base.clock import VirtualClock
from waypost.base.time_travel import TimeTravel

ID = "1400000000000004"
HELLO: list[dict[str, Any]] = [{"type": "BODY", "text": "Hello there"}]
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


async def rate(bench: Bench, score: str) -> dict[str, Any]:
    response = await bench.control("POST", f"templates/{ID}/quality", {"score": score})
    return response.body


async def wait_for_events(bench: Bench, count: int) -> list[dict[str, Any]]:
    return await bench.receiver.wait_until(
        lambda: events if len(events := bench.receiver.template_events()) == count else None
    )


async def test_red_quality_pauses_for_3_hours_then_6_then_disables(slow: Bench, clock: ManualClock) -> None:
    # Source: facts 3.2: 3 hours, 6 hours, disabled.
    await slow.seed_template(HELLO)

    statuses: list[str] = []
    for hours in (3, 6, 0):
        statuses.append((await rate(slow, "RED"))["status"])
        clock.advance(ms=hours * HOUR_MS)
        if hours:
            await wait_for_events(slow, 2 * len(statuses))
            await rate(slow, "GREEN")

    assert statuses == ["PAUSED", "PAUSED", "DISABLED"]
    events = await wait_for_events(slow, 5)
    assert [event["other_info"]["title"] for event in events] == [
        "FIRST_PAUSE", "UNPAUSE", "SECOND_PAUSE", "UNPAUSE", "DISABLED",
    ]  # fmt: skip
    scores = slow.receiver.changes("message_template_quality_update")
    assert [update["new_quality_score"] for update in scores] == ["RED", "GREEN", "RED", "GREEN", "RED"]


async def test_announced_category_is_applied_when_it_is_due(slow: Bench, clock: ManualClock) -> None:
    # Source: facts 3.2, 3.3: about a day ahead; the lifetime is removed.
    await slow.create_template(HELLO, message_send_ttl_seconds=60)
    listed = await slow.graph("GET", f"{WABA}/message_templates")
    template_id = listed.body["data"][0]["id"]
    clock.advance(ms=60_000)
    await wait_for_events(slow, 1)
    await slow.control("POST", f"templates/{template_id}/category", {"category": "MARKETING", "announced": True})
    await slow.receiver.wait_until(lambda: slow.receiver.changes("template_category_update"))

    clock.advance(ms=DAY_MS)

    first, second = await slow.receiver.wait_until(
        lambda: updates if len(updates := slow.receiver.changes("template_category_update")) == 2 else None
    )
    assert (first["new_category"], first["correct_category"]) == ("UTILITY", "MARKETING")
    assert (second["previous_category"], second["new_category"]) == ("UTILITY", "MARKETING")
    fields = "category,previous_category,correct_category,message_send_ttl_seconds"
    shown = await slow.graph("GET", f"{template_id}?fields={fields}")
    assert shown.body == {
        "id": template_id, "category": "MARKETING", "previous_category": "UTILITY",
    }  # fmt: skip


async def test_deleted_template_with_undelivered_messages_is_pending_for_30_days(
    slow: Bench, clock: ManualClock
) -> None:
    # Source: facts 2.6, "Deleted but undelivered messages".
    await slow.seed_template(HELLO)
    await slow.control("PUT", f"phones/{ANN}", {"is_offline": True})
    await slow.send_template()

    await slow.graph("DELETE", f"{WABA}/message_templates?name=seeded")
    pending = await slow.graph("GET", ID)
    rejected = await slow.create_template(HELLO, name="seeded")
    sent = await slow.send_template()
    await wait_for_events(slow, 1)
    clock.advance(ms=30 * DAY_MS)
    events = await wait_for_events(slow, 2)

    assert pending.body["status"] == "PENDING_DELETION"
    assert rejected.error["error_subcode"] == 2388023
    assert sent.error["code"] == 132001
    assert [(event["event"], event["reason"]) for event in events] == [
        ("PENDING_DELETION", None), ("DELETED", None),
    ]  # fmt: skip
    assert (await slow.graph("GET", ID)).error["error_subcode"] == 33


async def test_approved_template_is_edited_once_a_day_and_ten_times_in_30_days(slow: Bench, clock: ManualClock) -> None:
    # Source: facts 2.6.
    await slow.seed_template(HELLO)

    async def edit() -> int:
        response = await slow.graph("POST", ID, json={"components": HELLO})
        await slow.control("POST", f"templates/{ID}/approve")
        return response.status

    first, same_day = await edit(), await edit()
    await slow.restart()
    after_restart = await edit()
    next_days: list[int] = []
    for _ in range(10):
        clock.advance(ms=DAY_MS)
        next_days.append(await edit())
    clock.advance(ms=20 * DAY_MS)
    next_month = await edit()

    assert (first, same_day, after_restart) == (200, 400, 400)
    assert next_days == [200] * 9 + [400]
    assert next_month == 200


async def test_archived_template_is_deleted_after_28_days_unless_unarchived(slow: Bench, clock: ManualClock) -> None:
    # Source: facts 1 (the path has no version) and 2.6.
    await slow.seed_template(HELLO)
    await slow.seed_template(HELLO, name="kept", template_id="1400000000000005")
    headers = {"Authorization": f"Bearer {TOKEN}"}

    async def change_archive(action: str, ids: str) -> dict[str, Any]:
        path = f"/{WABA}/message_templates/{action}"
        return (await slow.request("POST", path, json={"hsm_ids": ids}, headers=headers)).body

    archived = await change_archive("archive", f"{ID},1400000000000005,999")
    unarchived = await change_archive("unarchive", "1400000000000005")
    await wait_for_events(slow, 3)
    clock.advance(ms=28 * DAY_MS)
    events = await wait_for_events(slow, 4)

    assert archived["archived_templates"] == [ID, "1400000000000005"]
    assert list(archived["failed_templates"]) == ["999"]
    assert unarchived == {"unarchived_templates": ["1400000000000005"], "failed_templates": {}}
    assert [event["event"] for event in events] == ["ARCHIVED", "ARCHIVED", "UNARCHIVED", "DELETED"]
    assert (await slow.graph("GET", "1400000000000005")).body["status"] == "APPROVED"


async def test_advancing_30_days_runs_every_timer_at_its_due_time(
    tmp_path: Path, receiver: Receiver, http: aiohttp.ClientSession
) -> None:
    clock = VirtualClock()
    bench = make_bench(tmp_path, clock, receiver, http, review_delay_ms=60_000)
    await bench.start()
    travel = TimeTravel(clock, [bench.simulator])
    await bench.seed_template(HELLO)
    await bench.seed_template(HELLO, name="paced", template_id="1400000000000005")
    await bench.seed_template(HELLO, name="away", template_id="1400000000000006")
    await travel.run(factor=0)
    start_ms = clock.now_ms()

    await rate(bench, "RED")
    await bench.control("POST", "templates/1400000000000005/pace", {"for_ms": HOUR_MS, "verdict": "drop"})
    held = await bench.send_template(name="paced")
    change = {"category": "MARKETING", "announced": True}
    await bench.control("POST", "templates/1400000000000005/category", change)
    await bench.control("POST", "templates/1400000000000006/archive")
    await travel.advance(to_ms=start_ms + 30 * DAY_MS)

    await bench.stop()
    wamid = held.body["messages"][0]["id"]
    assert [status["status"] for status in receiver.statuses(wamid)] == ["failed"]
    events = [(event["message_template_name"], event["event"]) for event in receiver.template_events()]
    assert sorted(events) == [
        ("away", "ARCHIVED"), ("away", "DELETED"), ("paced", "PAUSED"),
        ("seeded", "APPROVED"), ("seeded", "PAUSED"),
    ]  # fmt: skip
    categories = receiver.changes("template_category_update")
    assert [update["new_category"] for update in categories] == ["UTILITY", "MARKETING"]


async def test_unused_template_is_archived_and_then_deleted(slow: Bench, clock: ManualClock) -> None:
    # Source: facts 2.6: after twelve months, and 28 days later.
    await slow.seed_template(HELLO)
    clock.advance(ms=300 * DAY_MS)
    await slow.send_from_phone()
    used = await slow.send_template()
    await slow.restart()

    clock.advance(ms=365 * DAY_MS)
    before = await slow.graph("GET", ID)
    clock.advance(ms=DAY_MS)
    [archived] = await wait_for_events(slow, 1)
    rejected = await slow.send_template()
    clock.advance(ms=28 * DAY_MS)
    [_, deleted] = await wait_for_events(slow, 2)

    assert used.status == 200
    assert before.body["status"] == "APPROVED"
    assert archived["event"] == "ARCHIVED"
    assert rejected.error["code"] == 132001
    assert deleted["event"] == "DELETED"
    assert (await slow.graph("GET", ID)).error["error_subcode"] == 33


async def test_unarchived_template_stays_approved_for_another_year(slow: Bench, clock: ManualClock) -> None:
    await slow.seed_template(HELLO)
    clock.advance(ms=366 * DAY_MS)
    await wait_for_events(slow, 1)

    await slow.graph("POST", f"{WABA}/message_templates/unarchive", json={"hsm_ids": [ID]})
    events = await wait_for_events(slow, 2)
    clock.advance(ms=300 * DAY_MS)
    shown = await slow.graph("GET", ID)

    assert [event["event"] for event in events] == ["ARCHIVED", "UNARCHIVED"]
    assert shown.body["status"] == "APPROVED"
