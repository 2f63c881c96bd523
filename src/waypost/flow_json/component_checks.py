"""Checks of single components: pairs of limits, dates, lists of navigation, options and texts."""

import re
from datetime import date
from typing import Final

from waypost.flow_json import errors
from waypost.flow_json.errors import FlowRule, Violations
from waypost.flow_json.expressions import is_binding
from waypost.flow_json.flow import FlowView, PlacedComponent, ScreenView
from waypost.flow_json.nodes import Node

_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_MAX_PICTURES: Final = 3
_MAX_END: Final = 2
# Source: public page "Validator of Flow JSON": pairs of a least and a greatest, by component.
_PAIRS: Final = {
    "CheckboxGroup": ("min-selected-items", "max-selected-items"),
    "TextInput": ("min-chars", "max-chars"),
    "PhotoPicker": ("min-uploaded-photos", "max-uploaded-photos"),
    "DocumentPicker": ("min-uploaded-documents", "max-uploaded-documents"),
}
_RANGE_ONLY: Final = ("min-days", "max-days", "title", "description")
_ENDS: Final = ("start-date", "end-date")
# Properties of a CalendarPicker that have a value for each end of a range: their type, and whether both ends must be.
_BY_MODE: Final = {
    "label": ("string", _ENDS),
    "helper-text": ("string", _ENDS[:1]),
    "required": ("boolean", _ENDS[:1]),
    "init-value": ("string", _ENDS[:1]),
    "error-message": ("string", _ENDS[:1]),
}


def check_components(view: FlowView, violations: Violations) -> None:
    """Check each component of each screen."""
    check = _ComponentCheck(view, violations)
    for screen in view.screens:
        for one in screen.components:
            check.check(one, screen)


class _ComponentCheck:
    """Checks components of one Flow."""

    def __init__(self, view: FlowView, violations: Violations) -> None:
        self._view = view
        self._violations = violations

    def check(self, one: PlacedComponent, screen: ScreenView) -> None:
        members = one.node.members
        self._check_pair(one, *_PAIRS.get(one.type, ("", "")), errors.MINIMUM_ABOVE_MAXIMUM)
        match one.type:
            case "TextInput" if "pattern" in members and "helper-text" not in members:
                self._violations.add(errors.PATTERN_HELP, one.node)
            case "TextBody" | "TextCaption" | "RichText":
                self._check_texts(one, screen)
            case "NavigationList":
                self._check_list(one, screen)
            case "ImageCarousel" if len(members["images"].items) > _MAX_PICTURES:
                self._violations.add(errors.TOO_MANY_PICTURES, members["images"], limit=_MAX_PICTURES)
            case "RadioButtonsGroup" | "CheckboxGroup" | "Dropdown":
                self._check_options(one)
            case "DatePicker" if self._view.version >= (5, 0):
                self._check_dates(one)
                self._check_day(one, members.get("init-value"), "init-value", errors.DATE_FORMAT)
            case "CalendarPicker":
                self._check_dates(one)
                self._check_calendar(one)
            case _:
                pass

    def _check_pair(self, one: PlacedComponent, least: str, greatest: str, rule: FlowRule) -> None:
        low, high = one.node.members.get(least), one.node.members.get(greatest)
        if low is None or high is None or "number" not in {low.type_name} & {high.type_name}:
            return
        if low.value > high.value:
            self._add_order(rule, low, one, least, greatest)

    def _add_order(self, rule: FlowRule, node: Node, one: PlacedComponent, least: str, greatest: str) -> None:
        values = {"minimum": least, "maximum": greatest, "component": one.type, "name": one.text("name")}
        self._violations.add(rule, node, **values)

    def _check_texts(self, one: PlacedComponent, screen: ScreenView) -> None:
        for item in one.node.members["text"].items:
            if item.text is not None and is_binding(item.text):
                values = {"component": one.type, "screen": screen.screen_id, "expression": item.text}
                self._violations.add(errors.LIST_ITEM_DYNAMIC, one.node.members["type"], **values)

    def _check_options(self, one: PlacedComponent) -> None:
        items = one.node.members["data-source"].items
        colors = [item.members["color"] for item in items if "color" in item.members]
        if colors and any("image" in item.members for item in items):
            self._violations.add(errors.IMAGE_AND_COLOR, colors[0], component=one.type, name=one.text("name"))
        for name in ("on-select-action", "on-unselect-action"):
            own = [item.members[name] for item in items if name in item.members]
            if own and name in one.node.members:
                self._violations.add(errors.SELECT_TWICE, own[0], name=name)

    def _check_list(self, one: PlacedComponent, screen: ScreenView) -> None:
        members = one.node.members
        items = members["list-items"].items
        own = [item.members["on-click-action"] for item in items if "on-click-action" in item.members]
        if "on-click-action" in members and own:
            self._violations.add(errors.LIST_ACTIONS, members["on-click-action"])
        elif "on-click-action" not in members and items and len(own) < len(items):
            self._violations.add(errors.LIST_ACTION, one.node)
        ends = [item.members["end"] for item in items if "end" in item.members]
        for end in ends:
            if not 1 <= len(end.members) <= _MAX_END:
                self._violations.add(errors.LIST_END, end)
        if ends and one.text("media-size") == "large":
            self._violations.add(errors.END_WITH_LARGE, one.node)
        if sum("badge" in item.members for item in items) > 1:
            self._violations.add(errors.ONE_BADGE, one.node)

    def _check_dates(self, one: PlacedComponent) -> None:
        """Check the ends, and that unavailable days lie between them."""
        members = one.node.members
        for name in ("min-date", "max-date"):
            node = members.get(name)
            if node is not None and not _is_dynamic(node) and not _DAY.fullmatch(node.text or ""):
                self._violations.add(errors.DATE_FORMAT, node)
        low, high = _day(members.get("min-date")), _day(members.get("max-date"))
        if low is not None and high is not None and low > high:
            self._add_order(errors.DATE_ORDER, members["min-date"], one, "min-date", "max-date")
        unavailable = members.get("unavailable-dates")
        for node in unavailable.items if unavailable is not None else ():
            self._check_day(one, node, "unavailable-dates", errors.DATE_FORMAT)

    def _check_day(self, one: PlacedComponent, node: Node | None, name: str, rule: FlowRule) -> None:
        """Check the format of a day, and that it lies between the ends."""
        if node is None or _is_dynamic(node):
            return
        if not _DAY.fullmatch(node.text or ""):
            self._violations.add(rule, node)
            return
        day = _day(node)
        low, high = (_day(one.node.members.get(end)) for end in ("min-date", "max-date"))
        if day is not None and ((low is not None and day < low) or (high is not None and day > high)):
            ends = {"minimum": low or "", "maximum": high or ""}
            self._violations.add(errors.DATE_OUTSIDE, node, name=name, component=one.type, **ends)

    def _check_calendar(self, one: PlacedComponent) -> None:
        members = one.node.members
        mode = one.text("mode") or "single"
        if mode not in {"single", "range"}:
            return
        if mode == "single":
            for name in _RANGE_ONLY:
                if name in members:
                    self._violations.add(errors.RANGE_ONLY, members[name], name=name)
        else:
            self._check_pair(one, "min-days", "max-days", errors.DAYS_ORDER)
        for name in _BY_MODE:
            node = members.get(name)
            if node is not None and not _is_dynamic(node):
                self._check_mode(node, name, mode)
        initial = members.get("init-value")
        if initial is None or _is_dynamic(initial) or isinstance(initial.value, dict) != (mode == "range"):
            return
        ends = [initial] if mode == "single" else [initial.members[end] for end in _ENDS if end in initial.members]
        for node in ends:
            self._check_day(one, node, "init-value", errors.INITIAL_DATE_FORMAT)
        days = [day for day in map(_day, ends) if day is not None]
        if len(days) == len(_ENDS) and days[0] > days[1]:
            self._add_order(errors.DATE_ORDER, initial, one, "start date", "end date")

    def _check_mode(self, node: Node, name: str, mode: str) -> None:
        """Check that a property has one value, or one for each end of a range."""
        kind, required = _BY_MODE[name]
        if isinstance(node.value, dict) != (mode == "range"):
            expected = kind if mode == "single" else f'{{"start-date": {kind}, "end-date": {kind}}}'
            self._violations.add(errors.MODE_TYPE, node, name=name, expected=expected)
            return
        if mode == "range":
            for end in required:
                if end not in node.members:
                    self._violations.add(errors.NO_RANGE_END, node, name=end)
            for other, member in node.members.items():
                if other not in _ENDS:
                    self._violations.add(errors.RANGE_MEMBER, member, name=name)


def _is_dynamic(node: Node) -> bool:
    return node.text is not None and ("${" in node.text or node.text[:1] == "`")


def _day(node: Node | None) -> date | None:
    """Return a day; None if it is none, or an expression."""
    if node is None or node.text is None or not _DAY.fullmatch(node.text):
        return None
    try:
        return date.fromisoformat(node.text)
    except ValueError:
        return None
