"""The paths of the console with the scene's values of their parameters."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from waypost.console.route import Audience, PageRoute, RouteKind
from waypost.console.routes import NOT_FOUND_ROUTES, PAGES

_PARAMETER: Final = re.compile(r"\{(\w+)(?::\w+)?\}")

# fmt: off
EXTRA_QUERIES: Final[dict[str, tuple[str, ...]]] = {  # more queries of a page
    "/phones":                   ("?show=15550002001", "?show=15550002001,15550002002,15550002003"),
    "/apps/{app_id}/callbacks/deliveries": ("?state=waiting", "?state=given+up&time=week", "?q=15550002002", "?q=nothing-at-all"),
    "/apps/{app_id}/callbacks/response-times": ("?range=week",),
    "/apps/{app_id}/callbacks/replay":     ("?which=both",),
    "/apps/{app_id}/callbacks/verify":     ("?language=java",),
    "/apps/{app_id}/messages":   ("?state=failed", "?q=15550002002", "?q=nothing-at-all"),
    "/apps/{app_id}/conversations": ("?state=failed", "?state=unread", "?q=Ann", "?q=nothing-at-all"),
    "/apps/{app_id}/conversations/{recipient_id}": ("?part=failed", "?text=nothing-at-all"),
    "/phones/{phone}/script":    ("?preset=customers",),
    "/phones/business/{number}": ("?chat=15550002001",),
    "/requests":                ("?status=4xx", "?route=nothing-at-all"),
    "/apps/{app_id}/templates":  ("?status=REJECTED", "?q=nothing-at-all"),
}
PATH_VALUES: Final[dict[str, dict[str, str]]] = {  # values of the parameters of one path
    "/simulator/faults/new/{on}/{kind}":        {"on": "call", "kind": "error"},
    "/simulator/faults/presets/{key}":          {"key": "none"},
    "/simulator/faults/presets/{key}/disarm":   {"key": "none"},
    "/simulator/templates/{template_id}/{act}": {"act": "approve"},
    "/phones/business/{number}/sync/{sync_type}": {"sync_type": "history"},
    "/simulator/fleets/{name}":                 {"name": "crowd"},
    "/simulator/fleets/{name}/live":            {"name": "crowd"},
    "/simulator/fleets/{name}/drop":            {"name": "crowd"},
}
# fmt: on


@dataclass(frozen=True, slots=True)
class Address:
    """A route, and its path in the scene."""

    row: PageRoute
    path: str

    def __str__(self) -> str:
        return self.path


class NoSample(Exception):
    """A path has a parameter that the scene has no value for."""


def format_problems(problems: Sequence[tuple[str, str]]) -> str:
    """Return each problem once, with the number and the first of its paths; empty without problems."""
    paths_by_problem: dict[str, list[str]] = {}
    for path, problem in problems:
        paths_by_problem.setdefault(problem, []).append(path)
    return "\n".join(
        f"{problem}\n    on {len(paths)}: {', '.join(paths[:6])}" for problem, paths in paths_by_problem.items()
    )


def parameters(row: PageRoute) -> list[str]:
    """Return the names of a path's parameters."""
    return _PARAMETER.findall(row.path)


def fill_path(row: PageRoute, values: Mapping[str, str]) -> str:
    """Return a route's path with values in place of its parameters.

    Raises:
        NoSample: a parameter has no value.
    """
    own = {name: values[f"{row.path} {name}"] for name in parameters(row) if f"{row.path} {name}" in values}
    all_values = {**values, **PATH_VALUES.get(row.path, {}), **own}
    missing = [name for name in parameters(row) if not all_values.get(name)]
    if missing:
        raise NoSample(
            f"{row.kind} {row.path}: the scene has no {', '.join(missing)}; give it one in "
            "tests/console/support/story.py, name_values, or in tests/console/support/addresses.py, PATH_VALUES"
        )
    return _PARAMETER.sub(lambda match: all_values[match[1]], row.path)


def list_routes(*kinds: RouteKind, audience: Audience | None = None) -> list[PageRoute]:
    """Return the routes of these kinds, without the not-found routes."""
    routes = [row for row in PAGES if row not in NOT_FOUND_ROUTES]
    return [row for row in routes if row.kind in kinds and audience in (None, row.audience)]


def addresses(values: Mapping[str, str], *kinds: RouteKind) -> list[Address]:
    """Return all paths of these kinds, also with their extra queries.

    Raises:
        NoSample: a parameter has no value.
    """
    result: list[Address] = []
    for row in list_routes(*kinds):
        path = fill_path(row, values)
        result += [Address(row, path + query) for query in ("", *EXTRA_QUERIES.get(row.path, ()))]
    return result
