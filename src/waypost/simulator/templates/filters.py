"""The filters of a list of templates."""

from collections.abc import Callable, Mapping
from typing import Final

from waypost.base.json_values import text_or_none, texts_in
from waypost.simulator.requests import decode_json
from waypost.simulator.templates.template import SimulatedTemplate


def _is_one_of(value: str, filter_value: str) -> bool:
    """True if a value is in a filter: one value, several separated by commas, or a JSON array."""
    if filter_value.startswith("["):
        try:
            options = texts_in(decode_json(filter_value.encode()))
        except ValueError:
            options = [filter_value]
    else:
        options = filter_value.split(",")
    return value.upper() in {option.strip().upper() for option in options}


def _contains_text(template: SimulatedTemplate, filter_value: str) -> bool:
    texts = [template.name, *(text_or_none(part.get("text")) or "" for part in template.components)]
    return any(filter_value.lower() in text.lower() for text in texts)


# fmt: off
TEMPLATE_FILTERS: Final[Mapping[str, Callable[[SimulatedTemplate, str], bool]]] = {  # Source: facts 2.1
    "name":            lambda template, value: template.name == value,
    "name_or_content": _contains_text,
    "status":          lambda template, value: _is_one_of(template.status, value),
    "category":        lambda template, value: _is_one_of(template.category, value),
    "language":        lambda template, value: _is_one_of(template.language, value),
    "quality_score":   lambda template, value: _is_one_of(template.quality, value),
}
# fmt: on


def matches_query(template: SimulatedTemplate, query: Mapping[str, str]) -> bool:
    """True if a template passes every filter of the query."""
    return all(passes(template, query[name]) for name, passes in TEMPLATE_FILTERS.items() if query.get(name))
