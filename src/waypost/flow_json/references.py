"""Checks of references and expressions: each field exists, and has the type that its property needs."""

from dataclasses import dataclass

from waypost.flow_json import errors
from waypost.flow_json.data_model import declared_type
from waypost.flow_json.errors import FlowRule, Violations
from waypost.flow_json.expressions import (
    Expression,
    ExpressionError,
    FieldReference,
    Literal,
    Operation,
    expression_type,
    references,
)
from waypost.flow_json.flow import FlowView, PlacedComponent, ScreenView
from waypost.flow_json.kinds import ConditionKind, Kind, ListKind, ObjectKind, ReferenceKind, json_types
from waypost.flow_json.nodes import Node
from waypost.flow_json.schema import DynamicValue


@dataclass(frozen=True)
class ResolvedReference:
    """The field that a reference leads to.

    Attributes:
        type: its JSON type; empty if it is not known.
        schema: its declaration, of data.
        component: the input, of a form.
    """

    type: str
    schema: Node | None = None
    component: PlacedComponent | None = None


class ReferenceCheck:
    """Finds the fields of references, and reports those that are not there."""

    def __init__(self, view: FlowView, violations: Violations) -> None:
        """Prepare for a Flow."""
        self._view = view
        self._violations = violations
        self._by_id = view.screens_by_id

    def check_dynamic(self, values: list[DynamicValue]) -> None:
        """Check the expressions of components and screens."""
        for value in values:
            screen = self.screen_of(value.node)
            if screen is None:
                continue
            found = self.check_expression(value.expression, value.node, screen, value.name)
            if found is not None:
                self._check_kind(value, found)

    def screen_of(self, node: Node) -> ScreenView | None:
        """Return the screen in which a node stands."""
        path = node.path[:2]
        return next((screen for screen in self._view.screens if screen.node.path == path), None)

    def check_expression(
        self, expression: Expression, node: Node, screen: ScreenView, name: str, *, is_payload: bool = False
    ) -> ResolvedReference | None:
        """Return an expression's type; None if a reference leads nowhere, which is reported."""
        fields: dict[FieldReference, ResolvedReference] = {}
        for one in references(expression):
            found = self.find(one, node, screen, is_payload=is_payload)
            if found is None:
                return None
            fields[one] = found
        if isinstance(expression, FieldReference):
            return fields[expression]
        try:
            return ResolvedReference(expression_type(expression, lambda one: fields[one].type))
        except ExpressionError as error:
            self._violations.add(errors.INVALID_EXPRESSION, node, name=name, reason=error)
            return None

    def find(
        self, one: FieldReference, node: Node, screen: ScreenView, *, is_payload: bool = False
    ) -> ResolvedReference | None:
        """Return what a reference leads to; None if nothing, which is reported."""
        where = screen
        if one.screen is not None:
            rule, values = self._check_screen(one, screen)
            if rule is not None:
                self._violations.add(rule, node, expression=one.text, screen=screen.screen_id, **values)
                return None
            where = self._by_id[one.screen]
        found = self._find_field(one, where) if one.scope == "form" else self._find_data(one, where, node)
        if found is None and one.screen is not None:
            values = {"referenced": one.screen, "screen": screen.screen_id}
            self._violations.add(errors.GLOBAL_MISSING, node, expression=one.text, **values)
        elif found is None:
            self._violations.add(
                _missing(one, is_payload=is_payload), node, expression=one.text, screen=screen.screen_id
            )
        return found

    def _check_screen(self, one: FieldReference, screen: ScreenView) -> tuple[FlowRule | None, dict[str, str]]:
        if self._view.version < (4, 0):
            return errors.GLOBAL_BEFORE_4, {"version": f"{self._view.version[0]}.{self._view.version[1]}"}
        if one.screen == screen.screen_id:
            return errors.GLOBAL_OWN_SCREEN, {"local": ".".join((one.scope, *one.names))}
        if one.screen not in self._by_id:
            return errors.GLOBAL_NO_SCREEN, {"referenced": one.screen or ""}
        return None, {}

    def _find_field(self, one: FieldReference, screen: ScreenView) -> ResolvedReference | None:
        component = screen.fields.get(one.names[0])
        if component is None:
            return None
        if len(one.names) > 1 or component.type == "CalendarPicker":
            return ResolvedReference("", component=component)
        if component.text("input-type") == "number":
            return ResolvedReference("", component=component)  # `${form.age} > 18`, and a text in its payload
        return ResolvedReference(component.kind.value_type, component=component)

    def _find_data(self, one: FieldReference, screen: ScreenView, node: Node) -> ResolvedReference | None:
        schema = screen.declared_data.get(one.names[0])
        if schema is None:
            return None
        for name in one.names[1:]:
            if declared_type(schema) == "array":
                self._violations.add(errors.INDEX_IN_LIST, node, expression=one.text, name=name)
                return ResolvedReference("")
            properties = schema.members.get("properties")
            if properties is None:
                return ResolvedReference("")
            schema = properties.members.get(name)
            if schema is None:
                return None
        return ResolvedReference(declared_type(schema), schema)

    def _check_kind(self, value: DynamicValue, found: ResolvedReference) -> None:
        expected = json_types(value.kind)
        if isinstance(value.kind, ConditionKind):
            self._check_condition(value, found.type)
        elif isinstance(value.kind, ReferenceKind) or not found.type or not expected:
            return
        elif found.type not in expected and not _is_joined_text(value.expression, expected):
            one = errors.DATA_TYPE if len(expected) == 1 else errors.DATA_TYPES
            text = value.node.text
            self._violations.add(one, value.node, expression=text, expected=", ".join(expected), found=found.type)
        elif found.schema is not None:
            self._check_properties(value.node, value.kind, found.schema, value.expression)

    def _check_condition(self, value: DynamicValue, found: str) -> None:
        if isinstance(value.expression, Literal):
            self._violations.add(errors.CONDITION_LITERAL, value.node)
        elif found not in {"", "boolean"}:
            self._violations.add(errors.CONDITION_TYPE, value.node, found=found)

    def _check_properties(self, node: Node, kind: Kind, schema: Node, expression: Expression) -> None:
        """Check that the items of a declared list have what each must have: options an id and a title."""
        items = schema.members.get("items")
        if not isinstance(kind, ListKind) or not isinstance(kind.kind, ObjectKind) or items is None:
            return
        properties = items.members.get("properties")
        for one in kind.kind.properties:
            if one.required is not None and properties is not None and one.name not in properties.members:
                text = expression.text if isinstance(expression, FieldReference) else ""
                self._violations.add(errors.MISSING_SCHEMA, node, expression=text, name=one.name)


def _is_joined_text(expression: Expression, expected: tuple[str, ...]) -> bool:
    """Return True where a calculated value stands for a text: it is written as one."""
    return isinstance(expression, Operation) and "string" in expected


def _missing(one: FieldReference, *, is_payload: bool) -> FlowRule:
    if one.scope == "form":
        return errors.MISSING_FORM_FIELD if is_payload else errors.MISSING_FIELD
    return errors.MISSING_PAYLOAD_DATA if is_payload else errors.MISSING_DATA
