"""Strategies for JSON texts from the schemas of messages, for the formats of the OpenAPI document."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from waypost.api.fields import FieldType, RequestField
from waypost.api.routes import ROUTES
from waypost.operations.openapi import format_of, json_schema

SHORT_TEXTS = st.one_of(
    st.text(max_size=30), st.sampled_from(["", "{{1}}", "a | [b]", "é😀", "\u202e", "x" * 1100, "null", "0", "-1"])
)


def json_texts(known: Mapping[str, Sequence[Any]]) -> dict[str, st.SearchStrategy[str]]:
    """Return, for each format, a strategy for texts that match the field's schema, and sometimes for arbitrary texts.

    Args:
        known: values that exist in the service, by member: ids, types, URLs.
    """
    strategies: dict[str, st.SearchStrategy[str]] = {}
    for field in {field for row in ROUTES for field in (*row.fields, *row.query) if field.type is FieldType.JSON}:
        matching = values(json_schema(field) or {}, field.key, known).map(json.dumps)
        usual = st.just(field.example) if field.example else matching
        strategies[format_of(field)] = st.one_of(matching, matching, usual, usual, SHORT_TEXTS)
    return strategies


def declared_texts(field: RequestField) -> list[str]:
    """Return the texts that a field's declaration names: accepted values, both sides of its limits, and the example."""
    texts = [field.example, *field.choices]
    if field.choices:
        texts.append(field.choices[0].swapcase())
    if field.type is FieldType.BOOLEAN:
        texts += ["true", "false", "0"]
    if field.type is FieldType.INTEGER:
        least, greatest = field.between or (0, 10**12)
        texts += map(str, (least - 1, least, greatest, greatest + 1))
    if field.max_chars is not None:
        texts += ["x" * field.max_chars, "x" * (field.max_chars + 1)]
    return [text for text in texts if text]


def values(schema: Mapping[str, Any], name: str, known: Mapping[str, Sequence[Any]]) -> Any:
    """Return a strategy for a JSON Schema of the kinds that msgspec generates."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if "const" in schema:
        return st.just(schema["const"])
    if "anyOf" in schema:
        return st.one_of([values(option, name, known) for option in schema["anyOf"]])
    match schema.get("type"):
        case "object":
            members = schema.get("properties", {})
            required = set(schema.get("required", ()))
            return st.fixed_dictionaries(
                {key: values(members[key], key, known) for key in members if key in required},
                optional={key: values(members[key], key, known) for key in members if key not in required},
            )
        case "array":
            return st.lists(values(schema.get("items", {}), name, known), max_size=4)
        case "string":
            hints = [value for value in known.get(name, ()) if isinstance(value, str)]
            return st.one_of(st.sampled_from(hints), SHORT_TEXTS) if hints else SHORT_TEXTS
        case "integer":
            return st.integers(schema.get("minimum", -5), schema.get("maximum", 10**12))
        case "number":
            return st.floats(allow_nan=False, allow_infinity=False)
        case "boolean":
            return st.booleans()
        case "null":
            return st.none()
        case _:
            return st.one_of(st.none(), st.booleans(), st.integers(), SHORT_TEXTS)
