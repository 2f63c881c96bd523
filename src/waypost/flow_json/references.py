"""Checks of references and expressions: each field exists, and has the type that its property needs."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from waypost.flow_json import errors
from waypost.flow_json.data_model import declared_type
from waypost.flow_json.errors import FlowRule, Violations
from waypost.flow_json.expressions import (
    Expression,
    ExpressionError,
    FieldReference,
    Literal,
    expression_type,
    is_nested,
    references,
)
from waypost.flow_json.flow import FlowView, PlacedComponent, ScreenView
from waypost.flow_json.kinds import (
    ActionKind,
    BooleanKind,
    ConditionKind,
    Kind,
    ListKind,
    ObjectKind,
    ReferenceKind,
    json_types,
)
from waypost.flow_json.nodes import Node
from waypost.flow_json.schema import DynamicValue


@dataclass(frozen=True)
class ResolvedReference:
    """The field that a reference leads to.

    Attributes:
        type: its JSON type, as it is declared; empty if it is not known.
        schema: its declaration, of data.
        component: the input, of a form.
        pointer: to the declaration, of data.
    """

    type: str
    schema: Node | None = None
    component: PlacedComponent | None = None
    pointer: str = ""


class Lack(StrEnum):
    """Why a reference leads nowhere."""

    SCREEN = "screen"
    OWN_SCREEN = "own screen"
    DATA = "data"
    NAME = "name"
    MEMBER = "member"
    LIST = "list"
    FIELD = "field"
    FORM = "form"
    VERSION = "version"


@dataclass(frozen=True)
class MissingReference:
    """A reference that leads nowhere.

    Attributes:
        member: the name that is not there.
        referenced: the screen where it should be.
    """

    reason: Lack
    reference: FieldReference
    member: str = ""
    referenced: str = ""


# fmt: off
PROPERTY_RULES: Final[Mapping[Lack, FlowRule]] = {
    Lack.SCREEN: errors.GLOBAL_NO_SCREEN,
    Lack.OWN_SCREEN: errors.GLOBAL_OWN_SCREEN,
    Lack.DATA: errors.MISSING_DATA,
    Lack.NAME: errors.DATA_NAME,
    Lack.MEMBER: errors.NO_MEMBER,
    Lack.LIST: errors.INDEX_IN_LIST,
    Lack.FIELD: errors.MISSING_FIELD,
    Lack.FORM: errors.FORM_AS_DATA,
    Lack.VERSION: errors.GLOBAL_BEFORE_4,
}
PAYLOAD_RULES: Final[Mapping[Lack, FlowRule]] = {
    **dict.fromkeys(Lack, errors.MISSING_PAYLOAD_DATA),
    Lack.SCREEN: errors.MISSING_PAYLOAD_SCREEN,
    Lack.FIELD: errors.MISSING_FORM_FIELD,
    Lack.FORM: errors.FORM_AS_VALUE,
    Lack.VERSION: errors.GLOBAL_BEFORE_4,
}
# fmt: on
_UNCHECKED_TYPES: Final = ("init-value", "error-message")
"""Properties whose expressions the operator does not evaluate."""


class ReferenceCheck:
    """Finds the fields of references, and reports those that are not there."""

    def __init__(self, view: FlowView, violations: Violations) -> None:
        """Prepare for a Flow."""
        self._view = view
        self._violations = violations
        self._by_id = view.screens_by_id
        self._by_path = {screen.node.path: screen for screen in view.screens}
        self._forms = {
            (screen.screen_id, form.text("name")) for screen in view.screens for form in screen.components_with("Form")
        }

    def check_dynamic(self, values: list[DynamicValue]) -> None:
        """Check the expressions of components."""
        for value in values:
            screen = self.screen_of(value.node)
            if screen is None:
                continue
            if isinstance(value.kind, ConditionKind) and not is_nested(value.node.text or ""):
                self._check_condition(value, screen)
            elif is_nested(value.node.text or ""):
                self._check_nested(value, screen)
            elif isinstance(value.expression, FieldReference):
                self._check_plain(value, value.expression, screen)

    def screen_of(self, node: Node) -> ScreenView | None:
        """Return the screen in which a node stands."""
        return self._by_path.get(node.path[:2])

    def find(
        self, one: FieldReference, screen: ScreenView, *, may_name_itself: bool = False
    ) -> ResolvedReference | MissingReference:
        """Return what a reference leads to, or why it leads nowhere."""
        where = screen
        if one.screen is not None:
            if self._view.version < (4, 0):
                return MissingReference(Lack.VERSION, one)
            if one.screen == screen.screen_id and not may_name_itself:
                return MissingReference(Lack.OWN_SCREEN, one)
            if one.screen not in self._by_id:
                return MissingReference(Lack.SCREEN, one, referenced=one.screen)
            where = self._by_id[one.screen]
        return self._find_field(one, where) if one.scope == "form" else self._find_data(one, where)

    def type_of(self, expression: Expression, screen: ScreenView) -> str:
        """Return the type of a nested expression; empty if it is not known.

        Raises:
            ExpressionError: a field is missing, or an operator has operands of the wrong type.
        """
        fields: dict[FieldReference, str] = {}
        for one in references(expression):
            found = self.find(one, screen, may_name_itself=True)
            if isinstance(found, MissingReference):
                raise ExpressionError(
                    f"The following property '{one.names[-1]}' does not exist in the screen data model."
                )
            fields[one] = _counted(found.type)
        return expression_type(expression, fields.__getitem__)

    def report(
        self, rules: Mapping[Lack, FlowRule], found: MissingReference, node: Node, screen: ScreenView, **values: str
    ) -> None:
        """Report a reference that leads nowhere."""
        one = found.reference
        kind = "Dynamic data" if one.screen is None else "Global Dynamic data"
        referenced = found.referenced or one.screen or screen.screen_id
        version = f"{self._view.version[0]}.{self._view.version[1]}"
        values = {"kind": kind, "member": found.member, "referenced": referenced, "version": version, **values}
        self._violations.add(rules[found.reason], node, expression=one.text, screen=screen.screen_id, **values)

    def _find_field(self, one: FieldReference, screen: ScreenView) -> ResolvedReference | MissingReference:
        name = ".".join(one.names)
        component = next(iter(screen.names.get(name, ())), None)
        if component is not None and component.value_type:
            return ResolvedReference(component.value_type, component=component)
        return MissingReference(Lack.FORM if (screen.screen_id, name) in self._forms else Lack.FIELD, one, name)

    def _find_data(self, one: FieldReference, screen: ScreenView) -> ResolvedReference | MissingReference:
        schema = screen.declared_data.get(one.names[0])
        if schema is None:
            return MissingReference(Lack.DATA, one, one.names[0])
        if any("-" in name or "'" in name for name in one.names):
            return MissingReference(Lack.NAME, one)
        pointer = f"screens[{screen.node.path[1]}].data.{'.properties.'.join(one.names)}"
        for name in one.names[1:]:
            if declared_type(schema) == "array":
                return MissingReference(Lack.LIST, one, name, screen.screen_id)
            if declared_type(schema) != "object":
                return MissingReference(Lack.DATA, one, name)
            properties = schema.members.get("properties")
            member = properties.members.get(name) if properties is not None else None
            if member is None:
                return MissingReference(Lack.MEMBER, one, name, screen.screen_id)
            schema = member
        return ResolvedReference(declared_type(schema), schema, pointer=pointer)

    def _check_plain(self, value: DynamicValue, one: FieldReference, screen: ScreenView) -> None:
        found = self.find(one, screen)
        if isinstance(found, MissingReference):
            values = {"name": value.name, "component": value.component}
            self.report(PROPERTY_RULES, found, value.node, screen, **values)
        elif found.schema is not None:
            wrong = _mismatch(value.kind, found.schema, found.pointer)
            if wrong is not None:
                rule, values = wrong
                self._violations.add(rule, value.node, expression=one.text, **values)
        elif found.type and _types(value.kind) and found.type not in _types(value.kind):
            kind = "form data" if one.screen is None else "global form data"
            expected = ", ".join(_types(value.kind))
            self._violations.add(errors.FIELD_TYPE, value.node, kind=kind, expression=one.text, expected=expected)

    def _check_nested(self, value: DynamicValue, screen: ScreenView) -> None:
        if value.name in _UNCHECKED_TYPES:
            return
        expected = ("boolean", "string") if isinstance(value.kind, ConditionKind) else _types(value.kind)
        reason = ""
        try:
            found = self.type_of(value.expression, screen)
            if found and expected and found not in map(_counted, expected):
                reason = f"The expression return type is '{found}' which does not match the schema for the property."
        except ExpressionError as error:
            reason = str(error)
        if reason:
            values = {"expression": value.node.text, "reason": reason}
            self._violations.add_at_name(errors.INVALID_NESTED, value.node, **values)

    def _check_condition(self, value: DynamicValue, screen: ScreenView) -> None:
        """Check a condition without backticks, which reads fields but no members of them."""
        types: dict[FieldReference, str] = {}
        for one in references(value.expression):
            found = self.find(one, screen, may_name_itself=True)
            if isinstance(found, MissingReference) or len(one.names) > 1 or found.type == "object":
                self._violations.add(
                    errors.CONDITION_DATA, value.node, name=next(iter(one.names)), screen=screen.screen_id
                )
                return
            types[one] = _counted(found.type)
        if isinstance(value.expression, Literal):
            rule = errors.CONDITION_LITERAL if isinstance(value.expression.value, bool) else errors.CONDITION_TYPE
            self._violations.add(rule, value.node)
            return
        try:
            found_type = expression_type(value.expression, types.__getitem__, is_nested_one=False)
        except ExpressionError as error:
            self._violations.add(errors.INVALID_CONDITION, value.node, reason=error)
            return
        if found_type not in {"", "boolean"}:
            self._violations.add(errors.CONDITION_TYPE, value.node)


def _counted(name: str) -> str:
    """Return a type as an expression sees it: an integer is a number."""
    return "number" if name == "integer" else name


def _types(kind: Kind) -> tuple[str, ...]:
    return ("string",) if isinstance(kind, ReferenceKind) else json_types(kind)


def _mismatch(kind: Kind, schema: Node, pointer: str) -> tuple[FlowRule, dict[str, str]] | None:
    """Return what a declaration lacks for a property: its type, and of lists and objects what is in it."""
    expected = _types(kind)
    if expected and declared_type(schema) not in expected:
        rule = errors.DATA_TYPE if len(expected) == 1 else errors.DATA_TYPES
        return rule, {"pointer": pointer, "expected": ", ".join(expected)}
    if isinstance(kind, ListKind):
        items = schema.members.get("items")
        return _mismatch(kind.kind, items, f"{pointer}.items") if items is not None and items.members else None
    if not isinstance(kind, ObjectKind):
        return None
    properties = schema.members.get("properties")
    members = properties.members if properties is not None else {}
    for one in kind.properties:
        member = members.get(one.name)
        if member is None and one.required is not None:
            return errors.MISSING_SCHEMA, {"name": one.name}
        # An option's `enabled` may be a text, too: a reference.
        is_free = isinstance(one.kind, ActionKind) or (isinstance(one.kind, BooleanKind) and one.is_dynamic)
        wrong = _mismatch(one.kind, member, f"{pointer}.properties.{one.name}") if member and not is_free else None
        if wrong is not None:
            return wrong
    return None
