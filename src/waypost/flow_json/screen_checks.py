"""Checks of screens: ids, numbers of components, names, Forms, Footers, branches, lists and pickers."""

from collections import Counter
from typing import Final

from waypost.flow_json import errors
from waypost.flow_json.components import MAX_COMPONENTS, MAX_IF_DEPTH, MAX_SCREENS, PICKERS
from waypost.flow_json.errors import Violations, root_text, too_many
from waypost.flow_json.flow import FlowView, PlacedComponent, ScreenView
from waypost.flow_json.nodes import Node

RESERVED_SCREEN: Final = "SUCCESS"
# Source: "Components": pairs of a least and a greatest.
_PAIRS: Final = (
    ("min-chars", "max-chars"),
    ("min-selected-items", "max-selected-items"),
    ("min-uploaded-photos", "max-uploaded-photos"),
    ("min-uploaded-documents", "max-uploaded-documents"),
    ("min-date", "max-date"),
    ("min-days", "max-days"),
)
_RANGE_ONLY: Final = ("title", "description", "min-days", "max-days")
_BY_RANGE: Final = ("label", "helper-text", "required", "init-value", "error-message")
_PATTERN_TYPES: Final = ("text", "number", "password", "passcode")


def check_screens(view: FlowView, violations: Violations) -> None:
    """Check each screen, and what all of them together need."""
    screens_node = view.root.members.get("screens")
    if screens_node is None:
        return
    if len(screens_node.items) > MAX_SCREENS:
        violations.add(errors.TOO_MANY_SCREENS, screens_node, limit=MAX_SCREENS, count=len(screens_node.items))
    seen: set[str] = set()
    for screen in view.screens:
        id_node = screen.node.members["id"]
        if screen.screen_id.upper() == RESERVED_SCREEN:
            violations.add(errors.RESERVED_SCREEN, id_node)
        elif screen.screen_id in seen:
            violations.add(errors.DUPLICATE_SCREEN, id_node, screen=screen.screen_id)
        seen.add(screen.screen_id)
        _check_screen(view, screen, violations)
    terminal = [screen for screen in view.screens if screen.is_terminal]
    if view.screens and not terminal:
        violations.add(errors.NO_TERMINAL, screens_node)
    elif terminal and all(_is_false(screen.node.members.get("success")) for screen in terminal):
        violations.add(errors.NO_SUCCESS, terminal[0].node.members["success"])


def _is_false(node: Node | None) -> bool:
    return node is not None and node.value is False


def _check_screen(view: FlowView, screen: ScreenView, violations: Violations) -> None:
    members = screen.node.members
    if "success" in members and not screen.is_terminal:
        violations.add_at_name(errors.SUCCESS_NOT_TERMINAL, members["success"])
    refresh = members.get("refresh_on_back")
    if refresh is not None and refresh.value is True and not view.has_endpoint:
        violations.add(errors.REFRESH_NEEDS_DATA_API, refresh)
    if "sensitive" in members:
        for item in members["sensitive"].items:
            if item.text is not None and item.text not in screen.fields:
                violations.add(errors.UNKNOWN_SENSITIVE, item, name=item.text, screen=screen.screen_id)
    _check_counts(screen, violations)
    _check_forms(view, screen, violations)
    _check_footers(screen, violations)
    _check_company(view, screen, violations)
    for one in screen.components:
        if one.if_depth + (one.type == "If") > MAX_IF_DEPTH:
            violations.add(errors.TOO_DEEP_IF, one.node, limit=MAX_IF_DEPTH)
        _check_component(one, violations)


def _check_counts(screen: ScreenView, violations: Violations) -> None:
    if len(screen.components) > MAX_COMPONENTS:
        node = screen.components[MAX_COMPONENTS].node
        violations.add(errors.TOO_MANY_ON_SCREEN, node, limit=MAX_COMPONENTS, count=len(screen.components))
    counts: Counter[str] = Counter()
    for one in screen.components:
        limit = one.kind.max_per_screen
        counts[one.type] += 1
        if limit is not None and counts[one.type] == limit + 1:
            violations.add(too_many(one.type), one.node, limit=limit, component=one.type)
    pickers = screen.components_with(*PICKERS)
    if len({picker.type for picker in pickers}) > 1:
        violations.add(errors.BOTH_PICKERS, pickers[1].node)


def _check_forms(view: FlowView, screen: ScreenView, violations: Violations) -> None:
    """Check that names are unique, and that inputs stand where their version wants them."""
    names: Counter[str] = Counter()
    has_form = bool(screen.components_with("Form"))
    for one in screen.components:
        if not one.kind.is_input:
            continue
        name = one.text("name")
        names[name] += 1
        if name and names[name] == 2:
            violations.add(errors.DUPLICATE_NAME, one.node.members["name"], name=name)
        if one.form is None and view.version < (4, 0):
            violations.add(errors.OUTSIDE_FORM_BEFORE_4, one.node, component=one.type)
        elif one.form is None and has_form:
            violations.add(errors.OUTSIDE_FORM, one.node, component=one.type)
    for form in screen.components_with("Form"):
        initial = form.node.members.get("init-values")
        for name, value in initial.members.items() if initial is not None else ():
            _check_initial(view, screen.fields.get(name), value, violations)


def _check_initial(view: FlowView, one: PlacedComponent | None, value: Node, violations: Violations) -> None:
    if one is None:
        return
    if one.type in PICKERS:
        violations.add(errors.PICKER_INITIAL, value, component=one.type)
    is_expression = value.text is not None and ("${" in value.text or value.text.startswith("`"))
    if view.version < (7, 0) or is_expression or one.type in {*PICKERS, "CalendarPicker"}:
        return
    expected = one.kind.value_type
    is_number = one.text("input-type") == "number" and value.type_name == "number"
    if value.type_name != expected and not is_number:
        violations.add(errors.INITIAL_TYPE, value, name=one.text("name"), expected=expected, found=value.type_name)


def _check_footers(screen: ScreenView, violations: Violations) -> None:
    footers = screen.components_with("Footer")
    if screen.is_terminal and not footers:
        violations.add(errors.NO_FOOTER, screen.node.members["terminal"], screen=screen.screen_id)
    plain = [one for one in footers if not one.branch]
    if len(plain) > 1 or (plain and len(footers) > 1):
        violations.add(errors.MORE_FOOTERS, footers[1].node)
    for branch in dict.fromkeys(one.branch for one in footers if one.branch):
        inside = [one for one in footers if one.branch == branch]
        if len(inside) > 1:
            violations.add(errors.MORE_FOOTERS, inside[1].node)
    for one in footers:
        if one.if_depth > 1:
            violations.add(errors.NESTED_FOOTER, one.node)
    for one in screen.components_with("If"):
        then, otherwise = (_has_footer(one.node.members.get(name)) for name in ("then", "else"))
        if then and "else" not in one.node.members:
            violations.add(errors.NO_ELSE_FOOTER, one.node.members["then"])
        elif then is not otherwise:
            lacking = one.node.members["else" if then else "then"] if "then" in one.node.members else one.node
            violations.add(errors.ONE_BRANCH_FOOTER, lacking)
    for one in screen.components_with("Switch"):
        cases = one.node.members.get("cases")
        if cases is None:
            continue
        if not cases.members and isinstance(cases.value, dict):
            violations.add(errors.EMPTY_CASES, cases, path=root_text(cases.path))
        have = [_has_footer(case) for case in cases.members.values()]
        if any(have) and not all(have):
            violations.add(errors.ONE_CASE_FOOTER, cases)


def _has_footer(branch: Node | None) -> bool:
    """Return True if a branch has a Footer, itself or in each branch of a Switch or If within it."""
    for node in branch.items if branch is not None else []:
        type_node = node.members.get("type")
        if type_node is not None and type_node.text == "Footer":
            return True
        cases = node.members.get("cases")
        inner = [*(cases.members.values() if cases is not None else ()), node.members.get("then")]
        if any(_has_footer(one) for one in inner if one is not None):
            return True
    return False


def _check_company(view: FlowView, screen: ScreenView, violations: Violations) -> None:
    """Check components that tolerate few others on their screen."""
    others = [one for one in screen.components if one.type != "NavigationList"]
    lists = screen.components_with("NavigationList")
    if lists and others:
        violations.add(errors.NOT_ALONE, lists[0].node, component="NavigationList", other=others[0].type)
    if lists and screen.is_terminal:
        violations.add(errors.LIST_ON_TERMINAL, lists[0].node)
    texts = screen.components_with("RichText")
    allowed = ("RichText", "Footer") if view.version >= (6, 3) else ("RichText",)
    strangers = [one for one in screen.components if one.type not in allowed and one.type != "Form"]
    if texts and (strangers or len(texts) > 1):
        other = strangers[0].type if strangers else "RichText"
        violations.add(errors.NOT_ALONE, texts[0].node, component="RichText", other=other)


def _check_component(one: PlacedComponent, violations: Violations) -> None:
    members = one.node.members
    for least, greatest in _PAIRS:
        low, high = _comparable(members.get(least)), _comparable(members.get(greatest))
        if low is not None and high is not None and type(low) is type(high) and low > high:  # type: ignore[operator]
            violations.add(
                errors.MINIMUM_ABOVE_MAXIMUM,
                members[least],
                minimum=f'"{least}"',
                maximum=f'"{greatest}"',
                component=one.type,
                name=one.text("name"),
            )
    match one.type:
        case "Footer":
            _check_captions(members, violations)
        case "TextInput":
            _check_pattern(one, violations)
        case "NavigationList":
            _check_list(one, violations)
        case "CalendarPicker":
            _check_calendar(one, violations)
        case "If":
            pass
        case _:
            pass


def _comparable(node: Node | None) -> float | str | None:
    """Return a number or a day that can be compared; None for anything else."""
    if node is None or node.value is None:
        return None
    if isinstance(node.value, str):
        return float(node.value) if node.value.isdecimal() else (node.value if node.value[:1].isdigit() else None)
    return float(node.value) if node.type_name == "number" else None


def _check_captions(members: dict[str, Node], violations: Violations) -> None:
    sides = [name for name in ("left-caption", "right-caption") if name in members]
    if "center-caption" in members and sides:
        violations.add_at_name(
            errors.EXCLUSIVE,
            members["center-caption"],
            first="center-caption",
            others=", ".join(("left-caption", "right-caption")),
            component="Footer",
        )
    elif len(sides) == 1:
        missing = "right-caption" if sides[0] == "left-caption" else "left-caption"
        violations.add_at_name(errors.CAPTION_PAIR, members[sides[0]], missing=missing, present=sides[0])


def _check_pattern(one: PlacedComponent, violations: Violations) -> None:
    members = one.node.members
    if "pattern" not in members:
        return
    if "helper-text" not in members:
        values = {"component": one.type, "missing": "helper-text", "present": "pattern"}
        violations.add_at_name(errors.DEPENDENCY, members["pattern"], **values)
    kind = one.text("input-type") or "text"
    if kind not in _PATTERN_TYPES:
        reason = f"it goes with input-type {', '.join(_PATTERN_TYPES)}, not {kind}."
        path = root_text(members["pattern"].path)
        violations.add(errors.INVALID_VALUE, members["pattern"], name="pattern", path=path, reason=reason)


def _check_list(one: PlacedComponent, violations: Violations) -> None:
    members = one.node.members
    items = members["list-items"].items if "list-items" in members else []
    of_items = [item.members["on-click-action"] for item in items if "on-click-action" in item.members]
    if "on-click-action" in members and of_items:
        violations.add_at_name(
            errors.EXCLUSIVE,
            of_items[0],
            first="on-click-action",
            others="on-click-action of list-items",
            component=one.type,
        )
    elif "on-click-action" not in members and items and len(of_items) < len(items):
        violations.add(errors.LIST_ACTION, next(item for item in items if "on-click-action" not in item.members))
    badges = [item.members["badge"] for item in items if "badge" in item.members]
    if len(badges) > 1:
        violations.add_at_name(errors.ONE_BADGE, badges[1])
    ends = [item.members["end"] for item in items if "end" in item.members]
    if ends and one.text("media-size") == "large":
        violations.add_at_name(errors.END_WITH_LARGE, ends[0])


def _check_calendar(one: PlacedComponent, violations: Violations) -> None:
    members = one.node.members
    mode = one.text("mode") or "single"
    if mode not in {"single", "range"}:
        return
    if mode == "single":
        for name in _RANGE_ONLY:
            if name in members:
                reason = "it goes with mode range only."
                path = root_text(members[name].path)
                violations.add(errors.INVALID_VALUE, members[name], name=name, path=path, reason=reason)
    for name in _BY_RANGE:
        node = members.get(name)
        is_expression = node is not None and node.text is not None and ("${" in node.text or node.text[:1] == "`")
        if node is None or is_expression:
            continue
        is_object = isinstance(node.value, dict)
        if is_object != (mode == "range"):
            expected = "object" if mode == "range" else "string"
            path = root_text(node.path)
            violations.add(errors.INVALID_TYPE, node, path=path, expected=expected, found=node.type_name)
