"""The values of expressions: references to data and inputs, operators, joined texts; with a bound on what they cost.

Source: public page "Flow JSON", properties: division and remainder by zero or by nothing are zero.
"""

import math
from collections.abc import Iterator
from itertools import chain
from typing import Any, Final

from msgspec.structs import replace

from waypost.base.json_values import number_or_none, object_of
from waypost.flow_json.components import PICKERS
from waypost.flow_json.expressions import Concatenation, Expression, FieldReference, Literal, Operation
from waypost.flow_player.field_values import empty_value, is_list, is_object
from waypost.flow_player.play_state import FlowState, ScreenMemory
from waypost.flow_player.playable import ACTION_NAMES, DEFAULT_CASE, PlayableFlow, PlayableScreen, branches_of

MAX_TEXT_CHARS: Final = 100_000
"""Of the text of one expression; more is cut."""
MAX_COST: Final = 8 * 1024 * 1024
"""Characters and values that one view or payload may be made of, beside the texts of the Flow itself."""
MAX_DEPTH: Final = 50
"""How deep data may be nested."""
VALUE_COST: Final = 8
"""Of a number, text, list or object, beside its characters."""
_EXACT: Final = 2**53


class TooLargeError(ValueError):
    """A screen shows or sends more than a handset can hold."""


class FlowEvaluator:
    """Evaluates the expressions of one state."""

    def __init__(self, flow: PlayableFlow, state: FlowState) -> None:
        """Prepare for a state."""
        self._flow = flow
        self._state = state
        self._cost = 0
        self._sizes: dict[int, int] = {}
        self._initial: dict[str, Any] = {}
        self._elsewhere: dict[str, FlowEvaluator] = {}
        self._placed: set[str] | None = None

    @property
    def screen(self) -> PlayableScreen:
        """The current screen."""
        return self._flow.screens[self._state.screen_id]

    def resolve(self, value: Any) -> Any:
        """Return a value of the Flow with the values of its expressions.

        Raises:
            TooLargeError: the result is larger than `MAX_COST`, together with all before it.
        """
        self._charge(1)
        if isinstance(value, str):
            expression = self._flow.expression(value)
            if expression is None:
                return value
            found = self.evaluate(expression)
            self._charge(self._size(found))
            return found
        if is_object(value):
            members = object_of(value)
            return {name: member if name in ACTION_NAMES else self.resolve(member) for name, member in members.items()}
        return [self.resolve(item) for item in value] if is_list(value) else value

    def is_true(self, condition: object) -> bool:
        """Return True if the condition of an If holds."""
        if isinstance(condition, str):
            expression = self._flow.expression(condition, is_condition=True)
            return expression is not None and self.evaluate(expression) is True
        return condition is True

    def leave_out_unplaced(self) -> None:
        """Let inputs of branches that are not shown count as not filled in, as in a payload."""
        self._placed = set(self._find_placed(self.screen.children))

    def chosen_branch(self, component: dict[str, Any]) -> tuple[str, list[dict[str, Any]]]:
        """Return the branch of a Form, If or Switch that is shown: its name, and its components."""
        branches = dict(branches_of(component))
        match component.get("type"):
            case "If":
                name = "then" if self.is_true(component.get("condition")) else "else"
            case "Switch":
                name = f"cases/{text_of(self.resolve(component.get('value')))}"
                name = name if name in branches else f"cases/{DEFAULT_CASE}"
            case _:
                name = next(iter(branches), "")
        return name, branches.get(name, [])

    def _find_placed(self, children: list[dict[str, Any]]) -> Iterator[str]:
        for component in children:
            yield str(component.get("name"))
            yield from self._find_placed(self.chosen_branch(component)[1])

    def value_of(self, name: str, screen_id: str = "") -> Any:
        """Return the value of an input, entered or initial; None if there is no such input."""
        if screen_id not in {"", self._state.screen_id}:
            return self._value_elsewhere(name, screen_id)
        found = self.screen.inputs.get(name)
        if found is None:
            return None
        if self._placed is not None and name not in self._placed:
            return empty_value(found.component)
        values = self._state.memory.values
        if name in values:
            return values[name]
        if name not in self._initial:
            self._initial[name] = empty_value(found.component)  # meanwhile: an input that refers to itself has no other
            initial = self._find_initial(found.component, found.form, name)
            if initial is not None:
                self._initial[name] = initial
        return self._initial[name]

    def _value_elsewhere(self, name: str, screen_id: str) -> Any:
        """Return the value of another screen's input; one that was not visited has empty values."""
        screen = self._flow.screens.get(screen_id)
        if screen is None:
            return None
        if screen_id not in self._state.screens:
            return empty_value(screen.inputs[name].component) if name in screen.inputs else None
        if screen_id not in self._elsewhere:
            there = FlowEvaluator(self._flow, replace(self._state, stack=[screen_id]))
            self._elsewhere[screen_id] = there
            there._elsewhere = self._elsewhere
            there._elsewhere.setdefault(self._state.screen_id, self)
            if self._placed is not None:
                there.leave_out_unplaced()
        return self._elsewhere[screen_id].value_of(name)

    def is_picker(self, value: object) -> bool:
        """Return True if a value of the Flow is a reference to a picker of files."""
        expression = self._flow.expression(value) if isinstance(value, str) else None
        if not isinstance(expression, FieldReference) or expression.scope != "form":
            return False
        screen = self._flow.screens.get(expression.screen or self._state.screen_id)
        found = screen.inputs.get(".".join(expression.names)) if screen is not None else None
        return found is not None and found.type in PICKERS

    def _find_initial(self, component: dict[str, Any], form: dict[str, Any], name: str) -> Any:
        if "init-value" in component:
            return self.resolve(component["init-value"])
        return member_of(self.resolve_member(form.get("init-values"), name), name)

    def resolve_member(self, value: Any, name: str) -> Any:
        """Return a map of the Flow with only one member resolved, or the map that an expression is."""
        if is_object(value):
            members = object_of(value)
            return {name: self.resolve(members[name])} if name in members else {}
        return self.resolve(value)

    def evaluate(self, expression: Expression) -> Any:
        """Return the value of an expression; None if there is nothing to which it refers."""
        match expression:
            case Literal():
                return expression.value
            case FieldReference():
                return self._find(expression)
            case Concatenation():
                return self._join(expression)
            case Operation():
                return self._operate(expression)

    def _find(self, reference: FieldReference) -> Any:
        screen_id = reference.screen or self._state.screen_id
        if reference.scope == "form":
            value = self.value_of(".".join(reference.names), screen_id)
            return self.value_of(reference.names[0], screen_id) if value is None else value
        value: Any = self._state.screens.get(screen_id, ScreenMemory()).data
        for name in reference.names:
            value = member_of(value, name)
        return value

    def _join(self, expression: Concatenation) -> str:
        text = ""
        for member in expression.members:
            text += text_of(self.evaluate(member))[:MAX_TEXT_CHARS]
            if len(text) > MAX_TEXT_CHARS:
                return text[:MAX_TEXT_CHARS]
        return text

    def _operate(self, operation: Operation) -> Any:
        left = self.evaluate(operation.operands[0])
        match operation.operator:
            case "!":
                return left is not True
            case "&&":
                return left is True and self.evaluate(operation.operands[1]) is True
            case "||":
                return left is True or self.evaluate(operation.operands[1]) is True
            case "==":
                return _equals(left, self.evaluate(operation.operands[1]))
            case "!=":
                return not _equals(left, self.evaluate(operation.operands[1]))
            case "<" | "<=" | ">" | ">=":
                return _compare(operation.operator, left, self.evaluate(operation.operands[1]))
            case operator:
                return _calculate(operator, left, self.evaluate(operation.operands[1]))

    def _charge(self, cost: int) -> None:
        self._cost += cost
        if self._cost > MAX_COST:
            raise TooLargeError("The screen is larger than a handset can hold.")

    def _size(self, value: Any) -> int:
        """Return the size of a value; each is measured once."""
        if isinstance(value, str):
            return len(value)
        if not (is_object(value) or is_list(value)):
            return 1
        key = id(value)
        if key not in self._sizes:
            self._sizes[key] = size_of(value, MAX_COST)
        return self._sizes[key]


def size_of(value: Any, most: int) -> int:
    """Return the size of a value: its characters, and `VALUE_COST` for each value in it.

    It is more than `most`, and not exact, for what is larger or nested deeper than `MAX_DEPTH`.
    """
    level: list[Any] = [value]
    size = VALUE_COST + (len(value) if isinstance(value, str) else 0)
    for _ in range(MAX_DEPTH):
        objects: list[dict[str, Any]] = [one for one in level if is_object(one)]
        lists: list[list[Any]] = [one for one in level if is_list(one)]
        if not objects and not lists:
            return size
        size += VALUE_COST * (sum(map(len, objects)) + sum(map(len, lists)))
        if size > most:  # before the members are looked at: one list may stand for many
            return size
        level = [*chain.from_iterable(lists), *chain.from_iterable(one.values() for one in objects)]
        size += sum(len(name) for one in objects for name in one) + sum(
            len(one) for one in level if isinstance(one, str)
        )
    return most + 1


def member_of(value: Any, name: str) -> Any:
    """Return a member of an object; None if it has none, or the value is no object."""
    return object_of(value).get(name)


def text_of(value: Any) -> str:
    """Return a value as it stands in a joined text."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case float() if value.is_integer() and abs(value) < _EXACT:
            return str(int(value))
        case str():
            return value
        case int() | float():
            return str(value) if abs(value) < _EXACT else f"{float(value):g}"
        case _:
            return ""


def _number(value: Any) -> float:
    """Return a number; one that is written as a text counts, anything else is zero."""
    try:
        return number_or_none(value) or 0
    except OverflowError:
        return 0


def _equals(left: Any, right: Any) -> bool:
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, int | float) != isinstance(right, int | float):  # a number that was typed is a text
        one, other = number_or_none(left), number_or_none(right)
        return one is not None and one == other
    if left is None or right is None:
        return (left or "") == (right or "")
    return left == right if isinstance(left, str | int | float) else False


def _compare(operator: str, left: Any, right: Any) -> bool:
    one, other = number_or_none(left), number_or_none(right)
    if one is None or other is None:
        return False
    return {"<": one < other, "<=": one <= other, ">": one > other, ">=": one >= other}[operator]


def _calculate(operator: str, left: Any, right: Any) -> float:
    one, other = _number(left), _number(right)
    match operator:
        case "+":
            value = one + other
        case "-":
            value = one - other
        case "*":
            value = one * other
        case "/":
            value = one / other if other else 0
        case _:
            value = math.fmod(one, other) if other else 0
    if not math.isfinite(value):
        return 0
    return int(value) if float(value).is_integer() and abs(value) < _EXACT else value
