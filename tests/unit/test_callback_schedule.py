"""The schedule of a callback's tries: longer than a day, and with an end."""

import random

from waypost.callbacks.retries import SCHEDULE_S, wait_ms

DAY_S = 24 * 60 * 60


def test_callback_is_tried_for_more_than_a_day() -> None:
    assert sum(SCHEDULE_S) > DAY_S


def test_callback_is_given_up_after_the_last_wait() -> None:
    chance = random.Random(1)

    waits = [wait_ms(attempt, chance) for attempt in range(1, len(SCHEDULE_S) + 2)]

    assert waits[-1] is None
    assert all(wait is not None and wait > 0 for wait in waits[:-1])


def test_waits_are_spread_so_that_receivers_are_not_asked_all_at_once() -> None:
    chance = random.Random(1)

    assert len({wait_ms(5, chance) for _ in range(20)}) > 1
