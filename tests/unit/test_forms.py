"""Forms and JSON texts: read, or refused; never a guess, never an error of another kind."""

from collections.abc import Callable
from typing import TypeVar

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from waypost.domain.refusals import Reason, Refused
from waypost.wire.forms import Form, depth, read_form, read_json, read_json_body

Found = TypeVar("Found")

ANYTHING: "msgspec.json.Decoder[object]" = msgspec.json.Decoder(object)


def read(text: str) -> object:
    return read_json(text, ANYTHING, name="field", accepted="JSON")


def or_reason(read: Callable[[], Found]) -> Found | Reason:
    """What was read, or why it was refused."""
    try:
        return read()
    except Refused as refused:
        return refused.reason


def test_form_is_read_with_plus_percent_and_blanks() -> None:
    form = read_form(b"a=1+2&b=%C3%A4&c=&d&a=3")

    assert form.text("a") == "3"
    assert form.text("b") == "ä"
    assert (form.text("c"), form.text("d"), form.text("e")) == ("", "", None)
    assert form.all("a", "b") == ["1 2", "ä", "3"]


@given(st.binary(max_size=200))
def test_whatever_bytes_come_a_form_is_read_or_refused(body: bytes) -> None:
    form = or_reason(lambda: read_form(body))

    assert isinstance(form, Form) or form is Reason.UNREADABLE


@given(st.text(max_size=200))
def test_whatever_text_comes_json_is_read_or_refused(text: str) -> None:
    found = or_reason(lambda: (read(text),))

    assert isinstance(found, tuple) or found is Reason.UNREADABLE


@given(st.binary(max_size=200))
def test_whatever_bytes_come_a_json_body_is_an_object_or_refused(body: bytes) -> None:
    found = or_reason(lambda: read_json_body(body))

    assert isinstance(found, dict) or found is Reason.UNREADABLE


@pytest.mark.parametrize(
    ("text", "levels"),
    [("7", 0), ("[]", 1), ('{"a":[1]}', 2), ('"[[["', 0), ('["\\"[["]', 1), ('["\\\\"]', 1)],
)
def test_depth_counts_brackets_outside_of_texts(text: str, levels: int) -> None:
    assert depth(text) == levels


@pytest.mark.parametrize("levels", [32, 33])
def test_json_may_nest_32_deep_and_no_deeper(levels: int) -> None:
    text = "[" * levels + "]" * levels

    if levels <= 32:
        read(text)
    else:
        with pytest.raises(Refused):
            read(text)


@pytest.mark.parametrize(
    ("text", "is_taken"),
    [
        (r'"\u0000"', False),
        (r'"\\u0000"', True),
        (r'"\\\u0000"', False),
        (r'"\u0001"', True),
        ('"\\ud800"', False),
        ('"\\ud83d\\ude00"', True),
    ],
)
def test_characters_that_cannot_be_kept_are_refused(text: str, is_taken: bool) -> None:
    if is_taken:
        read(text)
    else:
        with pytest.raises(Refused):
            read(text)


@pytest.mark.parametrize("word", ["true", "TRUE", " yes ", "1"])
def test_flag_is_true_in_any_of_its_spellings(word: str) -> None:
    assert read_form(f"f={word}".encode()).flag("f") is True


@pytest.mark.parametrize("body", [b"", b"f="])
def test_flag_that_is_not_given_is_its_default(body: bytes) -> None:
    assert read_form(body).flag("f", default=True) is True


def test_flag_that_is_neither_is_refused() -> None:
    with pytest.raises(Refused):
        read_form(b"f=2").flag("f")
