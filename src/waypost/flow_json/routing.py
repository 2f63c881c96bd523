"""Checks of the routing model: the graph of screens, as it is declared or as navigate actions make it.

Source: public pages "Flow JSON", routing rules, and "Validator of Flow JSON", routing model.
"""

from collections.abc import Mapping
from typing import TypeAlias

from waypost.flow_json import errors
from waypost.flow_json.components import MAX_BRANCHES, MAX_SCREENS
from waypost.flow_json.errors import Violations
from waypost.flow_json.flow import FlowView
from waypost.flow_json.nodes import Node
from waypost.flow_json.schema import FoundAction

_BY_NAVIGATE = " via navigate screen action"
_ENTRY_ADVICE = "Expected a screen with no inbound edges as the entry screen."
_NAVIGATE_ENTRY_ADVICE = "Add a screen that is not used as the next screen in any of the navigate actions."


_FEWER_ACTIONS = " Reduce navigate actions for the screen."

Routes: TypeAlias = Mapping[str, Mapping[str, Node]]
"""Of each screen the next ones, with the node that names the route."""


def check_routes(view: FlowView, actions: list[FoundAction], violations: Violations) -> None:
    """Check the routing model, and that the actions agree with it."""
    if len(view.screens) > MAX_SCREENS or not view.screens:
        return  # reported; a graph of so many is not worth its time
    by_action = _navigations(view, actions)
    model = view.root.members.get("routing_model")
    if model is None and view.has_endpoint:
        violations.add(errors.DATA_API_NEEDS_ROUTES, view.root)
    if model is None:
        _check_generated(view, by_action, violations)
    else:
        _check_declared(view, model, by_action, violations)


def _navigations(view: FlowView, actions: list[FoundAction]) -> dict[str, dict[str, Node]]:
    """Return where navigate actions lead."""
    by_path = {screen.node.path: screen for screen in view.screens}
    routes: dict[str, dict[str, Node]] = {screen.screen_id: {} for screen in view.screens}
    for action in actions:
        screen = by_path.get(action.node.path[:2])
        following = action.node.members.get("next")
        name = following.members.get("name") if following is not None else None
        if action.name == "navigate" and screen is not None and name is not None and name.text in routes:
            routes[screen.screen_id].setdefault(name.text, name)
    return routes


def _check_generated(view: FlowView, by_action: Routes, violations: Violations) -> None:
    """Check the routes that navigate actions make: a NavigationList may lead to each other screen."""
    lists = {screen.screen_id for screen in view.screens if screen.components_with("NavigationList")}
    ids = {screen.screen_id: screen.node.members["id"] for screen in view.screens}
    routes = {
        source: {**(ids if source in lists else {}), **destinations} for source, destinations in by_action.items()
    }
    for source in lists:
        routes[source].pop(source, None)
    for source, destinations in routes.items():
        if len(destinations) > MAX_BRANCHES:
            node = next(screen.node for screen in view.screens if screen.screen_id == source)
            values = {"limit": MAX_BRANCHES, "screen": source, "advice": _FEWER_ACTIONS}
            violations.add(errors.TOO_MANY_BRANCHES, node, **values)
    entries = _entries(by_action)
    if not entries and not lists:
        violations.add(errors.NO_ENTRY, view.root.members["screens"], advice=_NAVIGATE_ENTRY_ADVICE)
    if len(ids) > 1:
        for screen in _unconnected(routes):
            violations.add(errors.SCREEN_ALONE, ids[screen], via=_BY_NAVIGATE, screens=screen)
    if not lists:
        _check_ends(view, entries, routes, violations)


def _check_declared(view: FlowView, model: Node, by_action: Routes, violations: Violations) -> None:
    ids = {screen.screen_id: screen.node.members["id"] for screen in view.screens}
    named = {item.text for node in model.members.values() for item in node.items}
    for screen in view.screens:
        if screen.screen_id not in model.members and screen.screen_id not in named and not screen.is_terminal:
            violations.add(errors.MISSING_SCREENS, ids[screen.screen_id], screens=screen.screen_id)
    routes: dict[str, dict[str, Node]] = {screen: {} for screen in ids}
    for source, node in model.members.items():
        if source not in ids:
            violations.add_at_name(errors.INVALID_SCREENS, node, screens=source)
        if len(node.items) > MAX_BRANCHES:
            violations.add_at_name(errors.TOO_MANY_BRANCHES, node, limit=MAX_BRANCHES, screen=source, advice="")
        for item in node.items:
            if item.text == source:
                violations.add_at_name(errors.LOOP, node, screens=source)
            elif item.text not in ids:
                violations.add(errors.INVALID_SCREENS, item, screens=item.text)
            elif source in ids:
                routes[source][item.text] = item
    _check_back(routes, violations)
    # From 7.3 on, a screen to which an action leads is no entry, either.
    entries = _entries(routes, by_action if view.version >= (7, 3) else {})
    if not entries:
        violations.add(errors.NO_ENTRY, model, advice=_ENTRY_ADVICE)
    for screen in _unconnected(routes):
        violations.add(errors.SCREEN_ALONE, ids[screen], via="", screens=screen)
    for screen in view.screens:
        source = screen.screen_id
        for destination in by_action[source]:
            is_known = destination in routes[source] or source in routes[destination]  # back is implicit
            if not is_known and destination != source and not screen.components_with("NavigationList"):
                violations.add(errors.MISSING_ROUTE, ids[source], source=source, destination=destination)
    _check_ends(view, entries, routes, violations)


def _check_back(routes: Routes, violations: Violations) -> None:
    """Check that no two screens lead to each other: back is implicit."""
    seen: set[str] = set()
    for source, destinations in routes.items():
        for destination in destinations:
            if source in routes[destination] and not {source, destination} <= seen:
                node = routes[destination][source]
                violations.add(errors.BACKWARD_ROUTE, node, source=source, destination=destination)
                seen |= {source, destination}


def _entries(*several: Routes) -> list[str]:
    """Return the screens to which none leads."""
    reached = {destination for routes in several for one in routes.values() for destination in one}
    return [screen for screen in several[0] if screen not in reached]


def _find_loop(routes: Routes) -> list[str]:
    """Return the screens of one loop, in order; empty if there is none."""
    done: set[str] = set()
    for start in routes:
        path: list[str] = []
        stack = [(start, iter(routes[start]))] if start not in done else []
        path.extend(screen for screen, _ in stack)
        while stack:
            screen, following = stack[-1]
            destination = next((one for one in following if one not in done), None)
            if destination is None:
                done.add(screen)
                stack.pop()
                path.pop()
            elif destination in path:
                return path[path.index(destination) :]
            else:
                path.append(destination)
                stack.append((destination, iter(routes[destination])))
    return []


def _unconnected(routes: Routes) -> list[str]:
    """Return the screens without a connection, in any direction, with the first."""
    neighbours: dict[str, set[str]] = {screen: set(destinations) for screen, destinations in routes.items()}
    for source, destinations in routes.items():
        for destination in destinations:
            neighbours[destination].add(source)
    first = next(iter(routes))
    connected, waiting = {first}, [first]
    while waiting:
        for screen in neighbours[waiting.pop()] - connected:
            connected.add(screen)
            waiting.append(screen)
    return [screen for screen in routes if screen not in connected]


def _check_ends(view: FlowView, entries: list[str], routes: Routes, violations: Violations) -> None:
    """Check that routes end: each entry screen leads to a terminal one, and none leads round."""
    nodes = {screen.screen_id: screen.node.members["id"] for screen in view.screens}
    loop = _find_loop(routes)
    if len(loop) > 1:
        violations.add(errors.CYCLE, nodes[loop[0]], screens=", ".join(loop))
    leading = {screen.screen_id for screen in view.screens if screen.is_terminal}
    if not leading:
        return
    while more := [screen for screen in routes if screen not in leading and leading & routes[screen].keys()]:
        leading.update(more)
    for entry in entries:
        if entry not in leading:
            violations.add(errors.NO_WAY_TO_END, nodes[entry], screen=entry)
