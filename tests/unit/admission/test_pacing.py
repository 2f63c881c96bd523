"""Pacing: a source under its throughput, a pair under its rate, by due time."""

import heapq
import random

import pytest

from tests.support.builders import OPERATOR
from waypost.admission.pacing import PAIR_BURST, PAIR_EVERY_MS, PAUSE_RECHECK_MS, Pacer
from waypost.domain.outcome import OperatorUnavailable, RetryScope
from waypost.domain.wait_reasons import WaitReason
from waypost.queue.job import Job, NotBefore
from waypost.store.queue.job_subjects import QueueName
from waypost.store.queue.jobs import read_subject

NOW_MS = 1_760_000_000_000


def new_job(to: str = "ann", source: str = "s", ref: str = "message 1") -> Job:
    return Job(
        position=1,
        queue=QueueName.OUTBOUND,
        concurrency_group=source,
        ordering_key=f"{source} {to}",
        subject=read_subject(QueueName.OUTBOUND, ref),
        due_ms=0,
        attempt=0,
        defects=0,
        was_in_flight=False,
    )


def pace(pacer: Pacer, job: Job, now_ms: int, in_flight: int = 0) -> NotBefore | None:
    """Return until when the job must wait; None if it may be sent now."""
    return pacer.check(job, now_ms, in_flight)


def admitted_within(pacer: Pacer, within_ms: int, source: str = "s") -> int:
    """Return how many recipients are admitted in a time, retrying at the end of each wait."""
    count, now_ms = 0, NOW_MS
    while now_ms < NOW_MS + within_ms:
        hold = pace(pacer, new_job(f"r{count}", source), now_ms)
        if hold is None:
            count += 1
        else:
            assert hold.whole_group
            assert hold.until_ms > now_ms
            now_ms = hold.until_ms
    return count


@pytest.mark.parametrize("per_second", [1, 10, 80, 1000])
def test_source_sends_its_throughput(per_second: int) -> None:
    sent = admitted_within(Pacer(per_second=per_second), 10_000)

    assert 9.8 * per_second <= sent <= 10 * per_second


@pytest.mark.parametrize("per_second", [1, 10, 80, 1000])
def test_no_second_of_the_operator_has_more_than_the_throughput(per_second: int) -> None:
    """Whatever the latency: each message is counted somewhere between its sending and its response."""
    pacer, chance = Pacer(per_second=per_second), random.Random(per_second)
    counted: list[int] = []
    responses: list[tuple[int, int]] = []
    count, now_ms = 0, NOW_MS
    while now_ms < NOW_MS + 20_000:
        while responses and responses[0][0] <= now_ms:
            at_ms, nth = heapq.heappop(responses)
            pacer.record_response(new_job(f"r{nth}"), at_ms)
        hold = pace(pacer, new_job(f"r{count}"), now_ms, len(responses))
        if hold is None:
            latency_ms = chance.choice((1, 5, 5, 20, 400))
            counted.append(now_ms + chance.randint(0, latency_ms))
            heapq.heappush(responses, (now_ms + latency_ms, count))
            count += 1
        else:
            now_ms = hold.until_ms

    counted.sort()
    assert all(later - first >= 1000 for first, later in zip(counted, counted[per_second:], strict=False))
    assert count > 20 * per_second * 0.75


def test_call_that_ends_without_a_response_counts_from_when_that_is_seen() -> None:
    pacer = Pacer(per_second=1)
    assert pace(pacer, new_job("ann"), NOW_MS) is None

    held = pace(pacer, new_job("ben"), NOW_MS + 5000, 1)
    ended = pace(pacer, new_job("ben"), NOW_MS + 9000, 0)

    assert held is not None
    assert ended == NotBefore(NOW_MS + 10_000, WaitReason.SOURCE_PACE, whole_group=True)
    assert pace(pacer, new_job("ben"), NOW_MS + 10_000, 0) is None


def test_source_may_have_a_throughput_of_its_own_and_lose_it_again() -> None:
    pacer = Pacer(per_second=10)
    pacer.set_throughput("s", 100)
    fast = admitted_within(pacer, 1000)
    pacer.set_throughput("t", 100)
    pacer.set_throughput("t", None)

    slow = admitted_within(pacer, 1000, "t")

    assert fast >= 100
    assert slow <= 12


def test_sources_do_not_slow_each_other() -> None:
    pacer = Pacer(per_second=10)

    assert admitted_within(pacer, 1000, "s") >= 10
    assert admitted_within(pacer, 1000, "t") >= 10


def test_pair_has_a_burst_and_then_one_in_six_seconds() -> None:
    pacer = Pacer(per_second=1000)
    burst = [pace(pacer, new_job(), NOW_MS) for _ in range(PAIR_BURST)]

    hold = pace(pacer, new_job(), NOW_MS)

    assert burst == [None] * PAIR_BURST
    assert hold is not None
    assert not hold.whole_group
    assert hold.until_ms == NOW_MS + PAIR_EVERY_MS
    assert pace(pacer, new_job(), NOW_MS + PAIR_EVERY_MS) is None
    assert pace(pacer, new_job(), NOW_MS + PAIR_EVERY_MS) is not None


def test_burst_is_regained_in_idle_time() -> None:
    pacer = Pacer(per_second=1000)
    for _ in range(PAIR_BURST):
        pace(pacer, new_job(), NOW_MS)
    later_ms = NOW_MS + PAIR_BURST * PAIR_EVERY_MS

    second_burst = [pace(pacer, new_job(), later_ms) for _ in range(PAIR_BURST)]

    assert second_burst == [None] * PAIR_BURST
    assert pace(pacer, new_job(), later_ms) is not None


def test_full_source_does_not_spend_the_pairs_rate() -> None:
    pacer = Pacer(per_second=1)
    assert pace(pacer, new_job("ben"), NOW_MS) is None
    for _ in range(200):
        assert pace(pacer, new_job("ann"), NOW_MS) is not None

    assert pace(pacer, new_job("ann"), NOW_MS + 1000) is None


def test_templates_are_not_paced() -> None:
    pacer = Pacer(per_second=1)

    assert all(pace(pacer, new_job(ref="template 1"), NOW_MS) is None for _ in range(100))


TEMPLATE = new_job(source="templates 1", ref="template 1")


def pause(pacer: Pacer, scope: RetryScope, until_ms: int = NOW_MS + 5000) -> None:
    """Pause after a message of the source `s`, as the operator requires."""
    pacer.pause_account(new_job(), OPERATOR, OperatorUnavailable("", retry_scope=scope), until_ms)


def test_rejection_of_one_message_pauses_no_other() -> None:
    pacer = Pacer(per_second=10)

    pause(pacer, RetryScope.JOB)

    assert pace(pacer, new_job("ben"), NOW_MS) is None
    assert not pacer.account_pause(new_job("ben"), OPERATOR, NOW_MS)


def test_paused_source_sends_nothing_until_the_pause_ends() -> None:
    pacer = Pacer(per_second=10)

    pause(pacer, RetryScope.SOURCE)

    assert pace(pacer, new_job("ben"), NOW_MS) == NotBefore(NOW_MS + 5000, WaitReason.OPERATOR_PAUSE, whole_group=True)
    assert pace(pacer, new_job("ben", source="t"), NOW_MS) is None
    assert not pacer.account_pause(new_job(source="t"), OPERATOR, NOW_MS)
    assert pace(pacer, new_job("ben"), NOW_MS + 5000) is None


def test_every_source_of_a_paused_account_is_paused() -> None:
    pacer = Pacer(per_second=10)

    pause(pacer, RetryScope.ACCOUNT)

    others = (new_job(source="t"), new_job(source="u"))
    assert all(pacer.account_pause(other, OPERATOR, NOW_MS) for other in others)
    holds = [pace(pacer, other, NOW_MS) for other in others]
    assert holds == [NotBefore(NOW_MS + PAUSE_RECHECK_MS, WaitReason.OPERATOR_PAUSE, whole_group=True)] * 2
    assert not any(pacer.account_pause(other, OPERATOR, NOW_MS + 5000) for other in others)
    assert [pace(pacer, other, NOW_MS + 5000) for other in others] == [None, None]


def test_messages_of_an_account_with_paused_templates_are_sent() -> None:
    pacer = Pacer(per_second=10)

    outcome = OperatorUnavailable("", retry_scope=RetryScope.ACCOUNT)
    pacer.pause_account(TEMPLATE, OPERATOR, outcome, NOW_MS + 5000)

    assert pace(pacer, TEMPLATE, NOW_MS) == NotBefore(NOW_MS + 5000, WaitReason.OPERATOR_PAUSE, whole_group=True)
    assert not pacer.account_pause(new_job(), OPERATOR, NOW_MS)
    assert pace(pacer, new_job(), NOW_MS) is None


def test_account_with_a_new_token_is_not_paused() -> None:
    pacer = Pacer(per_second=10)
    pause(pacer, RetryScope.ACCOUNT)

    renewed = OPERATOR.replace_fields(token="a new one")

    assert not pacer.account_pause(new_job(source="t"), renewed, NOW_MS)


def test_paused_business_account_pauses_no_other_of_the_operator_account() -> None:
    pacer = Pacer(per_second=10)
    outcome = OperatorUnavailable("used up", retry_scope=RetryScope.BUSINESS)

    pacer.pause_account(new_job(), OPERATOR, outcome, NOW_MS + 5000, business_account_id="one")

    assert pacer.account_pause(new_job(source="t"), OPERATOR, NOW_MS, business_account_id="one") is outcome
    assert pacer.account_pause(new_job(source="u"), OPERATOR, NOW_MS, business_account_id="another") is None
    assert pace(pacer, new_job(source="u"), NOW_MS) is None


def test_group_of_a_long_paused_account_is_checked_every_few_seconds() -> None:
    pacer = Pacer(per_second=10)
    pause(pacer, RetryScope.ACCOUNT, NOW_MS + 10 * PAUSE_RECHECK_MS)

    pacer.account_pause(new_job(source="t"), OPERATOR, NOW_MS)

    assert pace(pacer, new_job(source="t"), NOW_MS) == NotBefore(
        NOW_MS + PAUSE_RECHECK_MS, WaitReason.OPERATOR_PAUSE, whole_group=True
    )
