"""Checks of actions: where they may stand, their payloads, and what the next screen expects."""

from typing import Final

from waypost.flow_json import errors
from waypost.flow_json.components import PICKERS
from waypost.flow_json.data_model import declared_type
from waypost.flow_json.errors import Violations
from waypost.flow_json.expressions import Expression, ExpressionError, FieldReference, is_nested, read_expression
from waypost.flow_json.flow import FlowView, PlacedComponent, ScreenView
from waypost.flow_json.nodes import Node, json_type
from waypost.flow_json.references import ReferenceCheck, ResolvedReference
from waypost.flow_json.schema import FoundAction

MAX_RESPONSE_FILES: Final = 10
"""Of a completed Flow's response message."""
# Source: "Media upload components": the property that limits a picker's files.
_MAX_FILES_OF: Final = {"PhotoPicker": "max-uploaded-photos", "DocumentPicker": "max-uploaded-documents"}
_DEFAULT_MAX_FILES: Final = 30


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
            if screen is not None:
                self._check_action(action, screen)

    def _check_action(self, action: FoundAction, screen: ScreenView) -> None:
        name_node = action.node.members["name"]
        if action.name == "data_exchange" and not self._view.has_endpoint:
            self._violations.add(errors.ACTION_NEEDS_DATA_API, name_node)
        if action.name == "complete" and not screen.is_terminal:
            self._violations.add(errors.COMPLETE_NOT_TERMINAL, name_node)
        types = self._check_payload(action, screen)
        if action.name == "navigate":
            self._check_navigate(action, screen, types)
        elif action.name == "update_data" and action.payload is not None:
            unknown = [name for name in action.payload.members if name not in screen.declared_data]
            if unknown:
                node = action.payload.members[unknown[0]]
                fields = ", ".join(unknown)
                self._violations.add_at_name(errors.UPDATE_UNKNOWN, node, screen=screen.screen_id, fields=fields)

    def _check_payload(self, action: FoundAction, screen: ScreenView) -> dict[str, str]:
        """Return the type of each member of the payload; empty where it is not known."""
        types: dict[str, str] = {}
        pickers: list[tuple[PlacedComponent, Node]] = []
        for name, node in action.payload.members.items() if action.payload is not None else ():
            for text in node.texts():
                found = self._check_text(action, screen, name, text)
                if found is None:
                    continue
                picker = found.component
                if picker is not None and picker.type in PICKERS:
                    pickers.append((picker, text))
                    if text is not node and action.name != "navigate":
                        self._violations.add(errors.PICKER_TOP_LEVEL, text, component=picker.type)
                if text is node:
                    types[name] = found.type
            types.setdefault(name, _static_type(node))
        self._check_pickers(action, pickers)
        return types

    def _check_text(self, action: FoundAction, screen: ScreenView, name: str, node: Node) -> ResolvedReference | None:
        """Return what a text of a payload stands for; None for a plain text, and if it is wrong."""
        text = node.text or ""
        if "${" not in text and not is_nested(text):
            return None
        if is_nested(text) and self._view.version < (6, 0):
            version = f"{self._view.version[0]}.{self._view.version[1]}"
            self._violations.add(errors.NESTED_BEFORE_6, node, name=name, version=version)
            return None
        try:
            expression: Expression | None = read_expression(text)
        except ExpressionError as error:
            self._violations.add(errors.INVALID_PAYLOAD_VALUE, node, name=name, reason=error)
            return None
        if expression is None:
            return None
        if isinstance(expression, FieldReference) and _names_form(expression, screen):
            self._violations.add(errors.FORM_AS_VALUE, node)
            return None
        if not self._may_read_form(action, expression, screen):
            self._violations.add(errors.FOOTER_OUTSIDE_FORM, node)
            return None
        return self._references.check_expression(expression, node, screen, name, is_payload=True)

    def _may_read_form(self, action: FoundAction, expression: Expression, screen: ScreenView) -> bool:
        """Return False for a Footer outside the Form whose inputs it reads, before 4.0."""
        if self._view.version >= (4, 0) or action.component != "Footer" or not isinstance(expression, FieldReference):
            return True
        if expression.scope != "form" or expression.screen is not None:
            return True
        forms = screen.components_with("Form")
        if not forms:
            return True
        return any(action.node.path[: len(form.node.path)] == form.node.path for form in forms)

    def _check_pickers(self, action: FoundAction, pickers: list[tuple[PlacedComponent, Node]]) -> None:
        if action.name == "navigate":
            for picker, node in pickers:
                self._violations.add(errors.PICKER_IN_NAVIGATE, node, component=picker.type)
        elif action.name == "complete":
            if len({picker.text("name") for picker, _ in pickers}) > 1:
                self._violations.add(errors.ONE_PICKER, pickers[1][1])
            for picker, node in pickers:
                name = _MAX_FILES_OF[picker.type]
                limit_node = picker.node.members.get(name)
                limit = limit_node.value if limit_node is not None else _DEFAULT_MAX_FILES
                if isinstance(limit, int) and limit > MAX_RESPONSE_FILES:
                    values = {"component": picker.type, "name": name, "limit": MAX_RESPONSE_FILES}
                    self._violations.add(errors.TOO_MANY_FILES, node, **values)

    def _check_navigate(self, action: FoundAction, screen: ScreenView, types: dict[str, str]) -> None:
        next_node = action.node.members.get("next")
        name_node = next_node.members.get("name") if next_node is not None else None
        if name_node is None or not name_node.text:
            return
        if name_node.text == screen.screen_id:
            self._violations.add(errors.SAME_SCREEN, name_node, screen=screen.screen_id)
            return
        following = self._by_id.get(name_node.text)
        if following is None:
            self._violations.add(errors.UNKNOWN_SCREEN, name_node, screen=name_node.text)
            return
        payload = action.payload.members if action.payload is not None else {}
        declared = following.declared_data
        where = action.payload or action.node
        if payload and not declared:
            self._violations.add(errors.NO_DATA_MODEL, where, screen=following.screen_id)
            return
        unknown = [name for name in payload if name not in declared]
        missing = [name for name in declared if name not in payload]
        if unknown:
            fields = ", ".join(unknown)
            self._violations.add_at_name(errors.NOT_IN_DATA_MODEL, payload[unknown[0]], fields=fields)
        if missing:
            self._violations.add(errors.NOT_IN_PAYLOAD, where, fields=", ".join(missing))
        for name, found in types.items():
            expected = declared_type(declared.get(name))
            if found and expected and found != expected:
                values = {"field": name, "screen": screen.screen_id, "next_screen": following.screen_id}
                self._violations.add(errors.PAYLOAD_TYPE, payload[name], expected=expected, found=found, **values)


def _names_form(expression: FieldReference, screen: ScreenView) -> bool:
    names = {form.text("name") for form in screen.components_with("Form")}
    is_local = expression.scope == "form" and expression.screen is None
    return is_local and expression.names[0] in names and expression.names[0] not in screen.fields


def _static_type(node: Node) -> str:
    text = node.text
    if text is not None and ("${" in text or is_nested(text)):
        return ""
    return json_type(node.value)
