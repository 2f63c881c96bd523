"""The components of the current screen that are shown, with the values of their properties."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from waypost.base.json_values import boolean_of, list_of, object_of, objects_in, text_or_none
from waypost.flow_json.components import COMPONENTS
from waypost.flow_json.kinds import EitherKind, Kind, ListKind, ObjectKind, TextKind
from waypost.flow_player.evaluation import FlowEvaluator, member_of, text_of
from waypost.flow_player.field_values import is_list, is_object
from waypost.flow_player.playable import shown_properties, walk_children

_STRUCTURES: Final = ("Form", "If", "Switch")
OPTION_LISTS: Final = ("data-source", "list-items")


@dataclass(frozen=True)
class LaidOutComponent:
    """A component that is shown.

    Attributes:
        path: its place in the layout of the screen.
        source: as it is written.
        properties: its values.
        form: the Form around it, as it is written; empty if there is none.
    """

    path: str
    type: str
    source: dict[str, Any]
    properties: dict[str, Any]
    form: dict[str, Any]

    @property
    def name(self) -> str:
        """The name of an input; empty if it has none."""
        return text_or_none(self.source.get("name")) or ""

    @property
    def is_input(self) -> bool:
        """True if it has a value that is sent."""
        return COMPONENTS[self.type].is_input and bool(self.name)

    @property
    def is_enabled(self) -> bool:
        """True unless it is disabled."""
        return self.properties.get("enabled", True) is not False

    def text(self, name: str) -> str:
        """Return a property as a text; empty if it is none."""
        return text_of(self.properties.get(name))

    def options(self) -> list[dict[str, Any]]:
        """Return the options of a selection, or the items of a navigation list: those that have an id."""
        name = next((one for one in OPTION_LISTS if one in self.properties), "")
        return [one for one in objects_in(self.properties.get(name)) if text_or_none(one.get("id"))]

    def number(self, name: str, default: int | None = None) -> int | None:
        """Return a property that is a number."""
        value = self.properties.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > 1e9:
            return default
        return int(value)


def lay_out(evaluator: FlowEvaluator) -> list[LaidOutComponent]:
    """Return the components that the current screen shows, in order.

    Raises:
        TooLargeError: they are larger than a handset can hold.
    """
    return list(_walk(evaluator, evaluator.screen.children, "", {}))


def _walk(
    evaluator: FlowEvaluator, children: list[dict[str, Any]], path: str, form: dict[str, Any]
) -> Iterator[LaidOutComponent]:
    for place, component in walk_children(children, path):
        kind = COMPONENTS.get(str(component.get("type")))
        if kind is None:
            continue
        branch, members = evaluator.chosen_branch(component)
        if branch:
            inner = component if kind.type == "Form" else form
            yield from _walk(evaluator, members, f"{place}/{branch}", inner)
        elif kind.type not in _STRUCTURES and _is_visible(evaluator, component):
            kinds = {one.name: one.kind for one in kind.properties}
            properties = {
                name: _fit(evaluator.resolve(component[name]), kinds[name]) for name in shown_properties(component)
            }
            yield LaidOutComponent(place, kind.type, component, properties, form)


def _is_visible(evaluator: FlowEvaluator, component: dict[str, Any]) -> bool:
    return evaluator.resolve(component.get("visible", True)) is not False


def _fit(value: Any, kind: Kind) -> Any:
    """Return a value as far as a handset shows it: texts are cut, of long lists the first items are left."""
    match kind:
        case TextKind() if isinstance(value, str) and kind.max_chars is not None:
            return value[: kind.max_chars]
        case ListKind() if is_list(value):
            return [_fit(item, kind.kind) for item in list_of(value)[: kind.max_items]]
        case ObjectKind() if is_object(value):
            kinds = {one.name: one.kind for one in kind.properties}
            return {name: _fit(one, kinds[name]) if name in kinds else one for name, one in object_of(value).items()}
        case EitherKind():
            expected = list if is_list(value) else dict if is_object(value) else str
            fitting = {list: ListKind, dict: ObjectKind, str: TextKind}[expected]
            return next((_fit(value, one) for one in kind.kinds if isinstance(one, fitting)), value)
        case _:
            return value


def error_message_of(evaluator: FlowEvaluator, component: LaidOutComponent) -> Any:
    """Return the error message that the Flow has for an input: a text, or a map; None if it has none."""
    own = component.properties.get("error-message")
    if own:
        return own
    return member_of(evaluator.resolve_member(component.form.get("error-messages"), component.name), component.name)


def is_required(component: LaidOutComponent, end: str = "") -> bool:
    """Return True if an input must be filled in; with `end`, that end of a range of days."""
    value = component.properties.get("required")
    if is_object(value):
        return any(boolean_of(one, False) for name, one in object_of(value).items() if end in {"", name})
    if component.type in {"PhotoPicker", "DocumentPicker"}:
        return bool(component.number(minimum_name(component)))
    return value is True


def minimum_name(component: LaidOutComponent) -> str:
    """Return the property that says how many files a picker needs."""
    return "min-uploaded-photos" if component.type == "PhotoPicker" else "min-uploaded-documents"


def maximum_name(component: LaidOutComponent) -> str:
    """Return the property that says how many files a picker takes."""
    return "max-uploaded-photos" if component.type == "PhotoPicker" else "max-uploaded-documents"
