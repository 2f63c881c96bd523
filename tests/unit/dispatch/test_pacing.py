"""Pacing: a source under its throughput, a pair under its rate, by due time."""

import heapq
import random

import pytest

from tests.support.builders import OPERATOR
from waypost.dispatch.pacing import PAIR_BURST, PAIR_EVERY_MS, PAUSE_RECHECK_MS, Pacer
from waypost.domain.outcome import RetryScope, Unavailable
from waypost.queue.concurrency_groups import NotBefore
from waypost.queue.job import Job
from waypost.store.queue.jobs import QueueName, read_subject

NOW_MS = 1_760_000_000_000


def entry(to: str = "ann", source: str = "s", ref: str = "message 1") -> Job:
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


def ask(pacer: Pacer, of: Job, now_ms: int, in_flight: int = 0) -> NotBefore | None:
    """May it go now?"""
    return pacer(of, now_ms, in_flight)


def sent_in(pacer: Pacer, within_ms: int, source: str = "s") -> int:
    """How many different recipients are let through in a time, asked whenever it says so."""
    count, now_ms = 0, NOW_MS
    while now_ms < NOW_MS + within_ms:
        hold = ask(pacer, entry(f"r{count}", source), now_ms)
        if hold is None:
            count += 1
        else:
            assert hold.whole_group
            assert hold.until_ms > now_ms
            now_ms = hold.until_ms
    return count


@pytest.mark.parametrize("per_second", [1, 10, 80, 1000])
def test_source_sends_its_throughput(per_second: int) -> None:
    sent = sent_in(Pacer(per_second=per_second), 10_000)

    assert 9.8 * per_second <= sent <= 10 * per_second


@pytest.mark.parametrize("per_second", [1, 10, 80, 1000])
def test_no_second_of_the_operator_has_more_than_the_throughput(per_second: int) -> None:
    """Whatever the ways take: each message is counted somewhere between its going and its answer."""
    pacer, chance = Pacer(per_second=per_second), random.Random(per_second)
    counted: list[int] = []
    answers: list[tuple[int, int]] = []
    count, now_ms = 0, NOW_MS
    while now_ms < NOW_MS + 20_000:
        while answers and answers[0][0] <= now_ms:
            at_ms, nth = heapq.heappop(answers)
            pacer.record_response(entry(f"r{nth}"), at_ms)
        hold = ask(pacer, entry(f"r{count}"), now_ms, len(answers))
        if hold is None:
            way_ms = chance.choice((1, 5, 5, 20, 400))
            counted.append(now_ms + chance.randint(0, way_ms))
            heapq.heappush(answers, (now_ms + way_ms, count))
            count += 1
        else:
            now_ms = hold.until_ms

    counted.sort()
    assert all(later - first >= 1000 for first, later in zip(counted, counted[per_second:], strict=False))
    assert count > 20 * per_second * 0.75


def test_what_ends_unanswered_counts_from_when_that_is_seen() -> None:
    pacer = Pacer(per_second=1)
    assert ask(pacer, entry("ann"), NOW_MS) is None

    held = ask(pacer, entry("ben"), NOW_MS + 5000, 1)
    ended = ask(pacer, entry("ben"), NOW_MS + 9000, 0)

    assert held is not None
    assert ended == NotBefore(NOW_MS + 10_000, whole_group=True)
    assert ask(pacer, entry("ben"), NOW_MS + 10_000, 0) is None


def test_source_may_have_a_throughput_of_its_own_and_lose_it_again() -> None:
    pacer = Pacer(per_second=10)
    pacer.set_throughput("s", 100)
    fast = sent_in(pacer, 1000)
    pacer.set_throughput("t", 100)
    pacer.set_throughput("t", None)

    slow = sent_in(pacer, 1000, "t")

    assert fast >= 100
    assert slow <= 12


def test_sources_do_not_slow_each_other() -> None:
    pacer = Pacer(per_second=10)

    assert sent_in(pacer, 1000, "s") >= 10
    assert sent_in(pacer, 1000, "t") >= 10


def test_pair_has_a_burst_and_then_one_in_six_seconds() -> None:
    pacer = Pacer(per_second=1000)
    burst = [ask(pacer, entry(), NOW_MS) for _ in range(PAIR_BURST)]

    hold = ask(pacer, entry(), NOW_MS)

    assert burst == [None] * PAIR_BURST
    assert hold is not None
    assert not hold.whole_group
    assert hold.until_ms == NOW_MS + PAIR_EVERY_MS
    assert ask(pacer, entry(), NOW_MS + PAIR_EVERY_MS) is None
    assert ask(pacer, entry(), NOW_MS + PAIR_EVERY_MS) is not None


def test_burst_is_earned_back_in_quiet_time() -> None:
    pacer = Pacer(per_second=1000)
    for _ in range(PAIR_BURST):
        ask(pacer, entry(), NOW_MS)
    later_ms = NOW_MS + PAIR_BURST * PAIR_EVERY_MS

    again = [ask(pacer, entry(), later_ms) for _ in range(PAIR_BURST)]

    assert again == [None] * PAIR_BURST
    assert ask(pacer, entry(), later_ms) is not None


def test_full_source_does_not_spend_the_pairs_rate() -> None:
    pacer = Pacer(per_second=1)
    assert ask(pacer, entry("ben"), NOW_MS) is None
    for _ in range(200):
        assert ask(pacer, entry("ann"), NOW_MS) is not None

    assert ask(pacer, entry("ann"), NOW_MS + 1000) is None


def test_templates_are_not_paced() -> None:
    pacer = Pacer(per_second=1)

    assert all(ask(pacer, entry(ref="template 1"), NOW_MS) is None for _ in range(100))


TEMPLATE = entry(source="templates 1", ref="template 1")


def told(pacer: Pacer, waits: RetryScope, until_ms: int = NOW_MS + 5000) -> None:
    """The operator has not taken a message of the source `s`."""
    pacer.pause_account(entry(), OPERATOR, Unavailable("", retry_scope=waits), until_ms)


def test_refusal_of_one_message_holds_up_no_other() -> None:
    pacer = Pacer(per_second=10)

    told(pacer, RetryScope.JOB)

    assert ask(pacer, entry("ben"), NOW_MS) is None
    assert not pacer.account_pause(entry("ben"), OPERATOR, NOW_MS)


def test_source_that_was_told_to_wait_is_quiet_until_then() -> None:
    pacer = Pacer(per_second=10)

    told(pacer, RetryScope.SOURCE)

    assert ask(pacer, entry("ben"), NOW_MS) == NotBefore(NOW_MS + 5000, whole_group=True)
    assert ask(pacer, entry("ben", source="t"), NOW_MS) is None
    assert not pacer.account_pause(entry(source="t"), OPERATOR, NOW_MS)
    assert ask(pacer, entry("ben"), NOW_MS + 5000) is None


def test_every_source_of_an_account_that_was_told_to_wait_is_quiet() -> None:
    pacer = Pacer(per_second=10)

    told(pacer, RetryScope.ACCOUNT)

    others = (entry(source="t"), entry(source="u"))
    assert all(pacer.account_pause(other, OPERATOR, NOW_MS) for other in others)
    holds = [ask(pacer, other, NOW_MS) for other in others]
    assert holds == [NotBefore(NOW_MS + PAUSE_RECHECK_MS, whole_group=True)] * 2
    assert not any(pacer.account_pause(other, OPERATOR, NOW_MS + 5000) for other in others)
    assert [ask(pacer, other, NOW_MS + 5000) for other in others] == [None, None]


def test_messages_of_an_account_whose_templates_wait_go_on() -> None:
    pacer = Pacer(per_second=10)

    refusal = Unavailable("", retry_scope=RetryScope.ACCOUNT)
    pacer.pause_account(TEMPLATE, OPERATOR, refusal, NOW_MS + 5000)

    assert ask(pacer, TEMPLATE, NOW_MS) == NotBefore(NOW_MS + 5000, whole_group=True)
    assert not pacer.account_pause(entry(), OPERATOR, NOW_MS)
    assert ask(pacer, entry(), NOW_MS) is None


def test_account_with_a_new_token_waits_for_nothing() -> None:
    pacer = Pacer(per_second=10)
    told(pacer, RetryScope.ACCOUNT)

    mended = OPERATOR.replace_fields(token="a new one")

    assert not pacer.account_pause(entry(source="t"), mended, NOW_MS)


def test_business_account_that_was_told_to_wait_holds_up_no_other_of_the_operator_account() -> None:
    pacer = Pacer(per_second=10)
    refusal = Unavailable("used up", retry_scope=RetryScope.BUSINESS)

    pacer.pause_account(entry(), OPERATOR, refusal, NOW_MS + 5000, business_account_id="one")

    assert pacer.account_pause(entry(source="t"), OPERATOR, NOW_MS, business_account_id="one") is refusal
    assert pacer.account_pause(entry(source="u"), OPERATOR, NOW_MS, business_account_id="another") is None
    assert ask(pacer, entry(source="u"), NOW_MS) is None


def test_group_of_an_account_that_waits_long_looks_again_every_few_seconds() -> None:
    pacer = Pacer(per_second=10)
    told(pacer, RetryScope.ACCOUNT, NOW_MS + 10 * PAUSE_RECHECK_MS)

    pacer.account_pause(entry(source="t"), OPERATOR, NOW_MS)

    assert ask(pacer, entry(source="t"), NOW_MS) == NotBefore(NOW_MS + PAUSE_RECHECK_MS, whole_group=True)
