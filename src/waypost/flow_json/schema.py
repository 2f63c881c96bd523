"""Checks of the shape: each value of a Flow against the tables of `components`, and what later checks need of it."""

import base64
import binascii
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from waypost.flow_json import errors
from waypost.flow_json.components import ACTIONS, COMPONENTS, FLOW
from waypost.flow_json.errors import Violations, root_text
from waypost.flow_json.expressions import Expression, ExpressionError, is_nested, parse_expression, read_expression
from waypost.flow_json.kinds import (
    ActionKind,
    AnyKind,
    ComponentsKind,
    ConditionKind,
    DateKind,
    EitherKind,
    EnumKind,
    Kind,
    ListKind,
    MapKind,
    NumberKind,
    ObjectKind,
    PictureKind,
    Property,
    ReferenceKind,
    TextKind,
    json_types,
)
from waypost.flow_json.nodes import Node
from waypost.flow_json.versions import Version

_DAY: Final = re.compile(r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])")
_MILLISECONDS: Final = re.compile(r"-?\d{1,15}")
_DIGITS: Final = re.compile(r"\d{1,9}")
_DATA_URI: Final = re.compile(r"data:image/[a-z+]+;base64,")
_SIGNATURES: Final = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"RIFF", b"GIF8")


@dataclass(frozen=True)
class DynamicValue:
    """A value that an expression gives.

    Attributes:
        name: of its property.
    """

    node: Node
    name: str
    kind: Kind
    expression: Expression
    component: str


@dataclass(frozen=True)
class FoundAction:
    """An action of a component.

    Attributes:
        owner: the object that has it, and the name of its property.
        component: the type of the component.
    """

    node: Node
    name: str
    owner: Node
    component: str

    @property
    def payload(self) -> Node | None:
        """The payload that it passes on; None if it has none."""
        return self.node.members.get("payload")


@dataclass
class ShapeCheck:
    """Checks values against their kinds, and notes expressions and actions on the way."""

    violations: Violations
    version: Version
    dynamic: list[DynamicValue] = field(default_factory=list)
    actions: list[FoundAction] = field(default_factory=list)

    def check_flow(self, root: Node) -> None:
        """Check a whole Flow."""
        self._check_object(root, FLOW, "")

    def _check_object(self, node: Node, properties: Iterable[Property], component: str) -> None:
        if not self._has_type(node, ("object",)):
            return
        declared = {one.name: one for one in properties}
        for name, member in node.members.items():
            one = declared.get(name)
            if one is None:
                rule = errors.UNKNOWN_COMPONENT_PROPERTY if component in COMPONENTS else errors.UNKNOWN_PROPERTY
                self.violations.add_at_name(rule, member, name=name, component=component, path=root_text(node.path))
            elif not one.exists(self.version):
                self._report_version(one, member)
            else:
                self._check_property(member, one, component)
        for one in declared.values():
            if one.required is not None and max(one.required, one.since) <= self.version and one.name not in node.value:
                self.violations.add(errors.MISSING_PROPERTY, node, name=one.name)

    def _check_property(self, node: Node, one: Property, component: str) -> None:
        text = node.text
        is_marked = text is not None and ("${" in text or is_nested(text))
        if is_marked and not isinstance(one.kind, ReferenceKind | ConditionKind | AnyKind):
            if not one.is_dynamic:
                self.violations.add(errors.NOT_DYNAMIC, node, name=one.name)
            else:
                self._read_dynamic(node, one.name, one.kind, component)
            return
        self._check_value(node, one.kind, one.name, component)

    def _read_dynamic(self, node: Node, name: str, kind: Kind, component: str) -> None:
        text = node.text or ""
        if is_nested(text) and self.version < (6, 0):
            self.violations.add(errors.NESTED_BEFORE_6, node, name=name, version=_dotted(self.version))
            return
        try:
            if isinstance(kind, ConditionKind):
                expression: Expression | None = parse_expression(text[1:-1] if is_nested(text) else text)
            else:
                expression = read_expression(text)
        except ExpressionError as error:
            self.violations.add(errors.INVALID_EXPRESSION, node, name=name, reason=error)
            return
        if expression is not None:
            self.dynamic.append(DynamicValue(node, name, kind, expression, component))

    def _check_value(self, node: Node, kind: Kind, name: str, component: str) -> None:
        match kind:
            case EitherKind():
                fitting = next((one for one in kind.kinds if node.type_name in json_types(one)), None)
                if fitting is None:
                    self._has_type(node, json_types(kind))
                else:
                    self._check_value(node, fitting, name, component)
            case ActionKind():
                self._check_action(node, kind, name, component)
            case ComponentsKind():
                self._check_components(node, kind, name)
            case ListKind():
                self._check_list(node, kind, name, component)
            case MapKind():
                if self._has_type(node, ("object",)):
                    for member_name, member in node.members.items():
                        self._check_property(member, Property(member_name, kind.kind, is_dynamic=True), component)
            case ObjectKind():
                self._check_object(node, kind.properties, component or kind.name)
            case ConditionKind():
                if self._has_type(node, ("string", "boolean")) and node.text is not None:
                    self._read_dynamic(node, name, kind, component)
            case ReferenceKind():
                self._check_reference(node, name, kind, component)
            case _:
                if self._has_type(node, json_types(kind) or None):
                    self._check_scalar(node, kind, name)

    def _check_reference(self, node: Node, name: str, kind: Kind, component: str) -> None:
        if not self._has_type(node, ("string",)):
            return
        if "${" not in (node.text or ""):
            self.violations.add(errors.NOT_A_REFERENCE, node, name=name)
        else:
            self._read_dynamic(node, name, kind, component)

    def _check_list(self, node: Node, kind: ListKind, name: str, component: str) -> None:
        if not self._has_type(node, ("array",)):
            return
        if len(node.items) < kind.min_items:
            self.violations.add(errors.TOO_FEW_ITEMS, node, name=name, limit=kind.min_items)
        if kind.max_items is not None and len(node.items) > kind.max_items:
            self.violations.add(errors.TOO_MANY_ITEMS, node, name=name, limit=kind.max_items, count=len(node.items))
        for item in node.items:
            self._check_property(item, Property(name, kind.kind, is_dynamic=True), component)

    def _check_components(self, node: Node, kind: ComponentsKind, name: str) -> None:
        if not self._has_type(node, ("array",)):
            return
        if not node.items and not kind.may_be_empty:
            self.violations.add(errors.EMPTY_LIST, node, path=root_text(node.path))
        for item in node.items:
            if self._has_type(item, ("object",)):
                self._check_component(item, kind)

    def _check_component(self, node: Node, kind: ComponentsKind) -> None:
        type_node = node.members.get("type")
        if type_node is None:
            self.violations.add(errors.MISSING_PROPERTY, node, name="type")
            return
        if not self._has_type(type_node, ("string",)):
            return
        component = COMPONENTS.get(type_node.text or "")
        if component is None:
            path = root_text(type_node.path)
            self.violations.add(errors.INVALID_COMPONENT, type_node, path=path, value=type_node.text)
            return
        values = {"value": component.type, "version": _dotted(self.version), "path": root_text(node.path)}
        if component.since > self.version:
            self.violations.add(errors.NEWER_COMPONENT, type_node, since=_dotted(component.since), **values)
        elif kind.allowed is not None and kind.allowed.get(component.type, (99, 0)) > self.version:
            self.violations.add(errors.MISPLACED_COMPONENT, type_node, **values)
        rest = {name: member for name, member in node.members.items() if name != "type"}
        self._check_object(Node(rest, node.span, node.path, node.key_span), component.properties, component.type)

    def _check_action(self, node: Node, kind: ActionKind, name: str, component: str) -> None:
        if not self._has_type(node, ("object",)):
            return
        name_node = node.members.get("name")
        if name_node is None:
            self.violations.add(errors.MISSING_PROPERTY, node, name="name")
            return
        allowed = [one for one, since in kind.names.items() if since <= self.version]
        if name_node.text not in allowed:
            self.violations.add(errors.INVALID_CHOICE, name_node, values=", ".join(allowed))
            return
        rest = {key: member for key, member in node.members.items() if key != "name"}
        self._check_object(Node(rest, node.span, node.path, node.key_span), ACTIONS[name_node.text], "action")
        self.actions.append(FoundAction(node, name_node.text, node, component))

    def _check_scalar(self, node: Node, kind: Kind, name: str) -> None:
        match kind:
            case TextKind():
                self._check_text(node, kind, name)
            case NumberKind():
                self._check_number(node, kind, name)
            case EnumKind() if node.text not in kind.values:
                self.violations.add(errors.INVALID_CHOICE, node, values=", ".join(kind.values))
            case DateKind():
                pattern, wanted = (_DAY, "YYYY-MM-DD") if self.version >= (5, 0) else (_MILLISECONDS, "milliseconds")
                if not pattern.fullmatch(node.text or ""):
                    self.violations.add(errors.INVALID_FORMAT, node, name=name, format=wanted)
            case PictureKind():
                self._check_picture(node, kind, name)
            case _:
                pass

    def _check_text(self, node: Node, kind: TextKind, name: str) -> None:
        text = node.text or ""
        if not text.strip():
            if not kind.may_be_blank:
                self.violations.add(errors.BLANK, node, name=name)
        elif kind.max_chars is not None and len(text) > kind.max_chars:
            self.violations.add(errors.TOO_LONG, node, name=name, limit=kind.max_chars, count=len(text))
        elif kind.pattern and not re.fullmatch(kind.pattern, text):
            self.violations.add(errors.PATTERN, node, name=name, rule=kind.rule)

    def _check_number(self, node: Node, kind: NumberKind, name: str) -> None:
        value = node.value
        if isinstance(value, str):
            if not _DIGITS.fullmatch(value):
                self.violations.add(errors.PATTERN, node, name=name, rule="digits")
                return
            value = int(value)
        elif kind.is_integer and isinstance(value, float) and not value.is_integer():
            self.violations.add(
                errors.INVALID_TYPE, node, path=root_text(node.path), expected="integer", found="number"
            )
            return
        if kind.minimum is not None and value < kind.minimum:
            self.violations.add(errors.BELOW_MINIMUM, node, name=name, limit=kind.minimum)
        elif kind.maximum is not None and value > kind.maximum:
            self.violations.add(errors.ABOVE_MAXIMUM, node, name=name, limit=kind.maximum)

    def _check_picture(self, node: Node, kind: PictureKind, name: str) -> None:
        text = _DATA_URI.sub("", node.text or "", count=1)
        try:
            content = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            content = b""
        if not content.startswith(_SIGNATURES):
            self.violations.add(errors.INVALID_FORMAT, node, name=name, format="base64 of a JPEG, PNG or WEBP file")
        elif kind.max_kb is not None and len(content) > kind.max_kb * 1024:
            self.violations.add(errors.LARGE_PICTURE, node, name=name, limit=kind.max_kb, count=len(content) // 1024)

    def _has_type(self, node: Node, types: tuple[str, ...] | None) -> bool:
        if types is None or node.type_name in types:
            return True
        path = root_text(node.path)
        self.violations.add(errors.INVALID_TYPE, node, path=path, expected=" or ".join(types), found=node.type_name)
        return False

    def _report_version(self, one: Property, node: Node) -> None:
        if one.until is not None and one.until <= self.version:
            self.violations.add_at_name(errors.OLDER_PROPERTY, node, name=one.name, until=_dotted(one.until))
        else:
            values = {"name": one.name, "since": _dotted(one.since), "version": _dotted(self.version)}
            self.violations.add_at_name(errors.NEWER_PROPERTY, node, path=root_text(node.path[:-1]), **values)


def _dotted(version: Version) -> str:
    return f"{version[0]}.{version[1]}"
