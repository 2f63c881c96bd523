"""The stored record of every attempt, and the report of receivers' response times."""

from typing import Any

from tests.support.callback_service import CallbackService
from tests.support.callback_sink import CallbackSink, respond_in_turn
from tests.support.manual_clock import ManualClock
from tests.support.polling import poll_until
from waypost.domain.callbacks import build_receiver_report


async def test_every_attempt_is_stored_with_its_request_and_its_response(
    service: CallbackService, sink: CallbackSink, clock: ManualClock
) -> None:
    sink.choose_status = respond_in_turn(500, 200)
    sink.choose_headers = lambda _: {"X-Reason": "out of paper", "X-Long": "a" * 5000}
    await service.subscribe(sink.url, meta='{"headers":{"X-Secret":"hush-hush"}}')

    await service.emit_callbacks("ann")
    await sink.wait_until(lambda: len(sink.requests) == 1)
    assert sink.requests[0].headers["X-Secret"] == "hush-hush"
    path = f"callbacks/{sink.requests[0].callback_id}"
    await poll_until(lambda: service.admin("GET", path), lambda callback: len(callback["attempts"]) == 1)
    clock.advance(ms=2_000)
    shown: Any = await poll_until(lambda: service.admin("GET", path), lambda callback: len(callback["attempts"]) == 2)

    first, second = shown["attempts"]
    assert (first["status"], second["status"]) == (500, 200)
    assert second["at_ms"] - first["at_ms"] == 2_000
    assert first["duration_ms"] >= 0
    sent = {name.lower(): text for name, text in first["request_headers"].items()}
    assert sent["x-secret"] == "(not kept)"
    assert "hush-hush" not in str(shown)
    assert sent["webhook-signature"] == sink.requests[0].headers["webhook-signature"]
    assert first["response_headers"]["x-reason"] == "out of paper"
    assert len(first["response_headers"]["x-long"]) == 300


async def test_report_counts_the_attempts_of_the_requested_period(
    service: CallbackService, sink: CallbackSink, clock: ManualClock
) -> None:
    subscription = await service.subscribe(sink.url)
    await service.emit_callbacks("ann")
    await sink.wait_until(lambda: len(sink.requests) == 1)
    clock.advance(ms=60_000)
    from_ms = clock.now_ms()
    await service.emit_callbacks("ann", "ben", "cem")
    await sink.wait_until(lambda: len(sink.requests) == 4)
    path = f"callbacks/report?subscription_id={subscription}&from_ms={from_ms}"

    report = await poll_until(
        lambda: service.admin("GET", path), lambda report: [row["attempts"] for row in report["subscriptions"]] == [3]
    )

    [row] = report["subscriptions"]
    assert row["by_status"] == {"2xx": 3}
    assert row["under_5_s"] == 1
    assert row["over_10_s"] == 0
    full_report = await service.admin("GET", f"callbacks/report?subscription_id={subscription}")
    assert full_report["subscriptions"][0]["attempts"] == 4


class AttemptRow:
    """A row of the attempts, as the report reads them."""

    def __init__(self, duration_ms: int, status: int | None, tries: int) -> None:
        self.subscription_id = 7
        self.duration_ms, self.status, self.tries = duration_ms, status, tries


def test_percentiles_are_of_attempts_and_not_of_distinct_durations() -> None:
    rows = [AttemptRow(5, 200, 89), AttemptRow(900, 200, 9), AttemptRow(7_000, 503, 1), AttemptRow(10_000, None, 1)]

    [report] = build_receiver_report(rows)

    assert report == {
        "subscription_id": 7,
        "attempts": 100,
        "p50_ms": 5,
        "p90_ms": 900,
        "p99_ms": 7_000,
        "max_ms": 10_000,
        "under_5_s": 0.98,
        "over_10_s": 0.01,
        "by_status": {"2xx": 98, "5xx": 1, "no response": 1},
    }
