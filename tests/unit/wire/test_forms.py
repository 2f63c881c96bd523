"""Forms and JSON texts: read, or rejected; never a guess, never an error of another kind."""

import gzip
import json
import re
from collections.abc import Callable
from typing import TypeVar, cast
from urllib.parse import parse_qsl

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from waypost.domain.coercion import Flag, Text, read_flag, read_integer
from waypost.domain.errors import ApiError, ErrorCode
from waypost.wire.forms import MAX_BRACKETS, Form, nesting_depth, read_form, read_json, read_json_body, read_json_form

Value = TypeVar("Value")

ANYTHING: "msgspec.json.Decoder[object]" = msgspec.json.Decoder(object)


def read(text: str) -> object:
    return read_json(text, ANYTHING, name="field", accepted="JSON")


def read_or_error_code(read: Callable[[], Value]) -> Value | ErrorCode:
    """Return what was read, or the code of its error."""
    try:
        return read()
    except ApiError as error:
        return error.code


def test_form_is_read_with_plus_percent_and_blanks() -> None:
    form = read_form(b"a=1+2&b=%C3%A4&c=&d&b[]=3&b[]=4")

    assert form.text("a") == "1 2"
    assert form.text("b") == "ä"
    assert (form.text("c"), form.text("d"), form.text("e")) == ("", "", None)
    assert form.all_values("a", "b[]") == ["1 2", "3", "4"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b"destination=1&destination=2", "destination"),
        (b"destination=1&x=2&destination=", "destination"),
        (b"message[type]=text&message[type]=image", "message[type]"),
        (b"message[a][b]=1&message[a][b]=2", "message[a][b]"),
        (b"flag=true&flag=false", "flag"),
    ],
)
def test_field_with_two_values_is_an_error_that_names_it(body: bytes, field: str) -> None:
    form = read_form(body)
    name = field.partition("[")[0]

    for read_fields in (lambda: form.text(name), lambda: form.flag(name), form.texts):
        with pytest.raises(ApiError, match="sent once") as raised:
            read_fields()
        assert raised.value.field == field
    assert form.text("other") is None


def test_field_that_is_sent_twice_with_one_value_or_is_a_list_is_read() -> None:
    form = read_form(b"a=1&a=1&b[]=1&b[]=2&c[d][]=3&c[d][]=4&modes=A&modes=B")

    assert (form.text("a"), form.text("b"), form.text("c")) == ("1", '["1","2"]', '{"d":["3","4"]}')
    assert form.all_values("modes") == ["A", "B"]


@pytest.mark.parametrize("read_body", [read_form, read_json_body, read_json_form])
def test_compressed_body_is_named_as_such(read_body: Callable[[bytes], object]) -> None:
    with pytest.raises(ApiError, match="must be sent uncompressed") as raised:
        read_body(gzip.compress(b"a=b"))

    assert raised.value.field == "Content-Encoding"


# fmt: off
WRITTEN = [  # as in JSON, as shown
    ("7.50", "7.50"), ("1e3", "1e3"), ("1E+3", "1E+3"), ("-0", "-0"), ("0.10", "0.10"), ("5", "5"), ("-7.0", "-7.0"),
    ("3.14159265358979323846264338", "3.14159265358979323846264338"), ("9007199254740993", "9007199254740993"),
    ('"7.50"', "7.50"), (r'"a \" 7.50"', 'a " 7.50'), (r'"\\"', "\\"),
]
# fmt: on


@pytest.mark.parametrize(("written", "shown"), WRITTEN)
def test_number_is_shown_as_it_was_written(written: str, shown: str) -> None:
    decoder = msgspec.json.Decoder(list[Text])

    values = read_json(f'[{written}, {written} ,"x 1.5"]', decoder, name="params", accepted="a list", has_texts=True)

    assert [str(value) for value in values] == [shown, shown, "x 1.5"]


@pytest.mark.parametrize("text", ["[1.5.5]", "[01.5]", "[.5e1]", "[1.]", "[1.5x]", "{1.5:2}", '[1.5"]', "[-]", "[1e]"])
def test_number_that_is_no_json_stays_an_error(text: str) -> None:
    with pytest.raises(ApiError):
        read_json(text, ANYTHING, name="params", accepted="a list", has_texts=True)


@given(st.recursive(st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9), st.lists, max_leaves=9))
def test_quoting_numbers_changes_nothing_else(value: object) -> None:
    def spelled(value: object) -> object:
        return [spelled(item) for item in cast("list[object]", value)] if isinstance(value, list) else str(value)

    text = json.dumps(value)
    assume("\\u0000" not in text and not re.search(r"\\ud[89a-f]", text))

    read_value = read_json(text, ANYTHING, name="params", accepted="any", has_texts=True)

    assert spelled(read_value) == spelled(value)


def test_members_of_a_json_body_keep_their_spelling() -> None:
    form = read_json_form(b'{"template": {"id": "a", "params": [7.50]}, "n": 1.0, "t": "a\\u00e9", "x": null}')

    assert form.text("template") == '{"id": "a", "params": [7.50]}'
    assert (form.text("n"), form.text("t"), form.text("x")) == ("1.0", "aé", None)


def test_checking_a_string_without_end_takes_one_pass() -> None:
    """Half a million escapes: a second pass from each of them would take an hour, and the test's timeout ends it."""
    with pytest.raises(ApiError):
        read("[" * 33 + '"' + '\\"' * 500_000)


FORM_CHARACTERS = st.sampled_from(
    [*"%+\\xuN{}&=14aFg\n\r\"'é😀 \x85\u2028", "%41", "%5C", "%C3%A9", "%E2%82", "%AC", "%ff"]
)


@given(st.lists(FORM_CHARACTERS, max_size=12).map("".join))
def test_form_is_read_as_python_reads_it(text: str) -> None:
    pairs = parse_qsl(text, keep_blank_values=True)
    names = [name for name, value in pairs if dict(pairs)[name] == value]
    names = [name for name in names if all(value == dict(pairs)[name] for other, value in pairs if other == name)]

    form = read_or_error_code(lambda: read_form(text.encode()))

    try:
        expected = dict(parse_qsl(text, keep_blank_values=True, errors="strict"))
    except UnicodeDecodeError:
        assert form is ErrorCode.UNREADABLE
    else:
        assert isinstance(form, Form)
        assert {name: form.text(name) for name in names} == {name: expected[name] for name in names}


@given(st.binary(max_size=200))
def test_any_bytes_are_read_as_a_form_or_rejected(body: bytes) -> None:
    form = read_or_error_code(lambda: read_form(body))

    assert isinstance(form, Form) or form is ErrorCode.UNREADABLE


@given(st.text(max_size=200))
def test_any_text_is_read_as_json_or_rejected(text: str) -> None:
    result = read_or_error_code(lambda: (read(text),))

    assert isinstance(result, tuple) or result is ErrorCode.UNREADABLE


@given(st.binary(max_size=200))
def test_any_bytes_are_read_as_a_json_object_or_rejected(body: bytes) -> None:
    result = read_or_error_code(lambda: read_json_body(body))

    assert isinstance(result, dict) or result is ErrorCode.UNREADABLE


@pytest.mark.parametrize(
    ("text", "levels"), [("7", 0), ("[]", 1), ('{"a":[1]}', 2), ('"[[["', 0), ('["\\"[["]', 1), ('["\\\\"]', 1)]
)
def test_depth_counts_brackets_outside_of_texts(text: str, levels: int) -> None:
    assert nesting_depth(text) == levels


@pytest.mark.parametrize("levels", [32, 33])
def test_json_may_nest_32_deep_and_no_deeper(levels: int) -> None:
    text = "[" * levels + "]" * levels

    if levels <= 32:
        read(text)
    else:
        with pytest.raises(ApiError):
            read(text)


@pytest.mark.parametrize(
    ("text", "is_valid"),
    [
        (r'"\u0000"', False),
        (r'"\\u0000"', True),
        (r'"\\\u0000"', False),
        (r'"\u0001"', True),
        ('"\\ud800"', False),
        ('"\\ud83d\\ude00"', True),
    ],
)
def test_characters_that_cannot_be_stored_are_rejected(text: str, is_valid: bool) -> None:
    if is_valid:
        read(text)
    else:
        with pytest.raises(ApiError):
            read(text)


@pytest.mark.parametrize("spelling", ["true", "TRUE", " yes ", "1"])
def test_flag_is_true_in_any_of_its_spellings(spelling: str) -> None:
    assert read_form(f"f={spelling}".encode()).flag("f") is True


@pytest.mark.parametrize("body", [b"", b"f="])
def test_flag_that_is_not_given_is_its_default(body: bytes) -> None:
    assert read_form(body).flag("f", default=True) is True


def test_flag_that_is_neither_is_rejected() -> None:
    with pytest.raises(ApiError):
        read_form(b"f=2").flag("f")


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([("a[b]", "x")], {"b": "x"}),
        ([("a[b][c]", "x"), ("a[b][d]", "y")], {"b": {"c": "x", "d": "y"}}),
        ([("a[0]", "x"), ("a[1]", "y")], ["x", "y"]),
        ([("a[1]", "y"), ("a[0]", "x")], ["x", "y"]),
        ([("a[10]", "z"), ("a[9]", "y")], ["y", "z"]),
        ([("a[]", "x"), ("a[]", "y")], ["x", "y"]),
        ([("a[0][b]", "x"), ("a[1][b]", "y")], [{"b": "x"}, {"b": "y"}]),
        ([("a[0]", "x"), ("a[b]", "y")], {"0": "x", "b": "y"}),
        ([("a[b]", "x"), ("a[b][c]", "y")], {"b": {"c": "y"}}),
        ([("a[b][c]", "y"), ("a[b]", "x")], {"b": "x"}),
    ],
)
def test_field_that_is_sent_in_parts_is_assembled(pairs: list[tuple[str, str]], expected: object) -> None:
    text = Form(pairs).text("a")

    assert text is not None
    assert msgspec.json.decode(text) == expected


@pytest.mark.parametrize("name", ["a[b", "a]b[", "[a]", "a[b]c", "a[[b]]", "a"])
def test_malformed_brackets_make_no_part(name: str) -> None:
    form = Form([(name, "x"), ("other", "y")])

    assert form.text("a") == ("x" if name == "a" else None)


def test_whole_field_counts_before_its_parts() -> None:
    assert Form([("a[b]", "x"), ("a", "whole")]).text("a") == "whole"


@pytest.mark.parametrize(("deep", "is_read"), [(32, True), (33, False)])
def test_parts_nest_as_deep_as_json_may(deep: int, is_read: bool) -> None:
    result = read_or_error_code(lambda: Form([("a" + "[b]" * deep, "x")]).text("a"))

    assert isinstance(result, str)
    assert (result is not ErrorCode.UNREADABLE) is is_read


@given(st.lists(st.tuples(st.text(alphabet="ab01[]", max_size=12), st.text(max_size=3))))
def test_parts_of_any_names_are_json_or_rejected(pairs: list[tuple[str, str]]) -> None:
    result = read_or_error_code(lambda: Form(pairs).text("a"))

    if isinstance(result, str) and "a" not in dict(pairs) and not isinstance(result, ErrorCode):
        msgspec.json.decode(result)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (5, 5), ("5", 5), (5.0, 5), ("5.0", 5), (" 5 ", 5), ("-3", -3), (2**63 - 1, 2**63 - 1),
        (str(2**63 - 1), 2**63 - 1), (2**63, ErrorCode.WRONG_TYPE), (1.5, ErrorCode.WRONG_TYPE),
        ("1.5", ErrorCode.WRONG_TYPE), ("x", ErrorCode.WRONG_TYPE), ("", ErrorCode.WRONG_TYPE),
        ("nan", ErrorCode.WRONG_TYPE), ("inf", ErrorCode.WRONG_TYPE), ("9" * 5000, ErrorCode.WRONG_TYPE),
        ("10.", 10), ("9007199254740993.0", 9007199254740993), ("1e1", ErrorCode.WRONG_TYPE), ("+5", ErrorCode.WRONG_TYPE),
        ("\u0665", ErrorCode.WRONG_TYPE), ("\u096b.0", ErrorCode.WRONG_TYPE), ("1_0", ErrorCode.WRONG_TYPE), ("0x5", ErrorCode.WRONG_TYPE),
    ],
)  # fmt: skip
def test_integers_are_read_in_every_spelling(value: Text, expected: int | ErrorCode) -> None:
    assert read_or_error_code(lambda: read_integer(value, "field")) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [(True, True), ("TRUE", True), (" on ", True), (1, True), ("y", True), (0, False), ("No", False),
     ("", False), ("maybe", ErrorCode.WRONG_TYPE), (2, ErrorCode.WRONG_TYPE)],
)  # fmt: skip
def test_booleans_are_read_in_every_spelling(value: Flag, expected: bool | ErrorCode) -> None:
    assert read_or_error_code(lambda: read_flag(value, "field")) == expected


@pytest.mark.parametrize(
    ("text", "is_read"),
    [
        ('{"a":9223372036854775807}', True),
        ('{"a":9223372036854775808}', False),
        ('{"a":-9223372036854775808}', True),
        ('{"a":-9223372036854775809}', False),
        ('{"a":%s}' % ("9" * 400), False),
        ('{"a":"99999999999999999999"}', True),
        ('{"a":1.00000000000000000000001}', True),
    ],
)
def test_integers_have_at_most_64_bits(text: str, is_read: bool) -> None:
    if is_read:
        assert "a" in read_json_body(text.encode())
        return
    with pytest.raises(ApiError) as raised:
        read_json_body(text.encode())
    assert raised.value.explanation == "The body must hold whole numbers within 64 bits."


def test_json_text_of_too_many_lists_is_rejected() -> None:
    most = "[" + "[]," * (MAX_BRACKETS - 2) + "[]]"
    assert nesting_depth(most) == 2

    with pytest.raises(ApiError) as raised:
        read_json_body(('{"a":' + most + "}").encode())

    assert raised.value.explanation == "The body must hold at most 20000 lists and objects."


@pytest.mark.parametrize("read_body", [read_json_body, read_json_form])
@pytest.mark.parametrize(
    "body",
    [
        '{"destination":"1","destination":"2"}',
        '{ "a" : [1, 2, {"b": ","}] , "destination" : "1,2", "x,y": 1, "destination" : {"c": 1} }',
        '{"destination": null, "destination": 1}',
        '{"d\\u0065stination": 1, "destination": 2}',
    ],
)
def test_member_of_a_body_with_two_values_is_an_error(read_body: Callable[[bytes], object], body: str) -> None:
    with pytest.raises(ApiError) as raised:
        read_body(body.encode())

    assert "destination" in str(raised.value)
    assert "more than once, with different values" in str(raised.value)


@pytest.mark.parametrize(
    "body",
    [
        "{}",
        '{"a,b": "c,d", "e": [1,2]}',
        '{"a": 1, "a": 1}',
        '{"a\\u002cb": 1, "c": {"d": 1, "e": 2}}',
        '{"a": {"b": 1}, "c": {"b": 2}}',
    ],
)
def test_body_whose_members_have_one_value_each_is_read(body: str) -> None:
    assert read_json_body(body.encode()) == json.loads(body)
