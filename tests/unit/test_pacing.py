"""Pacing: a source under its throughput, a pair under its rate, by due time."""

import pytest

from waypost.dispatch.pacing import PAIR_BURST, PAIR_EVERY_MS, Pacer
from waypost.journal.entry import Entry
from waypost.journal.waiting import Hold
from waypost.store.journal import Lane

NOW_MS = 1_760_000_000_000


def entry(to: str = "ann", source: str = "s", ref: str = "message 1") -> Entry:
    return Entry(
        position=1,
        lane=Lane.SUBMISSIONS,
        group=source,
        order_key=f"{source} {to}",
        ref=ref,
        due_ms=0,
        attempt=0,
        defects=0,
        was_in_hand=False,
    )


def ask(pacer: Pacer, of: Entry, now_ms: int) -> Hold | None:
    """May it go now? Nothing else is being worked."""
    return pacer(of, now_ms, 0)


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
def test_source_sends_its_throughput_and_a_tenth_of_a_second_ahead(per_second: int) -> None:
    sent = sent_in(Pacer(per_second=per_second), 10_000)

    assert 10 * per_second <= sent <= 10 * per_second + max(1, per_second // 10) + 1


def test_source_may_have_a_throughput_of_its_own_and_lose_it_again() -> None:
    pacer = Pacer(per_second=10)
    pacer.learn("s", 100)
    fast = sent_in(pacer, 1000)
    pacer.learn("t", 100)
    pacer.learn("t", None)

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
