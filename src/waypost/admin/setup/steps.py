"""The steps of a plan: one for each part of the document."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Action = Literal["create", "change", "keep"]
Run = Callable[[], Awaitable[Mapping[str, Any]]]
"""Carries out a step; returns what is to be shown once, such as a generated key."""


@dataclass(frozen=True, slots=True)
class Step:
    """The work on one part of the document.

    Attributes:
        kind: of the part, as named to people.
        name: of the part, within its kind.
        fields: the fields that change; empty unless the action is `change`.
        run: carries it out; None for `keep`.
    """

    kind: str
    name: str
    action: Action
    fields: tuple[str, ...] = ()
    run: Run | None = field(default=None, repr=False)


def create(kind: str, name: str, run: Run) -> Step:
    """Return the step that creates a part."""
    return Step(kind, name, "create", run=run)


def change_or_keep(kind: str, name: str, current: Mapping[str, Any], wanted: Mapping[str, Any], run: Run) -> Step:
    """Return the step that gives an existing part the wanted values, or leaves it if it has them.

    Args:
        kind: of the part.
        name: of the part.
        current: its values by field; more than the wanted ones may be there.
        wanted: the values that it must have, by field.
        run: gives it the values.
    """
    fields = tuple(name for name, value in wanted.items() if current[name] != value)
    return Step(kind, name, "change", fields, run) if fields else Step(kind, name, "keep")
