"""Checks of the routing model: the graph of screens, as it is declared or as navigate actions make it.

Source: the operator's pages "Flow JSON", routing rules, and "Error codes", routing model errors.
"""

from collections.abc import Mapping

from waypost.flow_json import errors
from waypost.flow_json.components import MAX_BRANCHES
from waypost.flow_json.errors import Violations
from waypost.flow_json.flow import FlowView, ScreenView
from waypost.flow_json.nodes import Node
from waypost.flow_json.schema import FoundAction

_BY_NAVIGATE = " via navigate screen action"
_ENTRY_ADVICE = "Expected a screen with no inbound edges as the entry screen."
_NAVIGATE_ENTRY_ADVICE = "Add a screen that is not used as the next screen in any of the navigate actions."


def navigations(view: FlowView, actions: list[FoundAction]) -> dict[str, dict[str, Node]]:
    """Return where navigate actions lead: of each screen the next ones, with the node that names it."""
    by_path = {screen.node.path: screen for screen in view.screens}
    routes: dict[str, dict[str, Node]] = {screen.screen_id: {} for screen in view.screens}
    for action in actions:
        screen = by_path.get(action.node.path[:2])
        following = action.node.members.get("next")
        name = following.members.get("name") if following is not None else None
        if action.name == "navigate" and screen is not None and name is not None and name.text in routes:
            routes[screen.screen_id].setdefault(name.text, name)
    return routes


def check_routes(view: FlowView, actions: list[FoundAction], violations: Violations) -> None:
    """Check the routing model, and that the actions agree with it."""
    by_action = navigations(view, actions)
    model = view.root.members.get("routing_model")
    if model is None and view.has_endpoint:
        violations.add_at_name(errors.DATA_API_NEEDS_ROUTES, view.root.members["data_api_version"])
        return
    if model is None:
        _check_graph(view, by_action, view.root.members.get("screens"), violations, is_declared=False)
        return
    routes = _declared_routes(view, model, violations)
    if routes is not None:
        _check_graph(view, routes, model, violations, is_declared=True)
        for source, destinations in by_action.items():
            for destination, node in destinations.items():
                is_known = destination in routes[source] or source in routes[destination]  # back is implicit
                if not is_known and destination != source:
                    violations.add(errors.MISSING_ROUTE, node, source=source, destination=destination)


def _declared_routes(view: FlowView, model: Node, violations: Violations) -> dict[str, dict[str, Node]] | None:
    """Return the declared routes; None if some lead to no screen, which is reported."""
    known = {screen.screen_id for screen in view.screens}
    destinations = {item.text for node in model.members.values() for item in node.items}
    missing = [screen for screen in known if screen not in model.members and screen not in destinations]
    if len(known) == 1 and not model.members:
        missing = []
    unknown = [screen for screen in model.members if screen not in known]
    count = len(violations.found)
    if missing:
        violations.add_at_name(errors.SCREENS_NOT_ROUTED, model, screens=", ".join(sorted(missing)))
    if unknown:
        violations.add_at_name(errors.UNKNOWN_SOURCE, model.members[unknown[0]], screens=", ".join(unknown))
    for node in model.members.values():
        for item in node.items:
            if item.text is not None and item.text not in known:
                violations.add(errors.UNKNOWN_DESTINATION, item, screen=item.text)
    if len(violations.found) > count:
        return None
    routes: dict[str, dict[str, Node]] = {screen.screen_id: {} for screen in view.screens}
    for source, node in model.members.items():
        routes[source] |= {item.text: item for item in node.items if item.text is not None}
    return routes


def _check_graph(
    view: FlowView,
    routes: Mapping[str, Mapping[str, Node]],
    model: Node | None,
    violations: Violations,
    *,
    is_declared: bool,
) -> None:
    if not routes or model is None:
        return
    nodes = {screen.screen_id: screen.node.members["id"] for screen in view.screens}
    for source, destinations in routes.items():
        if len(destinations) > MAX_BRANCHES:
            violations.add(errors.TOO_MANY_BRANCHES, nodes[source], limit=MAX_BRANCHES, screen=source)
    backward = False
    for source, destinations in routes.items():
        for destination, node in destinations.items():
            order = list(routes)
            if source == destination and is_declared:
                violations.add(errors.LOOP, node, screens=source)
                backward = True
            elif source in routes[destination] and order.index(destination) < order.index(source):
                values = {"source": destination, "destination": source}
                violations.add(errors.BACKWARD_ROUTE, node, **values)
                backward = True
    if backward:
        return
    loop = _find_loop(routes)
    reached = {destination for destinations in routes.values() for destination in destinations}
    entries = [screen for screen in routes if screen not in reached]
    if loop:
        node = routes[loop[-1]][loop[0]]
        violations.add(errors.LOOP, node, screens=", ".join(loop))
    elif not entries:
        advice = _ENTRY_ADVICE if is_declared else _NAVIGATE_ENTRY_ADVICE
        violations.add_at_name(errors.NO_ENTRY, model, advice=advice)
    alone = _unconnected(routes)
    if alone:
        via = "" if is_declared else _BY_NAVIGATE
        violations.add(errors.SCREEN_ALONE, nodes[alone[0]], via=via, screens=", ".join(alone))
    elif not loop:
        _check_ends(view.screens, entries, routes, nodes, violations)


def _find_loop(routes: Mapping[str, Mapping[str, Node]]) -> list[str]:
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


def _unconnected(routes: Mapping[str, Mapping[str, Node]]) -> list[str]:
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


def _check_ends(
    screens: list[ScreenView],
    entries: list[str],
    routes: Mapping[str, Mapping[str, Node]],
    nodes: Mapping[str, Node],
    violations: Violations,
) -> None:
    """Check that each entry screen leads to a terminal one; a screen of terms to read may lead nowhere."""
    leading = {screen.screen_id for screen in screens if screen.is_terminal}
    if not leading:
        return
    while more := [screen for screen in routes if screen not in leading and leading & routes[screen].keys()]:
        leading.update(more)
    for entry in entries:
        if entry not in leading:
            violations.add(errors.NO_WAY_TO_END, nodes[entry], screen=entry)
