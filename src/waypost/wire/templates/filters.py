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
from waypost.domain.templates.filter import TemplateWish
from waypost.domain.templates.languages import spelled
from waypost.domain.templates.template import TemplateStatus

Query = Callable[[str], str | None]
"""Returns a parameter of the query, or None."""

USUAL_PAGE: Final = 20
"""The page size when only a page number is given."""
MOST_A_PAGE: Final = 1_000
LATEST_MS: Final = 2**53
"""The latest time; larger numbers are not exact in every JSON reader."""

_LISTED: Final = frozenset(status.value for status in TemplateStatus) - {"DELETED"}
# fmt: off
_SYNONYMS: Final = {  # Source: facts 3.4
    "SUBMITTED":    TemplateStatus.PENDING.value,
    "IN_REVIEW":    TemplateStatus.PENDING.value,
    "APPEALED":     TemplateStatus.IN_APPEAL.value,
    "REINSTATED":   TemplateStatus.APPROVED.value,
    "DESACTIVATED": TemplateStatus.DISABLED.value,
}
# fmt: on


def partner_wish(query: Query) -> TemplateWish:
    """Read the query of the partner API's list.

    Raises:
        ApiError: a number or a boolean cannot be read.
    """
    statuses = _statuses(query("status"))
    useable = _flag(query, "useable")
    if useable is not None:
        sendable = frozenset(status.value for status in SENDABLE)
        allowed = sendable if useable else _LISTED - sendable
        statuses = allowed if statuses is None else statuses & allowed
    template_filter = TemplateWish(
        template_id=query("id") or None,
        element_name=query("elementName") or None,
        template_types=_words(query("templateType")),
        statuses=statuses,
        stages=_words(query("stage")),
        from_ms=_number(query, "startTime", least=0, most=LATEST_MS),
        until_ms=_number(query, "endTime", least=0, most=LATEST_MS),
    )
    return _paged(query, template_filter)


def self_serve_wish(query: Query) -> TemplateWish:
    """Read the query of the self-serve API's list. Source: facts 3.5.

    Raises:
        ApiError: a number cannot be read.
    """
    template_filter = TemplateWish(
        template_types=_words(query("templateType")),
        statuses=_statuses(query("templateStatus")),
        categories=_words(query("templateCategory")),
        qualities=_words(query("quality")),
        language_code=spelled(query("languageCode") or "") or None,
    )
    return _paged(query, template_filter)


def _paged(query: Query, wish: TemplateWish) -> TemplateWish:
    """Return the filter with its page. Pages are numbered from 1; 0 is ignored, because many clients send it."""
    size = _number(query, "pageSize", least=0, most=MOST_A_PAGE) or None
    number = _number(query, "pageNo", least=0, most=10**9) or None
    if size is None and number is None:
        return wish
    size = size or USUAL_PAGE
    return replace(wish, at_most=size, skipped=((number or 1) - 1) * size)


def _words(text: str | None) -> frozenset[str] | None:
    """Return the items of a comma-separated list in upper case; None without any."""
    items = frozenset(item.strip().upper() for item in (text or "").split(","))
    return (items - {""}) or None


def _statuses(text: str | None) -> frozenset[str] | None:
    names = _words(text)
    return None if names is None else frozenset(_SYNONYMS.get(name, name) for name in names)


def _number(query: Query, name: str, *, least: int, most: int) -> int | None:
    text = (query(name) or "").strip()
    if not text:
        return None
    if text.isascii() and text.isdecimal() and len(text) < 20 and least <= int(text) <= most:
        return int(text)
    raise invalid_field(name, f"a whole number from {least} to {most}")


def _flag(query: Query, name: str) -> bool | None:
    text = (query(name) or "").strip().lower()
    if not text:
        return None
    if text not in ("true", "false"):
        raise invalid_field(name, "true or false")
    return text == "true"
