"""Retry schedules: their delays, with jitter, and the delay that the operator requests."""

import itertools
import random

import pytest

from waypost.admission.schedules import callback_retry_ms, operator_retry_ms
from waypost.base.backoff import delay_ms
from waypost.domain.outcome import OperatorUnavailable, RetryReason


class Middle(random.Random):
    """A random source that gives no jitter."""

    def random(self) -> float:
        return 0.5


def test_delay_follows_the_schedule_and_repeats_its_last_wait() -> None:
    delays = [delay_ms((1, 5, 30), attempt, Middle()) for attempt in range(1, 6)]

    assert delays == [1000, 5000, 30_000, 30_000, 30_000]


def test_jitter_spreads_a_delay_over_a_fifth_either_way() -> None:
    chance = random.Random("seed")

    delays = [delay_ms((10,), 1, chance) for _ in range(500)]

    assert min(delays) >= 8000
    assert max(delays) <= 12_000
    assert max(delays) - min(delays) > 3000


@pytest.mark.parametrize("reason", RetryReason)
def test_schedule_of_any_retry_reason_never_shortens(reason: RetryReason) -> None:
    outcome = OperatorUnavailable("", retry_reason=reason)

    waits = [operator_retry_ms(outcome, attempt, Middle()) for attempt in range(1, 12)]

    assert waits == sorted(waits)
    assert waits[0] >= 1000


def test_delay_that_the_operator_requests_counts_when_it_is_longer() -> None:
    assert operator_retry_ms(OperatorUnavailable("", 0, 60, RetryReason.THROUGHPUT), 1, Middle()) == 60_000
    assert operator_retry_ms(OperatorUnavailable("", 0, 0.1, RetryReason.THROUGHPUT), 1, Middle()) == 1000


def test_requested_delay_of_years_is_cut_to_an_hour() -> None:
    assert operator_retry_ms(OperatorUnavailable("", 0, 9e9), 1, Middle()) == 3_600_000


def test_outage_is_retried_less_and_less_often() -> None:
    assert operator_retry_ms(OperatorUnavailable(""), 1, Middle()) == 1000
    assert operator_retry_ms(OperatorUnavailable(""), 99, Middle()) == 300_000


def test_callbacks_are_given_up_after_more_than_a_day() -> None:
    waits = [callback_retry_ms(attempt, Middle()) for attempt in range(1, 20)]

    tried = list(itertools.takewhile(lambda wait: wait is not None, waits))
    assert all(wait is None for wait in waits[len(tried) :])
    assert sum(wait or 0 for wait in tried) > 24 * 3600 * 1000
