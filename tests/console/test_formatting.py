"""Formatting of numbers, durations and phone numbers on pages."""

import pytest

from waypost.console.web.formatting import format_chart_number, format_duration, format_number, format_phone


@pytest.mark.parametrize(
    ("ms", "text"),
    [(0, "under 1 ms"), (35, "35 ms"), (1_000, "1 s"), (1_234, "1.2 s"), (10_000, "10 s"), (61_400, "61 s")],
)  # fmt: skip
def test_durations_have_a_readable_unit(ms: int, text: str) -> None:
    assert format_duration(ms).replace("\u00a0", " ") == text


def test_thousands_are_separated_and_small_numbers_keep_a_decimal() -> None:
    assert [format_chart_number(number) for number in (0, 4, 4.26, 12.6, 1_234_567)] == [
        "0",
        "4",
        "4.3",
        "13",
        "1\u202f234\u202f567",
    ]
    assert [format_number(number) for number in (None, 7, 1_234)] == ["", "7", "1\u202f234"]


@pytest.mark.parametrize(
    ("digits", "text"),
    [
        ("15550002001", "+1 555 000 2001"),
        ("442079460958", "+44 20 7946 0958"),
        ("4915112345678", "+49 1511 2345678"),
        ("919876543210", "+91 98765 43210"),
        ("5511987654321", "+55 11 98765 4321"),
        ("99999999999999", "+99999999999999"),
        ("123", "123"),
        ("US.1234567890123", "US.1234567890123"),
        ("", ""),
        (None, ""),
    ],
)
def test_phone_numbers_are_grouped_by_country(digits: str | None, text: str) -> None:
    assert format_phone(digits) == text
