"""JSON texts from the schemas of messages: what the formats of the OpenAPI document are drawn from."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from waypost.api.request_fields import REQUEST_FIELDS, FieldType
from waypost.operations.openapi import format_of, json_schema

WORDS = st.one_of(
    st.text(max_size=30), st.sampled_from(["", "{{1}}", "a | [b]", "é😀", "\u202e", "x" * 1100, "null", "0", "-1"])
)


def json_texts(known: Mapping[str, Sequence[Any]]) -> dict[str, st.SearchStrategy[str]]:
    """Of each format, texts of the field's shape, and now and then of none.

    Args:
        known: values that mean something to the service, by member: ids, kinds, addresses.
    """
    found: dict[str, st.SearchStrategy[str]] = {}
    for key, field in REQUEST_FIELDS.items():
        if field.type is not FieldType.JSON:
            continue
        fitting = values(json_schema(field) or {}, key, known).map(json.dumps)
        usual = st.just(field.example) if field.example else fitting
        found[format_of(key)] = st.one_of(fitting, fitting, usual, usual, WORDS)
    return found


def values(schema: Mapping[str, Any], name: str, known: Mapping[str, Sequence[Any]]) -> Any:
    """A strategy for a JSON Schema of the kinds that msgspec writes."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if "const" in schema:
        return st.just(schema["const"])
    if "anyOf" in schema:
        return st.one_of([values(one, name, known) for one in schema["anyOf"]])
    match schema.get("type"):
        case "object":
            members = schema.get("properties", {})
            needed = set(schema.get("required", ()))
            return st.fixed_dictionaries(
                {key: values(members[key], key, known) for key in members if key in needed},
                optional={key: values(members[key], key, known) for key in members if key not in needed},
            )
        case "array":
            return st.lists(values(schema.get("items", {}), name, known), max_size=4)
        case "string":
            hints = [one for one in known.get(name, ()) if isinstance(one, str)]
            return st.one_of(st.sampled_from(hints), WORDS) if hints else WORDS
        case "integer":
            return st.integers(schema.get("minimum", -5), schema.get("maximum", 10**12))
        case "number":
            return st.floats(allow_nan=False, allow_infinity=False)
        case "boolean":
            return st.booleans()
        case "null":
            return st.none()
        case _:
            return st.one_of(st.none(), st.booleans(), st.integers(), WORDS)
