"""Variables of templates: found, filled, and read back out of an example."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waypost.domain.templates.variables import (
    example_values,
    has_unclosed_variable,
    named_examples,
    split_at_variables,
    variable_count,
    variable_names,
)


def test_variables_are_found_in_their_order_with_repeats() -> None:
    text = "{{2}} {{1}} {{2}} {1} {{x}}"

    assert variable_names(text) == ["2", "1", "2", "x"]
    assert variable_count(text) == 3
    assert variable_names(None) == []


@pytest.mark.parametrize(
    ("text", "example", "values"),
    [
        ("Hello", "Hello", []),
        ("Hi {{1}}", "Hi Ann", ["Ann"]),
        ("Hi {{1}}!", "Hi [Ann]!", ["Ann"]),
        ("Hi {{1}}!", "Hi []!", ["[]"]),
        ("{{1}} and {{2}}", "salt and pepper", ["salt", "pepper"]),
        ("{{2}} and {{1}}", "salt and pepper", ["pepper", "salt"]),
        ("{{b}} and {{a}}", "salt and pepper", ["salt", "pepper"]),
        ("{{1}}, dear {{1}}", "Ann, dear Ann", ["Ann"]),
        ("{{1}}{{2}}", "ab", ["a", "b"]),
        ("{{1}}.{{2}}.", "x.y.", ["x", "y"]),
        ("{{1}}, {{2}}, ", "x, y, ", ["x", "y"]),
        ("Hi {{1}}.", "Hi J. R. R..", ["J. R. R."]),
        ("Hi {{1}}", "Hi ", None),
        ("Hi {{1}}", "Ho Ann", None),
        ("Hi {{1}}!", "Hi Ann", None),
        ("Hello", "Hello!", None),
        ("Hi {{1}}", "", None),
    ],
)
def test_example_gives_its_values_or_does_not_fit(text: str, example: str, values: list[str] | None) -> None:
    assert example_values(text, example) == values


def test_examples_of_named_variables_are_read_by_name() -> None:
    assert named_examples("Hi {{who}}, {{what}}!", "Hi [Ann], cake!") == {"who": "Ann", "what": "cake"}
    assert named_examples("Hi {{who}}!", "Ho Ann!") is None


@pytest.mark.parametrize(
    ("text", "pieces", "is_unfinished"),
    [
        ("Hello", ["Hello"], False),
        ("{{1}}, {{2}}.", ["", ", ", "."], False),
        ("Hi {{1}", ["Hi {{1}"], True),
        ("Hi {1}}", ["Hi {1}}"], True),
        ("Hi {1}", ["Hi {1}"], False),
        ("{{{1}}}", ["{", "}"], False),
    ],
)
def test_text_is_cut_at_its_variables(text: str, pieces: list[str], is_unfinished: bool) -> None:
    assert split_at_variables(text) == pieces
    assert has_unclosed_variable(text) is is_unfinished


@given(
    pieces=st.lists(st.sampled_from([".", ", ", "a", " and ", "ab", "\n"]), min_size=2, max_size=6),
    samples=st.lists(st.text("XYZ0123", min_size=1), min_size=5, max_size=5),
)
def test_values_of_an_example_are_those_it_was_filled_with(pieces: list[str], samples: list[str]) -> None:
    numbers = range(1, len(pieces))
    text = pieces[0] + "".join(f"{{{{{n}}}}}{piece}" for n, piece in zip(numbers, pieces[1:], strict=True))
    values = samples[: len(pieces) - 1]

    example = fill(text, values)

    assert example_values(text, example) == values


@given(text=st.text("{}1 a"), example=st.text("{}1 a[]"))
def test_values_that_an_example_gives_fill_the_text_to_that_example(text: str, example: str) -> None:
    values = example_values(text, example)

    if values is not None and variable_names(text) == [str(n + 1) for n in range(len(values))]:
        plain = example.replace("[", "").replace("]", "")
        assert fill(text, values).replace("[", "").replace("]", "") == plain


def test_hostile_example_is_rejected_without_an_endless_search() -> None:
    text = "{{1}}a" * 100 + "b"

    assert example_values(text, "a" * 1024) is None


def fill(text: str, values: Sequence[str]) -> str:
    """Return the text with `{{1}}` replaced by the first value, and so on."""
    for number, value in enumerate(values, start=1):
        text = text.replace(f"{{{{{number}}}}}", value)
    return text
