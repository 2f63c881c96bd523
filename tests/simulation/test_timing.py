"""The checks of times and of leftovers see what they are for, in observations made by hand."""

import asyncio
import json

import pytest

from simulation.accounts import AppAccount
from simulation.leftovers import IN_FLIGHT, find_stale_marks
from simulation.observed import Exchange, Observed, Run, SubscriptionTerms
from simulation.received import Tap, read_tap
from simulation.sending import check_limits
from simulation.timing import check_timing

PATH = "/Shop/first-0"


def attempt(callback_id: str, began_s: float, status: int) -> Exchange:
    headers = {"waypost-callback-id": callback_id, "waypost-sequence": "1"}
    return Exchange("receiver 1", "POST", PATH, headers, began_s, status=status, ended_s=began_s + 0.1)


def observe(*exchanges: Exchange) -> Observed:
    return Observed(
        exchanges=[*exchanges],
        uncertain_for_s=[90],
        subscriptions={PATH: SubscriptionTerms("app", ("READ",), is_steady=True)},
    )


def callback(number: int, to: str, began_s: float, status: int) -> Exchange:
    payload: dict[str, object] = {
        "destination": to,
        "gsId": f"m{number}",
        "id": f"m{number}",
        "type": "read",
        "payload": {},
    }
    body = json.dumps({"type": "message-event", "payload": payload}).encode()
    headers = {"waypost-callback-id": str(number), "waypost-sequence": str(number)}
    ended_s = began_s + 0.1
    return Exchange("receiver 1", "POST", PATH, headers, began_s, body, is_whole=True, status=status, ended_s=ended_s)


def webhook(began_s: float) -> Exchange:
    """The recipient of message m2 has read it."""
    came = {"status": "read", "biz_opaque_callback_data": "m2"}
    value = {"messages": [], "statuses": [came]}
    body = json.dumps({"entry": [{"changes": [{"field": "messages", "value": value}]}]}).encode()
    runs = [Run(began_s, began_s + 0.1, 200)]
    return Exchange("service", "POST", "/operator/webhook/1", {}, began_s, body, is_whole=True, runs=runs)


def outage(again_s: float) -> list[Exchange]:
    """Three callbacks fail, the last one is received at 20 s, and the first two are tried again at a time."""
    failed = [attempt(callback_id, began_s, 500) for callback_id, began_s in (("a", 10), ("b", 11), ("c", 12))]
    return [*failed, attempt("c", 20, 200), attempt("a", again_s, 200), attempt("b", again_s, 200)]


@pytest.mark.parametrize(("again_s", "found"), [(35, 0), (60, 2)])
def test_disk_that_was_full_excuses_callbacks_until_it_has_space(again_s: float, found: int) -> None:
    observed = observe(*outage(again_s))
    observed.storage_failures.append((13, 30))

    assert len([*check_timing(observed, [])]) == found


def test_callbacks_that_wait_after_an_outage_are_found() -> None:
    found = list(check_timing(observe(*outage(again_s=40)), []))

    assert len(found) == 2
    assert "was tried again at 40.0 s" in found[0]


@pytest.mark.parametrize("excuse", ["at once", "away", "paused", "restarted"])
def test_callbacks_after_an_outage_may_wait_for_a_reason(excuse: str) -> None:
    observed = observe(*outage(again_s=21 if excuse == "at once" else 40))
    if excuse == "away":
        observed.away.append(("receiver 1", 25, 30))
    elif excuse == "paused":
        observed.subscriptions[PATH].paused.append((25, 30))
    elif excuse == "restarted":
        observed.interruptions.append((25, 30))

    assert list(check_timing(observed, [])) == []


@pytest.mark.parametrize(("failed_s", "received_s"), [(12, 9.98), (19.98, 9)])
def test_failure_beside_a_success_may_have_been_known_before_or_after_it(failed_s: float, received_s: float) -> None:
    """Then the service has seen two failures in a row, which are no outage."""
    failed = [attempt(callback_id, began_s, 500) for callback_id, began_s in (("a", 10), ("b", 11), ("c", failed_s))]
    received = [attempt(callback_id, at_s, 200) for callback_id, at_s in (("d", received_s), ("e", 20), ("a", 40))]

    assert list(check_timing(observe(*failed, *received), [])) == []


def test_response_that_comes_late_counts_when_the_service_had_given_up() -> None:
    """Two failures in a row are no outage, whenever the receiver answers to an attempt before them."""
    late = attempt("a", 1, 500)
    late.ended_s = 19
    failed = [attempt(callback_id, began_s, 500) for callback_id, began_s in (("b", 14), ("c", 15))]
    received = [attempt("d", 13, 200), attempt("c", 20, 200), attempt("a", 40, 200), attempt("b", 40, 200)]

    assert list(check_timing(observe(late, *failed, *received), [])) == []


@pytest.mark.parametrize(("received_s", "is_found"), [(9, True), (10.2, False)])
def test_callback_keeps_its_own_schedule_only_if_others_succeeded_after_it_had_failed(
    received_s: float, *, is_found: bool
) -> None:
    failed = [
        attempt(callback_id, began_s, 500) for callback_id, began_s in (("a", 10), ("b", 11), ("c", 12), ("a", 16))
    ]
    received = [attempt(callback_id, at_s, 200) for callback_id, at_s in (("d", received_s), ("c", 20), ("a", 40))]
    observed = observe(*failed, *received)
    observed.order_hold_s = [5]

    assert bool(list(check_timing(observed, []))) is is_found


@pytest.mark.parametrize(("received_s", "is_found"), [(9, True), (9.99, False), (30, False)])
def test_callback_that_overtakes_one_that_has_not_failed_alone_is_found(received_s: float, *, is_found: bool) -> None:
    times_s = (("ben", 1, received_s, 200), ("ann", 1, 10, 500), ("ann", 2, 100, 200), ("ann", 1, 200, 200))
    attempts = [attempt(f"{recipient} {number}", at_s, status) for recipient, number, at_s, status in times_s]
    for one, (recipient, number, _, _) in zip(attempts, times_s, strict=True):
        one.headers["waypost-sequence"] = str(number)
        payload = {"source": recipient, "id": f"message {number}"}
        one.body, one.is_whole = json.dumps({"type": "message", "payload": payload}).encode(), True
    observed = observe(*attempts)
    observed.order_hold_s = [60]

    found = [text for text in check_timing(observed, []) if "got an older callback again" in text]

    assert bool(found) is is_found


@pytest.mark.parametrize(("paused", "is_called_early"), [([], True), ([(12, 14)], False)])
def test_receiver_is_called_before_the_end_of_its_pause_only_if_its_subscription_is_resumed(
    paused: list[tuple[float, float]], *, is_called_early: bool
) -> None:
    asked = attempt("a", 10, 429)
    asked.retry_after_s = 10
    observed = observe(asked, attempt("a", 15, 200))
    observed.subscriptions[PATH].paused += paused

    assert bool(list(check_timing(observed, []))) is is_called_early


def test_pause_that_only_a_killed_process_was_asked_for_is_not_kept() -> None:
    """Its request was on its way when the process was killed."""
    asked = attempt("a", 10, 429)
    asked.retry_after_s = 10
    observed = observe(asked, attempt("a", 15, 200))
    observed.interruptions.append((9.8, 9.9))

    assert list(check_timing(observed, [])) == []


@pytest.mark.parametrize(("late_threads", "found"), [([], 1), ([(12, 14)], 0), ([(2, 4)], 1)])
def test_healthy_receiver_waits_only_while_threads_are_late(
    late_threads: list[tuple[float, float]], found: int
) -> None:
    observed = observe(webhook(10), callback(2, "1556", 16, 200))
    observed.healthy_sites.add("receiver 1")
    observed.late_threads += late_threads

    assert len([*check_timing(observed, [])]) == found


def test_number_that_sends_too_fast_is_found() -> None:
    app = AppAccount("Shop", "1555", 2, "100")
    path = "/v23.0/100/messages"
    sends = [Exchange("operator", "POST", path, {}, 1 + nth / 10, status=200, ended_s=2) for nth in range(4)]

    assert list(check_timing(observe(*sends), [app])) == ["Shop sent 4 messages from 1.00 to 1.30 s"]
    assert list(check_timing(observe(*sends[:3]), [app])) == []


def test_mark_that_outlives_its_request_is_found() -> None:
    async def marks(now_s: float, observed: Observed) -> list[str]:
        asyncio.get_running_loop().time = lambda: now_s
        return list(find_stale_marks(observed, [("a", IN_FLIGHT), ("b", 0), ("c", IN_FLIGHT)]))

    observed = observe(attempt("a", 10, 500), attempt("b", 10, 500))
    restarted = observe(attempt("a", 10, 500))
    restarted.interruptions.append((31, 38))

    for each in (observed, restarted):
        assert asyncio.run(marks(30, each)) == []  # perhaps for a request that has not arrived yet
    assert asyncio.run(marks(50, observed)) == ["a is marked in flight, and its last request came at 10.0 s"]
    assert asyncio.run(marks(50, restarted)) == []
    observed.exchanges.append(attempt("a", 51, 500))
    assert asyncio.run(marks(55, observed)) == []


def test_tap_is_read_from_both_versions_of_callbacks() -> None:
    version_2 = {
        "type": "message",
        "payload": {
            "type": "quick_reply",
            "payload": {"text": "Yes", "type": "button", "postbackText": "yes-1"},
            "context": {"gsId": "m1"},
        },
    }
    message = {"type": "button", "button": {"payload": "yes-1", "text": "Yes"}, "context": {"gs_id": "m1"}}
    version_3 = {"entry": [{"changes": [{"value": {"messages": [message]}}]}]}

    assert read_tap(json.dumps(version_2).encode()) == Tap("m1", "Yes", "yes-1")
    assert read_tap(json.dumps(version_3).encode()) == Tap("m1", "Yes", "yes-1")
    assert read_tap(json.dumps({"type": "message", "payload": {"type": "text"}}).encode()) is None


def test_hold_that_accepts_or_calls_is_found() -> None:
    webhook = Exchange(
        "service", "POST", "/operator/webhook/operator-1", {}, 12, b'{"entry": []}', runs=[Run(12, 12.1, 200)]
    )
    rejected = Exchange("service", "POST", "/wa/api/v1/msg", {}, 13, runs=[Run(13, 13.1, 503)])
    sent_before = attempt("c", 10.1, 200)
    observed = observe(webhook, rejected, sent_before, attempt("a", 14, 200), attempt("b", 21, 200))
    observed.held.append((10, 20))

    found = list(check_timing(observed, []))

    assert len(found) == 2
    assert "was accepted at 12.0 s" in found[0]
    assert "receiver 1 was called at 14.0 s" in found[1]


@pytest.mark.parametrize(("sent_s", "is_found"), [(165, False), (500, True)])
def test_callbacks_that_wait_longer_than_the_order_is_held_are_found(sent_s: float, is_found: bool) -> None:
    """One fails from 0 s on, a callback to another recipient is received at 50 s, and the order is held for 60 s."""

    failing = [callback(1, "1556", at_s, 400) for at_s in (0, 1, 6, 36, 156)]
    observed = observe(*failing, callback(3, "1557", 50, 200), webhook(2), callback(2, "1556", sent_s, 200))
    observed.order_hold_s.append(60)

    found = [problem for problem in check_timing(observed, []) if "waited until" in problem]

    assert bool(found) is is_found


@pytest.mark.parametrize(("third_s", "found"), [(12.1, 0), (11.5, 1)])
def test_rate_counts_requests_in_their_order(third_s: float, found: int) -> None:
    """A request that came twice has both times where it came first."""
    runs = [[Run(10.2, 10.2, 200), Run(third_s, third_s, 200)], [Run(10, 10, 200)]]
    exchanges = [Exchange("service", "POST", "/wa/api/v1/msg", {}, each[0].began_s, runs=each) for each in runs]

    broken = [*check_limits(Observed(exchanges=exchanges, limits=("session=2/2s",)))]

    assert [text.split(" from ")[0] for text in broken] == ["session of  accepted 3 within 2 s"] * found
