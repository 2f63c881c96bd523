"""The filter of a list of templates."""

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TemplateFilter:
    """The filter and the page of a list of templates; None: no restriction.

    Attributes:
        statuses: matches any of them, as the other sets do.
        from_ms: created at this time or later.
        until_ms: created at this time or earlier.
        at_most: templates of a page; None: all.
        skipped: number of newer templates, on earlier pages.
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
