"""The filters of the lists of templates: a query to a wish.

A filter that is absent or empty does not matter. Texts match or do not: a status that no template
has gives an empty list, because clients ask with words of their own. Numbers and booleans that
cannot be read are refused. Source: facts 3.5; decision 0020.
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
"""Gives a field of the query, or None."""

USUAL_PAGE: Final = 20
"""How many templates a page has when only its number is given."""
MOST_A_PAGE: Final = 1_000
LATEST_MS: Final = 2**53
"""No time is later: more is not exact in every reader of JSON."""

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
    """The wish of the partner API's list.

    Raises:
        Refused: a number or a boolean that is none.
    """
    statuses = _statuses(query("status"))
    useable = _flag(query, "useable")
    if useable is not None:
        sendable = frozenset(status.value for status in SENDABLE)
        allowed = sendable if useable else _LISTED - sendable
        statuses = allowed if statuses is None else statuses & allowed
    wish = TemplateWish(
        template_id=query("id") or None,
        element_name=query("elementName") or None,
        template_types=_words(query("templateType")),
        statuses=statuses,
        stages=_words(query("stage")),
        from_ms=_number(query, "startTime", least=0, most=LATEST_MS),
        until_ms=_number(query, "endTime", least=0, most=LATEST_MS),
    )
    return _paged(query, wish)


def self_serve_wish(query: Query) -> TemplateWish:
    """The wish of the self-serve twin's list. Source: facts 3.5.

    Raises:
        Refused: a number that is none.
    """
    wish = TemplateWish(
        template_types=_words(query("templateType")),
        statuses=_statuses(query("templateStatus")),
        categories=_words(query("templateCategory")),
        qualities=_words(query("quality")),
        language_code=spelled(query("languageCode") or "") or None,
    )
    return _paged(query, wish)


def _paged(query: Query, wish: TemplateWish) -> TemplateWish:
    """Pages are numbered from 1; 0 says nothing, as many clients write what they do not mean."""
    size = _number(query, "pageSize", least=0, most=MOST_A_PAGE) or None
    number = _number(query, "pageNo", least=0, most=10**9) or None
    if size is None and number is None:
        return wish
    size = size or USUAL_PAGE
    return replace(wish, at_most=size, skipped=((number or 1) - 1) * size)


def _words(text: str | None) -> frozenset[str] | None:
    """The words of a comma list in capitals; None without any."""
    words = frozenset(word.strip().upper() for word in (text or "").split(","))
    return (words - {""}) or None


def _statuses(text: str | None) -> frozenset[str] | None:
    words = _words(text)
    return None if words is None else frozenset(_SYNONYMS.get(word, word) for word in words)


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
