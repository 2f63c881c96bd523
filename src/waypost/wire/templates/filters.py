"""Reads the query of a list of templates as a filter.

A parameter that is absent or empty is ignored. An unknown text is not an error: a status that no template
has gives an empty list, because clients send names of their own. Numbers and booleans that cannot be read
are errors. Source: facts 3.5; decision 0020.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from waypost.domain.errors import invalid_field
from waypost.domain.lifecycle import SENDABLE
from waypost.domain.templates.template import TemplateFilter, TemplateStatus
from waypost.domain.templates.types import canonical_language

QueryReader = Callable[[str], str | None]
"""Returns a parameter of the query, or None."""

DEFAULT_PAGE_SIZE: Final = 20
"""The page size when only a page number is given."""
MAX_PAGE_SIZE: Final = 1_000
MAX_TIME_MS: Final = 2**53
"""The latest time; larger numbers are not exact in every JSON reader."""

_LISTED_STATUSES: Final = frozenset(status.value for status in TemplateStatus) - {"DELETED"}
# fmt: off
_SYNONYMS: Final = {  # Source: facts 3.4
    "SUBMITTED":    TemplateStatus.PENDING.value,
    "IN_REVIEW":    TemplateStatus.PENDING.value,
    "APPEALED":     TemplateStatus.IN_APPEAL.value,
    "REINSTATED":   TemplateStatus.APPROVED.value,
    "DESACTIVATED": TemplateStatus.DISABLED.value,
}
# fmt: on


def read_partner_filter(query: QueryReader) -> TemplateFilter:
    """Read the query of the partner API's list.

    Raises:
        ApiError: a number or a boolean cannot be read.
    """
    statuses = _statuses(query("status"))
    useable = _flag(query, "useable")
    if useable is not None:
        sendable = frozenset(status.value for status in SENDABLE)
        allowed = sendable if useable else _LISTED_STATUSES - sendable
        statuses = allowed if statuses is None else statuses & allowed
    template_filter = TemplateFilter(
        template_id=query("id") or None,
        element_name=query("elementName") or None,
        template_types=_split_list(query("templateType")),
        statuses=statuses,
        stages=_split_list(query("stages")) or _split_list(query("stage")),
        from_ms=_number(query, "startTime", minimum=0, maximum=MAX_TIME_MS),
        until_ms=_number(query, "endTime", minimum=0, maximum=MAX_TIME_MS),
    )
    return _add_page(query, template_filter)


def read_self_serve_filter(query: QueryReader) -> TemplateFilter:
    """Read the query of the self-serve API's list. Source: facts 3.5.

    Raises:
        ApiError: a number cannot be read.
    """
    template_filter = TemplateFilter(
        template_types=_split_list(query("templateType")),
        statuses=_statuses(query("templateStatus")),
        categories=_split_list(query("templateCategory")),
        qualities=_split_list(query("quality")),
        language_code=canonical_language(query("languageCode") or "") or None,
    )
    return _add_page(query, template_filter)


def _add_page(query: QueryReader, template_filter: TemplateFilter) -> TemplateFilter:
    """Return the filter with its page. Pages are numbered from 1; 0 is ignored, because many clients send it."""
    size = _number(query, "pageSize", minimum=0, maximum=MAX_PAGE_SIZE) or None
    number = _number(query, "pageNo", minimum=0, maximum=10**9) or None
    if size is None and number is None:
        return template_filter
    size = size or DEFAULT_PAGE_SIZE
    return replace(template_filter, at_most=size, skipped=((number or 1) - 1) * size)


def _split_list(text: str | None) -> frozenset[str] | None:
    """Return the items of a comma-separated list in upper case; None without any."""
    items = frozenset(item.strip().upper() for item in (text or "").split(","))
    return (items - {""}) or None


def _statuses(text: str | None) -> frozenset[str] | None:
    names = _split_list(text)
    return None if names is None else frozenset(_SYNONYMS.get(name, name) for name in names)


def _number(query: QueryReader, name: str, *, minimum: int, maximum: int) -> int | None:
    text = (query(name) or "").strip()
    if not text:
        return None
    if text.isascii() and text.isdecimal() and len(text) < 20 and minimum <= int(text) <= maximum:
        return int(text)
    raise invalid_field(name, f"a whole number from {minimum} to {maximum}")


def _flag(query: QueryReader, name: str) -> bool | None:
    text = (query(name) or "").strip().lower()
    if not text:
        return None
    if text not in ("true", "false"):
        raise invalid_field(name, "true or false")
    return text == "true"
