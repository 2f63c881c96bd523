"""The schedule of a callback's attempts: longer than a day, and with an end."""

import random

import pytest

from waypost.admission.schedules import CALLBACK_RETRY_SCHEDULE_S, callback_retry_ms, parse_retry_after_ms

DAY_S = 24 * 60 * 60


def test_callback_is_tried_for_more_than_a_day() -> None:
    assert sum(CALLBACK_RETRY_SCHEDULE_S) > DAY_S


def test_callback_is_given_up_after_the_last_wait() -> None:
    chance = random.Random(1)

    waits = [callback_retry_ms(attempt, chance) for attempt in range(1, len(CALLBACK_RETRY_SCHEDULE_S) + 2)]

    assert waits[-1] is None
    assert all(wait is not None and wait > 0 for wait in waits[:-1])


def test_delays_are_spread_so_that_receivers_are_not_called_all_at_once() -> None:
    chance = random.Random(1)

    assert len({callback_retry_ms(5, chance) for _ in range(20)}) > 1


@pytest.mark.parametrize(
    ("headers", "expected_s"),
    [
        ({}, 0),
        ({"retry-after": "120"}, 120),
        ({"retry-after": " 7 "}, 7),
        ({"retry-after": "999999999999"}, DAY_S),
        ({"retry-after": "-5"}, 0),
        ({"retry-after": "1.5"}, 0),
        ({"retry-after": "soon"}, 0),
        ({"retry-after": "\u0663"}, 0),  # a digit, but not of ASCII
        ({"retry-after": "Thu, 01 Jan 1970 00:02:40 GMT"}, 60),
        ({"retry-after": "Thursday, 01-Jan-70 00:02:40 GMT"}, 60),
        ({"retry-after": "Thu Jan  1 00:02:40 1970"}, 60),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:10 GMT"}, 0),
        ({"retry-after": "Thu, 01 Jan 2099 00:00:00 GMT"}, DAY_S),
        ({"retry-after": "Thu, 01 Jan 2099 00:01:00 GMT", "date": "Thu, 01 Jan 2099 00:00:00 GMT"}, 60),
    ],
)
def test_retry_after_header_is_respected_up_to_a_day(headers: dict[str, str], expected_s: int) -> None:
    assert parse_retry_after_ms(headers, now_ms=100_000) == expected_s * 1000
