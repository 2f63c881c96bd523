"""Checks of actions: where they may stand, their payloads, and what the next screen expects."""

from typing import Final

from waypost.flow_json import errors
from waypost.flow_json.components import MAX_FILE_KB, MAX_FILES, PICKERS
from waypost.flow_json.data_model import declared_type
from waypost.flow_json.errors import FlowRule, Violations
from waypost.flow_json.expressions import (
    ExpressionError,
    FieldReference,
    is_binding,
    is_nested,
    parse_expression,
    read_expression,
)
from waypost.flow_json.flow import FlowView, PlacedComponent, ScreenView
from waypost.flow_json.nodes import Node
from waypost.flow_json.references import PAYLOAD_RULES, ReferenceCheck, ResolvedReference
from waypost.flow_json.schema import FoundAction

MAX_RESPONSE_FILES: Final = 10
"""Of a completed Flow's response message, from 5.0 on; before, one."""
MAX_RESPONSE_KB: Final = 100 * 1024
_MAX_NAMES: Final = 100
"""Of one message."""
# Source: public page "Validator of Flow JSON", files: the property that limits a picker's files.
_MAX_FILES_OF: Final = {"PhotoPicker": "max-uploaded-photos", "DocumentPicker": "max-uploaded-documents"}


class ActionCheck:
    """Checks the actions of one Flow."""

    def __init__(self, view: FlowView, references: ReferenceCheck, violations: Violations) -> None:
        """Prepare for a Flow."""
        self._view = view
        self._references = references
        self._violations = violations
        self._by_id = view.screens_by_id

    def check(self, actions: list[FoundAction]) -> None:
        """Check each action."""
        for action in actions:
            screen = self._references.screen_of(action.node)
            if screen is not None and not self._violations.is_full():
                self._check_action(action, screen)

    def _check_action(self, action: FoundAction, screen: ScreenView) -> None:
        name_node = action.node.members["name"]
        if action.name == "data_exchange" and not self._view.has_endpoint:
            self._violations.add(errors.ACTION_NEEDS_DATA_API, name_node)
        if action.name == "complete" and not screen.is_terminal:
            self._violations.add(errors.COMPLETE_NOT_TERMINAL, name_node)
        if action.component == "Footer" and screen.is_terminal and action.name == "navigate":
            allowed = "one of: [data_exchange, complete]" if self._view.has_endpoint else "'complete'"
            self._violations.add(errors.TERMINAL_ACTION, name_node, expected=allowed)
        found = self._check_payload(action, screen)
        if action.name == "navigate":
            self._check_navigate(action, screen, found)
        elif action.name == "update_data" and action.payload is not None:
            self._check_update(action.payload, screen, found)

    def _check_payload(self, action: FoundAction, screen: ScreenView) -> dict[str, ResolvedReference]:
        """Return what the members of the payload refer to."""
        resolved: dict[str, ResolvedReference] = {}
        pickers: list[tuple[PlacedComponent, Node]] = []
        for name, node in action.payload.members.items() if action.payload is not None else ():
            for text in node.texts():
                found = self._read_text(action, screen, text, is_top=text is node)
                if found is None:
                    continue
                picker = found.component
                if picker is not None and picker.type in PICKERS:
                    pickers.append((picker, text))
                    if text is not node and action.name != "navigate":
                        self._violations.add(errors.PICKER_TOP_LEVEL, text)
                if text is node:
                    resolved[name] = found
        self._check_pickers(action, pickers)
        return resolved

    def _read_text(
        self, action: FoundAction, screen: ScreenView, node: Node, *, is_top: bool
    ) -> ResolvedReference | None:
        """Return what a text of a payload stands for; None for a plain text, and if it is wrong.

        Only members of the payload itself are checked: within lists and objects, the operator looks for pickers alone.
        """
        text = node.text or ""
        try:
            if is_nested(text) and self._view.version >= (6, 0):
                expression = parse_expression(text[1:-1], may_join=True)
                return ResolvedReference(self._references.type_of(expression, screen))
            reference = read_expression(text) if is_binding(text) else None
        except ExpressionError as error:
            if is_top and is_nested(text):
                self._violations.add(errors.PAYLOAD_EXPRESSION, node, reason=error)
            elif is_top:
                self._violations.add(errors.MISSING_PAYLOAD_DATA, node, expression=text, screen=screen.screen_id)
            return None
        if not isinstance(reference, FieldReference):
            return None
        if is_top and not self._may_read_form(action, reference, screen):
            self._violations.add(errors.FOOTER_OUTSIDE_FORM, node)
            return None
        found = self._references.find(reference, screen, may_name_itself=True)
        if isinstance(found, ResolvedReference):
            return found
        if is_top:
            self._references.report(PAYLOAD_RULES, found, node, screen)
        return None

    def _may_read_form(self, action: FoundAction, expression: FieldReference, screen: ScreenView) -> bool:
        """Return False for a Footer outside the Form whose inputs it reads, before 4.0."""
        if self._view.version >= (4, 0) or action.component != "Footer":
            return True
        if expression.scope != "form" or expression.screen is not None:
            return True
        forms = screen.components_with("Form")
        return not forms or any(action.node.path[: len(form.node.path)] == form.node.path for form in forms)

    def _check_pickers(self, action: FoundAction, pickers: list[tuple[PlacedComponent, Node]]) -> None:
        if action.name == "navigate":
            for picker, node in pickers:
                self._violations.add(errors.PICKER_IN_NAVIGATE, node, component=picker.type)
        if action.name != "complete" or action.payload is None or not pickers:
            return
        is_newer = self._view.version >= (5, 0)
        limit = MAX_RESPONSE_FILES if is_newer else 1
        files = [_limit(picker, _MAX_FILES_OF[picker.type], MAX_FILES) for picker, _ in pickers]
        sizes = [_limit(picker, "max-file-size-kb", MAX_FILE_KB) for picker, _ in pickers]
        if len(pickers) > 1 and not is_newer:
            self._violations.add(errors.ONE_PICKER, action.payload)
        if sum(files) > limit:
            self._violations.add(errors.TOO_MANY_FILES, action.payload, limit=limit, default=MAX_FILES)
        size_kb = sum(count * size for count, size in zip(files, sizes, strict=True))
        if size_kb > MAX_RESPONSE_KB and is_newer:
            self._violations.add(errors.TOO_LARGE_FILES, action.payload, limit=MAX_RESPONSE_KB, default=MAX_FILE_KB)

    def _check_update(self, payload: Node, screen: ScreenView, found: dict[str, ResolvedReference]) -> None:
        declared = screen.declared_data
        if not declared:
            if payload.members:
                self._violations.add(errors.UPDATE_NO_MODEL, payload, screen=screen.screen_id)
            return
        for name, node in payload.members.items():
            if name not in declared:
                self._violations.add_at_name(errors.UPDATE_UNKNOWN, node, screen=screen.screen_id, fields=name)
            elif node.text is not None and node.text.startswith("${data.") and node.text[7:-1].split(".")[0] == name:
                self._violations.add(errors.UPDATE_SELF, node)
        self._check_types(payload, found, screen, screen, errors.UPDATE_REFERENCE, errors.UPDATE_VALUE)

    def _check_navigate(self, action: FoundAction, screen: ScreenView, found: dict[str, ResolvedReference]) -> None:
        name_node = action.node.members["next"].members["name"]
        if is_binding(name_node.text or ""):
            return
        following = self._by_id.get(name_node.text or "")
        if following is None:
            self._violations.add(errors.UNKNOWN_SCREEN, name_node, screen=name_node.text)
            return
        if following is screen:
            self._violations.add(errors.SAME_SCREEN, name_node, screen=screen.screen_id)
            return
        payload = action.payload.members if action.payload is not None else {}
        declared = following.declared_data
        if action.payload is None and declared:
            self._violations.add(errors.NO_PAYLOAD, action.node)
        if action.payload is None:
            return
        if "data" not in following.node.members:
            if payload:
                self._violations.add(errors.NO_DATA_MODEL, action.payload, screen=following.screen_id)
            return
        unknown = [name for name in payload if name not in declared]
        missing = [name for name in declared if name not in payload]
        if unknown:
            fields = _listed(unknown)
            self._violations.add_at_name(errors.NOT_IN_DATA_MODEL, payload[unknown[0]], fields=fields)
        if missing:
            self._violations.add(errors.NOT_IN_PAYLOAD, action.payload, fields=_listed(missing))
        for name in unknown:
            if not is_binding(payload[name].text or ""):
                values = {"field": name, "screen": screen.screen_id, "next_screen": following.screen_id}
                self._violations.add(errors.NOT_DECLARED, payload[name], **values)
        rules = (errors.PAYLOAD_REFERENCE, errors.PAYLOAD_VALUE)
        self._check_types(action.payload, found, screen, following, *rules)

    def _check_types(
        self,
        payload: Node,
        found: dict[str, ResolvedReference],
        screen: ScreenView,
        following: ScreenView,
        of_reference: FlowRule,
        of_value: FlowRule,
    ) -> None:
        """Compare the types of a payload with those that a screen declares."""
        for name, node in payload.members.items():
            schema = following.declared_data.get(name)
            expected = declared_type(schema)
            if schema is None or not expected:
                continue
            values = {"field": name, "screen": screen.screen_id, "next_screen": following.screen_id}
            is_reference = is_binding(node.text or "")
            one = found.get(name)
            if is_reference and one is not None:
                if one.type and one.type != expected:
                    values |= {"expression": node.text or "", "expected": expected, "found": one.type}
                    self._violations.add(of_reference, node, **values)
            elif one is not None:
                if one.type and one.type not in {expected, "number" if expected == "integer" else ""}:
                    self._violations.add(of_value, node, expected=expected, found=f"'{one.type}'", **values)
            elif not is_reference and not _is_expression(node):
                self._check_static(node, schema, values, of_value)

    def _check_static(self, node: Node, schema: Node, values: dict[str, str], rule: FlowRule) -> None:
        expected = declared_type(schema)
        types = _static_types(node)
        if not expected or is_binding(node.text or "") or _is_expression(node):
            return
        if expected not in types:
            found = f"'{types[0]}'" if len(types) == 1 else f"one of [{', '.join(types)}]"
            self._violations.add(rule, node, expected=expected, found=found, **values)
            return
        items, properties = schema.members.get("items"), schema.members.get("properties")
        for index, item in enumerate(node.items if items is not None and items.members else ()):
            self._check_static(item, items or schema, values | {"field": f"{values['field']}/{index}"}, rule)
        for name, member in node.members.items():
            one = properties.members.get(name) if properties is not None else None
            if one is not None:
                self._check_static(member, one, values | {"field": f"{values['field']}/{name}"}, rule)


def _limit(picker: PlacedComponent, name: str, default: int) -> int:
    node = picker.node.members.get(name)
    return int(node.value) if node is not None and node.type_name == "number" else default


def _listed(names: list[str]) -> str:
    """Return names for a message; of very many, those that are cut are counted."""
    more = len(names) - _MAX_NAMES
    return ", ".join(names[:_MAX_NAMES]) + (f" and {more} more" if more > 0 else "")


def _is_expression(node: Node) -> bool:
    return node.text is not None and is_nested(node.text)


def _static_types(node: Node) -> list[str]:
    """Return the types that a value may be declared with."""
    value = node.value
    if node.type_name == "number" and (isinstance(value, int) or value.is_integer()):
        return ["integer", "number"]
    return [node.type_name]
