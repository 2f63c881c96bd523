"""Errors of msgspec in our words."""

import enum
import re
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta, Struct

from waypost.base.invalid_values import describe_invalid_value, describe_malformed_json

LIBRARY_WORDS = re.compile(r"Expected|`|\$|Object |array|\bstr\b|\bint\b|enum|regex|malformed|truncated|recursion")


class Color(enum.Enum):
    """A choice."""

    RED = "red"
    BLUE = "blue"


class Button(Struct, forbid_unknown_fields=True):
    """An entry of a list."""

    text: str
    index: Annotated[int, Meta(ge=0, le=9)] = 0

    def __post_init__(self) -> None:
        """Check the text."""
        if self.text == "no":
            raise ValueError("must be friendly")


class Draft(Struct):
    """The type to decode."""

    name: Annotated[str, Meta(min_length=1, max_length=3)] = "a"
    size: float | None = None
    whole: int = 0
    done: bool = False
    color: Color = Color.RED
    mode: Literal["fast", "slow"] | None = None
    buttons: Annotated[list[Button], Meta(max_length=2)] | None = None
    rates: dict[str, list[int]] = {}
    data: bytes = b""
    code: Annotated[str, Meta(pattern="^a", extra={"accepted": "a word with a"})] = "a"
    any: int | str | bool = 0


# fmt: off
INVALID = {  # JSON, and the path, rule and accepted values
    '[]':                             ("",                "must be an object, not a list", None),
    '{"name": 1}':                    ("name",            "must be a text, not a number", "1 to 3 characters"),
    '{"name": ""}':                   ("name",            "must have at least 1 character", "1 to 3 characters"),
    '{"name": "long"}':               ("name",            "must have at most 3 characters", "1 to 3 characters"),
    '{"size": "x"}':                  ("size",            "must be a number, not a text", "null or a number"),
    '{"size": 1e999}':                ("size",            "must be a smaller number", "null or a number"),
    '{"whole": 1.5}':                 ("whole",           "must be a whole number, not a number with a decimal point", "a whole number"),
    '{"whole": null}':                ("whole",           "must be a whole number, not null", "a whole number"),
    '{"done": "yes"}':                ("done",            "must be true or false, not a text", "true or false"),
    '{"name": true}':                 ("name",            "must be a text, not a boolean", "1 to 3 characters"),
    '{"color": "green"}':             ("color",           "must be red or blue, not 'green'", "red or blue"),
    '{"mode": "idle"}':               ("mode",            "must be null or fast or slow, not 'idle'", "null or fast or slow"),
    '{"buttons": "x"}':               ("buttons",         "must be a list, not a text", None),
    '{"buttons": [{}, {}, {}]}':      ("buttons[0].text", "is required", "a text"),
    '{"buttons": [{"text": "a", "colour": 1}]}': ("buttons[0].colour", "is unknown", "text, index"),
    '{"buttons": [{"text": "a", "x` - at `$.rates": 1}]}': ("buttons[0].x` - at `$.rates", "is unknown", "text, index"),
    '{"buttons": [{"text": "a", "index": 10}]}': ("buttons[0].index", "must be at most 9", "0 to 9"),
    '{"buttons": [{"text": "a", "index": -1}]}': ("buttons[0].index", "must be at least 0", "0 to 9"),
    '{"buttons": [{"text": "no"}]}':  ("buttons[0]",      "must be friendly", "{text: a text, index?: 0 to 9}"),
    '{"rates": {"a": ["x"]}}':        ("rates.<name>[0]", "must be a whole number, not a text", "a whole number"),
    '{"data": "%"}':                  ("data",            "must be base64 text", "base64 text"),
    '{"code": "b"}':                  ("code",            "must be a word with a", "a word with a"),
    '{"any": []}':                    ("any",             "must be true or false, a whole number or a text, not a list", None),
}
MALFORMED = {
    b'{"a" 1}':   "is not valid JSON at byte 5",
    b"[1, 2":     "is not valid JSON: it ends before a quote, bracket or brace is closed",
    b'"\xff"':    "is not UTF-8 at byte 0",
    b"[" * 5000:  "is nested too deeply",
    b"NaN":       "is not valid JSON at byte 0",
}
# fmt: on


@pytest.mark.parametrize("text", INVALID)
def test_invalid_value_is_described_without_the_words_of_the_library(text: str) -> None:
    path, rule, accepted = INVALID[text]
    with pytest.raises(msgspec.ValidationError) as decoding:
        msgspec.json.decode(text, type=Draft)

    invalid = describe_invalid_value(decoding.value, Draft)

    assert (invalid.path, invalid.rule) == (path, rule)
    assert accepted in (None, invalid.accepted)
    assert not LIBRARY_WORDS.search(f"{invalid.rule} {invalid.accepted}")


def test_text_that_the_table_does_not_know_is_never_shown() -> None:
    invalid = describe_invalid_value(msgspec.ValidationError("Expected something of tomorrow - at `$.whole`"), Draft)

    assert (invalid.path, invalid.rule) == ("whole", "must be a whole number")


@pytest.mark.parametrize("raw", MALFORMED, ids=MALFORMED.values())
def test_malformed_json_is_described_by_its_place(raw: bytes) -> None:
    with pytest.raises((msgspec.MsgspecError, ValueError, RecursionError)) as decoding:
        msgspec.json.decode(raw, type=Any)

    assert describe_malformed_json(decoding.value) == MALFORMED[raw]
