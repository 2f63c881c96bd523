"""The console's addresses with what the scene has in place of their parameters."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from waypost.console.route import Audience, PageRoute, RouteKind
from waypost.console.routes import NOT_FOUND_ROUTES, PAGES

_PARAMETER: Final = re.compile(r"\{(\w+)(?::\w+)?\}")

# fmt: off
ALSO: Final[dict[str, tuple[str, ...]]] = {  # what a page shows otherwise, by its query
    "/phones":                   ("?show=15550002001", "?show=15550002001,15550002002,15550002003"),
    "/apps/{app_id}/callbacks/deliveries": ("?state=waiting", "?state=given+up", "?q=15550002002", "?q=nothing-at-all"),
    "/apps/{app_id}/callbacks/response-times": ("?range=week",),
    "/apps/{app_id}/callbacks/replay":     ("?which=both",),
    "/apps/{app_id}/callbacks/verify":     ("?language=java",),
    "/apps/{app_id}/messages":   ("?state=failed", "?q=15550002002", "?q=nothing-at-all"),
    "/apps/{app_id}/templates":  ("?status=REJECTED", "?q=nothing-at-all"),
}
OTHERWISE: Final[dict[str, dict[str, str]]] = {  # what parameters are on one path
    "/simulator/faults/new/{on}/{kind}":        {"on": "call", "kind": "error"},
    "/simulator/faults/presets/{key}":          {"key": "none"},
    "/simulator/templates/{template_id}/{act}": {"act": "approve"},
    "/simulator/fleets/{name}":                 {"name": "crowd"},
    "/simulator/fleets/{name}/live":            {"name": "crowd"},
    "/simulator/fleets/{name}/drop":            {"name": "crowd"},
}
# fmt: on


@dataclass(frozen=True, slots=True)
class Address:
    """One address of the scene."""

    row: PageRoute
    path: str

    def __str__(self) -> str:
        return self.path


class NoSample(Exception):
    """A path has a parameter that the scene has no value for."""


def told(complaints: Sequence[tuple[str, str]]) -> str:
    """Complaints, each once, with how many and which addresses it is about; empty where there are none."""
    about: dict[str, list[str]] = {}
    for path, complaint in complaints:
        about.setdefault(complaint, []).append(path)
    return "\n".join(f"{complaint}\n    on {len(paths)}: {', '.join(paths[:6])}" for complaint, paths in about.items())


def parameters(row: PageRoute) -> list[str]:
    """The names of a path's parameters."""
    return _PARAMETER.findall(row.path)


def filled(row: PageRoute, values: Mapping[str, str]) -> str:
    """A row's path with values in place of its parameters.

    Raises:
        NoSample: there is none for one of them.
    """
    own = {name: values[f"{row.path} {name}"] for name in parameters(row) if f"{row.path} {name}" in values}
    known = {**values, **OTHERWISE.get(row.path, {}), **own}
    missing = [name for name in parameters(row) if not known.get(name)]
    if missing:
        raise NoSample(
            f"{row.kind} {row.path}: the scene has no {', '.join(missing)}; give it one in "
            "tests/console/support/story.py, name_values, or in tests/console/support/addresses.py, OTHERWISE"
        )
    return _PARAMETER.sub(lambda found: known[found[1]], row.path)


def rows(*kinds: RouteKind, who: Audience | None = None) -> list[PageRoute]:
    """The rows of these kinds, but for those that say that there is nothing."""
    there = [row for row in PAGES if row not in NOT_FOUND_ROUTES]
    return [row for row in there if row.kind in kinds and who in (None, row.audience)]


def addresses(values: Mapping[str, str], *kinds: RouteKind) -> list[Address]:
    """All of these kinds, also as their queries show them.

    Raises:
        NoSample: one cannot be named.
    """
    found: list[Address] = []
    for row in rows(*kinds):
        path = filled(row, values)
        found += [Address(row, path + query) for query in ("", *ALSO.get(row.path, ()))]
    return found
