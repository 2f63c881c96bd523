"""The declared data of a screen: its schema, its examples, and the type of each field.

Source: the operator's pages "Flow JSON", declaring screen properties, and "Error codes", screen data model errors.
"""

from typing import Final

from waypost.flow_json import errors
from waypost.flow_json.errors import Violations, root_text
from waypost.flow_json.flow import FlowView
from waypost.flow_json.nodes import Node

DATA_TYPES: Final = ("string", "number", "boolean", "object", "array", "integer")
EXAMPLE: Final = "__example__"


def check_data_models(view: FlowView, violations: Violations) -> None:
    """Check the declarations of each screen."""
    for screen in view.screens:
        for name, node in screen.declared_data.items():
            if not isinstance(node.value, dict):
                path = root_text(node.path)
                violations.add(errors.INVALID_TYPE, node, path=path, expected="object", found=node.type_name)
            elif _check_schema(node, violations):
                _check_example(name, node, violations)


def declared_type(schema: Node | None) -> str:
    """Return the JSON type that a schema declares; empty if it declares none."""
    type_node = schema.members.get("type") if schema is not None else None
    name = (type_node.text if type_node is not None else None) or ""
    return "number" if name == "integer" else name


def _check_schema(schema: Node, violations: Violations) -> bool:
    """Return True if a schema is valid, and its members are."""
    type_node = schema.members.get("type")
    if type_node is None:
        violations.add(errors.NO_TYPE, schema)
        return False
    if type_node.text is None:
        violations.add(errors.TYPE_NOT_TEXT, type_node)
        return False
    if type_node.text not in DATA_TYPES:
        violations.add(errors.UNKNOWN_TYPE, type_node, values=", ".join(DATA_TYPES[:-1]), found=type_node.text)
        return False
    if type_node.text == "array":
        return _check_items(schema, violations)
    if type_node.text == "object":
        properties = schema.members.get("properties")
        if properties is None:
            violations.add(errors.NO_PROPERTIES, schema)
            return False
        checked = [_check_member(member, violations) for member in properties.members.values()]
        return all(checked)
    return True


def _check_items(schema: Node, violations: Violations) -> bool:
    items = schema.members.get("items")
    if items is None:
        violations.add(errors.NO_ITEMS, schema)
        return False
    if not isinstance(items.value, bool | dict):
        violations.add(errors.ITEMS_TYPE, items)
        return False
    return _check_member(items, violations)


def _check_member(schema: Node, violations: Violations) -> bool:
    if not isinstance(schema.value, dict):
        return True
    example = schema.members.get(EXAMPLE)
    if example is not None:
        violations.add_at_name(errors.EXAMPLE_NOT_TOP, example, path=root_text(example.path))
    return _check_schema(schema, violations)


def _check_example(name: str, schema: Node, violations: Violations) -> None:
    example = schema.members.get(EXAMPLE)
    if example is None:
        violations.add(errors.NO_EXAMPLE, schema, name=name)
    else:
        _check_value(example, schema, violations)


def _check_value(value: Node, schema: Node, violations: Violations) -> None:
    expected = declared_type(schema)
    if value.type_name != expected:
        violations.add(errors.EXAMPLE_TYPE, value, expected=expected, found=value.type_name)
    elif expected == "array":
        items = schema.members["items"]
        if isinstance(items.value, dict):
            for item in value.items:
                _check_value(item, items, violations)
    elif expected == "object":
        for name, member in schema.members["properties"].members.items():
            if name in value.members and isinstance(member.value, dict):
                _check_value(value.members[name], member, violations)
