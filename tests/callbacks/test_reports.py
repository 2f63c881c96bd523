"""What is kept of every attempt, and the report of how long receivers take."""

from typing import Any

from tests.support.callback_service import Teller
from tests.support.callback_sink import CallbackSink, in_turn
from tests.support.waiting import patiently
from waypost.base.clock import ManualClock
from waypost.domain.callbacks.receiver_statistics import build_receiver_report


async def test_every_attempt_is_kept_with_what_was_sent_and_what_was_answered(
    teller: Teller, sink: CallbackSink, clock: ManualClock
) -> None:
    sink.answers = in_turn(500, 200)
    sink.told = lambda _: {"X-Reason": "out of paper", "X-Long": "a" * 5000}
    await teller.subscribe(sink.url, meta='{"headers":{"X-Secret":"hush-hush"}}')

    await teller.tell("ann")
    await sink.wait_until(lambda: len(sink.tries) == 1)
    assert sink.tries[0].headers["X-Secret"] == "hush-hush"
    path = f"callbacks/{sink.tries[0].callback_id}"
    await patiently(lambda: teller.admin("GET", path), lambda one: len(one["attempts"]) == 1)
    clock.advance(ms=2_000)
    shown: Any = await patiently(lambda: teller.admin("GET", path), lambda one: len(one["attempts"]) == 2)

    first, second = shown["attempts"]
    assert (first["status"], second["status"]) == (500, 200)
    assert second["at_ms"] - first["at_ms"] == 2_000
    assert first["duration_ms"] >= 0
    sent = {name.lower(): text for name, text in first["request_headers"].items()}
    assert sent["x-secret"] == "(not kept)"
    assert "hush-hush" not in str(shown)
    assert sent["webhook-signature"] == sink.tries[0].headers["webhook-signature"]
    assert first["answer_headers"]["x-reason"] == "out of paper"
    assert len(first["answer_headers"]["x-long"]) == 300


async def test_report_counts_attempts_of_the_time_that_is_asked_for(
    teller: Teller, sink: CallbackSink, clock: ManualClock
) -> None:
    subscription = await teller.subscribe(sink.url)
    await teller.tell("ann")
    await sink.wait_until(lambda: len(sink.tries) == 1)
    clock.advance(ms=60_000)
    from_ms = clock.now_ms()
    await teller.tell("ann", "ben", "cem")
    await sink.wait_until(lambda: len(sink.tries) == 4)
    path = f"callbacks/report?subscription_id={subscription}&from_ms={from_ms}"

    told = await patiently(
        lambda: teller.admin("GET", path), lambda one: [line["attempts"] for line in one["subscriptions"]] == [3]
    )

    [line] = told["subscriptions"]
    assert line["by_status"] == {"2xx": 3}
    assert line["under_5_s"] == 1
    assert line["over_10_s"] == 0
    whole = await teller.admin("GET", f"callbacks/report?subscription_id={subscription}")
    assert whole["subscriptions"][0]["attempts"] == 4


class Row:
    def __init__(self, duration_ms: int, status: int | None, tries: int) -> None:
        self.subscription_id = 7
        self.duration_ms, self.status, self.tries = duration_ms, status, tries


def test_percentiles_are_of_attempts_and_not_of_different_times() -> None:
    rows = [Row(5, 200, 89), Row(900, 200, 9), Row(7_000, 503, 1), Row(10_000, None, 1)]

    [line] = build_receiver_report(rows)

    assert line == {
        "subscription_id": 7,
        "attempts": 100,
        "p50_ms": 5,
        "p90_ms": 900,
        "p99_ms": 7_000,
        "max_ms": 10_000,
        "under_5_s": 0.98,
        "over_10_s": 0.01,
        "by_status": {"2xx": 98, "5xx": 1, "no answer": 1},
    }
