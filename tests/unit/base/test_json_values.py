"""Readers of values of unknown type: each returns its type, and None or empty for other types."""

import pytest

from waypost.base.json_values import boolean_of, integer_or_none, list_of, object_of, objects_in, text_or_none, texts_in


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (7, 7),
        (-7, -7),
        ("7", 7),
        ("0123456789012345", 123456789012345),
        ("01234567890123456", None),
        ("-7", None),
        ("٣", None),
        ("²", None),
        ("", None),
        (True, None),
        (7.0, None),
        (None, None),
        ([7], None),
    ],
)
def test_whole_numbers_are_read_from_numbers_and_digits(value: object, expected: int | None) -> None:
    assert integer_or_none(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [(True, True), (False, False), ("true", True), ("False", False), (" false ", False), (0, False), (1, True), ("0", False)],
)  # fmt: skip
def test_booleans_are_read_from_texts_and_numbers(value: object, expected: bool) -> None:
    assert boolean_of(value, default=not expected) is expected


@pytest.mark.parametrize("value", [None, "", "perhaps", 2, [], {}])
def test_what_is_no_boolean_is_the_default(value: object) -> None:
    assert (boolean_of(value, default=True), boolean_of(value, default=False)) == (True, False)


@pytest.mark.parametrize("value", [None, True, 7, 7.5, "text", [1], [[]], {"a": 1}])
def test_each_reader_returns_its_type_for_any_value(value: object) -> None:
    is_a = type(value)
    assert object_of(value) == (value if is_a is dict else {})
    assert list_of(value) == (value if is_a is list else [])
    assert text_or_none(value) == (value if is_a is str else None)
    assert objects_in(value) == texts_in(value) == []


def test_members_of_a_list_are_selected_by_type() -> None:
    mixed = [1, "one", {"two": 2}, None, ["three"], "four"]

    assert objects_in(mixed) == [{"two": 2}]
    assert texts_in(mixed) == ["one", "four"]
