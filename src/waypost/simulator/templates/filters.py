"""Which templates a listing asks for."""

from collections.abc import Callable, Mapping
from typing import Final

from waypost.base.json_values import text_or_none, texts_in
from waypost.simulator.requests import decode_json
from waypost.simulator.templates.template import Template


def _is_one_of(value: str, wished: str) -> bool:
    """Whether a value is among the wished ones: one, several with commas, or a JSON array."""
    if wished.startswith("["):
        try:
            options = texts_in(decode_json(wished.encode()))
        except ValueError:
            options = [wished]
    else:
        options = wished.split(",")
    return value.upper() in {option.strip().upper() for option in options}


def _says(template: Template, wished: str) -> bool:
    own = [template.name, *(text_or_none(part.get("text")) or "" for part in template.components)]
    return any(wished.lower() in text.lower() for text in own)


# fmt: off
FILTERS: Final[Mapping[str, Callable[[Template, str], bool]]] = {  # Source: facts 2.1
    "name":            lambda template, wished: template.name == wished,
    "name_or_content": _says,
    "status":          lambda template, wished: _is_one_of(template.status, wished),
    "category":        lambda template, wished: _is_one_of(template.category, wished),
    "language":        lambda template, wished: _is_one_of(template.language, wished),
    "quality_score":   lambda template, wished: _is_one_of(template.quality, wished),
}
# fmt: on


def is_wished(template: Template, query: Mapping[str, str]) -> bool:
    """Whether a template passes every filter of the query."""
    return all(passes(template, query[name]) for name, passes in FILTERS.items() if query.get(name))
