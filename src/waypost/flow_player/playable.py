"""A Flow that can be played: its screens, inputs and routes, and its expressions, each of which is parsed once."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from waypost.base.json_values import list_of, object_of, objects_in, text_or_none, texts_in
from waypost.flow_json.components import COMPONENTS
from waypost.flow_json.expressions import Expression, ExpressionError, is_nested, parse_expression, read_expression
from waypost.flow_json.kinds import ActionKind, ComponentsKind
from waypost.flow_json.nodes import InvalidJsonError, parse_json
from waypost.flow_json.versions import NEWEST, Version, find_version
from waypost.flow_player.field_values import is_list, is_object

ACTION_NAMES: Final = ("on-click-action", "on-select-action", "on-unselect-action")
# Source: public page "Components": the branch of a Switch for values that no case names.
DEFAULT_CASE: Final = "default"
MAX_EXPRESSIONS: Final = 20_000
"""That are kept parsed."""


@dataclass(frozen=True)
class FlowInput:
    """An input of a screen.

    Attributes:
        path: its place in the layout of the screen.
        form: the Form around it; empty if there is none.
    """

    name: str
    type: str
    component: dict[str, Any]
    path: str
    form: dict[str, Any]


@dataclass(frozen=True)
class PlayableScreen:
    """A screen."""

    screen_id: str
    source: dict[str, Any]
    inputs: dict[str, FlowInput]

    @property
    def children(self) -> list[dict[str, Any]]:
        """The components of its layout."""
        return objects_in(object_of(self.source.get("layout")).get("children"))

    @property
    def is_terminal(self) -> bool:
        """True if the Flow may end there."""
        return self.source.get("terminal") is True

    @property
    def declared_data(self) -> dict[str, Any]:
        """Its declared data."""
        return object_of(self.source.get("data"))


class UnplayableFlow(ValueError):
    """A text is no Flow that can be played; the text says why."""


@dataclass
class PlayableFlow:
    """A Flow."""

    version: Version
    source: dict[str, Any]
    screens: dict[str, PlayableScreen]
    routes: dict[str, set[str]]
    _expressions: dict[tuple[str, bool], Expression | None] = field(
        default_factory=dict[tuple[str, bool], Expression | None]
    )

    @property
    def data_api_version(self) -> str:
        """The version of the endpoint's interface; empty if the Flow has no endpoint."""
        return text_or_none(self.source.get("data_api_version")) or ""

    @property
    def entry_screen(self) -> str:
        """The first screen to which none leads."""
        reached = {following for names in self.routes.values() for following in names}
        return next((screen for screen in self.screens if screen not in reached), next(iter(self.screens)))

    def expression(self, text: str, *, is_condition: bool = False) -> Expression | None:
        """Return the expression of a text; None if it is a plain text."""
        key = text, is_condition
        if key not in self._expressions:
            if len(self._expressions) > MAX_EXPRESSIONS:  # those of actions in data come and go
                self._expressions.clear()
            self._expressions[key] = self._parse(text, is_condition)
        return self._expressions[key]

    def _parse(self, text: str, is_condition: bool) -> Expression | None:
        try:
            if is_nested(text):
                return parse_expression(text[1:-1], may_join=True) if self.version >= (6, 0) else None
            return parse_expression(text) if is_condition else read_expression(text)
        except ExpressionError:
            return None


def read_playable(text: str) -> PlayableFlow:
    """Return the Flow of a text.

    Raises:
        UnplayableFlow: the text is no JSON object, or has no screens. Other mistakes are the validator's to find: what
            they concern is not shown.
    """
    try:
        parse_json(text)  # its bounds
    except InvalidJsonError as error:
        raise UnplayableFlow(f"The Flow JSON is not valid: {error.reason}") from None
    source = object_of(json.loads(text))
    version = find_version(str(source.get("version")))
    screens: dict[str, PlayableScreen] = {}
    for screen in objects_in(source.get("screens")):
        screen_id = text_or_none(screen.get("id"))
        if screen_id:
            inputs: dict[str, FlowInput] = {}
            for found in _find_inputs(objects_in(object_of(screen.get("layout")).get("children")), "", {}):
                inputs.setdefault(found.name, found)
            screens.setdefault(screen_id, PlayableScreen(screen_id, screen, inputs))
    if not screens:
        raise UnplayableFlow("The Flow JSON has no screens.")
    return PlayableFlow((version or NEWEST).number, source, screens, _find_routes(source, screens))


def _find_inputs(children: list[dict[str, Any]], path: str, form: dict[str, Any]) -> Iterator[FlowInput]:
    for place, component in walk_children(children, path):
        kind = COMPONENTS.get(str(component.get("type")))
        if kind is None:
            continue
        name = text_or_none(component.get("name"))
        if (kind.is_input or kind.type == "NavigationList") and name:
            yield FlowInput(name, kind.type, component, place, form)
        inner = component if kind.type == "Form" else form
        for branch, members in branches_of(component):
            yield from _find_inputs(members, f"{place}/{branch}", inner)


def walk_children(children: list[dict[str, Any]], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the components of a list with their paths."""
    for index, component in enumerate(children):
        yield f"{path}/{index}" if path else str(index), component


def branches_of(component: dict[str, Any]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the lists of components within a component, by the name of their place."""
    match component.get("type"):
        case "Form":
            yield "children", objects_in(component.get("children"))
        case "If":
            for name in ("then", "else"):
                yield name, objects_in(component.get(name))
        case "Switch":
            for name, members in object_of(component.get("cases")).items():
                yield f"cases/{name}", objects_in(members)
        case _:
            pass


def _find_routes(source: dict[str, Any], screens: dict[str, PlayableScreen]) -> dict[str, set[str]]:
    """Return the routes of the model, or those that navigate actions make."""
    routes: dict[str, set[str]] = {screen_id: set() for screen_id in screens}
    model = source.get("routing_model")
    if is_object(model):
        for screen_id, following in object_of(source["routing_model"]).items():
            routes.setdefault(screen_id, set()).update(texts_in(following))
        return routes
    for screen in screens.values():
        waiting: list[Any] = [screen.children]
        while waiting:
            value = waiting.pop()
            if is_list(value):
                waiting.extend(list_of(value))
            members = object_of(value)
            waiting.extend(members.values())
            if members.get("name") == "navigate":
                following = text_or_none(object_of(members.get("next")).get("name"))
                if following in screens:
                    routes[screen.screen_id].add(following)
    return routes


def shown_properties(component: dict[str, Any]) -> Iterator[str]:
    """Yield the names of a component's properties that are values: neither actions nor components."""
    kind = COMPONENTS[str(component.get("type"))]
    for one in kind.properties:
        if one.name in component and not isinstance(one.kind, ActionKind | ComponentsKind):
            yield one.name
