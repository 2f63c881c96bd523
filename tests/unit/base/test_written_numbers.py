"""Numbers of JSON that keep their spelling, and JSON in ASCII."""

import json
from typing import Any

import msgspec
import pytest

from waypost.base.written_numbers import ascii_json, encode_json, json_decoder


class Place(msgspec.Struct):
    """A declared number beside a free object."""

    latitude: float
    more: dict[str, Any] = {}


@pytest.mark.parametrize("number", ["7.50", "1e3", "1E-1", "-0.0", "0.1000000000000000055511151231257827", "1.0", "7"])
def test_number_of_a_free_object_is_encoded_as_it_was_written(number: str) -> None:
    text = f'{{"a":[{number}],"b":{{"c":{number}}}}}'

    value = json_decoder().decode(text)

    assert encode_json(value).decode() == text
    assert ascii_json(value) == text
    assert str(value["a"][0]) == number


def test_declared_number_is_an_ordinary_one() -> None:
    place = json_decoder(Place).decode('{"latitude":7.50,"more":{"a":7.50}}')

    assert type(place.latitude) is float
    assert encode_json(place).decode() == '{"latitude":7.5,"more":{"a":7.50}}'


@pytest.mark.parametrize("value", ['é\x7f👋"\\/\n\t\x1b\x00<&', {"ü": [1, 2.5, True, None, ""]}, 123456789.0])
def test_ascii_json_is_that_of_the_standard_library(value: Any) -> None:
    assert ascii_json(value) == json.dumps(value, separators=(",", ":"))


def test_value_without_a_json_form_is_an_error() -> None:
    with pytest.raises(NotImplementedError):
        encode_json(object())
