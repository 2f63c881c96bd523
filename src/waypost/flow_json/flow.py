"""A Flow as later checks and the player see it: screens, components in their places, declared data."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from waypost.flow_json.components import COMPONENTS, Component
from waypost.flow_json.nodes import Node
from waypost.flow_json.versions import NEWEST, Version, find_version


@dataclass(frozen=True)
class PlacedComponent:
    """A component where it stands.

    Attributes:
        form: the Form around it; None if there is none.
        if_depth: how many Ifs are around it.
        branch: the path of the innermost branch of an If or Switch around it; empty if there is none.
    """

    kind: Component
    node: Node
    form: Node | None = None
    if_depth: int = 0
    branch: tuple[str | int, ...] = ()

    @property
    def type(self) -> str:
        """Its type."""
        return self.kind.type

    @property
    def value_type(self) -> str:
        """The JSON type of its value; empty if it has none."""
        if self.type == "TextInput" and self.text("input-type") in {"number", "passcode"}:
            return "number"
        if self.type == "CalendarPicker" and self.text("mode") == "range":
            return "object"
        return self.kind.value_type

    def text(self, name: str) -> str:
        """Return a property that is a text; empty if it is none."""
        member = self.node.members.get(name)
        return (member.text if member is not None else None) or ""


@dataclass
class ScreenView:
    """A screen.

    Attributes:
        components: all of them, also those of Forms and branches, in order.
        fields: its inputs by name.
    """

    screen_id: str
    node: Node
    components: list[PlacedComponent] = field(default_factory=list)
    fields: dict[str, PlacedComponent] = field(default_factory=dict)

    @property
    def declared_data(self) -> dict[str, Node]:
        """Its declared data."""
        node = self.node.members.get("data")
        return node.members if node is not None else {}

    @cached_property
    def names(self) -> dict[str, list["PlacedComponent"]]:
        """Its components by name, without the Form."""
        found: dict[str, list[PlacedComponent]] = {}
        for one in self.components:
            if one.text("name") and one.type != "Form":
                found.setdefault(one.text("name"), []).append(one)
        return found

    @property
    def is_terminal(self) -> bool:
        """True if the Flow may end there."""
        node = self.node.members.get("terminal")
        return node is not None and node.value is True

    def components_with(self, *types: str) -> list[PlacedComponent]:
        """Return its components of some types."""
        if len(types) == 1:
            return self._placed.get(types[0], [])
        return [one for one in self.components if one.type in types]

    @cached_property
    def _placed(self) -> dict[str, list["PlacedComponent"]]:
        found: dict[str, list[PlacedComponent]] = {}
        for one in self.components:
            found.setdefault(one.type, []).append(one)
        return found


@dataclass
class FlowView:
    """A Flow. Screens without a usable id are left out."""

    root: Node
    version: Version
    screens: list[ScreenView]

    @property
    def has_endpoint(self) -> bool:
        """True if the Flow says that an endpoint powers it."""
        return "data_api_version" in self.root.members

    @cached_property
    def screens_by_id(self) -> dict[str, ScreenView]:
        """Its screens by id; the first of several with one id."""
        return {screen.screen_id: screen for screen in reversed(self.screens)}


def view_flow(root: Node) -> FlowView:
    """Return a Flow's view; what is not as declared is left out."""
    version_node = root.members.get("version")
    version = find_version((version_node.text if version_node is not None else None) or "") or NEWEST
    screens_node = root.members.get("screens")
    screens: list[ScreenView] = []
    for node in screens_node.items if screens_node is not None else []:
        id_node = node.members.get("id")
        if id_node is not None and id_node.text:
            layout = node.members.get("layout")
            children = layout.members.get("children") if layout is not None else None
            screen = ScreenView(id_node.text, node)
            screen.components = list(_walk(children, None, 0, ()))
            for one in screen.components:
                if one.kind.is_input:
                    screen.fields.setdefault(one.text("name"), one)
            screens.append(screen)
    return FlowView(root, version.number, screens)


def _walk(
    children: Node | None, form: Node | None, if_depth: int, branch: tuple[str | int, ...]
) -> Iterator[PlacedComponent]:
    for node in children.items if children is not None else []:
        type_node = node.members.get("type")
        kind = COMPONENTS.get((type_node.text if type_node is not None else None) or "")
        if kind is None:
            continue
        yield PlacedComponent(kind, node, form, if_depth, branch)
        members = node.members
        if kind.type == "Form":
            yield from _walk(members.get("children"), node, if_depth, branch)
        elif kind.type == "If":
            for name in ("then", "else"):
                if name in members:
                    yield from _walk(members[name], form, if_depth + 1, members[name].path)
        elif kind.type == "Switch" and "cases" in members:
            for case in members["cases"].members.values():
                yield from _walk(case, form, if_depth, case.path)
