"""Phone numbers: read with any punctuation, shown with country and national number."""

import pytest

from waypost.domain.phone_number import country_and_national, read_phone_number


@pytest.mark.parametrize(
    ("text", "digits"),
    [
        ("15551234567", "15551234567"),
        ("+15551234567", "15551234567"),
        ("+1 (555) 123-4567", "15551234567"),
        (" 1555 1234 ", "15551234"),
        ("12345678", "12345678"),
        ("123456789012345", "123456789012345"),
        ("1234567", None),
        ("1234567890123456", None),
        ("", None),
        ("+", None),
        ("1555x234567", None),
        ("15551234567\n", None),
        ("1.555.123.4567", None),
        ("١٥٥٥١٢٣٤٥٦٧", None),
        ("15551234567;ext=1", None),
    ],
)
def test_number_is_8_to_15_digits_without_its_punctuation(text: str, digits: str | None) -> None:
    assert read_phone_number(text) == digits


@pytest.mark.parametrize(
    ("digits", "country", "national"),
    [
        ("15551234567", "1", "5551234567"),
        ("919876543210", "91", "9876543210"),
        ("4915112345678", "49", "15112345678"),
        ("99900000000", "", "99900000000"),
        ("00000000", "", "00000000"),
    ],
)
def test_number_is_shown_with_its_country_and_without_it(digits: str, country: str, national: str) -> None:
    assert country_and_national(digits) == (country, national)
