"""Checks of the shape: each value of a Flow against the tables of `components`, and what later checks need of it."""

import base64
import binascii
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from waypost.flow_json import errors
from waypost.flow_json.components import ACTION_MEMBERS, ACTIONS, COMPONENTS, FLOW
from waypost.flow_json.errors import Violations, step_name
from waypost.flow_json.expressions import (
    Expression,
    ExpressionError,
    is_binding,
    is_nested,
    is_reference,
    parse_expression,
    read_expression,
)
from waypost.flow_json.kinds import (
    ActionKind,
    ComponentsKind,
    ConditionKind,
    DateKind,
    EitherKind,
    EnumKind,
    Kind,
    ListKind,
    MapKind,
    NameKind,
    NumberKind,
    ObjectKind,
    PictureKind,
    Property,
    ReferenceKind,
    TextKind,
    json_types,
    pattern_of,
)
from waypost.flow_json.nodes import Node
from waypost.flow_json.regexes import is_regex
from waypost.flow_json.versions import Version

_MILLISECONDS: Final = re.compile(r"-?\d{1,15}")
_URI: Final = re.compile(r"https?://[^\s/?#]+\S*", re.IGNORECASE)
_DATA_URI: Final = re.compile(r"data:image/[a-z+]+;base64,")
_SIGNATURES: Final = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"RIFF", b"GIF8")
# Kinds whose expressions are other text, or which look at it themselves.
_UNREAD: Final = (ReferenceKind, ConditionKind, NameKind)


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
        owner: the object that has it.
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
        """Check an object; `component` is empty for objects within a component, which the operator does not name."""
        if not self._has_type(node, ("object",)):
            return
        declared = {one.name: one for one in properties}
        for name, member in node.members.items():
            one = declared.get(name)
            if one is not None and one.exists(self.version):
                self._check_property(member, one, node, component)
            else:
                self._report_unknown(member, name, one, component)
        for one in declared.values():
            if one.required is not None and max(one.required, one.since) <= self.version and one.name not in node.value:
                self.violations.add(errors.MISSING_PROPERTY, node, name=one.name)

    def _report_unknown(self, node: Node, name: str, one: Property | None, component: str) -> None:
        if one is not None and one.until is not None and one.until <= self.version:
            self.violations.add_at_name(errors.OLDER_PROPERTY, node, name=name, until=_dotted(one.until))
        else:
            rule = errors.UNKNOWN_COMPONENT_PROPERTY if component in COMPONENTS else errors.UNKNOWN_PROPERTY
            self.violations.add_at_name(rule, node, name=name, component=component)

    def _check_property(self, node: Node, one: Property, owner: Node, component: str) -> None:
        may_read = one.is_dynamic and node.text is not None and not isinstance(one.kind, _UNREAD)
        if not may_read or not self._reads_text(node, one, component):
            self._check_value(node, one.kind, one.name, owner, component)

    def _reads_text(self, node: Node, one: Property, component: str) -> bool:
        """Return True if a text is an expression, which is noted, or wrong, which is reported."""
        text = node.text or ""
        takes_text = "string" in json_types(one.kind) or not json_types(one.kind)
        if is_nested(text) and self.version >= (6, 0):
            self._read_dynamic(node, one, component)
            return True
        if is_binding(text) and (takes_text or is_reference(text)):
            self._read_dynamic(node, one, component)
            return True
        if not takes_text:
            expected = json_types(one.kind)[0]
            self.violations.add(errors.INVALID_TYPE, node, name=one.name, expected=expected, found="string")
            self.violations.add(errors.NOT_DYNAMIC_FORM, node, name=one.name, expected=expected)
            return True
        if "${" in text:
            rule = errors.MIXED_RICH_TEXT if component == "RichText" else errors.PLAIN_MIXED
            self.violations.add(rule, node, name=one.name)
            return True
        return False

    def _read_dynamic(self, node: Node, one: Property, component: str) -> None:
        try:
            expression = read_expression(node.text or "")
        except ExpressionError as error:
            if is_nested(node.text or ""):
                self.violations.add_at_name(errors.INVALID_NESTED, node, expression=node.text, reason=error)
            else:
                self.violations.add(errors.MISSING_DATA, node, expression=node.text)
            return
        if expression is not None:
            self.dynamic.append(DynamicValue(node, one.name, one.kind, expression, component))

    def _check_value(self, node: Node, kind: Kind, name: str, owner: Node, component: str) -> None:
        match kind:
            case EitherKind():
                fitting = next((one for one in kind.kinds if node.type_name in json_types(one)), kind.kinds[0])
                self._check_value(node, fitting, name, owner, component)
            case ActionKind():
                self._check_action(node, kind, owner, component)
            case ComponentsKind():
                self._check_components(node, kind)
            case ListKind():
                self._check_list(node, kind, name)
            case MapKind():
                self._check_map(node, kind, component)
            case ObjectKind() if kind.is_open:
                if self._has_type(node, ("object",)):
                    for one in kind.properties:
                        if one.name in node.members:
                            self._check_property(node.members[one.name], one, node, component)
            case ObjectKind():
                self._check_object(node, kind.properties, "")
            case ConditionKind():
                self._check_condition(node)
            case ReferenceKind():
                self._check_reference(node, name, kind, component)
            case _:
                if self._has_type(node, json_types(kind)):
                    self._check_scalar(node, kind, name)

    def _check_condition(self, node: Node) -> None:
        if not self._has_type(node, ("string",) if self.version < (6, 0) else ("boolean", "string")):
            return
        text = node.text
        if text is None:
            return
        nested = is_nested(text) and self.version >= (6, 0)
        try:
            expression = parse_expression(text[1:-1], may_join=True) if nested else parse_expression(text)
        except ExpressionError as error:
            if nested:
                self.violations.add_at_name(errors.INVALID_NESTED, node, expression=text, reason=error)
            else:
                self.violations.add(errors.INVALID_CONDITION, node, reason=error)
            return
        self.dynamic.append(DynamicValue(node, "condition", ConditionKind(), expression, "If"))

    def _check_reference(self, node: Node, name: str, kind: Kind, component: str) -> None:
        if not self._has_type(node, ("string",)):
            return
        text = node.text or ""
        if is_reference(text) or (is_nested(text) and self.version >= (6, 0)):
            self._read_dynamic(node, Property(name, kind), component)
        else:
            self.violations.add(errors.NOT_A_REFERENCE, node, name=name)

    def _check_list(self, node: Node, kind: ListKind, name: str) -> None:
        if not self._has_type(node, ("array",)):
            return
        count = len(node.items)
        if count < kind.min_items:
            self.violations.add(errors.TOO_FEW_ITEMS, node, name=name, limit=kind.min_items)
        if kind.max_items is not None and count > kind.max_items:
            rule = errors.TOO_MANY_TAGS if kind.has_hard_maximum else errors.TOO_MANY_ITEMS
            self.violations.add(rule, node, name=name, limit=kind.max_items, count=count)
        for item in node.items:
            if self.violations.is_full():
                return
            self._check_value(item, kind.kind, step_name(item.path), node, "")

    def _check_map(self, node: Node, kind: MapKind, component: str) -> None:
        if not self._has_type(node, ("object",)):
            return
        pattern = pattern_of(kind.patterns, self.version)
        for name, member in node.members.items():
            if pattern is not None and not re.fullmatch(pattern.pattern, name):
                self.violations.add_at_name(errors.NAME_PATTERN, member, name=name, rule=pattern.rule)
            # Of `init-values` and `error-messages` the operator reads expressions from 7.0 on.
            one = Property(name, kind.kind, is_dynamic=self.version >= (7, 0) and not kind.patterns)
            self._check_property(member, one, node, component)

    def _check_components(self, node: Node, kind: ComponentsKind) -> None:
        if self._has_type(node, ("array",)):
            for item in node.items:
                if not self.violations.is_full() and self._has_type(item, ("object",)):
                    self._check_component(item, kind)

    def _check_component(self, node: Node, kind: ComponentsKind) -> None:
        type_node = node.members.get("type")
        if type_node is None:
            self.violations.add(errors.MISSING_PROPERTY, node, name="type")
            return
        component = COMPONENTS.get(type_node.text or "")
        allowed = kind.allowed if kind.allowed is not None else ()
        is_allowed = component is not None and (kind.allowed is None or component.type in allowed)
        since = (
            max(component.since, (kind.allowed or {}).get(component.type, (0, 0))) if component is not None else None
        )
        if component is None or not is_allowed or since is None or since > self.version:
            self.violations.add(errors.INVALID_COMPONENT, type_node)
            return
        rest = {name: member for name, member in node.members.items() if name != "type"}
        self._check_object(Node(rest, node.span, node.place, node.key_span), component.properties, component.type)

    def _check_action(self, node: Node, kind: ActionKind, owner: Node, component: str) -> None:
        if not self._has_type(node, ("object",)):
            return
        name_node = node.members.get("name")
        if name_node is None:
            self.violations.add(errors.MISSING_PROPERTY, node, name="name")
            return
        allowed = [one for one, since in kind.names.items() if since <= self.version]
        name = name_node.text or ""
        if name not in allowed and kind.is_selection:
            self.violations.add(errors.INVALID_CONSTANT, name_node, name="name", value=allowed[0])
            return
        if name not in allowed:
            self.violations.add(errors.INVALID_CHOICE, name_node, values=", ".join(allowed))
            return
        if kind.is_selection and "payload" not in node.members:
            self.violations.add(errors.MISSING_PROPERTY, node, name="payload")
        declared = {one.name for one in ACTIONS[name]}
        rest: dict[str, Node] = {}
        for key, member in node.members.items():
            foreign = key not in declared and ACTION_MEMBERS.get(key, (99, 0)) <= self.version
            if foreign and not kind.is_selection:
                self.violations.add_at_name(errors.NOT_IN_ACTION, member, name=key, action=name)
            elif key != "name":
                rest[key] = member
        self._check_object(Node(rest, node.span, node.place, node.key_span), ACTIONS[name], "")
        self.actions.append(FoundAction(node, name, owner, component))

    def _check_scalar(self, node: Node, kind: Kind, name: str) -> None:
        match kind:
            case TextKind():
                self._check_text(node, kind, name)
            case NameKind():
                self._check_name(node, name)
            case NumberKind():
                if kind.minimum is not None and node.value < kind.minimum:
                    self.violations.add(errors.BELOW_MINIMUM, node, name=name, limit=kind.minimum)
                elif kind.maximum is not None and node.value > kind.maximum:
                    self.violations.add(errors.ABOVE_MAXIMUM, node, name=name, limit=kind.maximum)
            case EnumKind() if node.text not in kind.values and kind.is_constant:
                self.violations.add(errors.INVALID_CONSTANT, node, name=name, value=kind.values[0])
            case EnumKind() if node.text not in kind.values:
                self.violations.add(errors.INVALID_CHOICE, node, values=", ".join(kind.values))
            case DateKind() if self.version < (5, 0) and not _MILLISECONDS.fullmatch(node.text or ""):
                self.violations.add(errors.INVALID_FORMAT, node, name=name, format="milliseconds")
            case PictureKind():
                self._check_picture(node, kind, name)
            case _:
                pass

    def _check_text(self, node: Node, kind: TextKind, name: str) -> None:
        text = node.text or ""
        pattern = pattern_of(kind.patterns, self.version)
        if kind.filled is not None and kind.filled <= self.version and not text.strip():
            self.violations.add(errors.BLANK, node, name=name)
        elif len(text) < kind.min_chars:
            self.violations.add(errors.TOO_FEW_CHARS, node, name=name, limit=kind.min_chars)
        elif kind.max_chars is not None and len(text) > kind.max_chars:
            self.violations.add(errors.TOO_LONG, node, name=name, limit=kind.max_chars, count=len(text))
        elif pattern is not None and not re.fullmatch(pattern.pattern, text):
            self.violations.add(errors.PATTERN, node, name=name, rule=pattern.rule)
        elif kind.format and not (is_regex(text) if kind.format == "regex" else _URI.fullmatch(text)):
            self.violations.add(errors.INVALID_FORMAT, node, name=name, format=kind.format)

    def _check_name(self, node: Node, name: str) -> None:
        text = node.text or ""
        if not text.strip():
            self.violations.add(errors.BLANK, node, name=name)
        elif self.version >= (6, 0) and is_reference(text):
            self.violations.add(errors.DYNAMIC_NAME, node, name=name)
        elif self.version >= (6, 0) and is_nested(text):
            self.violations.add(errors.NESTED_NAME, node, name=name)

    def _check_picture(self, node: Node, kind: PictureKind, name: str) -> None:
        text = node.text or ""
        encoded = "".join(_DATA_URI.sub("", text, count=1).split()).rstrip("=")
        try:  # a browser decodes what lacks its padding, and so does the operator
            content = base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
        except (binascii.Error, ValueError):
            content = b""
        is_base64 = bool(content) and not _DATA_URI.match(text)
        if kind.is_checked and not is_base64:
            self.violations.add(errors.INVALID_PICTURE, node)
        elif not content.startswith(_SIGNATURES):
            self.violations.add(errors.NO_PICTURE, node, name=name)
        elif kind.max_kb is not None and len(content) > kind.max_kb * 1024:
            self.violations.add(errors.LARGE_PICTURE, node, name=name, limit=kind.max_kb, count=len(content) // 1024)

    def _has_type(self, node: Node, types: tuple[str, ...]) -> bool:
        """Return True if a value has one of some types, or if there are none; otherwise report the first one."""
        found = node.type_name
        if not types or found in types:
            return True
        if "integer" in types and found == "number" and (isinstance(node.value, int) or node.value.is_integer()):
            return True
        self.violations.add(errors.INVALID_TYPE, node, name=step_name(node.path), expected=types[0], found=found)
        return False


def _dotted(version: Version) -> str:
    return f"{version[0]}.{version[1]}"
