"""The declared data of a screen: its schema, its examples, and the type of each field.

Source: public pages "Flow JSON", declaring screen properties, and "Validator of Flow JSON", data of screens.
"""

from collections.abc import Iterable
from typing import Final

from waypost.flow_json import errors
from waypost.flow_json.errors import Violations, root_text
from waypost.flow_json.flow import FlowView
from waypost.flow_json.nodes import Node

DATA_TYPES: Final = ("array", "boolean", "integer", "null", "number", "object", "string")
REQUIRED: Final = "required"
"""Not a field: the list of those that must be there."""
EXAMPLE: Final = "__example__"


def check_declarations(view: FlowView, violations: Violations) -> None:
    """Check the shape: each field is declared with a type and an example."""
    for screen in view.screens:
        for name, node in screen.declared_data.items():
            expected = "array" if name == REQUIRED else "object"
            if node.type_name != expected:
                violations.add(errors.INVALID_TYPE, node, name=name, expected=expected, found=node.type_name)
            elif name != REQUIRED:
                for member in (EXAMPLE, "type"):
                    if member not in node.members:
                        violations.add(errors.MISSING_PROPERTY, node, name=member)


def check_data_models(view: FlowView, violations: Violations) -> None:
    """Check the declarations of each screen, and their examples against them."""
    for screen in view.screens:
        for name, node in screen.declared_data.items():
            if name != REQUIRED and _check_schema(node, violations):
                _check_values([node.members[EXAMPLE]], node, node.members[EXAMPLE], violations)


def declared_type(schema: Node | None) -> str:
    """Return the JSON type that a schema declares; empty if it declares none."""
    type_node = schema.members.get("type") if schema is not None else None
    return (type_node.text if type_node is not None else None) or ""


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
        violations.add(errors.INVALID_CHOICE, type_node, values=", ".join(DATA_TYPES))
        return False
    if type_node.text == "array":
        return _check_items(schema, violations)
    if type_node.text == "object":
        properties = schema.members.get("properties")
        members = properties.members.values() if properties is not None else ()
        checked = [_check_member(member, violations) for member in members]
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


def _check_values(values: Iterable[Node], schema: Node, example: Node, violations: Violations) -> None:
    """Check the values within an example for which one schema counts.

    What is wrong is reported at the example, as the operator does. All together, so that a schema is read once.
    """
    expected = declared_type(schema)
    fitting: list[Node] = []
    for value in values:
        if is_of_type(value, expected):
            fitting.append(value)
        else:
            violations.add(errors.EXAMPLE_TYPE, example, expected=expected, found=value.type_name)
    items = schema.members.get("items")
    if expected == "array" and items is not None and isinstance(items.value, dict):
        _check_values((item for value in fitting for item in value.items), items, example, violations)
    elif expected == "object":
        _check_members(fitting, schema, example, violations)


def _check_members(values: list[Node], schema: Node, example: Node, violations: Violations) -> None:
    required, properties = schema.members.get(REQUIRED), schema.members.get("properties")
    declared = properties.members if properties is not None else {}
    names = {one.text: None for one in required.items if one.text is not None} if required is not None else {}
    inner: dict[str, list[Node]] = {}
    for value in values:
        if violations.is_full():
            return
        for name in names:
            if name not in value.members:
                violations.add(errors.EXAMPLE_LACKS, example, name=name)
                if violations.is_full():
                    return
        for name, member in value.members.items():
            if name in declared and isinstance(declared[name].value, dict):
                inner.setdefault(name, []).append(member)
    for name, members in inner.items():
        _check_values(members, declared[name], example, violations)


def is_of_type(value: Node, expected: str) -> bool:
    """Return True if a value has a declared type."""
    if expected == "integer":
        return value.type_name == "number" and (isinstance(value.value, int) or value.value.is_integer())
    return value.type_name == expected
