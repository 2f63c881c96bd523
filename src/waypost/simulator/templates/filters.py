"""The filters of a list of templates."""

from collections.abc import Callable, Mapping
from typing import Final

from waypost.base.json_values import text_or_none, texts_in
from waypost.simulator.requests import decode_json
from waypost.simulator.templates.template import Template


def _is_one_of(value: str, wished: str) -> bool:
    """True if a value is in a filter: one value, several separated by commas, or a JSON array."""
    if wished.startswith("["):
        try:
            options = texts_in(decode_json(wished.encode()))
        except ValueError:
            options = [wished]
    else:
        options = wished.split(",")
    return value.upper() in {option.strip().upper() for option in options}


def _says(template: Template, wished: str) -> bool:
    texts = [template.name, *(text_or_none(part.get("text")) or "" for part in template.components)]
    return any(wished.lower() in text.lower() for text in texts)


# fmt: off
FILTERS: Final[Mapping[str, Callable[[Template, str], bool]]] = {  # Source: facts 2.1
    "name":            lambda template, value: template.name == value,
    "name_or_content": _says,
    "status":          lambda template, value: _is_one_of(template.status, value),
    "category":        lambda template, value: _is_one_of(template.category, value),
    "language":        lambda template, value: _is_one_of(template.language, value),
    "quality_score":   lambda template, value: _is_one_of(template.quality, value),
}
# fmt: on


def is_wished(template: Template, query: Mapping[str, str]) -> bool:
    """True if a template passes every filter of the query."""
    return all(passes(template, query[name]) for name, passes in FILTERS.items() if query.get(name))
