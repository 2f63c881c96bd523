"""What happens to a template by itself: quality, categories and deletions that take their time."""

from pathlib import Path
from typing import Any

import aiohttp

from tests.simulator.conftest import ANN, TOKEN, WABA, Bench, Receiver, make_bench
from waypost.base.clock import ManualClock, VirtualClock
from waypost.base.time_travel import TimeTravel

ID = "1400000000000004"
HELLO: list[dict[str, Any]] = [{"type": "BODY", "text": "Hello there"}]
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


async def rate(bench: Bench, score: str) -> dict[str, Any]:
    answer = await bench.control("POST", f"templates/{ID}/quality", {"score": score})
    return answer.body


async def told_of(bench: Bench, count: int) -> list[dict[str, Any]]:
    return await bench.receiver.until(lambda: told if len(told := bench.receiver.templates()) == count else None)


async def test_red_quality_climbs_the_ladder_of_pauses(slow: Bench, manual: ManualClock) -> None:
    # Source: facts 3.2: 3 hours, 6 hours, disabled.
    await slow.seed_template(HELLO)

    statuses: list[str] = []
    for hours in (3, 6, 0):
        statuses.append((await rate(slow, "RED"))["status"])
        manual.advance(ms=hours * HOUR_MS)
        if hours:
            await told_of(slow, 2 * len(statuses))
            await rate(slow, "GREEN")

    assert statuses == ["PAUSED", "PAUSED", "DISABLED"]
    told = await told_of(slow, 5)
    assert [one["other_info"]["title"] for one in told] == [
        "FIRST_PAUSE", "UNPAUSE", "SECOND_PAUSE", "UNPAUSE", "DISABLED",
    ]  # fmt: skip
    scores = slow.receiver.changes("message_template_quality_update")
    assert [one["new_quality_score"] for one in scores] == ["RED", "GREEN", "RED", "GREEN", "RED"]


async def test_announced_category_comes_by_itself(slow: Bench, manual: ManualClock) -> None:
    # Source: facts 3.2, 3.3: about a day ahead; the lifetime is taken away.
    await slow.create(HELLO, message_send_ttl_seconds=60)
    listed = await slow.graph("GET", f"{WABA}/message_templates")
    template_id = listed.body["data"][0]["id"]
    manual.advance(ms=60_000)
    await told_of(slow, 1)
    await slow.control("POST", f"templates/{template_id}/category", {"category": "MARKETING", "announced": True})
    await slow.receiver.until(lambda: slow.receiver.changes("template_category_update"))

    manual.advance(ms=DAY_MS)

    first, second = await slow.receiver.until(
        lambda: told if len(told := slow.receiver.changes("template_category_update")) == 2 else None
    )
    assert (first["new_category"], first["correct_category"]) == ("UTILITY", "MARKETING")
    assert (second["previous_category"], second["new_category"]) == ("UTILITY", "MARKETING")
    fields = "category,previous_category,correct_category,message_send_ttl_seconds"
    shown = await slow.graph("GET", f"{template_id}?fields={fields}")
    assert shown.body == {
        "id": template_id, "category": "MARKETING", "previous_category": "UTILITY",
    }  # fmt: skip


async def test_deleted_template_with_waiting_messages_is_pending_for_30_days(slow: Bench, manual: ManualClock) -> None:
    # Source: facts 2.6, "Deleted but undelivered messages".
    await slow.seed_template(HELLO)
    await slow.control("PUT", f"phones/{ANN}", {"is_offline": True})
    await slow.send_template()

    await slow.graph("DELETE", f"{WABA}/message_templates?name=seeded")
    pending = await slow.graph("GET", ID)
    refused = await slow.create(HELLO, name="seeded")
    sent = await slow.send_template()
    await told_of(slow, 1)
    manual.advance(ms=30 * DAY_MS)
    told = await told_of(slow, 2)

    assert pending.body["status"] == "PENDING_DELETION"
    assert refused.error["error_subcode"] == 2388023
    assert sent.error["code"] == 132001
    assert [(one["event"], one["reason"]) for one in told] == [
        ("PENDING_DELETION", None), ("DELETED", None),
    ]  # fmt: skip
    assert (await slow.graph("GET", ID)).error["error_subcode"] == 33


async def test_approved_template_is_edited_once_a_day_and_ten_times_in_30_days(
    slow: Bench, manual: ManualClock
) -> None:
    # Source: facts 2.6.
    await slow.seed_template(HELLO)

    async def edit() -> int:
        answer = await slow.graph("POST", ID, json={"components": HELLO})
        await slow.control("POST", f"templates/{ID}/approve")
        return answer.status

    first, same_day = await edit(), await edit()
    await slow.restart()
    after_restart = await edit()
    next_days: list[int] = []
    for _ in range(10):
        manual.advance(ms=DAY_MS)
        next_days.append(await edit())
    manual.advance(ms=20 * DAY_MS)
    next_month = await edit()

    assert (first, same_day, after_restart) == (200, 400, 400)
    assert next_days == [200] * 9 + [400]
    assert next_month == 200


async def test_archived_template_is_deleted_after_28_days_unless_it_comes_back(
    slow: Bench, manual: ManualClock
) -> None:
    # Source: facts 1 (the path has no version) and 2.6.
    await slow.seed_template(HELLO)
    await slow.seed_template(HELLO, name="kept", template_id="1400000000000005")
    headers = {"Authorization": f"Bearer {TOKEN}"}

    async def ask(act: str, ids: str) -> dict[str, Any]:
        path = f"/{WABA}/message_templates/{act}"
        return (await slow.ask("POST", path, json={"hsm_ids": ids}, headers=headers)).body

    archived = await ask("archive", f"{ID},1400000000000005,999")
    brought_back = await ask("unarchive", "1400000000000005")
    await told_of(slow, 3)
    manual.advance(ms=28 * DAY_MS)
    told = await told_of(slow, 4)

    assert archived["archived_templates"] == [ID, "1400000000000005"]
    assert list(archived["failed_templates"]) == ["999"]
    assert brought_back == {"unarchived_templates": ["1400000000000005"], "failed_templates": {}}
    assert [one["event"] for one in told] == ["ARCHIVED", "ARCHIVED", "UNARCHIVED", "DELETED"]
    assert (await slow.graph("GET", "1400000000000005")).body["status"] == "APPROVED"


async def test_thirty_days_pass_from_due_time_to_due_time(
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
    assert [one["status"] for one in receiver.statuses(wamid)] == ["failed"]
    events = [(one["message_template_name"], one["event"]) for one in receiver.templates()]
    assert sorted(events) == [
        ("away", "ARCHIVED"), ("away", "DELETED"), ("paced", "PAUSED"),
        ("seeded", "APPROVED"), ("seeded", "PAUSED"),
    ]  # fmt: skip
    categories = receiver.changes("template_category_update")
    assert [one["new_category"] for one in categories] == ["UTILITY", "MARKETING"]


async def test_template_that_nobody_uses_is_archived_and_then_deleted(slow: Bench, manual: ManualClock) -> None:
    # Source: facts 2.6: after twelve months, and 28 days later.
    await slow.seed_template(HELLO)
    manual.advance(ms=300 * DAY_MS)
    await slow.let_write()
    used = await slow.send_template()
    await slow.restart()

    manual.advance(ms=365 * DAY_MS)
    still = await slow.graph("GET", ID)
    manual.advance(ms=DAY_MS)
    [archived] = await told_of(slow, 1)
    refused = await slow.send_template()
    manual.advance(ms=28 * DAY_MS)
    [_, deleted] = await told_of(slow, 2)

    assert used.status == 200
    assert still.body["status"] == "APPROVED"
    assert archived["event"] == "ARCHIVED"
    assert refused.error["code"] == 132001
    assert deleted["event"] == "DELETED"
    assert (await slow.graph("GET", ID)).error["error_subcode"] == 33


async def test_unarchived_template_has_another_year(slow: Bench, manual: ManualClock) -> None:
    await slow.seed_template(HELLO)
    manual.advance(ms=366 * DAY_MS)
    await told_of(slow, 1)

    await slow.graph("POST", f"{WABA}/message_templates/unarchive", json={"hsm_ids": [ID]})
    told = await told_of(slow, 2)
    manual.advance(ms=300 * DAY_MS)
    shown = await slow.graph("GET", ID)

    assert [one["event"] for one in told] == ["ARCHIVED", "UNARCHIVED"]
    assert shown.body["status"] == "APPROVED"
