"""Checks of screens: ids, numbers of components, names, Forms, Footers, branches, and who tolerates whom."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from waypost.flow_json import errors
from waypost.flow_json.components import (
    ADVISED_COMPONENTS,
    COMPONENTS,
    MAX_CAROUSELS,
    MAX_COMPONENTS,
    MAX_IF_DEPTH,
    MAX_SCREENS,
    PICKERS,
)
from waypost.flow_json.data_model import is_of_type
from waypost.flow_json.errors import Violations
from waypost.flow_json.expressions import is_binding, is_nested
from waypost.flow_json.flow import FlowView, PlacedComponent, ScreenView
from waypost.flow_json.nodes import Node

_RESERVED: Final = "success"
# Source: public page "Validator of Flow JSON": inputs that a Form excludes outside it. CalendarPicker and ChipsSelector
# are not among them.
_WITHIN_FORM: Final = (
    "CheckboxGroup",
    "RadioButtonsGroup",
    "TextArea",
    "TextInput",
    "OptIn",
    "Dropdown",
    "DatePicker",
    "PhotoPicker",
    "DocumentPicker",
)
_CAPTIONS: Final = ("left-caption", "right-caption")
_PATTERN_TYPES: Final = ("text", "password", "passcode", "number")


def check_shapes(view: FlowView, violations: Violations) -> None:
    """Check members that need or exclude one another: the operator counts them to the shape."""
    for screen in view.screens:
        success = screen.node.members.get("success")
        if success is not None and not screen.is_terminal:
            violations.add(errors.SUCCESS_NOT_TERMINAL, success)
        for one in screen.components:
            members = one.node.members
            if one.type == "Footer":
                _check_captions(one.node, violations)
            if one.kind.is_input and one.form is None and view.version < (4, 0):
                violations.add(errors.OUTSIDE_FORM_BEFORE_4, one.node, component=one.type)
            kind = members.get("input-type")
            if "pattern" in members and kind is not None and kind.text not in _PATTERN_TYPES:
                violations.add(errors.INVALID_CHOICE, kind, values=", ".join(_PATTERN_TYPES))


def _check_captions(footer: Node, violations: Violations) -> None:
    sides = [name for name in _CAPTIONS if name in footer.members]
    if "center-caption" in footer.members and sides:
        values = {"first": "center-caption", "others": ",".join(_CAPTIONS), "component": "Footer"}
        violations.add(errors.EXCLUSIVE, footer, **values)
    if len(sides) == 1:
        missing = _CAPTIONS[1] if sides[0] == _CAPTIONS[0] else _CAPTIONS[0]
        violations.add(errors.CAPTION_PAIR, footer, missing=missing, present=sides[0])


def check_screens(view: FlowView, violations: Violations) -> None:
    """Check each screen, and what all of them together need."""
    nodes = view.root.members["screens"].items
    if len(nodes) > MAX_SCREENS:
        violations.add(errors.TOO_MANY_SCREENS, nodes[MAX_SCREENS], limit=MAX_SCREENS, count=len(nodes))
    seen: set[str] = set()
    for screen in view.screens:
        id_node = screen.node.members["id"]
        if screen.screen_id.lower() == _RESERVED:
            violations.add(errors.RESERVED_SCREEN, id_node, screen=screen.screen_id)
        elif screen.screen_id in seen:
            violations.add(errors.DUPLICATE_SCREEN, id_node, screen=screen.screen_id)
        seen.add(screen.screen_id)
        _check_screen(view, screen, violations)
    terminal = [screen for screen in view.screens if screen.is_terminal]
    if not terminal:
        violations.add(errors.NO_TERMINAL, view.root.members["screens"])
    elif all(_is_false(screen.node.members.get("success")) for screen in terminal):
        violations.add(errors.NO_SUCCESS, terminal[0].node.members["success"])
    carousels = [one for screen in view.screens for one in screen.components_with("ImageCarousel")]
    if len(carousels) > MAX_CAROUSELS:
        values = {"component": "ImageCarousel", "limit": MAX_CAROUSELS, "count": len(carousels)}
        violations.add(errors.TOO_MANY_IN_FLOW, carousels[MAX_CAROUSELS].node, **values)


def _is_false(node: Node | None) -> bool:
    return node is not None and node.value is False


def _check_screen(view: FlowView, screen: ScreenView, violations: Violations) -> None:
    members = screen.node.members
    refresh = members.get("refresh_on_back")
    if refresh is not None and refresh.value is True and not view.has_endpoint:
        violations.add(errors.REFRESH_NEEDS_DATA_API, refresh)
    names = {one.text("name") for one in screen.components}
    for item in members["sensitive"].items if "sensitive" in members else ():
        if item.text not in names:
            violations.add(errors.UNKNOWN_SENSITIVE, item, name=item.text, screen=screen.screen_id)
    _check_counts(view, screen, violations)
    _check_names(screen, violations)
    for form in screen.components_with("Form"):
        _check_initial(screen, form.node, violations)
    _check_footers(screen, violations)
    _check_branches(screen, violations)
    _check_company(view, screen, violations)


def _check_counts(view: FlowView, screen: ScreenView, violations: Violations) -> None:
    components = [one for one in screen.components if one.type != "Form"]
    if len(components) > MAX_COMPONENTS:
        values = {"limit": MAX_COMPONENTS, "count": len(components)}
        violations.add(errors.TOO_MANY_ON_SCREEN, components[MAX_COMPONENTS].node.members["type"], **values)
    elif len(components) > ADVISED_COMPONENTS:
        values = {"limit": ADVISED_COMPONENTS, "count": len(components)}
        violations.add(errors.MANY_ON_SCREEN, components[ADVISED_COMPONENTS].node, **values)
    layout = screen.node.members.get("layout")
    counts = _largest_counts(layout.members["children"].items if layout is not None else ())
    for kind in COMPONENTS.values():
        limit = kind.max_per_screen
        if limit is None or counts[kind.type] <= limit or (kind.type == "Form" and view.version < (7, 0)):
            continue
        found = screen.components_with(kind.type)
        values = {"component": kind.type, "limit": limit, "count": len(found)}
        violations.add(errors.TOO_MANY_OF_TYPE, found[limit].node.members["type"], **values)
    if sum(counts[picker] for picker in PICKERS) > 1 and all(counts[picker] for picker in PICKERS):
        violations.add(errors.BOTH_PICKERS, screen.components_with(*PICKERS)[1].node.members["type"])


def _largest_counts(children: Iterable[Node]) -> Counter[str]:
    """Return how many components of each type can be shown at once: of branches, only one is."""
    counts: Counter[str] = Counter()
    for node in children:
        members = node.members
        type_node = members.get("type")
        counts[(type_node.text if type_node is not None else None) or ""] += 1
        counts.update(_largest_counts(members["children"].items if "children" in members else ()))
        one_of: Counter[str] = Counter()
        for branch in branches_of(node):
            one_of |= _largest_counts(branch.items)
        counts.update(one_of)
    return counts


def branches_of(node: Node) -> Iterator[Node]:
    """Yield the branches of an If or a Switch."""
    for name in ("then", "else"):
        if name in node.members:
            yield node.members[name]
    if "cases" in node.members:
        yield from node.members["cases"].members.values()


def _check_names(screen: ScreenView, violations: Violations) -> None:
    """Check that names are unique, and that inputs stand in the Form if there is one."""
    for name, same in screen.names.items():
        if len(same) > 1:
            violations.add(errors.DUPLICATE_NAME, same[1].node.members["name"], name=name)
    if screen.components_with("Form"):
        for one in screen.components_with(*_WITHIN_FORM):
            if one.form is None:
                violations.add(errors.OUTSIDE_FORM, one.node, component=one.type)


def _check_initial(screen: ScreenView, form: Node, violations: Violations) -> None:
    """Check the members of `init-values`."""
    initial = form.members.get("init-values")
    for name, value in initial.members.items() if initial is not None else ():
        one = next(iter(screen.names.get(name, ())), None)
        if one is not None and one.type in PICKERS:
            violations.add_at_name(errors.PICKER_INITIAL, value, component=one.type)
        elif one is None or not one.value_type:
            violations.add(errors.INITIAL_UNUSED, value, name=name)
        elif not _is_expression(value) and not is_of_type(value, one.value_type):
            values = {"name": name, "expected": one.value_type, "found": value.type_name}
            violations.add(errors.INITIAL_TYPE, value, **values)


def _is_expression(node: Node) -> bool:
    return node.text is not None and (is_binding(node.text) or is_nested(node.text))


def _check_footers(screen: ScreenView, violations: Violations) -> None:
    footers = screen.components_with("Footer")
    if screen.is_terminal and not footers:
        violations.add(errors.NO_FOOTER, screen.node, screen=screen.screen_id)
    for one in footers:
        if one.if_depth > 1:
            violations.add(errors.NESTED_FOOTER, one.node)
    for one in screen.components_with("If"):
        then, otherwise = (_has_footer(one.node.members.get(name)) for name in ("then", "else"))
        if then and "else" not in one.node.members:
            violations.add(errors.NO_ELSE_FOOTER, one.node.members["then"])
        elif then is not otherwise:
            violations.add(errors.ONE_BRANCH_FOOTER, one.node.members["else" if then else "then"])
    for one in screen.components_with("Switch"):
        have = [_has_footer(case) for case in one.node.members["cases"].members.values()]
        if any(have) and not all(have):
            violations.add(errors.ONE_CASE_FOOTER, one.node.members["cases"])


def _has_footer(branch: Node | None) -> bool:
    """Return True if a branch has a Footer, itself or in a branch within it."""
    for node in branch.items if branch is not None else []:
        type_node = node.members.get("type")
        if type_node is not None and type_node.text == "Footer":
            return True
        if any(_has_footer(one) for one in branches_of(node)):
            return True
    return False


def _check_branches(screen: ScreenView, violations: Violations) -> None:
    """Check what Ifs and Switches need of their branches."""
    for one in screen.components_with("If"):
        condition = one.node.members["condition"].text
        if condition is not None and not is_nested(condition) and not one.node.members["then"].items:
            violations.add(errors.EMPTY_THEN, one.node.members["then"])
        if _if_depth(one.node) > MAX_IF_DEPTH:
            violations.add(errors.TOO_DEEP_IF, one.node, limit=MAX_IF_DEPTH)
    for one in screen.components_with("Switch"):
        cases = one.node.members["cases"]
        if not cases.members:
            violations.add(errors.EMPTY_CASES, cases)


def _if_depth(node: Node) -> int:
    inner = [one for branch in branches_of(node) for one in branch.items if "condition" in one.members]
    return 1 + max(map(_if_depth, inner), default=0)


def _check_company(view: FlowView, screen: ScreenView, violations: Violations) -> None:
    """Check components that tolerate few others on their screen."""
    lists = screen.components_with("NavigationList")
    if lists and _strangers(screen, "NavigationList", "Form"):
        violations.add(errors.NOT_ALONE, lists[0].node.members["type"], limit="up to 2 NavigationList components")
    if lists and screen.is_terminal:
        violations.add(errors.LIST_ON_TERMINAL, screen.node)
    texts = screen.components_with("RichText")
    allowed = ("RichText", "Footer") if view.version >= (6, 3) else ("RichText",)
    if texts and (len(texts) > 1 or _strangers(screen, *allowed)):
        node = texts[0].node.members["type"]
        if view.version < (6, 0):
            violations.add(errors.RICH_TEXT_ALONE, node)
        elif view.version < (6, 3):
            violations.add(errors.NOT_ALONE, node, limit="one RichText component")
        else:
            violations.add(errors.NOT_ALONE_WITH_FOOTER, node)


def _strangers(screen: ScreenView, *allowed: str) -> list[PlacedComponent]:
    return [one for one in screen.components if one.type not in allowed]
