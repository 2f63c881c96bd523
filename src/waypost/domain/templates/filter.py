"""Which templates a list is asked for."""

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TemplateWish:
    """Which templates a list shows; what is None does not matter.

    Attributes:
        statuses: any of them; likewise the other sets.
        from_ms: created then or later.
        until_ms: created then or earlier.
        at_most: of a page; None: all.
        skipped: how many of the newest come on earlier pages.
    """

    template_id: str | None = None
    element_name: str | None = None
    template_types: Collection[str] | None = None
    statuses: Collection[str] | None = None
    stages: Collection[str] | None = None
    categories: Collection[str] | None = None
    qualities: Collection[str] | None = None
    language_code: str | None = None
    from_ms: int | None = None
    until_ms: int | None = None
    at_most: int | None = None
    skipped: int = 0
